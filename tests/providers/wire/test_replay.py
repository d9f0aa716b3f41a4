"""The one rule about old reasoning: resent or not, counted or not, and why."""

from __future__ import annotations

from typing import Any

import pytest

from agent_tui.models.messages import (
    Message,
    Origin,
    Part,
    ReasoningPart,
    SummaryPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from agent_tui.models.requests import ReplayRule, SentMessage, Target
from agent_tui.providers import reasoning as replay
from agent_tui.providers.catalog import model_family
from agent_tui.providers.dialects.shared import ReplayStatus
from agent_tui.providers.reasoning import plan_replay, prefix_fingerprint
from tests.support.every import every

pytestmark = pytest.mark.quick

SIGNED = {"type": "thinking", "signature": "sig"}
OLD_CLAUDE = Target("anthropic", "chat", "claude-sonnet-4-5", "claude")
NEW_CLAUDE = Target("anthropic", "chat", "claude-opus-4-7", "claude")
BOUND = Target("anthropic", "chat", "claude-fable-5-1", "claude")


def target(provider: str, model: str, api: str = "chat") -> Target:
    return Target(provider, api, model, model_family(model))


def sent(*messages: Message) -> list[SentMessage]:
    return [SentMessage(message, message.id) for message in messages]


def user(name: str, text: str = "hello") -> Message:
    return Message(name, "user", [TextPart(text)])


def answer(name: str, where: Target, *parts: Part) -> Message:
    return Message(name, "assistant", list(parts), origin=Origin(where.provider, where.api, where.model))


def result(name: str, call_id: str) -> Message:
    return Message(name, "tool", [ToolResultPart(call_id, "read", "text")])


def loop(where: Target, reasoning: ReasoningPart) -> list[SentMessage]:
    call = ToolCallPart("call_1", "read", "{}")
    return sent(user("u1"), answer("a1", where, reasoning, call), result("r1", "call_1"))


def turn(where: Target, reasoning: ReasoningPart) -> list[SentMessage]:
    return sent(user("u1"), answer("a1", where, reasoning, TextPart("done")), user("u2"))


@every(
    ("where", "metadata", "in_loop", "after_user"),
    [
        (OLD_CLAUDE, SIGNED, 1, 0),
        (target("bedrock", "us.anthropic.claude-sonnet-4-20250514-v1:0"), SIGNED, 1, 0),
        (target("anthropic", "claude-sonnet-4-6"), SIGNED, 1, 1),
        (target("anthropic", "claude-opus-4-5-20251101"), SIGNED, 1, 1),
        (NEW_CLAUDE, SIGNED, 1, 1),
        (target("openrouter", "anthropic/claude-haiku-4.5"), {"reasoning_details": [SIGNED]}, 1, 0),
        (target("openai", "gpt-5", "responses"), {"id": "rs", "encrypted_content": "x"}, 1, 0),
        (target("openai", "gpt-5"), None, 0, 0),
        (target("gemini", "gemini-3-pro-preview"), {"thought_signature": "x"}, 1, 0),
        (target("gemini", "gemini-3-pro-preview"), None, 0, 0),
        (target("gemini", "gemini-2.5-flash"), {"thought_signature": "x"}, 0, 0),
        (target("xai", "grok-4.3", "responses"), {"encrypted_content": "x"}, 1, 1),
        (target("xai", "grok-4.3", "responses"), None, 0, 0),
        (target("xai", "grok-3-mini"), None, 0, 0),
        (target("deepseek", "deepseek-v4-flash"), None, 0.95, 0),
        (target("zai", "glm-4.6"), None, 1, 1),
        (target("moonshot", "kimi-k2.5"), None, 1, 0),
    ],
)
def test_what_the_next_input_counts(where: Target, metadata: Any, in_loop: float, after_user: float) -> None:
    part = ReasoningPart("thoughts", metadata)
    assert plan_replay(loop(where, part), where).counted("a1") == in_loop
    assert plan_replay(turn(where, part), where).counted("a1") == after_user


def test_reasoning_that_is_kept_back_by_the_provider_is_not_in_the_next_input() -> None:
    where = target("openai", "gpt-5")
    items = sent(user("u1"), answer("a1", where, TextPart("done")), user("u2"))
    plan = plan_replay(items, where)
    assert plan.counted("a1") == 0
    status = plan.message_status("a1")
    assert status is not None and status.reason == replay.NEVER_SHOWN


def test_a_signature_on_a_call_stands_for_geminis_thoughts() -> None:
    where = target("gemini", "gemini-3-flash-preview")
    call = ToolCallPart("call_1", "read", "{}", {"thought_signature": "x"})
    items = sent(user("u1"), answer("a1", where, call), result("r1", "call_1"))
    assert plan_replay(items, where).counted("a1") == 1


def test_another_model_gets_nothing_and_says_so() -> None:
    plan = plan_replay(turn(OLD_CLAUDE, ReasoningPart("thoughts", SIGNED)), target("openai", "gpt-5", "responses"))
    status = plan.status("a1", 0)
    assert status == ReplayStatus(False, 0.0, "not resent: other model")
    assert not plan.same_origin("a1")
    assert plan.counted("a1") == 0


def test_what_the_provider_drops_is_still_resent_with_its_reason() -> None:
    status = plan_replay(turn(OLD_CLAUDE, ReasoningPart("t", SIGNED)), OLD_CLAUDE).status("a1", 0)
    assert status is not None and status.resent
    assert status.reason == "not counted: dropped by the provider after a user turn"


@pytest.mark.parametrize("metadata", [None, {}, {"type": "thinking", "signature": ""}])
def test_an_unsigned_block_is_never_sent_to_claude(metadata: Any) -> None:
    status = plan_replay(turn(OLD_CLAUDE, ReasoningPart("half a thou", metadata)), OLD_CLAUDE).status("a1", 0)
    assert status is not None and status.reason == replay.UNSIGNED


@pytest.mark.parametrize("metadata", [{"type": "redacted_thinking", "data": "x"}, SIGNED])
def test_redacted_and_empty_signed_blocks_are_sent(metadata: Any) -> None:
    plan = plan_replay(turn(NEW_CLAUDE, ReasoningPart("", metadata)), NEW_CLAUDE)
    assert plan.resent("a1", 0)


@pytest.mark.parametrize("behind", [[], [TextPart("")], [ReasoningPart("u", {"encrypted_content": "y"}), TextPart("")]])
def test_a_reasoning_item_with_nothing_after_it_stays_here(behind: list[Part]) -> None:
    where = target("openai", "gpt-5", "responses")
    parts = [ReasoningPart("t", {"encrypted_content": "x"}), *behind]
    items = sent(user("u1"), answer("a1", where, *parts), user("u2"))
    status = plan_replay(items, where).status("a1", 0)
    assert status is not None and status.reason == replay.UNFINISHED


def test_a_changed_prefix_drops_bound_blocks_only() -> None:
    before = sent(user("u1"))
    part = ReasoningPart("t", SIGNED, prefix=prefix_fingerprint(before, "fixed"))
    same = loop(BOUND, part)
    assert plan_replay(same, BOUND, "fixed").resent("a1", 0)
    changed = plan_replay(same, BOUND, "other tools")
    status = changed.status("a1", 0)
    assert status is not None and status.reason == "not resent: system prompt or tools changed"
    assert changed.thinking_off is None, "blocks may always be missing, and it thinks on"
    for free in (OLD_CLAUDE, NEW_CLAUDE, target("anthropic", "claude-opus-5")):
        assert plan_replay(loop(free, part), free, "other tools").resent("a1", 0)


def test_compaction_inside_an_open_loop_leaves_thinking_on() -> None:
    part = ReasoningPart("t", SIGNED, prefix=prefix_fingerprint(sent(user("u0"), user("u1")), "f"))
    summary = Message("s1", "user", [SummaryPart("summary", "rec_1")])
    items = sent(summary, *(item.message for item in loop(BOUND, part)[1:]))
    plan = plan_replay(items, BOUND, "f")
    status = plan.status("a1", 0)
    assert status is not None and status.reason == "not resent: context was compacted"
    assert plan.thinking_off is None


@every(
    ("name", "bound"),
    [
        ("claude-sonnet-4-5", False),
        ("claude-opus-4-7", False),
        ("claude-opus-5", False),
        ("claude-fable-5-1", True),
        ("claude-mythos-5.1", True),
        ("claude-sonnet-6-20270101", True),
        ("us.anthropic.claude-fable-5-1-v1:0", True),
        ("gpt-5.1", False),
    ],
)
def test_signatures_are_bound_from_a_version_on(name: str, bound: bool) -> None:
    assert replay.prefix_bound(target("anthropic", name)) is bound


def test_a_refusal_once_seen_makes_any_model_bound() -> None:
    part = ReasoningPart("t", SIGNED, prefix=prefix_fingerprint(sent(user("u1")), "fixed"))
    items = loop(NEW_CLAUDE, part)
    learned = ReplayRule(bound=True)
    assert plan_replay(items, NEW_CLAUDE, "fixed", rule=learned).resent("a1", 0)
    assert not plan_replay(items, NEW_CLAUDE, "other tools", rule=learned).resent("a1", 0)


def test_what_was_left_out_stays_out_and_says_so() -> None:
    items = turn(NEW_CLAUDE, ReasoningPart("t", SIGNED))
    status = plan_replay(items, NEW_CLAUDE, rule=ReplayRule(left_out=["a1"])).status("a1", 0)
    assert status == ReplayStatus(False, 0.0, replay.LEFT_OUT)


def test_a_cleared_result_changes_the_prefix_of_what_came_after_it() -> None:
    call = ToolCallPart("call_1", "read", "{}")
    head = sent(user("u1"), answer("a1", BOUND, ReasoningPart("t", SIGNED), call), result("r1", "call_1"))
    later = answer("a2", BOUND, ReasoningPart("t", SIGNED, prefix_fingerprint(head, "f")), TextPart("x"))
    intact = [*head, *sent(later, user("u2"))]
    assert plan_replay(intact, BOUND, "f").resent("a2", 0)
    cleared = [*head[:2], SentMessage(head[2].message, "r1#cleared"), *intact[3:]]
    status = plan_replay(cleared, BOUND, "f").status("a2", 0)
    assert status is not None and status.reason == replay.COMPACTED
    undone = plan_replay(intact, BOUND, "f").status("a2", 0)
    assert undone is not None and undone.resent


def test_a_loop_that_began_with_another_model_runs_without_thinking() -> None:
    items = loop(target("openai", "gpt-5"), ReasoningPart("t"))
    assert (
        plan_replay(items, OLD_CLAUDE).thinking_off == "Thinking is off until your next message: the model was changed."
    )


def test_a_loop_that_began_without_thinking_goes_on_without_it_unless_the_model_adapts() -> None:
    call = ToolCallPart("call_1", "read", "{}")
    old = sent(user("u1"), answer("a1", OLD_CLAUDE, call), result("r1", "call_1"))
    new = sent(user("u1"), answer("a1", NEW_CLAUDE, call), result("r1", "call_1"))
    assert plan_replay(old, OLD_CLAUDE).thinking_off
    assert plan_replay(new, NEW_CLAUDE).thinking_off is None
    assert plan_replay([*old, *sent(user("u2"))], OLD_CLAUDE).thinking_off is None


def test_with_thinking_off_claudes_blocks_are_of_no_use() -> None:
    plan = plan_replay(turn(NEW_CLAUDE, ReasoningPart("t", SIGNED)), NEW_CLAUDE, effort="off")
    status = plan.status("a1", 0)
    assert status is not None and status.reason == replay.THINKING_OFF


def test_messages_outside_the_view_have_no_status() -> None:
    plan = plan_replay(sent(user("u1")), NEW_CLAUDE)
    assert plan.status("nowhere", 0) is None and plan.message_status("nowhere") is None
    assert plan.counted("nowhere") == 0.0 and not plan.same_origin("nowhere")
