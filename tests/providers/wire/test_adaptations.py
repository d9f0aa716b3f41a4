"""What a request leaves out for a server that refused it, on the body of every dialect."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from agent_tui.models.failure import Adaptation
from agent_tui.models.messages import Message, ReasoningPart, TextPart
from agent_tui.models.requests import ReplayRule, SentMessage
from agent_tui.providers.plain_turns import plain_turns
from tests.support import wire
from tests.support.every import every

SIGNED = {"type": "thinking", "signature": "SIGNED"}
ITEM = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "SIGNED"}
MODELS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    # model, metadata of its thoughts, of its calls
    ("openai/local", {"field": "reasoning_content"}, {}),
    (
        "openrouter/deepseek/deepseek-chat",
        {"reasoning_details": [{"type": "reasoning.text", "signature": "SIGNED"}]},
        {},
    ),
    ("openai/responses/gpt-5", ITEM, {"type": "function_call", "id": "fc_SIGNED"}),
    ("anthropic/claude-sonnet-4-6", SIGNED, {}),
    ("bedrock/anthropic.claude-sonnet-4-6", SIGNED, {}),
    ("gemini/gemini-3-pro", {"thought_signature": "SIGNED"}, {"thought_signature": "SIGNED"}),
    ("ollama_chat/qwen3", {}, {}),
]
IDS = [row[0] for row in MODELS]


def body(model: str, thought: dict[str, Any], call: dict[str, Any], *adaptations: Adaptation, **rule: Any) -> Any:
    where = wire.spec(model)
    talk = wire.conversation(where, ReasoningPart("hm THOUGHT", thought or None), on_call=call or None)
    return wire.body(where, talk, effort="high", replay=ReplayRule(adaptations=list(adaptations), **rule))


@pytest.mark.slow
@every(("model", "thought", "call"), MODELS)
def test_no_reasoning_means_nothing_that_its_maker_signed(
    model: str, thought: dict[str, Any], call: dict[str, Any]
) -> None:
    as_it_came = json.dumps(body(model, thought, call))
    assert "SIGNED" in as_it_came or "THOUGHT" in as_it_came
    for bare in (body(model, thought, call, "no reasoning"), body(model, thought, call, until=["a1"])):
        assert "SIGNED" not in json.dumps(bare) and "THOUGHT" not in json.dumps(bare)
        assert "I will." in json.dumps(bare)


@pytest.mark.slow
@every(("model", "thought", "call"), MODELS)
def test_calls_as_text_leave_two_sides_in_turn(model: str, thought: dict[str, Any], call: dict[str, Any]) -> None:
    for sent in (body(model, thought, call, "calls as text"), body(model, thought, call, text_until=["u2"])):
        said = sent.get("messages") or sent.get("contents") or sent["input"]
        text = json.dumps(said)
        for word in ("tool_calls", "tool_use", "toolUse", "function_call", "functionCall", '"tool"', "SIGNED"):
            assert word not in text, word
        assert "<tool_call>" in text and "<tool_response>" in text and "thanks" in text
        roles = [m["role"] for m in said if m["role"] != "system"]
        assert all(a != b for a, b in pairwise(roles)) and roles[0] == "user" == roles[-1]


@pytest.mark.slow
@every(("model", "thought", "call"), MODELS)
def test_short_ids_are_ones_that_every_api_takes(model: str, thought: dict[str, Any], call: dict[str, Any]) -> None:
    assert "call_1" not in json.dumps(body(model, thought, call, "short call ids"))


@pytest.mark.parametrize("model", ["openai/local", "openrouter/deepseek/deepseek-chat", "deepseek/deepseek-chat"])
def test_reasoning_everywhere_is_in_every_answer(model: str) -> None:
    """Also in those of another model, and of one that did not think."""
    talk = [*wire.conversation(wire.spec("anthropic/claude-sonnet-4-6"), ReasoningPart("THOUGHT", SIGNED))]
    talk += [wire.answer("a2", wire.spec(model), TextPart("Welcome.")), wire.user("u3", "and now?")]
    sent = wire.body(wire.spec(model), talk, replay=ReplayRule(adaptations=["reasoning everywhere"]))
    answers = [m for m in sent["messages"] if m["role"] == "assistant"]
    assert len(answers) >= 2 and all(m["reasoning_content"] for m in answers)
    assert "THOUGHT" not in json.dumps(sent)


def test_a_system_prompt_as_text_begins_the_users_first_message() -> None:
    sent = body("openai/local", {}, {}, "system as text", "calls as text")
    assert [m["role"] for m in sent["messages"]] == ["user", "assistant", "user"]
    assert sent["messages"][0]["content"].startswith("Be brief.\n\nread both")


def test_no_thinking_asks_for_none() -> None:
    for model, field in (("anthropic/claude-sonnet-4-6", "thinking"), ("openai/responses/gpt-5", "reasoning")):
        assert field in body(model, {}, {}) and field not in body(model, {}, {}, "no thinking")


def test_plain_turns_change_no_message_and_begin_with_the_user() -> None:
    talk = wire.conversation(wire.spec("openai/local"))[1:]
    before = [list(message.parts) for message in talk]
    made = plain_turns([SentMessage(message, message.id) for message in talk])
    assert [item.message.role for item in made] == ["user", "assistant", "user"]
    assert before == [message.parts for message in talk]
    assert plain_turns([SentMessage(Message("a", "assistant", []), "a")]) == []
