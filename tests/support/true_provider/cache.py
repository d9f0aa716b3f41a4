"""A true prefix cache: what was sent before, up to the first difference."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.true_provider.wire import Segment, digest

LOOK_BACK = 20
"""Blocks before a marker in which an explicit cache looks for what it has."""


class PrefixCache:
    """``explicit``: only what the client marks is written and found (Anthropic); else everything is, in steps of 128
    tokens (OpenAI, Gemini). Nothing below ``minimum`` tokens is cached."""

    def __init__(self, explicit: bool, minimum: int = 1_024) -> None:
        self._explicit, self._minimum = explicit, minimum
        self._known: set[str] = set()

    def use(self, segments: Sequence[Segment]) -> tuple[int, int]:
        """Tokens read from the cache and written to it by this request."""
        hashes, sums, value, total = [], [], "", 0
        for segment in segments:
            value, total = digest(value, segment.key), total + segment.tokens
            hashes.append(value)
            sums.append(total)
        marks = [i for i, s in enumerate(segments) if s.marked] if self._explicit else [len(segments) - 1]
        found = -1
        for mark in marks:
            lowest = max(0, mark - LOOK_BACK) if self._explicit else 0
            found = max([found, *(i for i in range(lowest, mark + 1) if hashes[i] in self._known)])
        read = sums[found] if found >= 0 else 0
        if not self._explicit:
            self._known.update(hashes)
            return (read // 128 * 128 if read >= self._minimum else 0), 0
        written = [mark for mark in marks if sums[mark] >= self._minimum]
        self._known.update(hashes[mark] for mark in written)
        return read, max(0, sums[written[-1]] - read) if written else 0
