"""Choosing a model: the list, the search, and the key that one lacks."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual import events

from agent_tui.engine.model_list import ModelChoice, ModelGroup
from agent_tui.models.requests import ModelSpec
from agent_tui.ui.screens.key import KeyScreen
from agent_tui.ui.screens.models import ModelPicker
from agent_tui.ui.widgets.question import WholeInput
from tests.support.app import running
from tests.support.fake_agent import FakeAgent, no_keyring
from tests.support.forms import one_of

HOSTILE = ModelSpec("llama\x1b]0;x\x07[red]🦊\u202eevil\n", "ollama/x\x1b[31m", api_base="http://127.0.0.1:11434")


def rows(text: str) -> list[str]:
    return [line.strip("│ ❯●▌▁▂▃▄▅▆▇█").strip() for line in text.splitlines()]


@pytest.mark.parametrize("size", one_of([((80, 40),), ((200, 50),), ((60, 20),)]))
async def test_the_users_own_come_first_then_those_with_a_key_and_words_find_the_rest(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with running(tmp_path, size=size) as run:
        run.app.open_screen("models")
        await run.screen(ModelPicker)
        picker = run.app.screen
        assert isinstance(picker, ModelPicker)
        await run.until(lambda: "claude-opus-5-5" in run.shown())
        titles = [entry.title for entry in picker.shown if isinstance(entry, ModelGroup)]
        assert titles == ["Configured", "anthropic", "Local server", "openai", "gemini", "openrouter", *titles[6:]]
        assert titles[-1] == "Demo"
        opus = next(line for line in rows(run.shown()) if line.startswith("claude-opus-5-5"))
        assert opus.split()[1:] == ["1M", "$5.00", "/", "$25.00", *(["$0.50"] if size[0] > 60 else [])]
        await run.type("OPUS ")
        names = [entry.name for entry in picker.shown if isinstance(entry, ModelChoice)]
        assert names == ["anthropic/claude-opus-5-5", "groq/opus-on-chips-1", "anthropic/claude-opus-3"]
        assert "No key for groq" not in run.shown()
        await run.pilot.press("down")
        await run.until(lambda: size[1] < 24 or "No key for groq yet. Enter asks for one." in run.shown())
        await run.pilot.press("end", *["backspace"] * 5)
        await run.type("haiku")
        assert [entry.name for entry in picker.shown if isinstance(entry, ModelChoice)] == [
            "anthropic/claude-haiku-5-5"
        ]
        await run.pilot.press("enter")
        await run.until(lambda: run.agent.called("set_model") == ["anthropic/claude-haiku-5-5"])


@pytest.mark.quick
async def test_a_key_is_asked_for_where_there_is_none_and_used_at_once(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.app.prompt.set_text("/model openai/gpt-6-sol")
        await run.pilot.press("enter")
        await run.until(lambda: isinstance(run.app.screen, KeyScreen))
        await run.until(lambda: "paste the key" in run.shown())
        assert "OPENAI_API_KEY" in run.shown()
        await run.pilot.press("escape")
        await run.until(lambda: "No key entered; still using demo" in run.shown())
        assert not run.agent.called("set_model")
        run.app.open_screen("key", "openai/gpt-6-sol")
        await run.until(lambda: isinstance(run.app.screen, KeyScreen) and run.app.screen.query(WholeInput))
        run.app.screen.query_one(WholeInput).post_message(events.Paste("sk-one\nsk-two\n"))
        await run.pilot.press("enter")
        await run.until(lambda: "That is not a key" in run.shown())
        await run.type("sk-very-secret")
        assert "sk-very" not in run.shown() and "That is not a key" not in run.shown()
        await run.pilot.press("enter")
        await run.until(lambda: run.agent.called("set_model") == ["openai/gpt-6-sol"])
        assert run.agent.called("take_key") == ["sk-very-secret"]
        await run.until(lambda: "It is kept in the system's keyring." in run.shown())
        assert "sk-very" not in run.shown() + run.app.prompt.text


async def test_escape_uses_the_key_without_a_keyring_that_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = FakeAgent(tmp_path)
    asked: list[bool] = []

    async def take_key(name: str, typed: str, *, keep: bool = True) -> str:
        asked.append(keep)
        if keep:
            await asyncio.Event().wait()
        agent.models.keys.add("openai")
        return f"{typed} is used until you quit."

    monkeypatch.setattr(agent.models, "take_key", take_key)
    async with running(tmp_path, agent) as run:
        run.app.open_screen("key", "openai/gpt-6-sol")
        await run.until(lambda: isinstance(run.app.screen, KeyScreen) and run.app.screen.query(WholeInput))
        await run.type("sk-one")
        await run.pilot.press("enter")
        await run.until(lambda: "Esc use it now, unchecked and not kept" in run.shown())
        await run.type("more")
        await run.pilot.press("escape")
        await run.until(lambda: "sk-one is used until you quit." in run.shown())
        await run.until(lambda: run.agent.called("set_model") == ["openai/gpt-6-sol"])
        assert asked == [True, False]


async def test_a_name_that_is_not_on_the_list_is_confirmed_once(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.models.keys.add("openai")
        run.app.prompt.set_text("/model openai/gpt-99x")
        await run.pilot.press("enter")
        await run.screen(ModelPicker)
        await run.until(lambda: "may be new, or mistyped" in run.shown())
        await run.pilot.press("ctrl+end", "enter")
        await run.until(lambda: run.agent.called("set_model") == ["openai/gpt-99x"])
        run.app.prompt.set_text("/model openai/gpt-99x")
        await run.pilot.press("enter")
        await run.until(lambda: len(run.agent.called("set_model")) == 2)


@pytest.mark.slow
async def test_names_are_drawn_as_text_and_what_hangs_keeps_nobody_waiting(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    agent.models.list = type(agent.models.list)(lambda: [HOSTILE], list, lambda name: False, kept=no_keyring)

    async def hangs() -> None:
        await asyncio.Event().wait()

    agent.models.look = hangs  # type: ignore[method-assign]
    async with running(tmp_path, agent) as run:
        run.app.open_screen("models")
        await run.screen(ModelPicker)
        await run.until(lambda: "[red]" in run.shown())
        assert "\x1b" not in run.shown() and "\u202e" not in run.shown()
        await run.type("\x1b[31mzz🦊zz")
        await run.until(lambda: "No model matches." in run.shown())
        await run.pilot.press("escape")
        await run.until(lambda: len(run.app.screen_stack) == 1)
