"""The line of the user's own below the status line: what its command is told, and what a bad one costs."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from rich.color import Color

from agent_tui.commands.report import ContextReport
from agent_tui.commands.report_json import context_json
from agent_tui.config import Settings
from agent_tui.models.events import ContextChanged, PartDelta
from agent_tui.models.requests import Delta
from agent_tui.ui.chat import status_command
from agent_tui.ui.chat.status_command import StatusCommand, styled
from tests.support.app import running
from tests.support.fake_agent import FakeAgent
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the commands are those of a POSIX shell")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_command, "PAUSE", 0.0)


def with_command(command: str) -> Settings:
    settings = Settings()
    settings.ui.status_command = command
    return settings


async def test_it_is_told_the_context_as_json_and_its_first_line_is_shown(tmp_path: Path) -> None:
    command = f"cat > {tmp_path}/told; printf 'first \\033]0;evil\\007 line\\nsecond\\n'"
    async with running(tmp_path, settings=with_command(command)) as run:
        await run.until(lambda: "first  line" in run.shown())
        assert "second" not in run.shown() and "evil" not in run.shown()
        assert run.shown().splitlines()[-1].strip() == "first  line"
        assert json.loads((tmp_path / "told").read_text()) == json.loads(
            json.dumps(context_json(ContextReport.of(run.agent)))
        )


async def test_a_command_that_says_nothing_takes_no_line(tmp_path: Path) -> None:
    async with running(tmp_path, settings=with_command(f"echo x >> {tmp_path}/ran")) as run:
        await run.until((tmp_path / "ran").exists)
        await run.pilot.pause()
        assert "demo" in run.shown().splitlines()[-1]


def ran(log: Path, times: int) -> bool:
    return log.read_text().count("x") >= times


async def test_that_it_fails_is_told_once(tmp_path: Path) -> None:
    async with running(tmp_path, settings=with_command(f"echo x >> {tmp_path}/ran; echo oh no >&2; exit 3")) as run:
        await run.until(lambda: "oh no" in run.shown())
        for wanted in (2, 3):
            run.agent.publish(ContextChanged(run.agent.context.usage()))
            await run.until(partial(ran, tmp_path / "ran", wanted))
        await run.pilot.pause()
        assert run.shown().count("oh no") == 1
        assert "exit code 3" in run.shown()


class Shown:
    """What a command wrote and what was said of it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.said: list[str] = []
        self._news = asyncio.Event()

    def show(self, text: str) -> None:
        self.lines.append(text)
        self._news.set()

    def say(self, level: str, text: str) -> None:
        self.said.append(text)

    def hint(self, text: str) -> None:
        self.said.append(text)

    def has(self, lines: int) -> bool:
        return len(self.lines) == lines

    async def until(self, ready: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not ready():
                self._news.clear()
                await self._news.wait()


async def test_it_never_runs_twice_at_once_and_many_changes_are_one_call(tmp_path: Path) -> None:
    agent, shown, gate, log = FakeAgent(tmp_path), Shown(), tmp_path / "gate", tmp_path / "log"
    os.mkfifo(gate)
    command = StatusCommand(
        f"echo begin >> {log}; cat {gate}; echo end >> {log}", agent, shown.show, shown.say, patience=PATIENCE
    )
    try:
        for written in range(1, 4):
            # Opening waits for the command to be there; what is written lets it end.
            with await asyncio.to_thread(gate.open, "w") as writer:
                for _ in range(20 if written < 3 else 0):
                    agent.publish(ContextChanged(agent.context.usage()))
                    agent.publish(ContextChanged(agent.context.usage(), in_flight=5))
                    agent.publish(PartDelta("m", Delta(0, "text", "x")))
                writer.write(f"{written}\n")
            await shown.until(partial(shown.has, written))
    finally:
        await command.close()
    assert log.read_text().split() == ["begin", "end"] * 3
    assert (shown.lines, shown.said) == (["1", "2", "3"], [])


async def test_one_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    agent, shown, held = FakeAgent(tmp_path), Shown(), tmp_path / "held"
    os.mkfifo(held)
    # Both shells hold the pipe open: that it ends says that both are gone.
    command = StatusCommand(f"exec 9> {held}; (sleep 600) & sleep 600", agent, shown.show, shown.say, patience=0.5)
    reader = await asyncio.to_thread(held.open, "rb")
    with reader:
        assert await asyncio.wait_for(asyncio.to_thread(reader.read), PATIENCE) == b""
        await shown.until(lambda: shown.lines)
    await command.close()
    assert shown.lines == [""]
    assert "was ended" in shown.said[0]


async def test_leaving_ends_it(tmp_path: Path) -> None:
    held = tmp_path / "held"
    os.mkfifo(held)
    agent, shown = FakeAgent(tmp_path), Shown()
    command = StatusCommand(f"exec 9> {held}; sleep 600", agent, shown.show, shown.say)
    reader = await asyncio.to_thread(held.open, "rb")
    with reader:
        await command.close()
        assert await asyncio.wait_for(asyncio.to_thread(reader.read), PATIENCE) == b""
    agent.publish(ContextChanged(agent.context.usage()))
    assert (shown.lines, shown.said) == ([], [])


def test_colours_are_shown_and_nothing_else_acts() -> None:
    text = (
        "\x1b[1;31mred\x1b[0m plain \x1b[38;5;208morange\x1b[39m\x1b[38;2;1;2;3mrgb\x1b[48:2::9:8:7mback\x1b[2J\x9b9mx"
    )
    found = {said.strip(): style for said, style in styled(text)}
    assert found["red"].bold and found["red"].color == Color.from_ansi(1)
    assert found["plain"].color is None and not found["plain"].bold
    assert found["orange"].color == Color.from_ansi(208)
    assert found["rgb"].color == Color.from_rgb(1, 2, 3)
    assert found["backx"].bgcolor == Color.from_rgb(9, 8, 7)
    for broken in ("\x1b[38mx", "\x1b[38;5mx", "\x1b[38;5;999mx", "\x1b[99999mx", "\x1b[;;mx"):
        assert [said for said, _ in styled(broken)] == ["x"]
