"""Keys that arrive faster than anything is drawn: each means what it means at its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events

from tests.support.app import Running, running
from tests.support.fake_agent import FakeAgent

pytestmark = pytest.mark.quick


def burst(run: Running, *keys: str) -> None:
    """Hands keys to the application at once, as a terminal does that was written to once."""
    names = {" ": "space", "/": "slash", "?": "question_mark"}
    for key in keys:
        character = key if len(key) == 1 else {"enter": "\r"}.get(key)
        run.app.post_message(events.Key(names.get(key, key), character))


async def test_enter_in_a_burst_sends_what_stood_before_it(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        burst(run, *"/usage", "enter", *"plain hello", "enter", *"@a/b why?", "enter", *"rest")
        await run.until(lambda: len(run.agent.called("submit")) == 2)
        await run.until(lambda: run.app.prompt.text == "rest")
        assert run.agent.called("submit") == [("plain hello", []), ("@a/b why?", [])]
        assert "Unknown command" not in run.shown()


async def test_a_message_waits_for_the_command_before_it(tmp_path: Path) -> None:
    import asyncio

    agent = FakeAgent(tmp_path)
    gate, choose = asyncio.Event(), agent.models.switch

    async def slow(key: str) -> object:
        await gate.wait()
        return await choose(key)

    agent.models.switch = slow  # type: ignore[assignment]
    async with running(tmp_path, agent) as run:
        burst(run, *"/model gpt", "enter", *"hello", "enter")
        await run.until(lambda: "Waiting for the previous command" in run.shown())
        gate.set()
        await run.until(lambda: agent.called("submit"))
        assert [name for name, _ in agent.calls if name in ("set_model", "submit")] == ["set_model", "submit"]


async def test_editing_keys_in_a_burst_keep_their_order(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        burst(run, *"one", "enter", *"ac", "left", "b", "ctrl+j", "up", "home", "x")
        await run.until(lambda: run.app.prompt.text == "xab\nc")
        burst(run, "ctrl+end")
        assert run.agent.called("submit") == [("one", [])]


async def test_a_paste_and_enter_at_once_sends_the_paste(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.app.prompt.post_message(events.Paste("pasted words"))
        run.app.prompt.post_message(events.Key("enter", "\r"))
        await run.until(lambda: run.agent.called("submit"))
        assert run.agent.called("submit") == [("pasted words", [])]


async def test_a_queued_message_comes_back_before_the_next_key(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.turns.busy = True
        run.agent.turns.submit("later")
        burst(run, "up", "!")
        await run.until(lambda: run.app.prompt.text == "later!")


async def test_ctrl_c_in_a_burst_clears_what_stood_before_it(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        burst(run, *"not this", "ctrl+c", *"but this", "enter")
        await run.until(lambda: run.agent.called("submit"))
        assert run.agent.called("submit") == [("but this", [])]


async def test_enter_and_ctrl_c_in_a_burst_give_the_text_back(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        burst(run, *"too early", "enter", "ctrl+c", "!")
        await run.until(lambda: run.app.prompt.text == "too early!")
        assert not run.agent.called("submit")


async def test_what_is_typed_at_once_in_the_conversation_loses_no_letter_to_its_keys(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.app.transcript.focus()
        await run.until(lambda: run.app.transcript.has_focus)
        burst(run, *"/no such command", "enter")
        await run.until(lambda: "/no" in run.shown())
        assert "Unknown command /no" in run.shown()


async def test_a_paste_in_the_conversation_is_the_prompts(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.app.transcript.focus()
        await run.until(lambda: run.app.transcript.has_focus)
        run.app.post_message(events.Paste("pasted words"))
        burst(run, *" and", "enter")
        await run.until(lambda: run.agent.called("submit"))
        assert run.agent.called("submit") == [("pasted words and", [])]
