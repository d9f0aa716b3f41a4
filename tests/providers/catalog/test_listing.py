"""The list of models: which come first, what a mistyped name may mean, and that what may exist is never refused."""

from __future__ import annotations

from datetime import date

import pytest

from agent_tui.providers.listing import WELL_KNOWN, ListedModel, doubt, listed_models, nearest, newest, unknown
from tests.support.every import every

TODAY = date(2026, 11, 23)


def model(name: str, *, tools: bool = True, ends: str = "") -> ListedModel:
    return ListedModel(f"anthropic/{name}", "anthropic", 200_000, 64_000, 5e-6, 25e-6, 5e-7, tools, ends)


def test_the_newest_of_each_line_come_first() -> None:
    names = ("claude-opus-4-1", "claude-opus-5", "claude-opus-5-5", "claude-haiku-5", "other-9", "claude-audio-7")
    listed = [model(name) for name in (*names, "claude-haiku-5-20260101", "claude-opus-5.5")]
    listed += [model("claude-old-3", ends="2026-11-22"), model("claude-mute-6", tools=False)]
    found = [m.plain for m in newest({m.name: m for m in listed}, "anthropic", TODAY)]
    assert found == ["claude-opus-5-5", "claude-opus-5", "claude-haiku-5", "other-9", "claude-opus-4-1"]


@pytest.mark.slow
def test_the_list_has_models_of_the_providers_people_know_and_no_name_twice() -> None:
    listed = listed_models()
    assert len(listed) > 500
    assert all(name.startswith(f"{model.provider}/") for name, model in listed.items())
    for provider in ("anthropic", "openai", "gemini", "mistral", "xai"):
        assert provider in WELL_KNOWN and newest(listed, provider, TODAY), provider


@every(
    ("typed", "meant"),
    [
        ("opus", "anthropic/claude-opus"),
        ("gpt5", "openai/gpt-5"),
        ("claude sonnet", "anthropic/claude-sonnet"),
        ("antropic/claude-opus-4-5", "anthropic/claude-opus-4-5"),
        ("Anthropic/claude-opus-4-5", "anthropic/claude-opus-4-5"),
        ("anthropic/claude-opsu-4-5", "anthropic/claude-opus-4-5"),
    ],
)
def test_a_wrong_name_is_answered_with_what_may_be_meant(typed: str, meant: str) -> None:
    assert nearest(typed)[0].startswith(meant)
    told = doubt(typed) if typed.startswith("anthropic/") else unknown(typed)
    assert told is not None and f"Did you mean {meant}" in told and "\n" not in told


def test_configured_names_are_meant_too() -> None:
    assert nearest("mnie", ["mine"]) == ["mine"]


@every("typed", ["", "  ", "/", "🦊", "x" * 5000, "\x1b[31mred/\x07", "a\nb"])
def test_nonsense_is_refused_in_one_short_line(typed: str) -> None:
    told = unknown(typed)
    assert told is not None and told.isprintable() and len(told) < 400


@every(
    ("name", "api_base"),
    [
        ("openai/gpt-99", "http://127.0.0.1:9/v1"),
        ("ollama/anything", None),
        ("hosted_vllm/anything", None),
        ("openrouter/new/model", None),
        ("azure/my-deployment", None),
        ("openai/gpt-5-2031-01-01", None),
        ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", None),
        ("bedrock/arn:aws:bedrock:us-east-1:1:inference-profile/x", None),
        ("custom_openai/anything", None),
    ],
)
def test_what_may_exist_is_not_doubted(name: str, api_base: str | None) -> None:
    assert unknown(name, api_base) is None and doubt(name, api_base) is None


def test_a_name_that_is_new_is_doubted_and_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert unknown("openai/gpt-99") is None and doubt("openai/gpt-99") is not None
    monkeypatch.setenv("OPENAI_API_BASE", "http://127.0.0.1:9/v1")
    assert doubt("openai/gpt-99") is None, "a server of the user's own"
