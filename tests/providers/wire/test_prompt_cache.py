"""Two steps in a row, as they leave: the second begins with the bytes of the first, and markers are where they help."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from agent_tui.config import ModelConfig, Settings
from agent_tui.engine.models import ModelCatalogue
from agent_tui.errors import ConfigError
from agent_tui.models.messages import Message, ReasoningPart, SummaryPart, TextPart
from agent_tui.models.requests import ModelSpec
from tests.support.wire import answer, body, call, conversation, result, spec, user

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.quick]
MODELS = [
    spec("anthropic/claude-sonnet-4-5"),
    spec("bedrock/us.anthropic.claude-sonnet-4-20250514-v1:0"),
    spec("openrouter/anthropic/claude-haiku-4.5"),
    spec("openai/gpt-5"),
    spec("openai/gpt-5", api="responses"),
    spec("gemini/gemini-3-pro-preview"),
    spec("deepseek/deepseek-v4-flash"),
]
MARKS = ("cache_control", "cachePoint")


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _unmarked(v) for k, v in value.items() if k not in MARKS}
    if isinstance(value, list):
        return [v for v in map(_unmarked, value) if v != {}]
    return value


def _history(sent: dict[str, Any]) -> list[Any]:
    found: list[Any] = sent.get("messages") or sent.get("contents") or sent["input"]
    return found


@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{model.model}-{model.api}")
def test_two_steps_in_a_row_share_their_prefix(model: ModelSpec) -> None:
    first = [user("u1", "one"), answer("a1", model, TextPart("yes")), user("u2", "two")]
    second = [*first, answer("a2", model, TextPart("look"), call("call_1", "a.py")), result("call_1", "A")]
    before, after = _unmarked(body(model, first)), _unmarked(body(model, second))
    shared = _history(before)
    assert json.dumps(_history(after)[: len(shared)]) == json.dumps(shared)
    for name in ("system", "system_instruction", "instructions", "tools", "toolConfig", "prompt_cache_key"):
        assert json.dumps(after.get(name)) == json.dumps(before.get(name)), name


@pytest.mark.parametrize("model", MODELS[:3], ids=lambda model: model.model)
def test_claude_gets_at_most_four_markers_and_the_summary_is_one(model: ModelSpec) -> None:
    signed = ReasoningPart("t", {"type": "thinking", "signature": "SIG"})
    summary = Message("s1", "user", [SummaryPart("what happened", "rec_1")])
    sent = body(model, [summary, *conversation(model, signed)], effort="medium")
    text = json.dumps(sent)
    assert sum(text.count(f'"{mark}"') for mark in MARKS) == 4
    assert any(mark in json.dumps(_first_user(sent)) for mark in MARKS)


@pytest.mark.parametrize("ttl", [None, "5m", "1h"])
@pytest.mark.parametrize(
    "name",
    [
        "anthropic/claude-sonnet-4-5",
        "openrouter/anthropic/claude-haiku-4.5",
        "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    ],
)
def test_all_markers_say_how_long_it_is_to_be_kept(name: str, ttl: Any) -> None:
    model = replace(spec(name), cache_ttl=ttl)
    summary = Message("s1", "user", [SummaryPart("what happened", "rec_1")])
    found = [mark.get("ttl") for mark in _markers(body(model, [summary, *conversation(model)]))]
    assert len(found) == 4 and set(found) == {"1h" if ttl == "1h" else None}


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("openai/gpt-5", "models.m: cache_ttl works only for Claude, not for gpt-5 of openai"),
        ("gemini/gemini-3-pro-preview", "of gemini. Remove it"),
        ("openrouter/moonshotai/kimi-k2", "of openrouter. Remove it"),
        ("litellm_proxy/claude-sonnet-4-5", "of litellm_proxy. Remove it"),
        ("demo", "of demo. Remove it"),
    ],
)
def test_a_life_that_cannot_be_chosen_is_refused_in_one_line(name: str, line: str) -> None:
    settings = Settings(default_model="m", models={"m": ModelConfig(name, cache_ttl="1h")})
    with pytest.raises(ConfigError) as refused:
        ModelCatalogue(settings).default()
    assert line in str(refused.value) and "\n" not in str(refused.value)


def _markers(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in MARKS:
                yield inner
            else:
                yield from _markers(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _markers(inner)


def _first_user(sent: dict[str, Any]) -> Any:
    return next(message for message in _history(sent) if message["role"] == "user")


def test_openai_gets_the_session_as_cache_key() -> None:
    assert body(MODELS[3], [user("u1", "x")])["prompt_cache_key"] == "ses_1"
    assert body(MODELS[4], [user("u1", "x")])["prompt_cache_key"] == "ses_1"
