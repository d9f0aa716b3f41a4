"""Questions of the program's own, and what looks at the project meanwhile."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from threading import Event
from typing import Any, cast

import pytest

from agent_tui.engine.agent import Agent
from agent_tui.errors import StoreError
from agent_tui.models.events import StopAsked, Way
from agent_tui.models.session import SessionHit
from agent_tui.plain.commands import found_by
from agent_tui.plain.line_writer import LineWriter
from agent_tui.plain.questions import Asking, AskLines
from agent_tui.plain.run import look_now_and_then
from agent_tui.say.answering import Reply
from agent_tui.store.search import SearchReader
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.quick


def nothing() -> None:
    """What is called of a chat."""


async def unedited(text: str, name: str) -> str | None:
    return None


Asks = Callable[[Asking], Coroutine[Any, Any, object]]


@pytest.mark.parametrize(
    ("asks", "declined"),
    [
        pytest.param(lambda asking: asking.may_attach(Path("/elsewhere/notes")), False, id="a file"),
        pytest.param(lambda asking: asking.pick("Which?", ["one", "two"]), None, id="a list"),
    ],
)
async def test_ctrl_c_twice_at_once_gives_up_one_question(asks: Asks, declined: object) -> None:
    asking = Asking(LineWriter(io.StringIO()), unedited, nothing, nothing, nothing)
    asked = asyncio.create_task(asks(asking))
    await asyncio.sleep(0)
    assert asking.front is not None
    assert asking.drop_own() and not asking.drop_own() and asking.front is None
    assert await asked is declined


def test_what_stopped_a_turn_is_asked_in_lines_until_it_is_settled() -> None:
    out, taken = io.StringIO(), list[tuple[str, str]]()
    key = Way("s", "Enter a key", asks="The key", secret=True)
    asked = StopAsked(
        "r", "The budget is reached", (Way("o", "Another amount…", asks="An amount"), key, Way("n", "Stop"))
    )
    asking = Asking(LineWriter(out), unedited, nothing, nothing, nothing)
    asking.ask(cast(Agent, None), asked)
    assert asking.front is None and not out.getvalue(), "a script is not asked"

    def answers(question: AskLines, reply: Reply) -> None:
        taken.append((reply.choice.key if reply.choice is not None else "", reply.text))

    asking = Asking(LineWriter(out), unedited, nothing, nothing, nothing, answers)
    asking.ask(cast(Agent, None), asked)
    for line in ("1", "", "o", "0.50", "s", "no"):
        assert asking.take(line) == "again"
    assert taken == [("o", "0.50"), ("s", ""), ("n", "")]
    assert asking.take("what is this?") == "other" and asking.front is not None
    assert asking.take("key-0123456789abcdef") == "again", "a pasted key is no message"
    asking.closed("r")
    assert asking.front is None
    assert "1. Another amount" in out.getvalue()


async def test_a_search_that_nobody_waits_for_ends() -> None:
    class Reader(SearchReader):
        begun, ended, stopped = Event(), Event(), Event()

        def hits(
            self, query: str, project: str | None = None, stopped: Callable[[], bool] = lambda: False
        ) -> Iterator[SessionHit]:
            self.begun.set()
            self.stopped.wait()
            assert stopped()
            self.ended.set()
            yield from ()

        def stop(self) -> None:
            self.stopped.set()

    reader = Reader(None)
    searching = asyncio.create_task(found_by(reader, "words"))
    await asyncio.to_thread(reader.begun.wait, PATIENCE)
    searching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await searching
    assert await asyncio.to_thread(reader.ended.wait, PATIENCE)


async def test_a_look_that_fails_is_not_the_last_one() -> None:
    class Looker:
        busy = False
        looks = 0

        async def refresh_context(self) -> bool:
            self.looks += 1
            if self.looks < 3:
                raise StoreError("the disk is full")
            looking.cancel()
            return True

    agent = Looker()
    looking = asyncio.create_task(look_now_and_then(lambda: agent.busy, agent.refresh_context, 0.0))
    with pytest.raises(asyncio.CancelledError):
        await looking
    assert agent.looks == 3
