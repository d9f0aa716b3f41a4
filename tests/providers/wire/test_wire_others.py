"""Bedrock, OpenRouter and the OpenAI-compatible dialects: reasoning in the field and form it came in."""

from __future__ import annotations

import pytest

from agent_tui.models.messages import Origin, ReasoningPart
from tests.support.wire import body, conversation, spec

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.quick]
DETAILS = {
    "field": "reasoning",
    "reasoning_details": [
        {"type": "reasoning.text", "text": "think", "signature": "SIG", "format": "anthropic-claude-v1", "index": 0}
    ],
}
FOREIGN = Origin("openai", "chat", "gpt-5")
SIGNED = {"type": "thinking", "signature": "SIG"}


def test_bedrock() -> None:
    model = spec("bedrock/us.anthropic.claude-sonnet-4-20250514-v1:0")
    redacted = ReasoningPart("", {"type": "redacted_thinking", "data": "UkVE"})
    assert body(model, conversation(model, ReasoningPart("think", SIGNED), redacted), effort="medium") == {
        "messages": [
            {"role": "user", "content": [{"text": "read both"}, {"cachePoint": {"type": "default"}}]},
            {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "think", "signature": "SIG"}}},
                    {"reasoningContent": {"redactedContent": "UkVE"}},
                    {"text": "I will."},
                    {"toolUse": {"input": {"path": "a.py"}, "name": "read", "toolUseId": "call_1"}},
                    {"toolUse": {"input": {"path": "b.py"}, "name": "read", "toolUseId": "call_2"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"toolResult": {"content": [{"text": "A"}], "toolUseId": "call_1"}},
                    {"toolResult": {"content": [{"text": "B"}], "toolUseId": "call_2"}},
                    {"text": "thanks"},
                    {"cachePoint": {"type": "default"}},
                ],
            },
        ],
        "inferenceConfig": {"maxTokens": 8000},
        "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 4096}},
        "additionalModelResponseFieldPaths": ["/usage/output_tokens_details"],
        "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
        "toolConfig": {
            "tools": [
                {
                    "toolSpec": {
                        "inputSchema": {
                            "json": {"type": "object", "properties": {"path": {"type": "string"}}, "required": []}
                        },
                        "name": "read",
                        "description": "Reads a file.",
                    }
                }
            ]
        },
    }


def test_openrouter() -> None:
    model = spec("openrouter/anthropic/claude-haiku-4.5")
    assert body(model, conversation(model, ReasoningPart("think", DETAILS)), effort="high") == {
        "model": "anthropic/claude-haiku-4.5",
        "messages": [
            {
                "role": "system",
                "content": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
            },
            {
                "role": "user",
                "content": [{"type": "text", "text": "read both", "cache_control": {"type": "ephemeral"}}],
            },
            {
                "role": "assistant",
                "content": "I will.",
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}},
                    {"id": "call_2", "type": "function", "function": {"name": "read", "arguments": '{"path": "b.py"}'}},
                ],
                "reasoning_details": [
                    {
                        "type": "reasoning.text",
                        "text": "think",
                        "signature": "SIG",
                        "format": "anthropic-claude-v1",
                        "index": 0,
                    }
                ],
                "reasoning": "think",
            },
            {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "A"}]},
            {
                "role": "tool",
                "tool_call_id": "call_2",
                "content": [{"type": "text", "text": "B"}],
            },
            {"role": "user", "content": [{"type": "text", "text": "thanks", "cache_control": {"type": "ephemeral"}}]},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 8000,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "read",
                    "description": "Reads a file.",
                    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
                },
            }
        ],
        "usage": {"include": True},
        "reasoning": {"effort": "high"},
    }


def test_deepseek() -> None:
    model = spec("deepseek/deepseek-v4-flash")
    assert body(model, conversation(model, ReasoningPart("think"))) == {
        "model": "deepseek-v4-flash",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "read both"},
            {
                "role": "assistant",
                "content": "I will.",
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}},
                    {"id": "call_2", "type": "function", "function": {"name": "read", "arguments": '{"path": "b.py"}'}},
                ],
                "reasoning_content": "think",
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "A"},
            {"role": "tool", "tool_call_id": "call_2", "content": "B"},
            {"role": "user", "content": "thanks"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 8000,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "read",
                    "description": "Reads a file.",
                    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
                },
            }
        ],
        "thinking": {"type": "disabled"},
    }


def test_mistral() -> None:
    model = spec("mistral/magistral-medium-latest")
    assert body(model, conversation(model, ReasoningPart("think", {"field": "content"}))) == {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "read both"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "think"}]},
                    {"type": "text", "text": "I will."},
                ],
                "tool_calls": [
                    {
                        "id": "8b688e7f8",
                        "type": "function",
                        "function": {"name": "read", "arguments": '{"path": "a.py"}'},
                    },
                    {
                        "id": "5e96104e8",
                        "type": "function",
                        "function": {"name": "read", "arguments": '{"path": "b.py"}'},
                    },
                ],
            },
            {"role": "tool", "tool_call_id": "8b688e7f8", "content": "A"},
            {"role": "tool", "tool_call_id": "5e96104e8", "content": "B"},
            {"role": "assistant", "content": "OK."},
            {"role": "user", "content": "thanks"},
        ],
        "model": "magistral-medium-latest",
        "max_tokens": 8000,
        "stream": True,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "read",
                    "description": "Reads a file.",
                    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
                },
            }
        ],
    }


def test_mistral_without_its_own_thinking() -> None:
    model = spec("mistral/magistral-medium-latest")
    assert body(model, conversation(FOREIGN, ReasoningPart("think", SIGNED)))["messages"][2:4] == [
        {
            "role": "assistant",
            "content": "I will.",
            "tool_calls": [
                {"id": "8b688e7f8", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}},
                {"id": "5e96104e8", "type": "function", "function": {"name": "read", "arguments": '{"path": "b.py"}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "8b688e7f8", "content": "A"},
    ]


def test_groq() -> None:
    model = spec("groq/openai/gpt-oss-120b")
    assert body(model, conversation(model, ReasoningPart("think", {"field": "reasoning"})))["messages"][2] == {
        "role": "assistant",
        "content": "I will.",
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}},
            {"id": "call_2", "type": "function", "function": {"name": "read", "arguments": '{"path": "b.py"}'}},
        ],
        "reasoning": "think",
    }


def test_zai() -> None:
    model = spec("zai/glm-4.7-flash")
    assert body(model, conversation(model, ReasoningPart("think")), effort="high") == {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "read both"},
            {
                "role": "assistant",
                "content": "I will.",
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}},
                    {"id": "call_2", "type": "function", "function": {"name": "read", "arguments": '{"path": "b.py"}'}},
                ],
                "reasoning_content": "think",
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "A"},
            {"role": "tool", "tool_call_id": "call_2", "content": "B"},
            {"role": "user", "content": "thanks"},
        ],
        "model": "glm-4.7-flash",
        "max_tokens": 8000,
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "read",
                    "description": "Reads a file.",
                    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
                },
            }
        ],
        "thinking": {"type": "enabled"},
    }


def test_moonshot() -> None:
    model = spec("moonshot/kimi-k2.5")
    assert body(model, conversation(model, ReasoningPart("think")))["messages"][2] == {
        "role": "assistant",
        "content": "I will.",
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}},
            {"id": "call_2", "type": "function", "function": {"name": "read", "arguments": '{"path": "b.py"}'}},
        ],
        "reasoning_content": "think",
    }


def test_xai() -> None:
    model = spec("xai/grok-code-fast-1")
    assert body(model, conversation(model, ReasoningPart("think")))["messages"][2] == {
        "role": "assistant",
        "content": "I will.",
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}},
            {"id": "call_2", "type": "function", "function": {"name": "read", "arguments": '{"path": "b.py"}'}},
        ],
        "reasoning_content": "think",
    }


def test_cohere() -> None:
    model = spec("cohere_chat/command-a-03-2025")
    assert body(model, conversation(model, ReasoningPart("plan", {"field": "tool_plan"})))["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "read both"},
        {
            "role": "assistant",
            "content": "I will.",
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}},
                {"id": "call_2", "type": "function", "function": {"name": "read", "arguments": '{"path": "b.py"}'}},
            ],
            "tool_plan": "plan",
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "A"},
        {"role": "tool", "tool_call_id": "call_2", "content": "B"},
        {"role": "assistant", "content": "OK."},
        {"role": "user", "content": "thanks"},
    ]


def test_ollama() -> None:
    model = spec("ollama_chat/qwen3")
    sent = body(model, conversation(model, ReasoningPart("think")), effort="medium")
    for message in sent["messages"]:
        # LiteLLM names what there is none of, and from 1.110 the ids of calls.
        assert message.pop("images", []) == []
        for made in message.get("tool_calls", ()):
            made.pop("id", None)
    assert sent == {
        "model": "qwen3",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "read both"},
            {
                "role": "assistant",
                "thinking": "think",
                "content": "I will.",
                "tool_calls": [
                    {"function": {"name": "read", "arguments": {"path": "a.py"}}},
                    {"function": {"name": "read", "arguments": {"path": "b.py"}}},
                ],
            },
            {"role": "tool", "content": "A", "tool_call_id": "call_1"},
            {"role": "tool", "content": "B", "tool_call_id": "call_2"},
            {"role": "assistant", "content": "OK."},
            {"role": "user", "content": "thanks"},
        ],
        "options": {"num_predict": 8000, "num_ctx": 200_000},
        "stream": True,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "read",
                    "description": "Reads a file.",
                    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
                },
            }
        ],
        "think": True,
    }


def test_a_plain_server() -> None:
    model = spec("openai/local-model")
    assert body(model, conversation(model, ReasoningPart("think"))) == {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "read both"},
            {
                "role": "assistant",
                "content": "I will.",
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}},
                    {"id": "call_2", "type": "function", "function": {"name": "read", "arguments": '{"path": "b.py"}'}},
                ],
                "reasoning_content": "think",
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "A"},
            {"role": "tool", "tool_call_id": "call_2", "content": "B"},
            {"role": "assistant", "content": "OK."},
            {"role": "user", "content": "thanks"},
        ],
        "model": "local-model",
        "max_tokens": 8000,
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "read",
                    "description": "Reads a file.",
                    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
                },
            }
        ],
    }


def test_cohere_thinking_is_a_content_block_beside_the_plan() -> None:
    model = spec("cohere_chat/command-a-reasoning-08-2025")
    thoughts = [ReasoningPart("hm", {"field": "content"}), ReasoningPart("plan", {"field": "tool_plan"})]
    message = body(model, conversation(model, *thoughts))["messages"][2]
    assert message["content"] == [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I will."}]
    assert message["tool_plan"] == "plan"
