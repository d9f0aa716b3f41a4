"""What a provider's cache should hold: how it keeps prompts, and how much of a request it can give back.

The facts, with the documentation they are from, are in ``providers.dialects``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from agent_tui.context.cache.paths import ROOT, SentPaths
from agent_tui.context.cache.prefix import MODEL, SERVER, TTL, differing_settings, same_fixed, sent_fixed
from agent_tui.context.sent.reasoning_runs import differences
from agent_tui.models.steps import Step
from agent_tui.providers.dialects.record import (
    HOUR,
    Caching,
)


def life_of(step: Step, caching: Caching) -> float | None:
    """Seconds that what a step left in the cache is kept without being used; None where that is not known for sure.
    The clock runs from the beginning of the request."""
    usage = step.counted
    if caching.life is None or usage is None:
        return None
    if usage.cache_write_1h:
        return HOUR
    # Asked for an hour, and nobody says that it was written for less.
    return HOUR if wants_hour(step) and not (usage.cache_write and usage.cache_write_1h == 0) else caching.life


def wants_hour(step: Step) -> bool:
    """Whether a request asks its provider to keep it for an hour."""
    return step.sent is not None and step.sent.settings.get(TTL) == "1h"


def held(step: Step, caching: Caching) -> int:
    """Tokens of a step's input that its provider keeps."""
    usage = step.counted
    if usage is None or usage.source != "provider" or not usage.context:
        return 0
    if caching.keeping == "markers":
        read, write = usage.cache_read, usage.cache_write
        kept = usage.input if read is None or write is None else read + write
        return kept if kept >= caching.minimum else 0
    return _in_units(usage.input, caching)


def _in_units(tokens: int, caching: Caching) -> int:
    return tokens // caching.unit * caching.unit if tokens >= caching.minimum else 0


@dataclass(slots=True, frozen=True)
class Sizes:
    """Tokens of the beginnings of a request: of its first fixed parts in the order on the wire, and of all of them with
    its first messages. They are asked for only where a request is not just longer than the one before."""

    fixed: Callable[[int], int]
    messages: Callable[[int], int]


@dataclass(slots=True, frozen=True)
class Reach:
    """What an earlier step left for a request. ``tokens`` can be read as long as it lives; ``touched`` is when that was
    last used, ``life`` how long it is kept from then on. ``place`` is the number of messages before its end. ``whole``:
    the request begins with all of that step, and the tokens are no estimate."""

    step: Step
    tokens: int
    touched: float
    life: float | None
    place: int
    whole: bool

    def alive(self, now: float, gone: float | None) -> bool:
        """False only where it is documented that it is gone."""
        limit = self.life if self.life is not None else gone
        return limit is None or now - self.touched <= limit


def reaches(
    step: Step, earlier: Sequence[Step], paths: SentPaths, caching: Caching, sizes: Sizes, most: int = 32
) -> list[Reach]:
    """What earlier steps, newest first, left for this one in the same cache. Where it goes on from the newest of them
    no other is looked at; beyond ``most`` of them only those that end where this one has a marker, up to the first that
    it goes on from: what they left is known to the token."""
    found: list[Reach] = []
    marks, looked = step.sent.marks if step.sent is not None else [], 0
    for other in reversed(earlier):
        ends = paths.end(other)
        if looked >= most and (ends is None or paths.depth(ends) not in marks):
            continue
        if not comparable(other) or not same_cache(other, step):
            continue
        new = reach(step, other, paths, caching, sizes)
        found, looked = found + new, looked + 1
        if any(one.whole for one in new) and (looked == 1 or looked > most):
            break
    known = {one.place: one.tokens for one in found if one.whole}
    return [replace(one, tokens=known.get(one.place, one.tokens)) for one in found]


def comparable(step: Step) -> bool:
    """Whether it is known what a step sent, and that it arrived."""
    return step.kind == "turn" and step.sent is not None and step.counted is not None and step.status != "running"


def same_cache(one: Step, other: Step) -> bool:
    """Whether two steps went to the same model at the same place."""
    return not {MODEL, SERVER} & set(differing_settings(one, other))


def reach(step: Step, other: Step, paths: SentPaths, caching: Caching, sizes: Sizes) -> list[Reach]:
    """What one earlier step left for this one: with markers every marked place is kept by itself."""
    end, begun = paths.end(step), paths.end(other)
    if end is None or begun is None or step.sent is None or other.sent is None:
        return []
    life = life_of(other, caching)
    losses = {caching.loses.get(name) for name in differing_settings(other, step)}
    mine, theirs = sent_fixed(step), sent_fixed(other)
    same = same_fixed(theirs, mine)
    fixed_whole = same == len(mine) == len(theirs)
    if "all" in losses:
        return []
    depth = 0
    if fixed_whole and "messages" not in losses:
        depth = _counted(step, other, paths.shared(end, begun))
    whole = fixed_whole and depth == paths.depth(begun)
    if caching.keeping == "automatic":
        tokens = held(other, caching) if whole else _in_units(_size(same, fixed_whole, depth, sizes), caching)
        return [Reach(other, tokens, other.created, life, depth, whole)] if tokens else []
    found: list[Reach] = []
    for mark in other.sent.marks:
        if mark > depth or (mark and not _seen_from(paths, end, mark, step.sent.marks, caching.look_back)):
            continue
        before_documents = sum(part.row != "documents" for part in mine)
        if not mark and same < min(before_documents, sum(part.row != "documents" for part in theirs)):
            continue
        last = whole and mark == other.sent.marks[-1]
        tokens = held(other, caching) if last else sizes.messages(mark) if mark else sizes.fixed(before_documents)
        if tokens >= caching.minimum:
            found.append(Reach(other, tokens, other.created, life, mark, last))
    return sorted(found, key=lambda one: -one.tokens)


def _size(same: int, fixed_whole: bool, depth: int, sizes: Sizes) -> int:
    return sizes.messages(depth) if fixed_whole else sizes.fixed(same)


def _counted(step: Step, other: Step, depth: int) -> int:
    """Where providers leave out what they were sent of earlier reasoning, the prompt that they read differs from there
    on, although what we sent is the same."""
    if other.sent_reasoning is None or step.sent_reasoning is None:
        return depth
    first = next(differences(other.sent_reasoning, step.sent_reasoning, depth), None)
    return depth if first is None else min(depth, first[0])


def _seen_from(paths: SentPaths, end: int, place: int, marks: Sequence[int], look_back: int) -> bool:
    """Says whether a kept place is among the ``look_back`` blocks that end at one of the markers of a request."""
    at = paths.blocks(paths.ancestor(end, place)) if place else paths.blocks(ROOT)
    return any(mark >= place and paths.blocks(paths.ancestor(end, mark)) - at < look_back for mark in marks)
