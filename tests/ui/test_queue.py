"""What waits, on the screen and with the keys, on the real agent."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from agent_tui.models.events import (
    Event,
    Notice,
    PermissionAnswered,
    PermissionAsked,
    QueueChanged,
    StepEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from agent_tui.models.failure import Failure
from agent_tui.models.messages import Message
from agent_tui.models.steps import Step
from agent_tui.ui.screens.work import QueuePicker
from tests.support.app import running
from tests.support.forms import one_of
from tests.support.real_app import Chat, Home, make_home

SCRIPT = """
[[step]]
match = "hang"
text = "half of an answer"
chunk = 4
hang = true
after = 17
[[step]]
match = "bad"
error = { kind = "invalid_request", message = "That was refused." }
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_worker: None) -> Home:
    made = make_home(tmp_path, monkeypatch)
    made.script(SCRIPT)
    return made


def _has(count: int, event: QueueChanged) -> bool:
    return len(event.waiting) == count


async def say(chat: Chat, *texts: str) -> None:
    for count, text in enumerate(texts, 1):
        await chat.say(text)
        await chat.seen.next(QueueChanged, partial(_has, count))


@pytest.mark.parametrize("size", one_of([((60, 20),), ((80, 24),)]))
async def test_what_waits_is_ordered_dropped_edited_and_sent(home: Home, size: tuple[int, int]) -> None:
    async with home.chat(size=size) as chat:
        await chat.say("hang on")
        await chat.shows("half of an answer")
        await say(chat, "alpha", "beta", "gamma")
        await chat.press("escape")
        assert (await chat.seen.next(TurnEnded)).stop_reason == "interrupted"
        await chat.shows("paused  alpha", "Enter sends the first of 3")
        await chat.press("tab")
        await chat.until(lambda: isinstance(chat.app.screen, QueuePicker))
        rows = chat.app.screen.query_one("#rows")
        await chat.until(lambda: rows.size.height >= 3)
        await chat.press("alt+down", "down")
        await chat.until(lambda: [w.text for w in chat.app.queue_view.entries] == ["beta", "alpha", "gamma"])
        await chat.press("ctrl+x")
        await chat.shows("Dropped.")
        await chat.press("up", "enter")
        await chat.until(lambda: chat.prompt in ("beta", "alpha"))
        edited = chat.prompt
        await chat.press("!", "enter")
        assert await chat.seen.next(TurnStarted)
        await chat.until(lambda: not chat.app.queue_view.entries)
        for _ in range(2):
            assert (await chat.seen.next(TurnEnded)).stop_reason == "end"
        sent = [m.text for m in chat.app.chat.holder.agent.conversation.path if m.role == "user"]  # type: ignore[union-attr]
        assert sent == ["hang on", *(f"{t}!" if t == edited else t for t in ("beta", "alpha"))]


@pytest.mark.slow
async def test_what_failed_is_marked_sent_again_and_stands_once(home: Home) -> None:
    async with home.chat(size=(80, 24)) as chat:
        await chat.say("a bad one")
        assert (await chat.seen.next(TurnEnded)).stop_reason == "error"
        await chat.shows("unanswered  a bad one", "sent with your next message", "Enter sends it again")
        await chat.press("enter")
        assert (await chat.seen.next(TurnEnded)).stop_reason == "end"
        await chat.hides("unanswered")
        assert chat.screen().count("a bad one") <= 1
        await chat.press("ctrl+home")
        await chat.until(lambda: chat.screen().count("a bad one") == 1)


@pytest.mark.slow
async def test_what_failed_more_than_once_is_one_line(home: Home) -> None:
    home.script(SCRIPT + SCRIPT.rpartition("[[step]]")[1] + SCRIPT.rpartition("[[step]]")[2])
    async with home.chat(size=(100, 24)) as chat:
        for text in ("a bad one", "another bad one"):
            await chat.say(text)
            assert (await chat.seen.next(TurnEnded)).stop_reason == "error"
        await chat.shows("2 unanswered  another bad one", "sent with your next message")
        assert chat.screen().count("unanswered") == 1
        await chat.press("enter")
        assert (await chat.seen.next(TurnEnded)).stop_reason == "end"
        await chat.hides("unanswered")


async def test_what_failed_comes_back_into_the_prompt(home: Home) -> None:
    async with home.chat(size=(80, 24)) as chat:
        await chat.say("a bad one")
        await chat.seen.next(QueueChanged, lambda event: bool(event.waiting))
        await chat.shows("unanswered  a bad one")
        await chat.press("up")
        await chat.until(lambda: chat.prompt == "a bad one")
        await chat.hides("unanswered")
        assert chat.app.chat.holder.agent is not None and chat.app.chat.holder.agent.conversation.path == []


async def test_a_paste_in_a_message_that_waits_comes_back_as_it_was(tmp_path: Path) -> None:
    pasted = "\n".join(f"line {n}" for n in range(30))
    async with running(tmp_path) as run:
        run.agent.turns.busy = True
        await run.type("see ")
        run.app.chat.pasting.pasted(pasted)
        await run.pilot.press("enter")
        await run.until(lambda: run.agent.waiting.listed)
        text, _ = run.agent.called("submit")[0]
        assert text == f"see {pasted}"
        assert run.agent.waiting.queued[run.agent.waiting.listed[0].id].pasted == [[4, len(text)]]
        await run.pilot.press("up")
        await run.until(lambda: run.app.prompt.text.startswith("see [Pasted text #"))
        assert run.app.prompt.whole_text == text


def _failed(failure: Failure) -> StepEnded:
    message = Message("m", "assistant", status="failed", note=failure.message)
    return StepEnded(Step("s", "turn", "m", "p", "chat", "m", status="failed", failure=failure), message)


@pytest.mark.slow
async def test_every_end_of_a_turn_is_told_in_one_line(tmp_path: Path) -> None:
    refused = Failure("content_refused", "P refused the content.")
    full = Failure("context_overflow", "The provider says the conversation is too long.")
    async with running(tmp_path, size=(100, 30)) as run:
        ends: list[tuple[list[Event], str]] = [
            ([Notice("warning", "Stopped after 1 step.", "step_limit"), TurnEnded("step_limit")], "Stopped"),
            ([Notice("warning", "The answer was cut off.", "length"), TurnEnded("length")], "cut off"),
            ([_failed(refused), TurnEnded("refused", refused)], "refused"),
            ([TurnEnded("refused")], "refused"),
            ([_failed(full), Notice("error", full.message, "context_full"), TurnEnded("error", full)], "too long"),
            ([_failed(full), TurnEnded("error", full)], "too long"),
        ]
        for events, line in ends:
            run.app.transcript.clear()
            run.agent.publish(TurnStarted())
            for event in events:
                run.agent.publish(event)
            await run.pilot.pause()
            assert run.shown().count(line) == 1, run.shown()


@pytest.mark.slow
async def test_the_clock_of_a_turn_stands_still_while_the_user_is_asked(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.turns.busy = True
        run.agent.publish(TurnStarted())
        run.clock.now += 5
        run.agent.publish(PermissionAsked("r", "c", "bash", "make", {"kind": "command", "text": "make"}))
        run.clock.now += 300
        run.agent.publish(ToolStarted("other", "read", "read a.py"))
        run.clock.now += 300
        assert run.app.activity.seconds == 5
        run.agent.publish(PermissionAnswered("r", True))
        run.clock.now += 2
        assert run.app.activity.seconds == 7
        run.agent.publish(TurnEnded("end"))
