"""OpenAI: chat completions and the Responses API."""

from __future__ import annotations

import pytest

from agent_tui.models.messages import Origin, ReasoningPart
from tests.support.wire import body, conversation, spec

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.quick]

MODEL = spec("openai/gpt-5")
RESPONSES = spec("openai/gpt-5.5", api="responses")
ITEM = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "think"}],
    "encrypted_content": "ENC",
}
FOREIGN = Origin("openai", "chat", "gpt-5")
SIGNED = {"type": "thinking", "signature": "SIG"}


def test_chat_gets_text_and_calls() -> None:
    assert body(MODEL, conversation(MODEL), effort="low") == {
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
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "A"},
            {"role": "tool", "tool_call_id": "call_2", "content": "B"},
            {"role": "user", "content": "thanks"},
        ],
        "model": "gpt-5",
        "max_completion_tokens": 8000,
        "prompt_cache_key": "ses_1",
        "reasoning_effort": "low",
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


def test_responses_items_go_back_as_they_came() -> None:
    messages = conversation(
        RESPONSES,
        ReasoningPart("think", ITEM),
        on_call={"id": "fc_1", "type": "function_call"},
        on_text={"id": "msg_1", "phase": "commentary"},
    )
    assert body(RESPONSES, messages, effort="high") == {
        "model": "gpt-5.5",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "read both"}]},
            {
                "id": "rs_1",
                "summary": [{"text": "think", "type": "summary_text"}],
                "type": "reasoning",
                "encrypted_content": "ENC",
            },
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "I will.", "annotations": []}],
                "id": "msg_1",
                "status": "completed",
                "phase": "commentary",
            },
            {
                "type": "function_call",
                "call_id": "call_1",
                "name": "read",
                "arguments": '{"path": "a.py"}',
                "id": "fc_1",
            },
            {"type": "function_call", "call_id": "call_2", "name": "read", "arguments": '{"path": "b.py"}'},
            {"type": "function_call_output", "call_id": "call_1", "output": "A"},
            {"type": "function_call_output", "call_id": "call_2", "output": "B"},
            {"role": "user", "content": [{"type": "input_text", "text": "thanks"}]},
        ],
        "include": ["reasoning.encrypted_content"],
        "instructions": "Be brief.",
        "max_output_tokens": 8000,
        "reasoning": {"effort": "high", "summary": "auto"},
        "store": False,
        "stream": True,
        "tools": [
            {
                "type": "function",
                "name": "read",
                "description": "Reads a file.",
                "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
                "strict": False,
            }
        ],
        "prompt_cache_key": "ses_1",
    }


def test_without_its_reasoning_an_item_goes_back_without_its_id() -> None:
    messages = conversation(RESPONSES, ReasoningPart("cut o"), on_call={"id": "fc_1"}, on_text={"id": "msg_1"})
    assert body(RESPONSES, messages)["input"][1:4] == [
        {
            "type": "message",
            "role": "assistant",
            "content": "I will.",
        },
        {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": '{"path": "a.py"}'},
        {"type": "function_call", "call_id": "call_2", "name": "read", "arguments": '{"path": "b.py"}'},
    ]


def test_foreign_answers_become_plain_items() -> None:
    assert body(RESPONSES, conversation(FOREIGN, ReasoningPart("think", SIGNED)))["input"] == [
        {"role": "user", "content": [{"type": "input_text", "text": "read both"}]},
        {
            "type": "message",
            "role": "assistant",
            "content": "I will.",
        },
        {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": '{"path": "a.py"}'},
        {"type": "function_call", "call_id": "call_2", "name": "read", "arguments": '{"path": "b.py"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "A"},
        {"type": "function_call_output", "call_id": "call_2", "output": "B"},
        {"role": "user", "content": [{"type": "input_text", "text": "thanks"}]},
    ]


def test_grok_takes_encrypted_reasoning_and_no_effort() -> None:
    model = spec("xai/grok-4.3", api="responses")
    assert body(model, conversation(model, ReasoningPart("think", ITEM)), effort="medium") == {
        "model": "grok-4.3",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "read both"}]},
            {
                "id": "rs_1",
                "summary": [{"text": "think", "type": "summary_text"}],
                "type": "reasoning",
                "encrypted_content": "ENC",
            },
            {
                "type": "message",
                "role": "assistant",
                "content": "I will.",
            },
            {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": '{"path": "a.py"}'},
            {"type": "function_call", "call_id": "call_2", "name": "read", "arguments": '{"path": "b.py"}'},
            {"type": "function_call_output", "call_id": "call_1", "output": "A"},
            {"type": "function_call_output", "call_id": "call_2", "output": "B"},
            {"role": "user", "content": [{"type": "input_text", "text": "thanks"}]},
        ],
        "include": ["reasoning.encrypted_content"],
        "instructions": "Be brief.",
        "max_output_tokens": 8000,
        "store": False,
        "stream": True,
        "tools": [
            {
                "type": "function",
                "name": "read",
                "description": "Reads a file.",
                "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
                "strict": False,
            }
        ],
    }
