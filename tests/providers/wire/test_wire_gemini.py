"""Gemini: thoughts and signatures on the parts that had them."""

from __future__ import annotations

import pytest

from agent_tui.models.messages import Origin, ReasoningPart
from agent_tui.models.requests import Effort
from tests.support.wire import body, conversation, spec, user

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.quick]

MODEL = spec("gemini/gemini-3-pro-preview")
EFFORTS: tuple[Effort, ...] = ("off", "low", "high")
FOREIGN = Origin("openai", "chat", "gpt-5")


def test_signatures_stay_on_their_parts() -> None:
    messages = conversation(
        MODEL,
        ReasoningPart("think"),
        on_call={"thought_signature": "SIGCALL"},
        on_text={"thought_signature": "SIGTEXT"},
    )
    sent = body(MODEL, messages, effort="low")
    # LiteLLM up to 1.109 spells the default out.
    assert sent["generationConfig"].pop("temperature", 1.0) == 1.0
    assert sent == {
        "contents": [
            {"role": "user", "parts": [{"text": "read both"}]},
            {
                "role": "model",
                "parts": [
                    {"thought": True, "text": "think"},
                    {"text": "I will.", "thoughtSignature": "SIGTEXT"},
                    {
                        "function_call": {"name": "read", "args": {"path": "a.py"}, "id": "call_1"},
                        "thoughtSignature": "SIGCALL",
                    },
                    {"function_call": {"name": "read", "args": {"path": "b.py"}, "id": "call_2"}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"function_response": {"name": "read", "response": {"content": "A"}, "id": "call_1"}},
                    {"function_response": {"name": "read", "response": {"content": "B"}, "id": "call_2"}},
                ],
            },
            {"role": "user", "parts": [{"text": "thanks"}]},
        ],
        "system_instruction": {"parts": [{"text": "Be brief."}]},
        "tools": [
            {
                "function_declarations": [
                    {
                        "name": "read",
                        "description": "Reads a file.",
                        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
                    }
                ]
            }
        ],
        "generationConfig": {
            "max_output_tokens": 8000,
            "thinkingConfig": {"thinkingLevel": "low", "includeThoughts": True},
        },
    }


def test_foreign_calls_carry_the_placeholder_that_google_documents() -> None:
    messages = conversation(FOREIGN, ReasoningPart("think"), on_call={"thought_signature": "SIGCALL"})
    assert body(MODEL, messages[:4])["contents"][1] == {
        "role": "model",
        "parts": [
            {"text": "I will."},
            {
                "function_call": {"name": "read", "args": {"path": "a.py"}, "id": "call_1"},
                "thoughtSignature": "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=",
            },
            {"function_call": {"name": "read", "args": {"path": "b.py"}, "id": "call_2"}},
        ],
    }


def test_the_thinking_budget_stays_below_the_output() -> None:
    model = spec("gemini/gemini-2.5-flash")
    assert [body(model, [user("u1", "x")], effort=e)["generationConfig"] for e in EFFORTS] == [
        {"max_output_tokens": 8000, "thinkingConfig": {"thinkingBudget": 0}},
        {"max_output_tokens": 8000, "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 2048}},
        {"max_output_tokens": 8000, "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 4096}},
    ]
