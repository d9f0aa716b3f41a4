"""Anthropic's Messages API: blocks in their order, markers for the prompt cache."""

from __future__ import annotations

import pytest

from agent_tui.models.messages import Origin, ReasoningPart, TextPart
from tests.support.wire import answer, body, call, conversation, result, spec, user

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.quick]

MODEL = spec("anthropic/claude-sonnet-4-5")
FOREIGN = Origin("openai", "chat", "gpt-5")
SIGNED = {"type": "thinking", "signature": "SIG"}


def test_a_signed_answer_goes_back_in_its_order() -> None:
    assert body(MODEL, conversation(MODEL, ReasoningPart("think", SIGNED)), effort="medium") == {
        "model": "claude-sonnet-4-5",
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "read both", "cache_control": {"type": "ephemeral"}}],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "think", "signature": "SIG"},
                    {"type": "text", "text": "I will."},
                    {"type": "tool_use", "id": "call_1", "name": "read", "input": {"path": "a.py"}},
                    {"type": "tool_use", "id": "call_2", "name": "read", "input": {"path": "b.py"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "A"}]},
                    {
                        "type": "tool_result",
                        "tool_use_id": "call_2",
                        "content": [{"type": "text", "text": "B"}],
                    },
                    {"type": "text", "text": "thanks", "cache_control": {"type": "ephemeral"}},
                ],
            },
        ],
        "max_tokens": 8000,
        "tools": [
            {
                "name": "read",
                "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
                "type": "custom",
                "description": "Reads a file.",
            }
        ],
        "thinking": {"type": "enabled", "budget_tokens": 4096},
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "stream": True,
    }


def test_interleaved_redacted_and_empty_signed_blocks_keep_their_places() -> None:
    messages = [
        user("u1", "go"),
        answer(
            "a1",
            MODEL,
            ReasoningPart("one", SIGNED),
            TextPart("text"),
            ReasoningPart("", {"type": "redacted_thinking", "data": "RED"}),
            ReasoningPart("", {"type": "thinking", "signature": "EMPTY"}),
            call("call_1", "a"),
            ReasoningPart("two", {**SIGNED, "signature": "SIG2"}),
            call("call_2", "b"),
        ),
        result("call_1", "A"),
        result("call_2", "B"),
    ]
    assert body(MODEL, messages, effort="high", max_output=4_000)["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "go", "cache_control": {"type": "ephemeral"}}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "one", "signature": "SIG"},
                {"type": "text", "text": "text"},
                {"type": "redacted_thinking", "data": "RED"},
                {"type": "thinking", "thinking": "", "signature": "EMPTY"},
                {"type": "tool_use", "id": "call_1", "name": "read", "input": {"path": "a"}},
                {"type": "thinking", "thinking": "two", "signature": "SIG2"},
                {"type": "tool_use", "id": "call_2", "name": "read", "input": {"path": "b"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "call_1",
                    "content": [{"type": "text", "text": "A"}],
                },
                {
                    "type": "tool_result",
                    "tool_use_id": "call_2",
                    "content": [{"type": "text", "text": "B"}],
                    "cache_control": {"type": "ephemeral"},
                },
            ],
        },
    ]


def test_an_unsigned_block_of_a_cancelled_answer_stays_here() -> None:
    assert body(MODEL, conversation(MODEL, ReasoningPart("half a thou")))["messages"][1] == {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I will."},
            {"type": "tool_use", "id": "call_1", "name": "read", "input": {"path": "a.py"}},
            {"type": "tool_use", "id": "call_2", "name": "read", "input": {"path": "b.py"}},
        ],
    }


def test_an_open_loop_of_another_model_is_sent_without_thinking() -> None:
    assert body(MODEL, conversation(FOREIGN, ReasoningPart("think", SIGNED))[:4], effort="medium") == {
        "model": "claude-sonnet-4-5",
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "read both", "cache_control": {"type": "ephemeral"}}],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I will."},
                    {"type": "tool_use", "id": "call_1", "name": "read", "input": {"path": "a.py"}},
                    {"type": "tool_use", "id": "call_2", "name": "read", "input": {"path": "b.py"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "call_1",
                        "content": [{"type": "text", "text": "A"}],
                    },
                    {
                        "type": "tool_result",
                        "tool_use_id": "call_2",
                        "content": [{"type": "text", "text": "B"}],
                        "cache_control": {"type": "ephemeral"},
                    },
                ],
            },
        ],
        "max_tokens": 8000,
        "tools": [
            {
                "name": "read",
                "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
                "type": "custom",
                "description": "Reads a file.",
            }
        ],
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "stream": True,
    }


def test_calls_in_history_declare_their_tools_when_none_is_offered() -> None:
    assert body(MODEL, conversation(MODEL), tools=[]) == {
        "model": "claude-sonnet-4-5",
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "read both", "cache_control": {"type": "ephemeral"}}],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I will."},
                    {"type": "tool_use", "id": "call_1", "name": "read", "input": {"path": "a.py"}},
                    {"type": "tool_use", "id": "call_2", "name": "read", "input": {"path": "b.py"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "A"}]},
                    {
                        "type": "tool_result",
                        "tool_use_id": "call_2",
                        "content": [{"type": "text", "text": "B"}],
                    },
                    {"type": "text", "text": "thanks", "cache_control": {"type": "ephemeral"}},
                ],
            },
        ],
        "max_tokens": 8000,
        "tools": [
            {"name": "read", "input_schema": {"type": "object", "properties": {}}, "type": "custom", "description": ""}
        ],
        "tool_choice": {"type": "none"},
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "stream": True,
    }


def test_a_newer_model_decides_itself_how_long_to_think() -> None:
    model = spec("anthropic/claude-opus-4-7")
    assert body(model, [user("u1", "hello")], effort="low") == {
        "model": "claude-opus-4-7",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hello", "cache_control": {"type": "ephemeral"}}]}
        ],
        "max_tokens": 8000,
        "tools": [
            {
                "name": "read",
                "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
                "type": "custom",
                "description": "Reads a file.",
            }
        ],
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": "low"},
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "stream": True,
    }
