"""What a provider reports reaches every place that tells of it: a field of usage that one of them lacks fails here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

import pytest

from agent_tui.commands.info import Info
from agent_tui.commands.report import ContextReport
from agent_tui.commands.report_json import context_json
from agent_tui.commands.usage import USED, usage_sections
from agent_tui.context.accounting.spending import session_totals
from agent_tui.headless.output import bill
from agent_tui.models.steps import Step
from agent_tui.models.usage import COUNTS, TokenUsage, usage_json
from agent_tui.providers.dialects import anthropic, chat, cohere, gemini, ollama, responses
from agent_tui.store.export_data import step_row
from agent_tui.store.rows import dump_step, load_step
from tests.support.every import every
from tests.support.usages import sample_usage

pytestmark = pytest.mark.quick

NUMBERS: dict[str, Any] = {name: 700_001 + 1_000 * at for at, name in enumerate(COUNTS)}
FULL = TokenUsage(
    **NUMBERS,
    searches=3,
    service_tier="flex",
    told={"cache_discount": 0.25},
    raw={"input_tokens": 700_001, "tier": "standard"},
)
BELIEVED = TokenUsage(40, 7, source="estimated")


def step(usage: TokenUsage = FULL) -> Step:
    return Step("s", "turn", "m", "anthropic", "messages", "m", status="complete", usage=usage, believed=BELIEVED)


def of_context() -> Any:
    return context_json(ContextReport(replace(sample_usage(), session=session_totals([step()]))))["session"]


Reading = tuple[Callable[[Mapping[str, Any]], TokenUsage], dict[str, Any], dict[str, int]]
"""What reads a report, a report under the provider's own names, and the numbers that are in it."""

READINGS: dict[str, Reading] = {
    "chat": (
        chat.read_usage,
        {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "prompt_tokens_details": {
                "cached_tokens": 60,
                "cache_write_tokens": 30,
                "cache_creation_token_details": {"ephemeral_1h_input_tokens": 10},
            },
            "completion_tokens_details": {"reasoning_tokens": 5},
        },
        {"input": 100, "output": 20, "reasoning": 5, "cache_read": 60, "cache_write": 30, "cache_write_1h": 10},
    ),
    "responses": (
        responses.read_usage,
        {
            "input_tokens": 100,
            "output_tokens": 20,
            "total_tokens": 120,
            "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
            "output_tokens_details": {"reasoning_tokens": 5},
        },
        {"input": 100, "output": 20, "reasoning": 5, "cache_read": 60, "cache_write": 30},
    ),
    "anthropic": (
        anthropic.read_usage,
        {
            "input_tokens": 10,
            "output_tokens": 20,
            "cache_read_input_tokens": 60,
            "cache_creation_input_tokens": 30,
            "cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 10},
            "output_tokens_details": {"thinking_tokens": 5},
        },
        {"input": 100, "output": 20, "reasoning": 5, "cache_read": 60, "cache_write": 30, "cache_write_1h": 10},
    ),
    "gemini": (
        gemini.read_usage,
        {
            "promptTokenCount": 100,
            "candidatesTokenCount": 15,
            "thoughtsTokenCount": 5,
            "totalTokenCount": 120,
            "cachedContentTokenCount": 60,
        },
        {"input": 100, "output": 20, "reasoning": 5, "cache_read": 60},
    ),
    "cohere": (
        cohere.read_usage,
        {"tokens": {"input_tokens": 100, "output_tokens": 20, "reasoning_tokens": 5}, "cached_tokens": 60},
        {"input": 100, "output": 20, "reasoning": 5, "cache_read": 60},
    ),
    "ollama": (
        ollama.read_usage,
        {"prompt_eval_count": 100, "eval_count": 20},
        {"input": 100, "output": 20},
    ),
}

SUMS: dict[str, Callable[[], Any]] = {
    "headless": lambda: bill([step()])["usage"],
    "headless by kind": lambda: bill([step()])["usage_by_kind"]["turn"],
    "context": of_context,
    "context by kind": lambda: of_context()["usage_by_kind"]["turn"],
}


def test_the_numbers_of_tokens_are_found_in_the_fields() -> None:
    whole = {f.name for f in fields(TokenUsage) if isinstance(getattr(FULL, f.name), int | None)} - {"context"}
    assert set(COUNTS) == whole - {"searches"} == set(USED)


@every("dialect", READINGS)
def test_a_dialect_reads_every_number_of_its_report(dialect: str) -> None:
    read, report, numbers = READINGS[dialect]
    usage = read(report)
    assert {name: getattr(usage, name) for name in COUNTS} == {name: numbers.get(name) for name in COUNTS}


def test_every_number_is_read_by_some_dialect() -> None:
    read = {name for _, _, numbers in READINGS.values() for name in numbers}
    assert set(COUNTS) - read == set(), "a field that no provider's report fills"


def test_all_that_was_reported_of_a_call_is_told_and_stored_as_it_came() -> None:
    told = usage_json(FULL)
    assert told is not None and len(told) == len(fields(TokenUsage))
    assert {told[f"{name}_tokens"]: name for name in COUNTS} == {number: name for name, number in NUMBERS.items()}
    assert told["raw"] == FULL.raw and told["cache_told"] == FULL.told and told["web_searches"] == 3
    row = json.loads(json.dumps(step_row(step())))
    assert row["usage"] == told and row["believed"] == usage_json(BELIEVED)
    data = json.loads(dump_step(step()))
    back = load_step({**data, "id": "s", "status": "complete", "message_id": None, "fixed": ()})
    assert (back.usage, back.believed, back.counted) == (FULL, BELIEVED, BELIEVED)
    assert back.usage is not None and (back.usage.raw, back.usage.told) == (FULL.raw, FULL.told)


@every("place", SUMS)
def test_sums_have_every_number(place: str) -> None:
    found = SUMS[place]()
    assert {name: found.get(f"{name}_tokens") for name in COUNTS} == NUMBERS


def test_the_page_of_usage_has_every_number_and_says_what_is_not_believed() -> None:
    text = Info("", usage_sections(session_totals([step(), replace(step(), believed=None)]), [])).text
    for number in NUMBERS.values():
        assert f"{2 * number:,}" in text
    assert "1 report  counted as reported" in text
