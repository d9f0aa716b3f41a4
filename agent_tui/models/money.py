"""What model calls cost, with what is not known of it."""

from __future__ import annotations

from dataclasses import dataclass

from agent_tui.models.messages import Metadata


@dataclass(slots=True, frozen=True)
class Cost:
    """US dollars of some model calls: ``known`` of what has a price, ``unpriced`` how many calls have none, or are
    known in part alone."""

    known: float = 0.0
    unpriced: int = 0

    @property
    def whole(self) -> float | None:
        """All of it; None when a call has no price."""
        return None if self.unpriced else self.known

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.known + other.known, self.unpriced + other.unpriced)


NO_COST = Cost()


def cost_fields(cost: Cost) -> Metadata:
    """The cost as JSON has it wherever it stands: ``cost_usd`` is null when anything is unknown."""
    return {"cost_usd": cost.whole, "cost_known_usd": cost.known, "unpriced_calls": cost.unpriced}
