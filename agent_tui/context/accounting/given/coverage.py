"""What the provider read from its cache in the newest turn step, as a share of each row.

A cache holds the beginning of a request, so the tokens read are those of the rows in the order in which they are sent:
tools, system prompt, environment, memory, skills, documents, then the messages. Where the reading ends inside a row,
that row is read in part.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent_tui.models.rows import FIXED_ROWS
from agent_tui.models.steps import FixedPart, Step

PREAMBLE = FixedPart("tools", "preamble", "tool use preamble", 0, "preamble", 0, 0)
"""Stands for the instructions about tools that a provider adds by itself."""

Reach = tuple[int, int, int] | str | None


class Coverage:
    """How far the newest turn step was read from the provider's cache.

    Whole requests that the reading covered give the place without any estimate: ``until`` is the index before which
    all messages were read, ``after`` the one from which on none was, and ``between`` the tokens read in between
    (before the first measured answer: of the ephemeral parts and the first messages). ``whole``: the ephemeral parts
    were read to their end.
    """

    def __init__(self, chain: Sequence[Step]) -> None:
        self.step = next((s for s in reversed(chain) if s.kind == "turn"), None)
        usage = self.step.counted if self.step is not None else None
        self.read = usage.cache_read if usage is not None else None
        self.until = self.after = self.between = 0
        self.whole = False
        self.sent: frozenset[tuple[str, str]] = frozenset()
        if self.step is None or self.read is None:
            return
        self.sent = frozenset(_same_part(p) for p in with_preamble(self.step.fixed))
        end = self.step.sent_count
        self.between, self.after = self.read, min(chain[0].sent_count, end)
        for number in range(len(chain) - 1, -1, -1):
            earlier = chain[number]
            if earlier.sent_count <= end and earlier.counted is not None and earlier.counted.input <= self.read:
                self.whole = True
                self.until, self.between = earlier.sent_count, self.read - earlier.counted.input
                following = chain[number + 1].sent_count if number + 1 < len(chain) else end
                self.after = min(following, end)
                break

    def reach(self, start: int, end: int) -> Reach:
        """What rows of the messages ``[start, end)`` must have in common with others to be read alike."""
        if self.read is None:
            return None
        if end <= self.until:
            return "read"
        return "new" if start >= self.after else (self.until, self.after, self.between)

    def expected(self) -> int | None:
        """Tokens of the next request that will be read: what was read and written in this step. None where the
        provider does not report what it writes."""
        usage = self.step.counted if self.step is not None else None
        if usage is None or usage.cache_read is None or usage.cache_write is None:
            return None
        return min(usage.input, usage.cache_read + usage.cache_write)


class Reading:
    """Shares out what was read over rows that are asked about in the order in which they are sent. ``left`` is what
    the rows that follow may have of it."""

    __slots__ = ("_coverage", "left")

    def __init__(self, coverage: Coverage, left: int | None = None) -> None:
        self._coverage = coverage
        self.left = coverage.between if left is None else left

    @property
    def unsent(self) -> int | None:
        """Of what is in no request."""
        return None if self._coverage.read is None else 0

    def message(self, index: int, tokens: int) -> int | None:
        """How many of a row's tokens were read; it belongs to the message at ``index``. None: the provider did not
        say."""
        coverage = self._coverage
        if coverage.read is None:
            return None
        if index < coverage.until:
            return tokens
        return 0 if index >= coverage.after else self._take(tokens)

    def part(self, part: FixedPart, tokens: int) -> int | None:
        """The same of an ephemeral part; what was not sent in that step was not read."""
        coverage = self._coverage
        if coverage.read is None:
            return None
        if _same_part(part) not in coverage.sent:
            return 0
        return tokens if coverage.whole else self._take(tokens)

    def _take(self, tokens: int) -> int:
        taken = min(self.left, tokens)
        self.left -= taken
        return taken


NOTHING_KNOWN = Coverage(())


def with_preamble(parts: Sequence[FixedPart]) -> list[FixedPart]:
    """The parts with, before them, what some families add to a request that has any tool."""
    tools = any(p.row == "tools" and p.deferred_tokens is None for p in parts)
    return [PREAMBLE, *parts] if tools else list(parts)


def wire_order(parts: Sequence[FixedPart]) -> list[int]:
    """Numbers of the parts that are sent, in the order in which they are."""
    sent = [i for i, p in enumerate(parts) if p.deferred_tokens is None and p.change != "waiting"]
    return sorted(sent, key=lambda i: FIXED_ROWS[parts[i].row].sent)


def unchanged(now: Sequence[FixedPart], then: Sequence[FixedPart]) -> list[int] | None:
    """Numbers of the parts of ``now`` before the first that is another than ``then``; None when all are the same."""
    old = [then[i].fingerprint for i in wire_order(then)]
    order = wire_order(now)
    new = [now[i].fingerprint for i in order]
    if new == old:
        return None
    same = next((n for n, (a, b) in enumerate(zip(new, old, strict=False)) if a != b), min(len(new), len(old)))
    return order[:same]


def covered(tokens: int, read: int | None) -> bool | None:
    """The flag of a row: whether it was read whole. None where nothing is known, or there is nothing to read."""
    return None if read is None or not tokens else read == tokens


def total_read(reads: Sequence[int | None]) -> int | None:
    """The sum over rows; None as soon as one is not known."""
    known = [r for r in reads if r is not None]
    return sum(known) if known and len(known) == len(reads) else None


def _same_part(part: FixedPart) -> tuple[str, str]:
    return part.row, part.fingerprint
