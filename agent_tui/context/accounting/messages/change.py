"""What is taken away: a term of the formula, and of the differences between steps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class Change:
    """Tokens by which something is smaller than it was; ``estimated``: not only provider numbers are in it."""

    tokens: int = 0
    estimated: bool = False

    def __add__(self, other: Change) -> Change:
        return Change(self.tokens + other.tokens, self.estimated or other.estimated)


NO_CHANGE = Change()
