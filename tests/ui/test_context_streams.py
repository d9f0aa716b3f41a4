"""Rows are equal to the headline at every moment, also while an answer streams and while messages are dropped."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from agent_tui.commands.bookkeeping import adds_up
from agent_tui.commands.report import ContextReport
from agent_tui.models.events import ContextChanged, Event, TurnEnded
from agent_tui.ui.screens.context_head import headline
from agent_tui.ui.screens.context_lines import flatten
from agent_tui.ui.screens.context_screen import ContextScreen
from tests.support.real_app import make_home


def has_steps(screen: ContextScreen, count: int) -> bool:
    return screen.view.course is not None and screen.view.course.timeline.count == count


@pytest.mark.slow
async def test_what_is_shown_adds_up_while_an_answer_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_home(tmp_path, monkeypatch)
    seen: list[int] = []

    def look(event: Event) -> None:
        if isinstance(event, ContextChanged):
            assert agent is not None
            report = ContextReport.of(agent, event)
            whole = report.whole
            assert adds_up(whole) and whole.total == event.usage.total + event.in_flight
            rows = [line.tokens or 0 for line in flatten(whole, set()) if line.kind == "row"]
            assert sum(rows) == whole.total and headline(report)
            seen.append(event.in_flight)

    async with home.chat(size=(80, 24)) as chat:
        agent = chat.app.chat.holder.agent
        assert agent is not None
        forget = agent.subscribe(look)
        for number in range(3):
            await chat.say(f"question {number}")
            await chat.say("/context")
            await chat.until(lambda: isinstance(chat.app.screen, ContextScreen))
            await chat.seen.next(TurnEnded)
            screen = chat.app.screen
            assert isinstance(screen, ContextScreen)
            await chat.until(partial(has_steps, screen, number + 1))
            course, total = screen.view.course, screen.view.moment.usage.total
            assert course is not None and course.now.total == total, "the timeline was there while the turn ran"
            assert sum(size for _, size in course.now.stack) == total
            await chat.press("escape")
            await chat.until(lambda: not isinstance(chat.app.screen, ContextScreen))
        answer = next(message for message in agent.conversation.path if message.role == "assistant")
        await agent.edits.drop([answer.id])
        await agent.edits.undo()
        forget()
    assert any(seen) and not all(seen), "some were seen while an answer came, some between"
