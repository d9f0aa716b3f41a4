"""What the screen says about a turn: failures, waits, what comes back, and where the reader is."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual import events

from agent_tui.models.context import SessionTotals
from agent_tui.models.events import (
    BackendChanged,
    MessageAdded,
    Notice,
    PartDelta,
    QueueChanged,
    RetryWaiting,
    StepEnded,
    StepStarted,
    TurnEnded,
    TurnStarted,
    WaitingMessage,
)
from agent_tui.models.failure import INTERRUPTED, Failure
from agent_tui.models.messages import AttachmentPart, Message, TextPart, user_message
from agent_tui.models.requests import Delta, ModelSpec
from agent_tui.models.steps import Step
from agent_tui.models.usage import Cost, TokenUsage
from tests.support.app import running
from tests.support.fake_agent import FakeAgent

pytestmark = [pytest.mark.quick, pytest.mark.versions]

RATE_LIMIT = (
    "Anthropic: too many requests (429): This request would exceed your organization's rate limit of 50,000 input "
    "tokens per minute. Please reduce the prompt length or try again later."
)


def answer(text: str = "", status: str = "streaming") -> Message:
    return Message("msg_a", "assistant", [TextPart(text)] if text else [], status=status)  # type: ignore[arg-type]


def step(**more: object) -> Step:
    return Step("stp_1", "turn", "model", "anthropic", "chat", "model", **more)  # type: ignore[arg-type]


async def test_a_failure_that_no_step_told_is_shown(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.publish(TurnStarted())
        run.agent.publish(QueueChanged([WaitingMessage("w", "what I asked", "queued")]))
        run.agent.publish(TurnEnded("error", Failure("invalid_request", "The database is full.")))
        await run.until(lambda: "The database is full." in run.shown())
        await run.until(lambda: "queued  what I asked" in run.shown())
        assert run.app.activity.phase == ""


async def test_a_failure_is_told_once(tmp_path: Path) -> None:
    failure = Failure("auth", "The key was refused.")
    async with running(tmp_path) as run:
        run.agent.publish(TurnStarted())
        message = answer()
        run.agent.publish(StepStarted(step(), message))
        message.status, message.note = "failed", failure.message
        run.agent.publish(StepEnded(step(status="failed", failure=failure), message))
        run.agent.publish(TurnEnded("error", failure))
        run.agent.publish(TurnStarted())
        run.agent.publish(Notice("error", "Too large."))
        run.agent.publish(TurnEnded("error", Failure("context_overflow", "Too large.")))
        await run.until(lambda: "Too large." in run.shown())
        assert run.shown().count("The key was refused.") == 1
        assert run.shown().count("Too large.") == 1


async def test_an_interrupted_turn_says_so_once(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.publish(TurnStarted())
        message = answer()
        run.agent.publish(StepStarted(step(), message))
        run.agent.publish(PartDelta("msg_a", Delta(0, "text", "half an answer")))
        stopped = answer("half an answer", "stopped")
        run.agent.conversation.path.append(stopped)
        run.agent.publish(StepEnded(step(status="stopped"), stopped))
        run.agent.publish(TurnEnded("interrupted"))
        await run.until(lambda: INTERRUPTED in run.shown())
        await run.pilot.pause()
        assert run.shown().count(INTERRUPTED.rstrip(".")) == 1


async def test_the_wait_before_a_retry_shows_its_countdown_and_the_way_out(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.publish(TurnStarted())
        run.agent.publish(RetryWaiting(18.0, 1, 4, Failure("rate_limit", RATE_LIMIT)))
        for width in (100, 80, 60):
            await run.pilot.resize_terminal(width, 24)
            await run.pilot.pause()
            assert "Retry 1 of 3 in 18 s · Esc gives up · Anthropic: too" in run.shown()
        run.clock.now += 5
        run.app.activity.refresh()
        await run.until(lambda: "in 13 s · Esc gives up" in run.shown())
        run.agent.turns.busy = True
        await run.pilot.press("escape")
        await run.until(lambda: run.agent.called("interrupt"))


async def test_a_first_request_that_waits_for_the_provider_says_so(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    agent.models.spec = ModelSpec("sonnet", "anthropic/claude-sonnet-4-6")
    async with running(tmp_path, agent) as run:
        agent.publish(BackendChanged("litellm_loading"))
        await run.pilot.pause()
        assert run.app.activity.phase == ""
        agent.publish(TurnStarted())
        message = answer()
        agent.publish(StepStarted(step(), message))
        await run.until(lambda: "Starting the provider (first use)" in run.shown())
        agent.publish(BackendChanged("litellm_ready"))
        await run.until(lambda: "Working" in run.shown())
        agent.publish(PartDelta("msg_a", Delta(0, "text", "Hi")))
        agent.publish(BackendChanged("stopped"))
        await run.pilot.pause()
        assert run.app.activity.phase == "Answering"


async def test_a_queued_image_comes_back_and_is_sent_again(tmp_path: Path) -> None:
    image = tmp_path / "shot.png"
    image.write_bytes(b"\x89PNG\r\n\x1a\nrest")
    async with running(tmp_path) as run:
        run.agent.turns.busy = True
        run.app.prompt.post_message(events.Paste(str(image)))
        await run.type(" look")
        await run.pilot.press("enter")
        await run.until(lambda: run.agent.waiting.listed)
        await run.pilot.press("up")
        await run.until(lambda: run.app.prompt.text == "[Image #2] look")
        await run.pilot.press("ctrl+s")
        await run.until(lambda: run.agent.called("steer"))
        text, attachments = run.agent.called("steer")[0]
        assert text == "[Image #2] look"
        assert [part.name for part in attachments] == ["shot.png"]


async def test_a_read_only_session_keeps_what_was_typed_and_takes_commands(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    agent.conversation.read_only = True
    async with running(tmp_path, agent) as run:
        await run.type("a long thought")
        await run.pilot.press("enter")
        await run.until(lambda: "Read-only" in run.shown())
        assert run.app.prompt.text == "a long thought"
        assert not agent.called("submit")
        await run.pilot.press("ctrl+c")
        await run.type("/fork")
        await run.pilot.press("enter")
        await run.until(lambda: agent.called("fork"))


async def test_a_send_that_is_still_prepared_can_be_cancelled(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    never = asyncio.Event()

    async def hangs(text: str) -> tuple[list[AttachmentPart], list[str]]:
        await never.wait()
        return [], []

    agent.project.mcp_attachments = hangs  # type: ignore[method-assign]
    async with running(tmp_path, agent) as run:
        for key in ("escape", "ctrl+c"):
            run.app.prompt.set_text("what is @docs:x ")
            await run.pilot.press("enter")
            await run.until(lambda: "Esc to cancel" in run.shown())
            await run.pilot.press(key)
            await run.until(lambda: run.app.prompt.text == "what is @docs:x ")
            assert run.app.activity.phase == ""
            assert not agent.called("submit") and not agent.called("interrupt")
            assert run.app.return_value is None


async def test_the_context_screen_leaves_the_reader_at_the_end(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        for n in range(12):
            agent_says = f"Paragraph {n}.\n\n" * 6
            run.agent.turns.submit(f"question {n}")
            run.agent.publish(TurnStarted())
            run.agent.answer(agent_says)
            run.agent.publish(TurnEnded("end"))
        await run.pilot.pause()
        run.app.open_screen("context")
        await run.until(lambda: len(run.app.screen_stack) == 2)
        await run.until(lambda: " of 200k" in run.shown())
        await run.pilot.press("escape")
        await run.until(lambda: len(run.app.screen_stack) == 1)
        await run.pilot.pause()
        assert run.app.transcript.follow
        run.agent.publish(MessageAdded(user_message("the newest")))
        await run.until(lambda: "the newest" in run.shown())
        assert "new below" not in run.shown() and "↓" not in run.shown()


async def test_sending_goes_to_the_end(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        for n in range(12):
            run.agent.answer(f"Paragraph {n}.\n\n" * 6)
        await run.pilot.press("pageup", "pageup")
        await run.until(lambda: not run.app.transcript.follow)
        await run.type("hello there")
        await run.pilot.press("enter")
        await run.until(lambda: run.app.transcript.follow and "hello there" in run.shown())


async def test_a_turn_ends_with_one_quiet_line(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.publish(TurnStarted())
        run.clock.now += 6
        bill = SessionTotals(TokenUsage(50_000, 2_100, None, 840), cost=Cost(0.0123))
        run.agent.publish(TurnEnded("end", None, bill))
        await run.until(lambda: "· 6 s · 2.1k tokens · $0.01" in run.shown())
        run.agent.publish(TurnStarted())
        run.agent.publish(TurnEnded("end"))
        run.agent.publish(Notice("info", "Over.", "x"))
        await run.until(lambda: "Over." in run.shown())
        assert run.shown().count("tokens") == 1, "nothing was asked of a model, and nothing is said of that"
