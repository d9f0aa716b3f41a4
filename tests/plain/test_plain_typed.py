"""The line that is typed at a terminal, beside what is written there."""

from __future__ import annotations

import asyncio
import os
import tty
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from dataclasses import dataclass, field

import pytest

from agent_tui.plain import typed
from agent_tui.plain.line_writer import LineWriter
from agent_tui.plain.reading import Listener, Want
from agent_tui.plain.typed import TypedLine
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.quick


@dataclass
class Desk:
    """A terminal at which somebody types, and who is told what was typed."""

    typed: TypedLine
    writer: LineWriter
    keys: int
    lines: list[str] = field(default_factory=list)
    seen: str = ""

    def type(self, text: str) -> None:
        os.write(self.keys, text.encode())

    async def sees(self, text: str) -> None:
        """Waits until this was written behind what was seen before."""
        loop, news, begin = asyncio.get_running_loop(), asyncio.Event(), len(self.seen)
        loop.add_reader(self.keys, news.set)
        try:
            async with asyncio.timeout(PATIENCE):
                while text not in self.seen[begin:]:
                    await news.wait()
                    news.clear()
                    with suppress(BlockingIOError):
                        self.seen += os.read(self.keys, 1 << 16).decode()
        finally:
            loop.remove_reader(self.keys)


@pytest.fixture
async def desk(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    monkeypatch.setattr(typed, "HOLD", 1_000.0)
    keys, terminal = os.openpty()
    tty.setraw(terminal)
    os.set_blocking(keys, False)
    with closing(os.fdopen(terminal, "w", encoding="utf-8")) as out:
        writer = LineWriter(out)

        async def none(text: str, at: int) -> list[str]:
            return []

        desk = Desk(TypedLine(terminal, writer, [], none), writer, keys)  # type: ignore[arg-type]
        writer.reads = desk.typed
        nothing = Listener(desk.lines.append, desk.lines.append, *[lambda: None] * 3)
        desk.typed.open(nothing)
        desk.typed.want(Want("nothing", "You: "))
        yield desk
        desk.typed.close()
    os.close(keys)


async def test_a_line_that_is_typed_while_the_answer_comes_is_not_torn(desk: Desk) -> None:
    desk.writer.answer("One is here. ")
    desk.type("and then")
    await desk.sees("You: and then")
    assert "Agent: One is here. \nYou: and then" in desk.seen
    desk.writer.answer("Two is here. Three is here. ")
    desk.type(", go")
    await desk.sees(", go")
    assert "Two" not in desk.seen, "it waits while somebody types"
    desk.type("\r")
    await desk.sees("Three is here. ")
    assert desk.seen.endswith("You: and then, go\nAgent: Two is here. Three is here. ")
    assert desk.lines == ["and then, go"]


async def test_what_was_begun_before_a_question_is_kept_for_the_next_message(desk: Desk) -> None:
    desk.type("first\r")
    await desk.sees("first")
    desk.type("y")
    await desk.sees("You: y")
    assert desk.typed.typed_ahead() == "" and desk.lines == ["first"]
    desk.typed.want(Want("answer", "Answer: "))
    await desk.sees("Answer: ")
    desk.type("n\r")
    await desk.sees("n")
    desk.typed.want(Want("edit", "You: "))
    await desk.sees("You: y")
    assert desk.lines == ["first", "n"]
