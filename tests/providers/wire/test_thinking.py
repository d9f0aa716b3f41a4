"""Effort levels as every provider spells them."""

from __future__ import annotations

from typing import Any

import pytest

from agent_tui.models.requests import Effort, ModelInfo, ModelRequest, ModelSpec
from agent_tui.models.usage import Limits, Prices
from agent_tui.providers.catalog import resolve_target
from agent_tui.providers.dialects.shared import budget_below
from agent_tui.providers.reasoning import thinking_for
from tests.support.every import every

pytestmark = pytest.mark.quick


def thinking(model: str, effort: Effort, *, max_output: int | None = 32_000, reasoning: bool | None = True) -> Any:
    spec = ModelSpec("m", model)
    info = ModelInfo(spec, resolve_target(spec), Limits(), Prices(), reasoning)
    return thinking_for(ModelRequest("r", spec, "s", [], [], [], max_output, effort), info)


@every("effort", ["low", "medium", "high"])
@every("max_output", [1, 1_024, 2_048, 2_049, 4_096, 8_192, 64_000])
def test_a_budget_is_below_the_output_and_leaves_room_for_an_answer(effort: Effort, max_output: int) -> None:
    budget = budget_below(effort, max_output)
    assert budget == 0 or 1_024 <= budget <= max_output - 512


@every("effort", ["low", "medium", "high"])
@every("window", [8_192, 16_384, 32_768, 131_072, 200_000, 1_000_000])
def test_a_budget_stays_while_the_window_fills(effort: Effort, window: int) -> None:
    reserve = min(window // 4, 32_000)
    asked = range(window - 1_000, reserve - window // 200, -97)
    budgets = {budget_below(effort, min(tokens, 64_000), window) for tokens in asked}
    assert len(budgets) == 1
    assert budgets.pop() >= 1_024


@every(
    ("model", "effort", "expected"),
    [
        ("anthropic/claude-sonnet-4-5", "off", {}),
        ("anthropic/claude-sonnet-4-5", "low", {"thinking": {"type": "enabled", "budget_tokens": 2_048}}),
        ("anthropic/claude-sonnet-4-5", "high", {"thinking": {"type": "enabled", "budget_tokens": 24_576}}),
        ("anthropic/claude-sonnet-4-6", "high", {"reasoning_effort": "high"}),
        ("openai/gpt-5", "medium", {"reasoning": {"effort": "medium", "summary": "auto"}}),
        ("openai/gpt-5", "off", {"reasoning": {"effort": "minimal", "summary": "auto"}}),
        ("openai/gpt-5.1", "off", {"reasoning": {"effort": "none", "summary": "auto"}}),
        ("openai/o3", "off", {"reasoning": {"effort": "low", "summary": "auto"}}),
        ("openai/gpt-4o", "high", {}),
        ("gemini/gemini-3-pro-preview", "high", {"reasoning_effort": "high"}),
        ("gemini/gemini-2.5-flash", "off", {"thinking": {"type": "enabled", "budget_tokens": 0}}),
        ("gemini/gemini-2.5-pro", "off", {"thinking": {"type": "enabled", "budget_tokens": 128}}),
        ("deepseek/deepseek-v4-flash", "off", {"thinking": {"type": "disabled"}}),
        ("zai/glm-4.6", "low", {"extra_body": {"thinking": {"type": "enabled"}}}),
        ("xai/grok-4", "high", {}),
        ("xai/grok-3-mini", "medium", {"reasoning_effort": "high"}),
        ("groq/openai/gpt-oss-120b", "off", {"reasoning_effort": "low"}),
        ("mistral/magistral-medium-latest", "high", {}),
        ("ollama_chat/qwen3", "off", {"reasoning_effort": "none"}),
        ("ollama_chat/llama3.3", "high", {"reasoning_effort": "high"}),
        ("moonshot/kimi-k2.5", "off", {"extra_body": {"thinking": {"type": "disabled"}}}),
        ("anthropic/claude-opus-4-7", "off", {}),
        ("bedrock/us.anthropic.claude-opus-4-6-v1", "low", {"reasoning_effort": "low"}),
        (
            "openrouter/openai/gpt-5",
            "off",
            {"extra_body": {"reasoning": {"effort": "low"}, "usage": {"include": True}}},
        ),
        (
            "openrouter/deepseek/deepseek-v3.2",
            "off",
            {"extra_body": {"reasoning": {"enabled": False}, "usage": {"include": True}}},
        ),
        (
            "openrouter/openai/gpt-5",
            "low",
            {"extra_body": {"reasoning": {"effort": "low"}, "usage": {"include": True}}},
        ),
    ],
)
def test_levels_per_provider(model: str, effort: Effort, expected: dict[str, Any]) -> None:
    assert thinking(model, effort).kwargs == expected


def test_without_room_thinking_is_off_for_the_step_and_the_user_is_told() -> None:
    found = thinking("anthropic/claude-sonnet-4-5", "high", max_output=1_500)
    assert found.off and not found.kwargs
    assert found.notes == ("Thinking is off: the maximum output leaves no room for it.",)


def test_a_model_that_cannot_reason_is_not_asked_to() -> None:
    assert thinking("anthropic/claude-3-5-haiku-latest", "high", reasoning=False).kwargs == {}
    assert thinking("openrouter/meta-llama/llama-3.3", "high", reasoning=False).kwargs == {}
    assert thinking("openai/local-model", "high", reasoning=None).kwargs == {}
