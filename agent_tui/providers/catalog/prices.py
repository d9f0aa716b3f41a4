"""Prices as LiteLLM's table has them: by the length of the input, the life of a cache write, the tier of service."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agent_tui.models.usage import Prices, PriceTier, Rates
from agent_tui.providers.net.bounds import finite

_FIELDS = {
    "input_cost_per_token": "input",
    "output_cost_per_token": "output",
    "output_cost_per_reasoning_token": "reasoning",
    "cache_read_input_token_cost": "cache_read",
    "cache_creation_input_token_cost": "cache_write",
    "cache_creation_input_token_cost_above_1hr": "cache_write_1h",
}

_KEY = re.compile(
    rf"(?P<what>{'|'.join(sorted(_FIELDS, key=len, reverse=True))})"
    r"(?:_(?P<before>priority|flex))?(?:_above_(?P<above>\d+)(?P<k>k?)_tokens)?(?:_(?P<after>[a-z]+))?"
)
"""``input_cost_per_token_above_200k_tokens_priority``; the service stands on either side of the length."""

_TICKS_PER_DOLLAR = 1e10
"""xAI bills in ticks (docs.x.ai, usage.cost_in_usd_ticks)."""


def prices_of(entry: Mapping[str, Any], service: str | None = None) -> Prices:
    """The prices of an entry. ``service`` is the tier of service that is asked for (``priority``, ``flex``); where the
    table has no price of its own for it, the usual one holds."""
    usual = _by_length(entry, "")
    special = _by_length(entry, service) if service and service not in ("auto", "default", "standard") else {}
    lengths = sorted({0} | usual.keys() | special.keys())
    rates: dict[str, float] = {}
    steps: list[PriceTier] = []
    for length in lengths:
        rates = _longer(rates, {**usual.get(length, {}), **special.get(length, {})})
        steps.append(PriceTier(length, Rates(**rates)))
    first = steps[0].rates
    return Prices(
        first.input,
        first.output,
        first.cache_read,
        first.cache_write,
        first.cache_write_1h,
        first.reasoning,
        tuple(steps[1:]),
    )


def billed(usage: Mapping[str, Any]) -> float | None:
    """Dollars that the provider itself says the call cost; None where it does not."""
    told = usage.get("cost")
    if isinstance(told, Mapping):  # Perplexity
        told = told.get("total_cost")
    amount = _amount(told)
    if amount is not None:
        details = usage.get("cost_details")
        upstream = _amount(details.get("upstream_inference_cost")) if isinstance(details, Mapping) else None
        if usage.get("is_byok") is True:
            # OpenRouter with the user's own key at the provider: ``cost`` is only its fee.
            return None if upstream is None else amount + upstream
        return amount
    ticks = _amount(usage.get("cost_in_usd_ticks"))
    if ticks is not None:
        return ticks / _TICKS_PER_DOLLAR
    return _amount(usage.get("estimated_cost"))  # DeepInfra


_FOLLOWS = {"reasoning": "output", "cache_write_1h": "cache_write"}


def _longer(below: Mapping[str, float], own: Mapping[str, float]) -> dict[str, float]:
    """The prices of a longer input. What has no price of its own costs what it costs below; where it is another
    price's kin, it rises with that one."""
    rates = {**below, **own}
    for name, kin in _FOLLOWS.items():
        if name in below and name not in own and kin in own and below.get(kin):
            rates[name] = below[name] * own[kin] / below[kin]
    return rates


def _by_length(entry: Mapping[str, Any], service: str) -> dict[int, dict[str, float]]:
    """Prices of one tier of service, by the input length above which they hold."""
    found: dict[int, dict[str, float]] = {}
    for key, value in entry.items():
        match, price = _KEY.fullmatch(key), _amount(value)
        if match is None or price is None or (match["before"] or match["after"] or "") != service:
            continue
        if match["before"] and match["after"]:
            continue
        length = int(match["above"] or 0) * (1_000 if match["k"] else 1)
        found.setdefault(length, {})[_FIELDS[match["what"]]] = price
    if not service:
        for length, rates in _tiered(entry.get("tiered_pricing")):
            found.setdefault(length, {}).update(rates)
    return found


def _tiered(rows: Any) -> list[tuple[int, dict[str, float]]]:
    """DashScope's form: a list of prices, each for a range of input lengths."""
    found = []
    for row in rows if isinstance(rows, list) else ():
        span = row.get("range") if isinstance(row, Mapping) else None
        start = _amount(span[0]) if isinstance(span, list) and span else None
        if start is None:
            continue
        prices = {_FIELDS[key]: price for key in _FIELDS if (price := _amount(row.get(key))) is not None}
        found.append((int(start), prices))
    return found


def _amount(value: Any) -> float | None:
    number = finite(value)
    return number if number is not None and number >= 0 else None
