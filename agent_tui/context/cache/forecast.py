"""Before it costs: what the next request will find in the provider's cache, what it pays anew, and why.

The same rules hold as for what was paid (``attribute``): nothing is said below its thresholds, of providers that have
not shown that they cache, and of what nobody can foresee.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from agent_tui.context.cache.attribute import (
    LEAST_SHARE,
    LEAST_TOKENS,
    Parts,
    caches,
    cause_of,
    changed,
    matters,
    repeated,
)
from agent_tui.context.cache.expected import Reach, Sizes, comparable, reaches, wants_hour
from agent_tui.context.cache.paths import SentPaths
from agent_tui.models.cache import CacheOutlook, ColdRequest
from agent_tui.models.steps import Step
from agent_tui.models.usage import Prices, TokenUsage
from agent_tui.providers.dialects.record import UNSAID, Caching


@dataclass(slots=True, frozen=True)
class Prospect:
    """What is known of the next request's cache whatever time passes until it is sent: ``step`` is what it would send,
    ``newest`` the one before; of its input ``again`` tokens were sent before, and ``found`` is what of it can be read
    while it lives. ``ours`` says in words what of ours differs first from the step before."""

    step: Step
    newest: Step
    again: int
    found: tuple[Reach, ...]
    ours: str
    caching: Caching
    prices: Prices


def prospect(
    step: Step,
    earlier: Sequence[Step],
    paths: SentPaths,
    caching: Caching,
    sizes: Sizes,
    prices: Prices,
    summaries: Collection[str] = (),
) -> Prospect | None:
    """That of a step that is not sent yet; its usage is what the calculator expects. ``earlier``, ``paths`` and
    ``summaries`` as for ``attribute.judge``. None where nothing was sent yet, or the provider says nothing of a cache.
    """
    newest = next((s for s in reversed(earlier) if comparable(s)), None)
    if newest is None or step.counted is None or paths.end(step) is None:
        return None
    if not _expected_to_tell(step, earlier, newest, caching):
        return None
    found = tuple(reaches(step, earlier, paths, caching, sizes))
    could = max((reach.tokens for reach in found), default=0)
    difference = changed(step, newest, paths, summaries)
    ours = "" if difference is None else difference.what
    again = max(could, repeated(step, newest, paths, sizes)) if matters(difference, caching) else could
    return Prospect(step, newest, min(again, step.counted.input), found, ours, caching, prices)


def _expected_to_tell(step: Step, earlier: Sequence[Step], newest: Step, caching: Caching) -> bool:
    """Whether the provider has shown that it caches; one that was switched to is believed what it documents, where the
    one before has shown it."""
    if any(caches(s.counted) for s in reversed(earlier) if s.provider == step.provider):
        return True
    return newest.provider != step.provider and caching != UNSAID and caches(newest.counted)


def outlook(known: Prospect, now: float) -> CacheOutlook:
    """What the next request will find if it is sent at a time (seconds since the epoch)."""
    step, caching, prices = known.step, known.caching, known.prices
    total = step.counted.input if step.counted is not None else 0
    could = min(total, max((reach.tokens for reach in known.found), default=0))
    alive = [reach for reach in known.found if reach.alive(now, caching.gone)]
    read = min(total, max((reach.tokens for reach in alive), default=0))
    usd = input_usd(step, total, read, caching, prices)
    short = known.again - read
    if short < LEAST_TOKENS or short < LEAST_SHARE * total:
        return CacheOutlook(read, usd, None, _until(alive, read))
    sent = replace(step, created=now)
    cause, what = cause_of(sent, known.newest, caching, known.ours, Parts(known.again, could, read, read, known.found))
    if cause == "unknown":
        return CacheOutlook(read, usd)
    warm = input_usd(step, total, known.again, caching, prices)
    return CacheOutlook(read, usd, ColdRequest(cause, what, short, not read, usd, warm), _until(alive, read))


def _until(alive: Sequence[Reach], read: int) -> float | None:
    """When that much can no longer be read: what was left by whichever step lives longest."""
    ends = [r.touched + r.life for r in alive if r.life is not None and r.tokens >= read]
    return max(ends, default=None) if read >= LEAST_TOKENS else None


def input_usd(step: Step, total: int, read: int, caching: Caching, prices: Prices) -> float | None:
    """Dollars of an input of which so many tokens are read; the rest is written where the provider sells that."""
    fresh = total - read
    written = fresh if caching.keeping == "markers" and total >= caching.minimum else None
    hour = written if wants_hour(step) else None
    return prices.cost(TokenUsage(total, 0, cache_read=read, cache_write=written, cache_write_1h=hour))
