"""The rows of the breakdown: what is measured of each, derived or scaled, and what came from the cache."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from agent_tui.context.accounting.usage import Calculator
from agent_tui.models.usage import TokenUsage
from tests.support.contexts import (
    CLAUDE,
    Conversation,
    assert_identities,
    fixed_part,
    leaves,
    row,
    usual,
    weather,
)

pytestmark = pytest.mark.quick


def test_deferred_tools_cost_nothing_and_are_listed() -> None:
    conversation = Conversation(fixed=[replace(fixed_part("tools", 0, "big", "mcp:x"), deferred_tokens=9_000)])
    conversation.say()
    tools = row(conversation.usage(), "tools", "mcp:x")
    assert tools.tokens == 0 and tools.deferred_tokens == 9_000


def test_claude_tools_cost_their_preamble_once() -> None:
    conversation = Conversation(target=CLAUDE)
    conversation.say(raw=0)
    base = conversation.usage().total
    conversation.fixed = [fixed_part("tools", 100, "a", "builtin"), fixed_part("tools", 100, "b", "builtin")]
    assert conversation.usage().total == base + 490 + 2 * math.ceil(100 * usual(CLAUDE))


def test_a_message_added_alone_is_derived_and_keeps_its_value() -> None:
    conversation = weather()
    conversation.answer(TokenUsage(5_115, 50))
    conversation.say("more", raw=2)
    conversation.answer(TokenUsage(5_180, 10))
    usage = conversation.usage()
    result = row(usage, "messages", "tool_results")
    assert [(c.tokens, c.basis) for c in result.children] == [(15, "derived")]
    assert (result.tokens, result.basis, result.estimated_tokens) == (15, "derived", 0)
    user = row(usage, "messages", "user").children[-1]
    assert (user.tokens, user.basis) == (15, "derived")
    answers = row(usage, "messages", "assistant").children
    assert (answers[-1].tokens, answers[-1].basis) == (10, "measured")


def test_a_group_is_derived_and_its_split_estimated() -> None:
    conversation = Conversation()
    conversation.say()
    conversation.answer(TokenUsage(1_000, 40), calls=("a", "b"))
    conversation.result("a", raw=30)
    conversation.result("b", raw=10)
    conversation.answer(TokenUsage(1_100, 5))
    results = row(conversation.usage(), "messages", "tool_results")
    assert (results.tokens, results.basis, results.estimated_tokens) == (60, "derived", 0)
    assert [c.basis for c in results.children] == ["estimated", "estimated"]
    assert sum(c.tokens for c in results.children) == 60


def test_fixed_rows_that_are_too_large_are_scaled() -> None:
    conversation = Conversation(fixed=[fixed_part(raw=50_000), fixed_part("tools", 50_000, "t", "builtin")])
    conversation.say()
    conversation.answer(TokenUsage(900, 100))
    usage = conversation.usage()
    assert usage.total == 1_000
    assert abs(row(usage, "system").tokens - row(usage, "tools").tokens) < 5
    assert 100 <= row(usage, "messages").tokens <= 105 and not usage.warnings
    assert_identities(usage)


def test_what_is_least_sure_of_a_first_request_gives_way() -> None:
    conversation = Conversation(fixed=[fixed_part(raw=700), fixed_part("tools", 300, "t", "builtin")])
    conversation.say()
    conversation.answer(TokenUsage(990, 100))
    accounts = Calculator()
    usage = conversation.usage(accounts)
    assert conversation.usage(accounts) == conversation.usage() == usage
    assert 700 - row(usage, "system").tokens < 300 - row(usage, "tools").tokens, "tools are written in its own way"
    assert row(usage, "messages", "user").tokens >= 1
    assert usage.total == 1_090 and not usage.warnings
    assert_identities(usage)


def test_cached_messages_are_those_the_newest_step_read() -> None:
    conversation = weather()
    conversation.answer(TokenUsage(5_115, 50, cache_read=5_000, cache_write=110))
    conversation.say()
    usage = conversation.usage()
    cached = {leaf.label: leaf.cached for leaf in leaves(row(usage, "messages").children)}
    assert cached["What's the weather in NYC?"] is True
    assert cached["hello"] is False
    conversation.answer(TokenUsage(5_200, 5))
    assert all(leaf.cached is None for leaf in leaves(conversation.usage().rows))


def test_an_answer_is_named_by_its_words_without_the_signs_of_a_heading() -> None:
    conversation = Conversation()
    conversation.say("# not a heading of an answer")
    conversation.answer(TokenUsage(1_000, 40), text="## 1 of 4 · Tools\n\nmore")
    usage = conversation.usage()
    assert [c.label for c in row(usage, "messages", "assistant").children] == ["1 of 4 · Tools more"]
    assert row(usage, "messages", "user").children[0].label == "# not a heading of an answer"
