"""The facts known about a model before it is called: limits, prices, abilities."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agent_tui.models.requests import Counting, ModelInfo, ModelSpec, Target
from agent_tui.models.usage import STANDARD, Limits, LimitSource, Prices, PriceTier, Rates, ServicePrices
from agent_tui.providers.catalog import (
    dialect_of,
    family_record,
    missing_key_line,
    resolve_key,
    resolve_target,
    variable_base,
    web_search,
)
from agent_tui.providers.dialects.chat import is_openai_reasoning
from agent_tui.providers.dialects.shared import finite, integer, mapping
from agent_tui.providers.listing import DATED, SPLIT_WINDOW, doubt, split_window, unknown
from agent_tui.providers.litellm_files import each_model, model_entry
from agent_tui.providers.net import is_nearby
from agent_tui.records import dataclass

_REGION = re.compile(r"^(?:us|us-gov|eu|apac|ap|global|jp|au|ca)\.")
_VENDOR = re.compile(r"^(?:anthropic|meta|amazon|mistral|deepseek|qwen|openai|moonshotai?|zai|google|cohere|minimax)\.")


def entry(name: str, target: Target) -> tuple[dict[str, Any] | None, bool]:
    """The table's entry of a model, and whether it was found under exactly this name. A dated or tagged name without
    an entry of its own, or a gateway's name for a known model, gets the plain name's entry, as a guess."""
    if (found := _exact(name, target, target.model)) is not None:
        return found, True
    shorter, before = target.model, ""
    while shorter not in ("", before):
        found = _exact("", target, shorter)
        if found is None and "/" in target.model:
            # A gateway's name for another provider's model: openrouter/openai/gpt-5.
            found = model_entry(shorter.rsplit("/", 1)[-1])
        if found is not None:
            return found, False
        shorter, before = DATED.sub("", shorter), shorter
    dialect = dialect_of(target.provider)
    if dialect.compatible or dialect.local:
        # Whoever runs the server decides how much of the model's context there is.
        return None, False
    return namesake(target.model), False


def namesake(model: str) -> dict[str, Any] | None:
    """Returns what other providers' entries for a model of this name agree on: the middle one of their limits, the
    flags of any. None where no other provider has it."""
    bare = _bare_name(model)
    entries = (values for _, values in each_model(lambda name: _bare_name(name) == bare))
    others = [values for values in entries if values.get("mode") in ("chat", "responses")]
    agreed: dict[str, Any] = {}
    for name in ("max_input_tokens", "max_output_tokens"):
        told = sorted(n for e in others if isinstance(n := e.get(name), int) and n > 0)
        agreed[name] = told[(len(told) - 1) // 2] if told else None
    agreed |= {name: True for name in ("supports_reasoning", "supports_vision") if any(e.get(name) for e in others)}
    return agreed if agreed["max_input_tokens"] else None


def _bare_name(name: str) -> str:
    """``claude-haiku-4-5`` of ``openrouter/anthropic/claude-haiku-4.5`` and ``us.anthropic.claude-haiku-4-5-v1:0``."""
    bare = name.rsplit("/", 1)[-1].lower()
    bare = _VENDOR.sub("", _REGION.sub("", bare))
    return re.sub(r"-v\d+:\d+$|[@:].*$", "", bare).replace(".", "-")


def _exact(name: str, target: Target, model: str) -> dict[str, Any] | None:
    for candidate in (name, f"{target.provider}/{model}"):
        if "/" in candidate and (found := model_entry(candidate)) is not None:
            return found
    if (plain := model_entry(model)) is None:
        return None
    maker = str(plain.get("litellm_provider", "")).split("-")[0]
    return plain if maker.startswith(target.provider) or dialect_of(target.provider).plain_names else None


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


_SERVICES = (STANDARD, "priority", "flex", "batches")


def prices_of(entry: Mapping[str, Any], service: str | None = None) -> Prices:
    """The prices of an entry. ``service`` is the tier of service that is asked for (``priority``, ``flex``); where the
    table has no price of its own for it, the usual one is expected."""
    known = {name: found for name in _SERVICES if (found := _of_service(entry, name)) is not None}
    asked = service if service in known else STANDARD
    rates, tiers = known.pop(asked)
    others = tuple(ServicePrices(name, Rates(**each), longer) for name, (each, longer) in known.items())
    return Prices(**rates, tiers=tiers, service=asked, others=others)


def _of_service(entry: Mapping[str, Any], service: str) -> tuple[dict[str, float], tuple[PriceTier, ...]] | None:
    """The prices of a tier of service, and those of longer inputs; None where it has none of its own."""
    usual, special = _by_length(entry, ""), {} if service == STANDARD else _by_length(entry, service)
    if service != STANDARD and not {"input", "output"} <= special.get(0, {}).keys():
        return None
    lengths = sorted({0} | usual.keys() | special.keys())
    first = rates = {**usual.get(0, {}), **special.get(0, {})}
    tiers: list[PriceTier] = []
    for length in lengths[1:]:
        rates = _longer(rates, {**usual.get(length, {}), **special.get(length, {})})
        tiers.append(PriceTier(length, Rates(**rates)))
    return first, tuple(tiers)


def billed(usage: Mapping[str, Any]) -> float | None:
    """Dollars that the provider itself says the call cost; None where it does not."""
    told = usage.get("cost")
    if isinstance(told, Mapping):  # Perplexity
        told = told.get("total_cost")
    if (amount := _amount(told)) is not None:
        if usage.get("is_byok") is not True:
            return amount
        # OpenRouter with the user's own key at the provider: ``cost`` is only its fee.
        upstream = _amount(mapping(usage.get("cost_details")).get("upstream_inference_cost"))
        return None if upstream is None else amount + upstream
    if (ticks := _amount(usage.get("cost_in_usd_ticks"))) is not None:
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
        if match is None or price is None or (match["before"] or "") + (match["after"] or "") != service:
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
    for row in filter(lambda row: isinstance(row, Mapping), rows if isinstance(rows, list) else ()):
        span = row.get("range")
        start = _amount(span[0]) if isinstance(span, list) and span else None
        if start is not None:
            prices = {name: price for key, name in _FIELDS.items() if (price := _amount(row.get(key))) is not None}
            found.append((int(start), prices))
    return found


def _amount(value: Any) -> float | None:
    number = finite(value)
    return number if number is not None and number >= 0 else None


_RENTED = re.compile(r"[:-]cloud$")
"""Models that Ollama does not run itself but hands on (docs.ollama.com/cloud)."""


@dataclass(slots=True, frozen=True)
class ServerFacts:
    """What a running server says of a model it serves; None: nothing."""

    limits: Limits | None = None
    images: bool | None = None
    counting: Counting | None = None
    silent: bool = False
    """It did not answer."""
    unreachable: bool = False
    """Nothing listens at its address."""
    tools: bool | None = None
    """Whether the model's chat template has tools."""
    parallel: bool | None = None
    """Whether it answers several requests at a time."""


def describe(spec: ModelSpec, facts: ServerFacts | None = None) -> ModelInfo:
    """Everything known without a call. ``facts`` are what its server said. Reads LiteLLM's table from its file; never
    raises for unknown models, ``problem`` says what is wrong."""
    target, facts = resolve_target(spec), facts or ServerFacts()
    found, exact = entry(spec.model, target)
    limits = with_config(spec, facts.limits or table_limits(target, found, exact))
    own = web_search(spec, target)
    prices = replace(_prices(found, exact, spec, target), search=own.price if own is not None else None)
    reasoning, images = _flag(found, "supports_reasoning"), _flag(found, "supports_vision")
    if reasoning is None and is_openai_reasoning(target.model):
        reasoning = True
    images = images if facts.images is None else facts.images
    wrong = problem(spec, target)
    info = ModelInfo(spec, target, limits, prices, reasoning, images, wrong, facts.counting, facts.silent)
    dialect = dialect_of(target.provider)
    info.tools = False if dialect.no_tools else facts.tools
    usually = dialect.batches and (dialect.local or not is_nearby(spec.api_base or variable_base(dialect)))
    info.parallel = usually if facts.parallel is None else facts.parallel
    info.unreachable = facts.unreachable
    if wrong is None and facts.limits is None:
        info.doubt = doubt(spec.model, spec.api_base)
    return info


def table_limits(target: Target, found: dict[str, Any] | None, exact: bool) -> Limits:
    """Limits as the table has them, without its traps: ``max_input_tokens`` is the window, except for families where
    window = input + output; ``max_tokens`` is never read."""
    if dialect_of(target.provider).pins_context:
        return Limits()
    if found is None:
        name = target.model.lower()
        return next((least for word, least in family_record(target.family).assumed.items() if word in name), Limits())
    source: LimitSource = "table" if exact else "assumed"
    most_in, most_out = _tokens(found.get("max_input_tokens")), _tokens(found.get("max_output_tokens"))
    if most_in is None:
        return Limits(None, None, most_out, "unknown" if most_out is None else source)
    split = SPLIT_WINDOW.search(target.model.lower())
    window, max_input = split_window(most_in, most_out) if split else (most_in, None)
    return Limits(window, max_input, min(most_out, window) if most_out else None, source)


def with_config(spec: ModelSpec, limits: Limits) -> Limits:
    """Limits with what the configuration says on top: it wins."""
    if spec.context_window is not None:
        limits = replace(limits, window=spec.context_window, max_input=None, source="config")
    elif spec.max_output is None:
        return limits
    most = spec.max_output if spec.max_output is not None else limits.max_output
    return replace(limits, max_output=min(most, limits.window) if most is not None and limits.window else most)


def problem(spec: ModelSpec, target: Target) -> str | None:
    """Why a model cannot be called as configured: one line, or None."""
    if (wrong := unknown(spec.model, spec.api_base)) is not None:
        return wrong
    key = resolve_key(spec, target.provider)
    return missing_key_line(spec, target.provider, key.missing) if key.missing else None


def _prices(found: dict[str, Any] | None, exact: bool, spec: ModelSpec, target: Target) -> Prices:
    """Returns a model's prices: what the user says comes first; a server people run themselves sends no bill."""
    if spec.prices:
        return Prices.per_million(spec.prices)
    if dialect_of(target.provider).local and not _RENTED.search(target.model):
        return Prices(0.0, 0.0)
    if found is None or not exact:
        return Prices()
    service = spec.extra.get("service_tier")
    return prices_of(found, service if isinstance(service, str) else None)


def _tokens(value: Any) -> int | None:
    number = integer(value)
    return number if number and number > 0 else None


def _flag(found: dict[str, Any] | None, name: str) -> bool | None:
    value = found.get(name) if found else None
    return bool(value) if value is not None else None
