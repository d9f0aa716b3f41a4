"""What the context screen shows at one time: the session as it is now, or as it was at one of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent_tui.models.context import ContextUsage
from agent_tui.models.steps import CompactionRecord
from agent_tui.models.usage import Prices


@dataclass(slots=True, frozen=True)
class Moment:
    """``usage`` are the numbers. With ``before``, those of another moment, every row has its signed difference.
    ``title`` is a line above all else, such as "Step 12 of 40"; empty for the session as it is now. ``told`` is what
    else there is to say of a step, a line each; ``problem`` says why there are no numbers. ``trigger`` is the
    compactor's own total at that moment; None where there was none to ask, and the numbers' own stands in.
    ``in_flight`` are tokens of a running answer that no usage knows yet. ``now`` is the time (seconds since the epoch)
    that ages are counted from; ``read_only`` says why nothing can be sent, empty where it can."""

    usage: ContextUsage
    before: ContextUsage | None = None
    title: str = ""
    told: tuple[str, ...] = ()
    problem: str = ""
    trigger: int | None = None
    in_flight: int = 0
    records: Sequence[CompactionRecord] = ()
    prices: Prices | None = None
    now: float = 0.0
    read_only: str = ""
