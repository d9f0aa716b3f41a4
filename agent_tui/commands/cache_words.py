"""The cache in words and as JSON: what was read, what was paid anew, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from agent_tui.context.cache_forecast import cache_entries, miss_sums, whole
from agent_tui.models.steps import CacheEntry, CacheForecast, CacheMiss, MissCause, MissSum, Step
from agent_tui.models.usage import cost_fields
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import duration, grouped, money, plural, tokens, whole_percent

CAUSES: dict[MissCause, str] = {
    "ours": "by us",
    "expired": "expired",
    "unknown": "provider",
}
"""The causes of a miss, as they are shown."""


def miss_words(miss: CacheMiss) -> str:
    """Why, in a few words: ``tools changed: MCP server github came``, ``expired: idle for 6 min``."""
    if miss.cause == "unknown":
        return "provider's side: what we sent was the same"
    return one_line(f"expired: {miss.what}" if miss.cause == "expired" else miss.what, 200)


def read_words(entry: CacheEntry) -> str:
    """Returns words for the part of a call's input that was read from the cache."""
    if entry.read is None or not entry.input:
        return "not reported"
    return f"{tokens(entry.read, False)} ({whole_percent(entry.read, entry.input)})"


def sum_rows(steps: Sequence[Step]) -> Iterator[tuple[str, str]]:
    """Name and value of the misses of a session: all, then by cause. None where there was no miss."""
    sums = miss_sums(steps)
    if not sums:
        return
    yield "Missed", _sum_words(whole(sums.values()))
    for cause, one in sums.items():
        yield f"  {CAUSES[cause]}", _sum_words(one)


def _sum_words(one: MissSum) -> str:
    return f"{money(one.cost):>14}  {tokens(one.tokens, False)} tokens paid anew in {plural(one.count, 'call')}"


def entry_details(entry: CacheEntry) -> str:
    """All that is known of one call and the cache."""
    lines = [
        f"Input     {_count(entry.input)} tokens to {one_line(entry.model, 60)}{' by a subagent' * entry.subagent}",
        f"Read      {_count(entry.read)}",
        f"Written   {_count(entry.written)}",
        f"Expected  {_count(entry.expected)}",
    ]
    if entry.miss is not None:
        missed = _count(entry.miss.tokens)
        lines.append(f"Missed    {missed}, {miss_words(entry.miss)}; extra {money(entry.miss.cost_usd)}")
    if entry.life is not None:
        lines.append(f"Kept      {duration(entry.life)} from the beginning of the call")
    told = " · ".join(f"{one_line(name, 40)} {_number(value)}" for name, value in entry.told)
    if told:
        lines.append(f"Provider  {told}")
    return "\n".join(lines)


def _number(value: float) -> str:
    return grouped(int(value)) if value == int(value) else f"{value:g}"


def _count(value: int | None) -> str:
    return "not known" if value is None else grouped(value)


def cache_json(steps: Sequence[Step]) -> dict[str, Any]:
    """The cache of a session: its calls, oldest first, and the misses by cause. What is not known is None."""
    sums = miss_sums(steps)
    return {
        "misses": {**_sum(whole(sums.values())), "by_cause": {cause: _sum(one) for cause, one in sums.items()}},
        "steps": [_step(entry) for entry in reversed(cache_entries(steps))],
    }


def forecast_json(forecast: CacheForecast | None) -> dict[str, Any] | None:
    """Returns the forecast of what the next request finds in the provider's cache; None where nothing is known of
    it."""
    if forecast is None:
        return None
    cold = forecast.cold
    return {
        "cache_read_tokens": forecast.read,
        "input_cost_usd": forecast.usd,
        "cached_until": forecast.until,
        "cold": None
        if cold is None
        else {
            "cause": cold.cause,
            "what": cold.what,
            "tokens": cold.tokens,
            "whole": cold.whole,
            "input_cost_usd": cold.usd,
            "warm_input_cost_usd": cold.warm_usd,
        },
    }


def _sum(one: MissSum) -> dict[str, Any]:
    return {"count": one.count, "tokens": one.tokens, **cost_fields(one.cost)}


def _step(entry: CacheEntry) -> dict[str, Any]:
    miss = entry.miss
    return {
        "step": entry.step_id,
        "created": entry.created,
        "model": entry.model,
        "kind": "subagent" if entry.subagent else "turn",
        "input_tokens": entry.input,
        "cache_read_tokens": entry.read,
        "cache_write_tokens": entry.written,
        "expected_read_tokens": entry.expected,
        "cache_life_seconds": entry.life,
        "provider_says": dict(entry.told),
        "miss": None
        if miss is None
        else {"cause": miss.cause, "what": miss.what, "tokens": miss.tokens, "cost_usd": miss.cost_usd},
    }
