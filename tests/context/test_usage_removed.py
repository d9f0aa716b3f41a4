"""What is sent no longer: cleared and clipped results, reasoning that a provider leaves out."""

from __future__ import annotations

import math

import pytest

from agent_tui.context.accounting.usage import Calculator
from agent_tui.models.messages import ReasoningPart
from agent_tui.models.requests import Target
from agent_tui.models.steps import CompactionRecord
from agent_tui.models.usage import TokenUsage
from tests.support.contexts import (
    BOUND,
    Conversation,
    assert_identities,
    fixed_part,
    leaves,
    row,
    usual,
    weather,
)

pytestmark = pytest.mark.quick


def test_clearing_a_measured_result_takes_away_what_it_cost() -> None:
    conversation = weather()
    conversation.answer(TokenUsage(5_300, 50))
    conversation.say("next", raw=3)
    before = conversation.usage()
    measured = row(before, "messages", "tool_results").children[0]
    assert measured.tokens == 200 and measured.basis == "derived"
    conversation.records.append(CompactionRecord("p1", "op1", "prune", [conversation.path[2].id]))
    usage = conversation.usage()
    placeholder = 7 + 7
    assert usage.calculation.removed == 200 - placeholder
    assert usage.total == before.total - 200 + placeholder
    assert row(usage, "messages", "tool_results").tokens == placeholder
    assert_identities(usage)
    conversation.answer(TokenUsage(usage.total - 3, 10))
    conversation_before = conversation.usage()
    assert conversation_before.calculation.removed == 0
    conversation.records[0].active = False
    undone = conversation.usage()
    cleared = sum(leaf.tokens for leaf in leaves([row(conversation_before, "messages", "tool_results")]))
    assert undone.calculation.removed == cleared - 200
    assert_identities(undone)


def test_clipping_is_counted_by_what_is_left() -> None:
    conversation = Conversation()
    conversation.say()
    conversation.answer(TokenUsage(1_000, 20), calls=("c",))
    big = conversation.result("c", "x" * 4_000, raw=1_000)
    whole = conversation.usage()
    conversation.records.append(CompactionRecord("p", "op", "prune", [big.id], clips={big.id: 400}))
    clipped = conversation.usage()
    assert whole.total - 1_000 < clipped.total < whole.total - 800
    assert clipped.calculation.removed == 0
    assert_identities(clipped)


def thought() -> ReasoningPart:
    return ReasoningPart("hm", {"signature": "s"}, "now")


def test_reasoning_that_openai_chat_drops_is_taken_off() -> None:
    conversation = Conversation()
    conversation.say()
    conversation.answer(TokenUsage(1_000, 150, reasoning=128), calls=("c",))
    conversation.result("c", raw=10)
    usage = conversation.usage()
    assert usage.calculation.dropped_reasoning == 128
    assert usage.total == 1_000 + 150 - 128 + 10 + 7
    assert usage.estimated_tokens == 17


def test_claude_keeps_reasoning_inside_a_loop_and_older_models_drop_it_after_the_turn() -> None:
    older = Target("anthropic", "chat", "claude-sonnet-4-5", "claude")
    conversation = Conversation(target=older)
    conversation.say()
    conversation.answer(TokenUsage(1_000, 150, 100), calls=("c",), reasoning=thought())
    conversation.result("c")
    assert conversation.usage().calculation.dropped_reasoning == 0
    conversation.answer(TokenUsage(1_180, 60, 40), reasoning=thought())
    assert conversation.usage().calculation.dropped_reasoning == 140, "what comes next can only be a new turn"
    conversation.say()
    usage = conversation.usage()
    assert usage.calculation.dropped_reasoning == 140
    reasoning = row(usage, "messages", "reasoning")
    assert reasoning.tokens == 0 and all(r.replay and "dropped" in r.replay for r in reasoning.children)
    assert_identities(usage)


def test_a_prompt_change_drops_reasoning_bound_to_the_prefix() -> None:
    conversation = Conversation(target=BOUND, fixed=[fixed_part()])
    conversation.say()
    conversation.answer(TokenUsage(2_000, 150, 100), reasoning=thought())
    conversation.say()
    conversation.answer(TokenUsage(2_160, 90, 50), reasoning=thought())
    assert conversation.usage().calculation.dropped_reasoning == 0
    conversation.fixed_fingerprint = "other"
    usage = conversation.usage()
    assert usage.calculation.dropped_reasoning == 150
    assert usage.total == 2_160 + 90 - 150
    assert_identities(usage)


def test_clearing_drops_reasoning_bound_to_the_prefix() -> None:
    conversation = Conversation(target=BOUND)
    conversation.say()
    conversation.answer(TokenUsage(2_000, 150, 100), calls=("c",), reasoning=thought())
    result = conversation.result("c", raw=500)
    conversation.answer(TokenUsage(2_800, 90, 50), reasoning=thought())
    conversation.say()
    before = conversation.usage()
    assert before.calculation.dropped_reasoning == 0
    conversation.records.append(CompactionRecord("p", "op", "prune", [result.id]))
    usage = conversation.usage()
    assert usage.calculation.dropped_reasoning == 50
    assert usage.calculation.removed == 650 - math.ceil(7 * usual(BOUND) + 12)
    assert_identities(usage)


def test_what_is_kept_reopens_a_turn_after_a_rewind() -> None:
    conversation, accounts = (
        Conversation(target=Target("anthropic", "chat", "claude-sonnet-4-5", "claude")),
        Calculator(),
    )
    conversation.say()
    conversation.answer(TokenUsage(1_000, 150, 100), reasoning=thought())
    before = conversation.usage(accounts)
    conversation.say()
    assert conversation.usage(accounts).calculation.dropped_reasoning == 100
    conversation.path.pop()
    assert conversation.usage(accounts) == before
