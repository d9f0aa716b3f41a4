"""A true prefix cache: what was sent before, up to the first difference, as long as it lives.

It knows nothing but the pieces of the prompts it gets, and what it did with them itself.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tests.support.true_provider.wire import Segment, digest

LOOK_BACK = 20
"""Blocks in which an explicit cache looks for what it has, from a marker backwards; the marked one is the first."""

Why = Literal["", "differs", "expired", "dropped"]


@dataclass(slots=True)
class LastPrompt:
    """The prompt that was sent last, to whichever of a client's providers."""

    pieces: Counter[str] = field(default_factory=Counter)
    tokens: int = 0


@dataclass(slots=True, frozen=True)
class Verdict:
    """What a provider knows of one prompt: ``repeated`` tokens of it were in the client's prompt before, or could have
    been read. Those that were not read ``differ`` in what stands before them, are ``expired``, or were ``dropped``."""

    input: int
    read: int
    repeated: int
    differ: int
    expired: int
    dropped: int

    @property
    def why(self) -> Why:
        """The largest of the reasons."""
        parts: dict[Why, int] = {"expired": self.expired, "dropped": self.dropped, "differs": self.differ}
        return max(parts, key=lambda name: parts[name]) if self.missed > 0 else ""

    @property
    def missed(self) -> int:
        return self.repeated - self.read


class PrefixCache:
    """``explicit``: only what the client marks is written and found (Anthropic); else everything is, in steps of
    ``unit`` tokens. Nothing below ``minimum`` tokens is cached. What was not used for ``life`` seconds is gone."""

    def __init__(
        self,
        explicit: bool,
        minimum: int = 1_024,
        unit: int = 128,
        life: float | None = None,
        clock: Callable[[], float] = time.time,
        last: LastPrompt | None = None,
    ) -> None:
        self._explicit, self._minimum, self._unit, self._life, self._clock = explicit, minimum, unit, life, clock
        self._used: dict[str, float] = {}
        self._dropped: set[str] = set()
        self._last = last if last is not None else LastPrompt()
        self.verdict: Verdict | None = None

    def drop(self) -> None:
        """Gives up everything, as a server does that needs the room."""
        self._dropped.update(self._used)
        self._used.clear()

    def evict(self) -> None:
        """Gives up the newer half of what it has: the ends of prompts, for the most part."""
        kept = list(self._used)
        for gone in kept[len(kept) // 2 :]:
            self._dropped.add(gone)
            del self._used[gone]

    def use(self, segments: Sequence[Segment], own: bool = True) -> tuple[int, int]:
        """Tokens read from the cache and written to it by this request. ``own``: it is of the conversation itself, and
        not for a summary of it."""
        now = self._clock()
        hashes, sums, value, total = [], [], "", 0
        for segment in segments:
            value, total = digest(value, segment.key), total + segment.tokens
            hashes.append(value)
            sums.append(total)
        marks = [i for i, s in enumerate(segments) if s.marked] if self._explicit else [len(segments) - 1]
        known = self._used.keys()
        alive = {h for h in known if self._life is None or now - self._used[h] <= self._life}
        blocks = _blocks_before(segments)

        def longest(of: set[str]) -> int:
            found = -1
            for mark in marks:
                within = (i for i in range(mark, -1, -1) if not self._explicit or blocks[mark] - blocks[i] < LOOK_BACK)
                found = max(found, next((i for i in within if hashes[i] in of), -1))
            return found

        found = longest(alive)
        read = self._counted(sums[found] if found >= 0 else 0)
        any_age, ever = longest(set(known)), longest({*known, *self._dropped})
        unexpired, whole = (self._counted(sums[i] if i >= 0 else 0) for i in (any_age, ever))
        if own:
            self._judge(segments, read, unexpired, whole)
        written = [mark for mark in marks if sums[mark] >= self._minimum] if self._explicit else range(len(hashes))
        for index in {*written, *([found] if found >= 0 else [])}:
            self._used[hashes[index]] = now
        if not self._explicit:
            return read, 0
        return read, max(0, sums[max(written)] - read) if written else 0

    def _counted(self, tokens: int) -> int:
        if self._explicit:
            return tokens
        return tokens // self._unit * self._unit if tokens >= self._minimum else 0

    def _judge(self, segments: Sequence[Segment], read: int, unexpired: int, ever: int) -> None:
        left, again, total = self._last.pieces.copy(), 0, sum(s.tokens for s in segments)
        for segment in segments:
            if left[segment.key] > 0:
                left[segment.key] -= 1
                again += segment.tokens
        repeated = max(ever, min(again, self._last.tokens))
        self.verdict = Verdict(total, read, repeated, repeated - ever, unexpired - read, ever - unexpired)
        self._last.pieces, self._last.tokens = Counter(s.key for s in segments), total


def _blocks_before(segments: Sequence[Segment]) -> list[int]:
    """How many content blocks there are up to each piece; what frames a message is none."""
    found, count = [], 0
    for segment in segments:
        count += segment.block
        found.append(count)
    return found
