"""The ephemeral parts cost what the first measured step says, not what they are estimated at."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.context.accounting.reports import before_step
from agent_tui.context.accounting.usage import calculate_context_usage
from agent_tui.context.incremental import Incremental
from agent_tui.models.messages import Message, SummaryPart
from agent_tui.models.steps import CompactionRecord
from agent_tui.models.usage import TokenUsage
from tests.support.contexts import CLAUDE, Conversation, assert_identities, fixed_part, row
from tests.support.every import every

pytestmark = pytest.mark.quick


def measured(factor: float, raw: int = 2_000, words: int = 13) -> Conversation:
    """A session whose first question was answered by a provider that counts ``factor`` times as many tokens."""
    conversation = Conversation(fixed=[fixed_part(raw=raw), fixed_part("tools", 600, "read", "builtin")])
    conversation.say(raw=words)
    usage = conversation.usage()
    step = conversation.answer(TokenUsage(round(factor * usage.total), 50))
    before_step(step, usage)
    return conversation


def compact(conversation: Conversation) -> None:
    """What follows is sent without anything that was measured."""
    ids = [message.id for message in conversation.path]
    summary = Message("sum", "user", [SummaryPart("summary", "rec")], raw_tokens=93)
    conversation.summaries["sum"] = summary
    conversation.records.append(CompactionRecord("rec", "cmp", "summary", ids, summary_id="sum"))


def test_a_step_of_another_branch_measures_nothing() -> None:
    conversation = measured(1.3)
    conversation.path.clear()
    conversation.say(raw=93)
    assert conversation.usage().total == 2_700


@every("factor", [0.8, 0.92, 1.0, 1.1, 1.4])
def test_without_anything_to_build_on_they_are_taken_as_they_were_measured(factor: float) -> None:
    conversation = measured(factor)
    compact(conversation)
    usage = conversation.usage()
    assert usage.anchor_step is None
    assert usage.total == pytest.approx(factor * 2_600 + 100, abs=40)
    assert_identities(usage)


def test_a_document_is_as_unsure_after_a_compaction_as_its_text() -> None:
    """It was sent with the first question already, and stays pinned."""
    spreads: list[int] = []
    for raw in (0, 1_800):
        conversation = Conversation(fixed=[fixed_part(raw=2_000)])
        if raw:
            conversation.fixed.append(fixed_part("documents", raw, "read.md"))
        conversation.say(raw=13)
        usage = conversation.usage()
        step = conversation.answer(TokenUsage(round(1.1 * usage.total), 50))
        before_step(step, usage)
        compact(conversation)
        spreads.append(conversation.usage().spread)
    assert spreads[1] > spreads[0] + 0.05 * 1_800


@every("factor", [0.8, 0.92, 1.1, 1.4])
def test_the_rows_fit_a_provider_that_counts_otherwise(factor: float) -> None:
    conversation = measured(factor)
    conversation.say(raw=50)
    usage = conversation.usage()
    assert usage.misfit == 0
    assert row(usage, "system").tokens == pytest.approx(factor * 2_000, abs=25)
    assert row(usage, "messages").tokens > 50
    assert_identities(usage)


def test_a_small_misfit_is_taken_from_the_fixed_parts_and_not_from_the_first_message() -> None:
    conversation = Conversation(fixed=[fixed_part(raw=2_000)])
    conversation.say(raw=93)
    before = conversation.usage()
    conversation.answer(TokenUsage(before.total - 50, 50))
    after = conversation.usage()
    sizes = [[row(usage, name).tokens for name in ("system", "messages")] for usage in (before, after)]
    assert sizes[1][0] == sizes[0][0] - 50 and sizes[1][1] == sizes[0][1] + 50  # with what was answered
    assert_identities(after)


def test_a_tool_that_is_switched_on_costs_in_proportion() -> None:
    conversation = measured(1.3)
    before = conversation.usage().total
    conversation.fixed = [*conversation.fixed, fixed_part("tools", 1_000, "grep", "builtin")]
    assert conversation.usage().total - before == pytest.approx(1_300, abs=15)


def test_a_first_message_longer_than_the_parts_says_nothing_of_them() -> None:
    conversation = measured(1.3, raw=100, words=50_000)
    compact(conversation)
    assert conversation.usage().total == 700 + 100


def test_another_model_is_measured_anew() -> None:
    conversation = measured(1.3)
    compact(conversation)
    conversation.target = replace(conversation.target, model="gpt-4.1")
    assert conversation.usage().total == 2_700


def test_an_absurd_report_is_no_measure() -> None:
    conversation = measured(5.0)
    compact(conversation)
    assert conversation.usage().total == 2_700


@given(st.lists(st.floats(0.6, 1.8), min_size=1, max_size=6), st.integers(0, 5))
def test_what_is_kept_between_calculations_changes_nothing(factors: list[float], at: int) -> None:
    accounts = Incremental()
    conversation = measured(factors[0])
    conversation.target = CLAUDE if at == 3 else conversation.target
    for number, factor in enumerate(factors):
        if number == at:
            compact(conversation)
        conversation.say(raw=20)
        usage = accounts.usage(conversation.inputs())
        assert usage == calculate_context_usage(conversation.inputs())
        step = conversation.answer(TokenUsage(max(1, round(factor * usage.total)), 10))
        before_step(step, usage)


def test_a_request_that_was_counted_before_it_was_answered_measures_as_well() -> None:
    """By the provider's own endpoint, or by a refusal that said how long it was."""
    conversation = Conversation(fixed=[fixed_part(raw=2_000), fixed_part("tools", 600, "read", "builtin")])
    conversation.say(raw=13)
    size = round(1.3 * conversation.usage().total)
    conversation.answer(TokenUsage(size, 0), kind="count")
    usage = conversation.usage()
    step = conversation.answer(TokenUsage(size, 50))
    before_step(step, usage)
    compact(conversation)
    assert conversation.usage().total == pytest.approx(1.3 * 2_600 + 100, abs=40)


@pytest.mark.parametrize("share", [0.96, 0.99])
def test_clearing_a_result_that_was_estimated_too_high_scales_no_row(share: float) -> None:
    """Nothing of it was measured but the whole of a request after a summary; what is left of the first messages is that
    less an estimate, which may be off by more than they are long."""
    conversation = measured(1.0)
    compact(conversation)
    conversation.say(raw=50)
    conversation.answer(None, calls=("c",), status="failed")
    result = conversation.result("c", raw=6_000)
    conversation.answer(TokenUsage(round(share * conversation.usage().total), 10))
    conversation.records.append(CompactionRecord("p", "op", "prune", [result.id]))
    usage = conversation.usage()
    assert usage.calculation.removed > 5_900
    assert usage.misfit == 0
    assert_identities(usage)
