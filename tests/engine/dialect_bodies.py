"""What a view becomes in every dialect, and what all of them ask of it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

from agent_tui.models.requests import ModelInfo, ModelRequest, ModelSpec, SentMessage, SystemBlock, ToolSchema
from agent_tui.models.usage import Limits, Prices
from agent_tui.providers.catalog import resolve_target
from tests.support import wire
from tests.support.compaction_world import assert_valid

SPECS = [
    ModelSpec("m", name, api=api)  # type: ignore[arg-type]
    for name, api in [
        ("anthropic/claude-sonnet-4-5", "auto"),
        ("openai/gpt-5", "auto"),
        ("openai/gpt-5", "chat"),
        ("gemini/gemini-2.5-flash", "auto"),
        ("mistral/magistral-medium-latest", "auto"),
        ("deepseek/deepseek-v4-flash", "auto"),
        ("ollama_chat/qwen3", "auto"),
    ]
]


def body(spec: ModelSpec, view: Sequence[SentMessage]) -> Any:
    info = ModelInfo(spec, resolve_target(spec), Limits(200_000, None, 64_000), Prices(), True, True)
    tools = [ToolSchema("read", "Reads.", {"type": "object", "properties": {}})]
    system = [SystemBlock("system", "Be brief.")]
    request = ModelRequest("req", spec, "ses", system, list(view), tools, 9_000, "medium")
    return wire.for_litellm(request, info)


def check_bodies(view: Sequence[SentMessage]) -> list[str]:
    """Each call is followed by its results in every dialect, the user begins, and no answer follows another; the bodies
    as text."""
    assert_valid(view)
    made = []
    for spec in SPECS:
        kwargs = body(spec, view)
        waiting: list[str] = []
        said: list[str] = []
        for item in kwargs.get("input") or kwargs.get("messages") or ():
            if item.get("type") == "function_call":
                waiting.append(item["call_id"])
            elif item.get("type") == "function_call_output":
                waiting.remove(item["call_id"])
            elif item.get("role") == "tool":
                assert item["tool_call_id"] == waiting.pop(0)
            else:
                assert not waiting, "a call is parted from its result"
                waiting += [call["id"] for call in item.get("tool_calls") or ()]
            said += [item["role"]] if item.get("role") not in (None, "system", "developer") else []
        assert not waiting
        assert not said or said[0] == "user"
        if "messages" in kwargs:
            assert ("assistant", "assistant") not in set(itertools.pairwise(said))
        made.append(json.dumps(kwargs))
    return made
