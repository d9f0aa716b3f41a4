"""The cache forecast: what the next request will find in the provider's cache, what it pays anew, and why; with what
earlier steps read and missed, as the views show it.

The same rules hold as for what was paid (``cache_misses``): nothing is said below its thresholds, of providers that
have not shown that they cache, and of what nobody can foresee.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import get_args

from agent_tui.context.cache_misses import (
    LEAST_SHARE,
    LEAST_TOKENS,
    PrefixSizes,
    Reach,
    Repeats,
    caches,
    cause_of,
    comparable,
    most,
    repeats_of,
    wants_hour,
)
from agent_tui.context.request_differences import SentHistory
from agent_tui.models.steps import CacheEntry, CacheForecast, CacheMiss, ColdRequest, MissCause, MissSum, Step
from agent_tui.models.usage import NO_COST, Cost, Prices, TokenUsage
from agent_tui.providers.dialects.record import UNSAID, Caching
from agent_tui.records import dataclass
from agent_tui.text.numbers import clock_time, money, tokens, whole_percent


@dataclass(slots=True, frozen=True)
class ForecastBasis:
    """The facts known of the next request's cache whatever time passes until it is sent: ``step`` is what it would
    send, ``newest`` the one before."""

    step: Step
    newest: Step
    repeats: Repeats
    caching: Caching
    prices: Prices


def forecast_basis(
    step: Step,
    earlier: Sequence[Step],
    history: SentHistory,
    caching: Caching,
    sizes: PrefixSizes,
    prices: Prices,
    summaries: Collection[str] = (),
) -> ForecastBasis | None:
    """That of a step that is not sent yet; its usage is what the calculator expects. ``earlier``, ``history`` and
    ``summaries`` as for ``judge``. None where nothing was sent yet, or the provider says nothing of a cache.
    """
    newest = next((s for s in reversed(earlier) if comparable(s)), None)
    if newest is None or step.counted is None or history.of(step) is None:
        return None
    if not _expected_to_tell(step, earlier, newest, caching):
        return None
    repeats = repeats_of(step, step.counted.input, newest, earlier, history, caching, sizes, summaries)
    return ForecastBasis(step, newest, repeats, caching, prices)


def _expected_to_tell(step: Step, earlier: Sequence[Step], newest: Step, caching: Caching) -> bool:
    """Returns whether the provider has shown that it caches; one that was switched to is believed what it documents,
    where the one before has shown it."""
    if any(caches(s.counted) for s in reversed(earlier) if s.provider == step.provider):
        return True
    return newest.provider != step.provider and caching != UNSAID and caches(newest.counted)


def forecast(known: ForecastBasis, now: float) -> CacheForecast:
    """Returns what the next request will find if it is sent at the time ``now`` (seconds since the epoch)."""
    step, caching, prices, repeats = known.step, known.caching, known.prices, known.repeats
    total = step.counted.input if step.counted is not None else 0
    alive = [reach for reach in repeats.found if reach.alive(now, caching.gone)]
    read = min(total, most(alive))
    usd = input_usd(step, total, read, caching, prices)
    short = repeats.expected - read
    until, at_least = _until(alive, read, caching, now)
    if short < LEAST_TOKENS or short < LEAST_SHARE * total:
        return CacheForecast(read, usd, None, until, at_least)
    within = replace(repeats, could=min(total, repeats.could))
    cause, what = cause_of(replace(step, created=now), known.newest, caching, within, read, read)
    if cause == "unknown":
        return CacheForecast(read, usd)
    warm = input_usd(step, total, repeats.expected, caching, prices)
    return CacheForecast(read, usd, ColdRequest(cause, what, short, not read, usd, warm), until, at_least)


def _until(alive: Sequence[Reach], read: int, caching: Caching, now: float) -> tuple[float | None, bool]:
    """When that much can no longer be read, or until when it can at least: what was left by whichever step lives
    longest."""
    if read < LEAST_TOKENS:
        return None, False
    lives = [(r.touched, r.life) for r in alive if r.tokens >= read]
    ends = [touched + life for touched, life in lives if life is not None]
    if ends or caching.sure is None:
        return max(ends, default=None), False
    sure = max((touched + caching.sure for touched, _ in lives), default=0.0)
    return (sure, True) if sure > now else (None, False)


def input_usd(step: Step, total: int, read: int, caching: Caching, prices: Prices) -> float | None:
    """Dollars of an input of which so many tokens are read; the rest is written where the provider sells that."""
    fresh = total - read
    written = fresh if caching.keeping != "automatic" and total >= caching.minimum else None
    hour = written if wants_hour(step) else None
    return prices.cost(TokenUsage(total, 0, cache_read=read, cache_write=written, cache_write_1h=hour))


def forecast_words(forecast: CacheForecast | None) -> str:
    """Returns in words what is to be known at a glance: what will be paid anew, or until when nothing will; empty where
    neither is."""
    if forecast is None:
        return ""
    if forecast.cold is not None:
        return price_words(forecast.cold)
    # As a time of the day: it stays true while nothing is drawn.
    return f"cached{_until_words(forecast)}" if forecast.until is not None else ""


def _until_words(forecast: CacheForecast) -> str:
    if forecast.until is None:
        return ""
    return f" {'at least ' if forecast.at_least else ''}until {clock_time(forecast.until)}"


def price_words(cold: ColdRequest) -> str:
    """``uncached: ~$1.51 instead of ~$0.15``; in tokens where no price says more."""
    return f"{_name(cold)}: {_price(cold)}"


def _why_and_price(cold: ColdRequest) -> str:
    """``uncached (idle for 6 min): ~$1.51 instead of ~$0.15``: why comes first, for the price is in the status line
    too, and the end is what gets cut off."""
    return f"{_name(cold)} ({cold.what}): {_price(cold)}"


def _name(cold: ColdRequest) -> str:
    return "uncached" if cold.whole else "partly uncached"


def _price(cold: ColdRequest) -> str:
    if not cold.usd or cold.warm_usd is None:
        return f"{tokens(cold.tokens, approximate=True)} not from the cache"
    return f"~{money(cold.usd)} instead of ~{money(cold.warm_usd)}"


def short_words(cold: ColdRequest) -> str:
    """``uncached ~$1.51``, for where there is little room."""
    return f"uncached {f'~{money(cold.usd)}' if cold.usd else tokens(cold.tokens, approximate=True)}"


def cold_words(cold: ColdRequest) -> str:
    """The whole of it: what is expected, at which price, and why."""
    return f"Next input: expected {_why_and_price(cold)}"


def expected_words(forecast: CacheForecast, total: int) -> str:
    """Returns in words what the next request, of ``total`` tokens, is expected to cost and to find, or to pay anew and
    why."""
    if forecast.cold is not None:
        return f"next input: expected {_why_and_price(forecast.cold)}"
    cost = f"~{money(forecast.usd)}, " if forecast.usd else ""
    return f"next input: expected {cost}{whole_percent(forecast.read, total)} cached{_until_words(forecast)}"


def cache_entries(steps: Sequence[Step]) -> list[CacheEntry]:
    """The calls of a session that asked for an answer, newest first; those of subagents among them."""
    return [
        CacheEntry(
            step.id,
            step.created,
            step.model_key,
            usage.input,
            usage.cache_read,
            usage.cache_write,
            step.expected_read,
            step.miss,
            step.cache_life,
            tuple((usage.told or {}).items()),
            step.kind == "subagent",
        )
        for step in reversed(steps)
        if step.kind in ("turn", "subagent") and (usage := step.counted) is not None
    ]


def miss_sums(steps: Sequence[Step]) -> dict[MissCause, MissSum]:
    """The misses of a session by cause, subagents' included; causes without one are left out."""
    found: dict[MissCause, MissSum] = {}
    for cause in get_args(MissCause):
        misses = [step.miss for step in steps if step.miss is not None and step.miss.cause == cause]
        if misses:
            cost = sum((_cost(miss) for miss in misses), NO_COST)
            found[cause] = MissSum(len(misses), sum(miss.tokens for miss in misses), cost)
    return found


def _cost(miss: CacheMiss) -> Cost:
    return Cost(unpriced=1) if miss.cost_usd is None else Cost(miss.cost_usd)


def whole(sums: Iterable[MissSum]) -> MissSum:
    """All causes together."""
    parts = list(sums)
    cost = sum((one.cost for one in parts), NO_COST)
    return MissSum(sum(one.count for one in parts), sum(one.tokens for one in parts), cost)
