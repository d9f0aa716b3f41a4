"""The breakdown's rows: which there are, how they are named, and what of them was read from the provider's cache."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import get_args

import pytest

from agent_tui.context.accounting.usage import Calculator
from agent_tui.models.context import ContextRow, ContextUsage
from agent_tui.models.rows import CONTEXT_ROWS, FIXED_ROWS, FREE, RESERVE, RowId
from agent_tui.models.steps import CompactionRecord
from agent_tui.models.usage import TokenUsage
from tests.support.contexts import CLAUDE, Conversation, assert_identities, calibrated, fixed_part, leaves, row, usual
from tests.support.every import every

pytestmark = pytest.mark.quick

IDS = ["system", "environment", "memory", "skills", "tools", "documents", "messages"]


def read(usage: ContextUsage) -> int:
    """Cached tokens over all rows; every level says the same."""
    whole = 0
    for top in usage.rows:
        assert_reads_add_up(top)
        assert top.cached_tokens is not None or not top.tokens
        whole += top.cached_tokens or 0
    return whole


def assert_reads_add_up(parent: ContextRow) -> None:
    assert parent.cached_tokens is None or 0 <= parent.cached_tokens <= parent.tokens
    if parent.children:
        assert sum(c.cached_tokens or 0 for c in parent.children) == (parent.cached_tokens or 0)
        for child in parent.children:
            assert_reads_add_up(child)


def prompt() -> Conversation:
    """2 000 tokens of tools, 1 000 of system prompt and 500 of memory."""
    return Conversation(
        fixed=[
            fixed_part(raw=1_000),
            fixed_part("memory", 500, "AGENTS.md", "AGENTS.md"),
            fixed_part("tools", 2_000, "read", "builtin"),
        ]
    )


def test_all_rows_are_there_and_empty_ones_cost_nothing() -> None:
    usage = Conversation().usage()
    assert [r.id for r in usage.rows] == IDS
    assert all((r.tokens, r.children) == (0, []) for r in usage.rows)
    conversation = prompt()
    conversation.say()
    usage = conversation.usage()
    assert [r.id for r in usage.rows] == IDS and row(usage, "skills").tokens == 0
    assert_identities(usage)


def test_a_row_of_one_part_has_nothing_below_and_labels_count() -> None:
    usage = prompt().usage()
    assert row(usage, "system").children == [] and row(usage, "system").label == "System prompt"
    memory, tools = row(usage, "memory"), row(usage, "tools")
    assert memory.label == "Memory (1)" and [c.label for c in memory.children] == ["AGENTS.md"]
    assert tools.label == "Tools (1)" and [c.label for c in row(usage, "tools", "builtin").children] == ["read"]


def test_what_claude_adds_for_tools_is_a_part_of_its_own() -> None:
    conversation = prompt()
    conversation.target = CLAUDE
    conversation.say()
    tools = row(conversation.usage(), "tools")
    assert {c.label: c.tokens for c in tools.children} == {
        "tool use preamble": 490,
        "builtin": math.ceil(2_000 * usual(CLAUDE)),
    }
    assert tools.label == "Tools (1)"
    conversation.answer(TokenUsage(5_000, 10))
    first = row(conversation.usage(), "tools").children[0].tokens
    conversation.steps[-1].usage = TokenUsage(5_000, 10, cache_read=first, cache_write=5_000 - first)
    preamble, builtin = row(conversation.usage(), "tools").children
    assert (preamble.cached, builtin.cached, builtin.cached_tokens) == (True, False, 0)


@every(
    ("cached", "expected"),
    [
        (0, {}),
        (1_500, {"read": 1_500}),
        (2_000, {"read": 2_000}),
        (2_400, {"read": 2_000, "System prompt": 400}),
        (3_499, {"read": 2_000, "System prompt": 1_000, "AGENTS.md": 499}),
        (3_700, {"read": 2_000, "System prompt": 1_000, "AGENTS.md": 500, "hello": 200}),
    ],
)
def test_reads_are_shared_out_in_the_order_of_sending(cached: int, expected: dict[str, int]) -> None:
    conversation = prompt()
    conversation.say(raw=493)
    conversation.answer(TokenUsage(4_000, 10, cache_read=cached))
    usage = conversation.usage()
    assert {leaf.label: leaf.cached_tokens for leaf in leaves(usage.rows) if leaf.cached_tokens} == expected
    assert all(leaf.cached is (leaf.cached_tokens == leaf.tokens) for leaf in leaves(usage.rows) if leaf.tokens)
    assert read(usage) == cached


@every("cached", [4_000, 4_005, 4_128, 4_300])
def test_a_reading_may_end_inside_a_message(cached: int) -> None:
    conversation, accounts = prompt(), Calculator()
    conversation.say(raw=493)
    conversation.answer(TokenUsage(4_000, 10), calls=("c1", "c2"))
    conversation.usage(accounts)
    conversation.result("c1", raw=200)
    conversation.result("c2", raw=100)
    conversation.answer(TokenUsage(4_330, 10, cache_read=cached), calls=("c3",))
    conversation.result("c3", raw=50)
    for _ in range(2):
        usage = conversation.usage(accounts)
        assert usage == conversation.usage()
        assert read(usage) == cached
    newest = row(usage, "messages", "tool_results").children[-1]
    assert newest.cached is False, "what came after the step was not in it"


def test_a_part_that_is_new_was_not_read() -> None:
    conversation = prompt()
    conversation.say(raw=493)
    conversation.answer(TokenUsage(4_000, 10, cache_read=3_000))
    conversation.fixed.append(fixed_part("tools", 300, "search", "mcp:web"))
    usage = conversation.usage()
    new = row(usage, "tools", "mcp:web")
    assert (new.cached, new.cached_tokens) == (False, 0)
    assert row(usage, "tools", "builtin").cached is True
    assert row(usage, "tools").cached is False and row(usage, "tools").cached_tokens == 2_000


def test_nothing_is_said_where_the_provider_says_nothing() -> None:
    conversation = prompt()
    conversation.say()
    conversation.answer(TokenUsage(4_000, 10))
    usage = conversation.usage()
    assert all(r.cached is None and r.cached_tokens is None for r in leaves(usage.rows))
    assert usage.expected_read is None


def test_what_was_written_will_be_read() -> None:
    conversation = prompt()
    conversation.say(raw=493)
    conversation.answer(TokenUsage(4_000, 10, cache_read=3_000, cache_write=900))
    usage = conversation.usage()
    assert read(usage) == 3_000 and usage.expected_read == 3_900
    conversation.fixed[0] = replace(conversation.fixed[0], fingerprint="other")
    assert conversation.usage().expected_read == 2_000, "only the tools come before the prompt that changed"
    conversation.fixed[2] = replace(conversation.fixed[2], fingerprint="other")
    assert conversation.usage().expected_read == 0


def test_reads_without_writes_promise_nothing() -> None:
    conversation = prompt()
    conversation.say()
    conversation.answer(TokenUsage(4_000, 10, cache_read=3_000))
    assert conversation.usage().expected_read is None


def test_a_prune_ends_the_stretch_that_growth_is_taken_from() -> None:
    conversation = Conversation()
    for turn in range(4):
        conversation.say()
        conversation.answer(TokenUsage(1_000 * (turn + 1), 100))
    assert conversation.usage().turns_left is not None
    conversation.records.append(CompactionRecord("p1", "op1", "prune", []))
    assert conversation.usage().turns_left is None
    for turn in range(3):
        conversation.say()
        conversation.answer(TokenUsage(5_000 + 100 * turn, 50))
    usage = conversation.usage()
    assert usage.limit is not None and usage.turns_left == (usage.limit - usage.total) // 100


def test_what_the_user_drops_between_two_turns_is_no_growth() -> None:
    conversation = Conversation()
    for turn in range(3):
        conversation.say()
        conversation.answer(TokenUsage(5_000 + 100 * turn, 50))
    grew = conversation.usage().growth
    dropped = conversation.path[0].id
    conversation.records.append(CompactionRecord("drop_1", "op1", "drop", [dropped], reason="edit"))
    assert grew == 100 and conversation.usage().growth == 100
    conversation.say()
    conversation.answer(TokenUsage(4_000, 50))
    assert conversation.usage().growth == 100


def test_totals_leave_counts_and_what_was_undone_out() -> None:
    conversation = Conversation()
    conversation.say()
    conversation.answer(TokenUsage(1_000, 100))
    conversation.answer(TokenUsage(1_100, 0), kind="count")
    conversation.records = [
        CompactionRecord("p1", "op1", "prune", [], active=False),
        CompactionRecord("p2", "op2", "prune", []),
        CompactionRecord("r2", "op2", "summary", []),
    ]
    session = conversation.usage().session
    assert session.usage == TokenUsage(1_000, 100, context=False) and session.compactions == 1


def test_without_an_anchor_an_estimate_is_rounded_up_once() -> None:
    conversation = Conversation(target=CLAUDE)
    conversation.say(raw=10)
    learned = calibrated(1.05 * 11 / 10 / usual(CLAUDE), CLAUDE)
    assert conversation.usage(calibration=learned).total == 13, "1.05 × 11 + 1 = 12.6; rounded before it were 14"


def test_every_row_has_one_record_that_tells_it_from_the_others() -> None:
    assert tuple(FIXED_ROWS) == get_args(RowId)
    every = [*CONTEXT_ROWS, FREE, RESERVE]
    assert [row_id for row_id, kind in FIXED_ROWS.items() if kind.id != row_id] == []
    for attribute in ("id", "label", "pattern"):
        values = [getattr(kind, attribute) for kind in every]
        assert len(set(values)) == len(values), attribute
    assert sorted(kind.sent for kind in FIXED_ROWS.values()) == list(range(len(FIXED_ROWS)))
