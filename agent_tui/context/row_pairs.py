"""The rows of a breakdown beside those of another moment: signed tokens by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent_tui.models.context import ContextRow
from agent_tui.records import dataclass

GONE_SHOWN = 4
"""So many rows in a row that went are shown each; more are one line."""


@dataclass(slots=True, frozen=True)
class Pair:
    """A row ``now`` with what it was ``before``; None: it was not, or is not, there. ``count`` rows that went are told
    as one line, ``tokens`` being what they were together."""

    now: ContextRow | None
    before: ContextRow | None
    count: int = 1
    tokens: int = 0

    @property
    def change(self) -> int:
        """Tokens more than before; negative for fewer."""
        return (self.now.tokens if self.now is not None else 0) - self.tokens


def pairs(now: Sequence[ContextRow], before: Sequence[ContextRow]) -> Iterator[Pair]:
    """The rows of one level in their order, those that went where they stood. The changes add up to that of their
    parents.

    A row is the same where its id, and for messages that of the message, is; of several alike the first is the first.
    """
    places: dict[str, list[int]] = {}
    for place in range(len(before) - 1, -1, -1):
        places.setdefault(identity(before[place]), []).append(place)
    found = [waiting.pop() if (waiting := places.get(identity(row))) else None for row in now]
    kept, done = set(found), 0
    for row, known in zip(now, found, strict=True):
        if known is None:
            yield Pair(row, None)
            continue
        if known >= done:
            yield from _gone([before[i] for i in range(done, known) if i not in kept])
            done = known + 1
        yield Pair(row, before[known], tokens=before[known].tokens)
    yield from _gone([before[i] for i in range(done, len(before)) if i not in kept])


def identity(row: ContextRow) -> str:
    """By what a row is known at another moment."""
    return row.part_id or row.id


def _gone(rows: list[ContextRow]) -> Iterator[Pair]:
    if len(rows) <= GONE_SHOWN:
        yield from (Pair(None, row, tokens=row.tokens) for row in rows)
    else:
        yield Pair(None, rows[0], len(rows), sum(row.tokens for row in rows))
