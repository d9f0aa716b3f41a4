"""What a call costs, with the entries of LiteLLM's own table."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from agent_tui.models.codec import from_dict, to_dict
from agent_tui.models.requests import ModelInfo, ModelSpec, Target, UsageReport
from agent_tui.models.usage import Prices, PriceTier, Rates, TokenUsage
from agent_tui.providers.accumulate import Accumulator, normalise, service_of
from agent_tui.providers.limits import billed, describe, prices_of
from agent_tui.providers.litellm_files import each_model, model_entry
from tests.support.every import every
from tests.support.loopback import sse


def _entry(name: str) -> dict[str, Any]:
    found = model_entry(name)
    assert found is not None, name
    return found


def priced(model: str, **extra: str) -> Prices:
    return describe(ModelSpec("m", model, extra={**extra})).prices


def test_a_long_input_costs_what_the_table_says_for_its_length() -> None:
    entry = _entry("gemini/gemini-2.5-pro")
    prices = priced("gemini/gemini-2.5-pro")
    short, long = TokenUsage(200_000, 1_000, cache_read=50_000), TokenUsage(200_001, 1_000, cache_read=50_000)
    assert prices.cost(short) == pytest.approx(
        150_000 * entry["input_cost_per_token"]
        + 50_000 * entry["cache_read_input_token_cost"]
        + 1_000 * entry["output_cost_per_token"]
    )
    assert prices.cost(long) == pytest.approx(
        150_001 * entry["input_cost_per_token_above_200k_tokens"]
        + 50_000 * entry["cache_read_input_token_cost_above_200k_tokens"]
        + 1_000 * entry["output_cost_per_token_above_200k_tokens"]
    )


def test_thinking_rises_with_the_output_it_is_priced_as() -> None:
    entry = {
        "input_cost_per_token": 1e-6,
        "output_cost_per_token": 1e-5,
        "output_cost_per_reasoning_token": 1e-5,
        "input_cost_per_token_above_200k_tokens": 2e-6,
        "output_cost_per_token_above_200k_tokens": 1.5e-5,
    }
    assert prices_of(entry).rates(300_000).reasoning == pytest.approx(1.5e-5)
    assert prices_of(entry).cost(TokenUsage(10, 100, reasoning=40)) == pytest.approx(10e-6 + 100e-5)


def test_thinking_that_costs_more_is_counted_as_such() -> None:
    name = next(
        name
        for name, e in each_model()
        if e.get("output_cost_per_reasoning_token", 0) > e.get("output_cost_per_token", 1)
        and "input_cost_per_token" in e
    )
    entry = _entry(name)
    cost = prices_of(entry).cost(TokenUsage(100, 50, reasoning=30))
    assert cost == pytest.approx(
        100 * entry["input_cost_per_token"]
        + 20 * entry["output_cost_per_token"]
        + 30 * entry["output_cost_per_reasoning_token"]
    )


def test_cache_writes_cost_by_how_long_they_live() -> None:
    entry = _entry("claude-sonnet-4-5")
    usage = normalise(
        {
            "input_tokens": 10,
            "output_tokens": 20,
            "cache_read_input_tokens": 1_000,
            "cache_creation_input_tokens": 600,
            "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 500},
        }
    )
    assert usage == TokenUsage(1_610, 20, None, 1_000, 600, cache_write_1h=500)
    assert usage is not None
    assert priced("anthropic/claude-sonnet-4-5").cost(usage) == pytest.approx(
        10 * entry["input_cost_per_token"]
        + 1_000 * entry["cache_read_input_token_cost"]
        + 100 * entry["cache_creation_input_token_cost"]
        + 500 * entry["cache_creation_input_token_cost_above_1hr"]
        + 20 * entry["output_cost_per_token"]
    )


@pytest.mark.parametrize(
    "raw",
    [
        {
            "input_tokens": 10,
            "output_tokens": 2,
            "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 500},
        },
        {
            "prompt_tokens": 610,
            "completion_tokens": 2,
            "total_tokens": 612,
            "prompt_tokens_details": {
                "cache_creation_tokens": 600,
                "cache_creation_token_details": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 500},
            },
        },
    ],
)
def test_every_dialect_tells_both_lives(raw: dict[str, object]) -> None:
    usage = normalise(raw)
    assert usage is not None
    assert (usage.input, usage.cache_write, usage.cache_write_1h) == (610, 600, 500)


def test_more_than_was_written_cannot_live_an_hour() -> None:
    raw = {"input_tokens": 10, "output_tokens": 2, "cache_creation_input_tokens": 5}
    usage = normalise({**raw, "cache_creation": {"ephemeral_1h_input_tokens": 500}})
    assert usage is not None
    assert usage.cache_write_1h is None


def test_a_tier_of_service_has_its_own_prices() -> None:
    entry = _entry("gpt-5.4")
    flex, usual = priced("openai/gpt-5.4", service_tier="flex"), priced("openai/gpt-5.4")
    assert usual.input == entry["input_cost_per_token"]
    assert flex.input == entry["input_cost_per_token_flex"]
    assert flex.rates(300_000).output == entry["output_cost_per_token_above_272k_tokens_flex"]
    assert usual.rates(300_000).output == entry["output_cost_per_token_above_272k_tokens"]
    assert priced("openai/gpt-5.4", service_tier="auto") == usual
    assert priced("openai/gpt-5.4", service_tier="scale") == usual, "nobody knows what is contracted"
    pro = _entry("gemini/gemini-2.5-pro")
    assert (
        priced("gemini/gemini-2.5-pro", service_tier="priority").rates(250_000).input
        == (pro["input_cost_per_token_above_200k_tokens_priority"])
    )


CHEAP, USUAL, DEAR, UNKNOWN = "flex", "default", "priority", "scale"


@every("asked", [None, "auto", CHEAP, DEAR])
@every("answered", [None, "auto", CHEAP, USUAL, DEAR, "batch", UNKNOWN, "ON_DEMAND_PRIORITY"])
@every("tokens", [1_000, 300_000])
def test_the_tier_that_answered_prices_the_call(asked: str | None, answered: str | None, tokens: int) -> None:
    prices = priced("openai/gpt-5.4", **({} if asked is None else {"service_tier": asked}))
    service = service_of({"service_tier": answered})
    cost = prices.cost(TokenUsage(tokens, 100, cache_read=500, service_tier=service))
    ending = {CHEAP: "_flex", DEAR: "_priority", "batch": "_batches", "ON_DEMAND_PRIORITY": "_priority", USUAL: ""}
    named = asked if answered in (None, "auto") and asked in ending else answered
    if named == UNKNOWN:
        assert cost is None, "nobody knows what it costs"
        return
    entry, above = _entry("gpt-5.4"), "_above_272k_tokens" if tokens > 272_000 else ""

    def price(kind: str) -> float:
        service = ending.get(named or "", "")
        own, usual = entry.get(f"{kind}{above}{service}"), entry.get(f"{kind}{above}")
        return float(own if own is not None else usual or 0)

    read, fresh = price("cache_read_input_token_cost"), price("input_cost_per_token")
    wanted = (tokens - 500) * fresh + 500 * read + 100 * price("output_cost_per_token")
    assert cost == pytest.approx(wanted)


@every(
    ("event", "service"),
    [
        ({"service_tier": "default"}, "standard"),
        ({"type": "response.completed", "response": {"service_tier": "priority"}}, "priority"),
        ({"type": "response.created", "response": {"service_tier": "auto"}}, None),
        ({"type": "message_start", "message": {"usage": {"service_tier": "batch"}}}, "batches"),
        ({"type": "message_delta", "usage": {"service_tier": "standard"}}, "standard"),
        ({"service_tier": "on_demand"}, "standard"),
        ({"usageMetadata": {"trafficType": "ON_DEMAND"}}, "standard"),
        ({"usageMetadata": {"trafficType": "ON_DEMAND_FLEX"}}, "flex"),
        ({"usageMetadata": {"trafficType": "PROVISIONED_THROUGHPUT"}}, "provisioned_throughput"),
        ({"service_tier": None, "usage": None, "response": 3}, None),
        ({"service_tier": {"type": "flex"}}, None),
        ({}, None),
    ],
)
def test_where_an_answer_names_its_tier(event: dict[str, Any], service: str | None) -> None:
    assert service_of(event) == service


def test_prices_that_are_not_of_a_tier_hold_for_all() -> None:
    own = describe(ModelSpec("m", "openai/gpt-5.4", prices={"input": 1.0, "output": 2.0})).prices
    local = describe(ModelSpec("m", "ollama_chat/m")).prices
    for prices in (own, local):
        usage = TokenUsage(1_000, 100)
        assert prices.cost(replace(usage, service_tier="scale")) == prices.cost(usage) is not None


def test_the_last_event_says_which_tier_answered() -> None:
    target = Target("openai", "responses", "gpt-5.4", "gpt")
    accumulator = Accumulator(target, prices=priced("openai/gpt-5.4", service_tier="priority"))
    usage = {"input_tokens": 1_000, "output_tokens": 100, "total_tokens": 1_100}
    events = [
        {"type": kind, "response": {"id": "r", "service_tier": tier, "output": [], "usage": usage}}
        for kind, tier in (("response.created", "auto"), ("response.completed", "default"))
    ]
    accumulator.tap.begin("text/event-stream")
    accumulator.tap.feed(sse(events))
    (*_, report) = (item for item in [*accumulator.pump(), *accumulator.finish()] if isinstance(item, UsageReport))
    assert report.usage.service_tier == "standard"
    assert report.cost_usd == priced("openai/gpt-5.4").cost(TokenUsage(1_000, 100))


def test_prices_by_ranges() -> None:
    entry = _entry("dashscope/qwen-flash")["tiered_pricing"]
    prices = priced("dashscope/qwen-flash")
    assert prices.input == entry[0]["input_cost_per_token"]
    assert prices.rates(300_000).input == entry[1]["input_cost_per_token"]
    assert prices.cost(TokenUsage(300_000, 10)) == pytest.approx(
        300_000 * entry[1]["input_cost_per_token"] + 10 * entry[1]["output_cost_per_token"]
    )


@pytest.mark.slow
def test_every_entry_with_tiers_is_read() -> None:
    tiered = 0
    for name, entry in each_model():
        above = {key for key in entry if re.fullmatch(r"(?:in|out)put_cost_per_token_above_\d+k?_tokens", key)}
        if not above and not entry.get("tiered_pricing"):
            continue
        prices = prices_of(entry)
        if above:
            tiered += 1
            assert prices.tiers, name
        for lower, upper in zip(prices.tiers, prices.tiers[1:], strict=False):
            assert lower.above < upper.above, name
        for tier in prices.tiers:
            assert tier.rates.input is None or tier.rates.input >= 0, name
        for key in above:
            match = re.search(r"above_(\d+)(k?)_tokens", key)
            assert match is not None
            length = int(match[1]) * (1_000 if match[2] else 1)
            rates = prices.rates(length + 1)
            assert (rates.input if key.startswith("input") else rates.output) == entry[key], name
    assert tiered > 200


def test_prices_cross_the_pipe() -> None:
    info = describe(ModelSpec("m", "gemini/gemini-2.5-pro"))
    assert info.prices.tiers
    assert from_dict(ModelInfo, to_dict(info)).prices == info.prices
    assert info.prices.tiers == (PriceTier(200_000, info.prices.tiers[0].rates),)
    assert isinstance(info.prices.tiers[0].rates, Rates)


@every(
    ("usage", "dollars"),
    [
        ({"cost": 0.25}, 0.25),
        ({"cost": 0}, 0.0),
        ({"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.2}}, 0.21),
        ({"cost": 0.21, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.2}}, 0.21),
        ({"cost": {"input_tokens_cost": 0.1, "total_cost": 0.3}}, 0.3),
        ({"cost_in_usd_ticks": 37_756_000}, 0.0037756),
        ({"estimated_cost": 0.0002}, 0.0002),
        ({"cost": -1}, None),
        ({"cost": float("nan")}, None),
        ({"cost": True}, None),
        ({"cost": "0.3"}, None),
        ({}, None),
    ],
)
def test_what_the_provider_billed(usage: dict[str, object], dollars: float | None) -> None:
    assert billed(usage) == (None if dollars is None else pytest.approx(dollars))


def test_the_users_own_prices_come_before_the_table() -> None:
    own = {"input": 2.0, "output": 8.0, "cache_read": 0.2}
    prices = describe(ModelSpec("m", "openai/gpt-5", prices=own)).prices
    assert prices.cost(TokenUsage(3_000_000, 1_000_000, cache_read=1_000_000)) == pytest.approx(2 * 2.0 + 0.2 + 8.0)
    assert describe(ModelSpec("m", "openai/nobody-knows", prices=own)).prices.cost(
        TokenUsage(1_000_000, 0)
    ) == pytest.approx(2.0)


@pytest.mark.parametrize("model", ["ollama_chat/llama3.2", "lm_studio/x", "hosted_vllm/x"])
def test_a_server_people_run_themselves_sends_no_bill(model: str) -> None:
    prices = describe(ModelSpec("m", model)).prices
    assert prices.free and prices.cost(TokenUsage(5, 5, source="estimated")) == 0.0


def test_what_is_not_known_is_not_free() -> None:
    for model in ("ollama_chat/gpt-oss:120b-cloud", "openai/nobody-knows"):
        prices = describe(ModelSpec("m", model)).prices
        assert not prices.free and prices.cost(TokenUsage(5, 5)) is None


def test_an_estimate_is_no_bill() -> None:
    prices = Prices(3e-6, 15e-6)
    assert prices.cost(TokenUsage(1_000, 10)) is not None
    assert prices.cost(TokenUsage(1_000, 10, source="estimated")) is None
    assert prices.cost(TokenUsage(1_000, 10, output_source="estimated")) is None


def test_openrouters_fee_is_not_the_cost_of_a_call_on_the_users_own_key() -> None:
    assert billed({"cost": 0.0005, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.01}}) == 0.0105
    assert billed({"cost": 0.0005, "is_byok": True}) is None
    assert billed({"cost": 0, "is_byok": False}) == 0.0, "what is said to cost nothing is free, not unknown"
