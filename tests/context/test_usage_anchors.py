"""Which step the numbers start from: what is believed of a provider's usage, and what comes in between."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent_tui.context.accounting.usage import Calculator
from agent_tui.models.messages import SummaryPart
from agent_tui.models.steps import CompactionRecord
from agent_tui.models.usage import TokenUsage
from tests.support.contexts import (
    CLAUDE,
    TARGET,
    Conversation,
    assert_identities,
    leaves,
    row,
    weather,
)
from tests.support.every import every

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("status", ["stopped", "failed", "running"])
def test_unfinished_steps_do_not_anchor(status: str) -> None:
    conversation = weather()
    conversation.answer(TokenUsage(9_999, 50), status=status)
    usage = conversation.usage()
    assert usage.anchor_step == "s0"
    assert_identities(usage)


@every(
    "reported",
    [
        None,
        TokenUsage(0, 0),
        TokenUsage(-5, 3),
        TokenUsage(7_000, 50, source="estimated"),
        TokenUsage(7_000, 50, context=False),
        TokenUsage(400_001, 50),
    ],
)
def test_usage_that_is_no_context_size_does_not_anchor(reported: TokenUsage | None) -> None:
    conversation = weather()
    conversation.answer(reported, raw=30)
    usage = conversation.usage()
    assert usage.anchor_step == "s0"
    assert usage.total > 5_120
    assert_identities(usage)


def test_another_model_does_not_anchor_and_switching_back_does() -> None:
    conversation = weather()
    conversation.target = CLAUDE
    usage = conversation.usage()
    assert usage.anchor_step is None and usage.basis == "estimated"
    assert "another model" in usage.why
    conversation.target = TARGET
    assert conversation.usage().anchor_step == "s0"


def test_rewind_falls_back_to_an_older_anchor() -> None:
    conversation = weather()
    conversation.answer(TokenUsage(5_115, 50))
    conversation.say()
    conversation.answer(TokenUsage(5_200, 60))
    del conversation.path[3:]
    usage = conversation.usage()
    assert usage.anchor_step == "s0" and usage.total == 5_115, "the result costs what it was measured at"


def test_after_a_summary_what_stays_costs_what_it_cost_and_undo_restores_exactly() -> None:
    conversation = weather()
    conversation.answer(TokenUsage(5_115, 50))
    conversation.say("next", raw=3)
    before = conversation.usage()
    ids = [m.id for m in conversation.path[:3]]
    summary = conversation.append("user", [SummaryPart("so far", "r1")], 40)
    conversation.path.pop()
    conversation.summaries[summary.id] = summary
    record = CompactionRecord("r1", "op1", "summary", ids, summary_id=summary.id)
    conversation.records.append(record)
    compacted = conversation.usage()
    kept = sum(leaf.tokens for leaf in leaves(before.rows) if leaf.message_id not in ids)
    assert compacted.total == kept + row(compacted, "messages", "summary").tokens and compacted.basis == "derived"
    assert row(compacted, "messages", "summary").tokens > 0
    assert_identities(compacted)
    record.active = False
    assert replace(conversation.usage(), session=before.session) == before
    conversation.records.clear()
    assert conversation.usage() == before


def test_an_exact_count_anchors_with_output_0() -> None:
    conversation = weather()
    conversation.answer(TokenUsage(5_117, 0), kind="count")
    usage = conversation.usage()
    assert usage.total == 5_117 and usage.basis == "measured" and usage.estimated_tokens == 0
    assert usage.calculation.last_output == 0
    conversation.answer(TokenUsage(5_118, 40))
    assert conversation.usage().total == 5_158


def test_compaction_and_subagent_steps_do_not_anchor_but_cost() -> None:
    conversation = weather()
    conversation.answer(TokenUsage(90_000, 900), kind="compaction").cost_usd = 0.5
    conversation.answer(TokenUsage(7_000, 70), kind="subagent").cost_usd = 0.25
    usage = conversation.usage()
    assert usage.anchor_step == "s0"
    used = usage.session.usage
    assert used is not None and used.input == 102_000 and usage.session.cost.known == 0.75
    assert used.cache_read is None


def test_what_is_kept_finds_the_anchor_again_after_an_undo() -> None:
    conversation, accounts = weather(), Calculator()
    conversation.answer(TokenUsage(5_115, 50))
    before = conversation.usage(accounts)
    summary = conversation.append("user", [SummaryPart("so far", "r1")], 40)
    conversation.path.pop()
    conversation.summaries[summary.id] = summary
    ids = [m.id for m in conversation.path]
    conversation.records.append(CompactionRecord("r1", "op1", "summary", ids, summary_id=summary.id))
    assert conversation.usage(accounts).total < before.total
    conversation.records.clear()
    assert conversation.usage(accounts) == before


def test_a_count_that_comes_late_does_not_take_the_place_of_a_measured_turn() -> None:
    conversation = weather()
    late = replace(conversation.steps[0], id="late", kind="count", message_id=None, usage=TokenUsage(4_900, 0))
    conversation.steps.append(late)
    for accounts in (None, Calculator()):
        usage = conversation.usage(accounts)
        assert usage.anchor_step == "s0" and usage.total == weather().usage().total
    conversation.answer(TokenUsage(5_300, 0), kind="count")
    assert conversation.usage().total == 5_300, "a count of more than the turn sent anchors"


def test_a_count_made_while_a_step_runs_anchors_until_the_step_is_measured() -> None:
    conversation, accounts = Conversation(), Calculator()
    conversation.say(raw=9_000)
    view = len(conversation.view())
    conversation.answer(None, status="running")
    draft = conversation.path.pop()
    running = conversation.steps[0]
    assert conversation.usage(accounts).anchor_step is None
    conversation.answer(TokenUsage(9_500, 0), kind="count")
    assert conversation.steps[1].sent_count == view
    counted = conversation.usage(accounts)
    assert counted.total == 9_500 and counted == conversation.usage()
    conversation.path.append(draft)
    draft.status = "complete"
    running.status, running.usage, running.finished = "complete", TokenUsage(9_510, 40), 9.0
    conversation.settle(running)
    ended = conversation.usage(accounts)
    assert ended.anchor_step == running.id and ended == conversation.usage()
