"""What a provider reports reaches every place that tells of it: a field of usage that one of them lacks fails here."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest

from agent_tui.commands.report import ContextReport
from agent_tui.commands.report_json import context_json
from agent_tui.commands.usage import USED, usage_text
from agent_tui.context.accounting.spending import session_totals
from agent_tui.headless.output import bill
from agent_tui.models.steps import Step
from agent_tui.models.usage import COUNTS, TokenUsage, usage_json
from agent_tui.store.export_data import step_row
from agent_tui.store.rows import dump_step, load_step
from tests.support.usages import sample_usage

NUMBERS: dict[str, Any] = {name: 700_001 + 1_000 * at for at, name in enumerate(COUNTS)}
FULL = TokenUsage(**NUMBERS, told={"cache_discount": 0.25}, raw={"input_tokens": 700_001, "tier": "standard"})
BELIEVED = TokenUsage(40, 7, source="estimated")


def step(usage: TokenUsage = FULL) -> Step:
    return Step("s", "turn", "m", "anthropic", "messages", "m", status="complete", usage=usage, believed=BELIEVED)


def of_context() -> Any:
    return context_json(ContextReport(replace(sample_usage(), session=session_totals([step()]))))["session"]


SUMS: dict[str, Callable[[], Any]] = {
    "headless": lambda: bill([step()])["usage"],
    "headless by kind": lambda: bill([step()])["usage_by_kind"]["turn"],
    "context": of_context,
    "context by kind": lambda: of_context()["usage_by_kind"]["turn"],
}


def test_the_numbers_of_tokens_are_found_in_the_fields() -> None:
    whole = {f.name for f in fields(TokenUsage) if isinstance(getattr(FULL, f.name), int | None)} - {"context"}
    assert set(COUNTS) == whole == set(USED)


def test_all_that_was_reported_of_a_call_is_told_and_stored_as_it_came() -> None:
    told = usage_json(FULL)
    assert told is not None and len(told) == len(fields(TokenUsage))
    assert {told[f"{name}_tokens"]: name for name in COUNTS} == {number: name for name, number in NUMBERS.items()}
    assert told["raw"] == FULL.raw and told["cache_told"] == FULL.told
    row = json.loads(json.dumps(step_row(step())))
    assert row["usage"] == told and row["believed"] == usage_json(BELIEVED)
    data = json.loads(dump_step(step()))
    back = load_step({**data, "id": "s", "status": "complete", "message_id": None, "fixed": ()})
    assert (back.usage, back.believed, back.counted) == (FULL, BELIEVED, BELIEVED)
    assert back.usage is not None and (back.usage.raw, back.usage.told) == (FULL.raw, FULL.told)


@pytest.mark.parametrize("place", SUMS)
def test_sums_have_every_number(place: str) -> None:
    found = SUMS[place]()
    assert {name: found.get(f"{name}_tokens") for name in COUNTS} == NUMBERS


def test_the_page_of_usage_has_every_number_and_says_what_is_not_believed() -> None:
    text = usage_text(session_totals([step(), replace(step(), believed=None)]), [])
    for number in NUMBERS.values():
        assert f"{2 * number:,}" in text
    assert "1 report  not believed" in text
