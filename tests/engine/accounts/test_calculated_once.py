"""The context is calculated once after each change: however many ask, and only where somebody does."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent_tui.context.accounting.inputs import ContextInputs
from agent_tui.context.accounting.usage import Calculator, calculate_context_usage
from agent_tui.engine.agent import Agent
from agent_tui.engine.runtime import Runtime
from agent_tui.headless.run import run_headless
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import ContextChanged, Event, PartDelta
from agent_tui.options import Options
from tests.support.agents import parts_for, running, say
from tests.support.scripts import step

LONG = step("word " * 400)
TOOL = step("I read it.", read={"path": "a.txt"}) + step("Read.")


@dataclass
class Calculations:
    """What the calculator was asked."""

    asked: list[ContextInputs] = field(default_factory=list)

    def since(self) -> int:
        """How often since this was last asked."""
        count = len(self.asked)
        self.asked.clear()
        return count


@pytest.fixture
def calculations(monkeypatch: pytest.MonkeyPatch) -> Iterator[Calculations]:
    """Counted at the calculator's border; each answer that is given again is what it would say now."""
    made, calculate, answer = Calculations(), Calculator.usage, Runtime.usage

    def counted(self: Calculator, inputs: ContextInputs) -> ContextUsage:
        made.asked.append(inputs)
        return calculate(self, inputs)

    def checked(self: Runtime) -> ContextUsage:
        usage = answer(self)
        assert self._answer is not None
        assert self._answer[1] == calculate_context_usage(self.inputs(self.info)), "an answer outlived its inputs"
        made.asked.pop()
        return usage

    monkeypatch.setattr(Calculator, "usage", counted)
    monkeypatch.setattr(Runtime, "usage", checked)
    yield made


async def operations(agent: Agent, project: Path) -> list[tuple[str, Any]]:
    """What is done to a session, one after the other, and how to do it."""

    async def look() -> None:
        for _ in range(10):
            agent.context.usage()
            await agent.context.refresh()

    async def pin() -> None:
        (project / "b.txt").write_text("pinned\n")
        agent.context.pin(str(project / "b.txt"))
        await agent.events.settled()

    async def think() -> None:
        agent.models.set_effort("high")

    async def drop() -> None:
        await agent.edits.drop([agent.conversation.path[0].id])

    async def undo() -> None:
        await agent.edits.undo()

    return [
        ("a turn of one step", lambda: say(agent, "hello")),
        ("looking ten times", look),
        ("a turn of two steps", lambda: say(agent, "read it")),
        ("another level of thinking", think),
        ("a file is pinned", pin),
        ("a message is dropped", drop),
        ("and comes back", undo),
    ]


MOST = {
    "the start": 3,  # a session without a word, the model's facts, what was counted
    "a turn of one step": 6,  # the message, its count, the step begins, is answered, is stored, teaches
    "looking ten times": 0,
    "a turn of two steps": 11,
    "another level of thinking": 1,
    "a file is pinned": 2,  # and counted
    "a message is dropped": 2,  # and planned
    "and comes back": 1,
}
"""Calculations at most where everything is shown, by what is done."""


async def test_whoever_follows_pays_once_for_each_change(tmp_path: Path, calculations: Calculations) -> None:
    project = tmp_path / "p"
    parts = parts_for(tmp_path / "home", project, script=LONG + TOOL)
    (project / "a.txt").write_text("one\n")
    async with running(parts) as (agent, recorder):
        await agent.events.settled()
        table = {"the start": calculations.since()}
        for name, operation in await operations(agent, project):
            await operation()
            table[name] = calculations.since()
    assert len(recorder.of(PartDelta)) > 50, "what streams is no change of the next request"
    assert table.keys() == MOST.keys()
    assert not [name for name, count in table.items() if count > MOST[name]], table
    newest = recorder.of(ContextChanged)[-1]
    assert newest.usage.total == agent.context.usage().total


@pytest.mark.forms(1)
@pytest.mark.parametrize(("output", "most"), [("text", 2), ("json", 3), ("stream-json", 3)])
async def test_a_run_calculates_what_it_acts_on(
    tmp_path: Path, calculations: Calculations, output: Any, most: int
) -> None:
    out = io.StringIO()
    parts = parts_for(tmp_path / "home", tmp_path / "p", script=LONG, can_ask=False)

    async def make() -> Agent:
        return Agent(parts)

    assert await run_headless(make, Options(model="demo", prompt="hello", output_format=output), out) == 0
    assert "word word" in out.getvalue()
    # Whether it fits, before it is sent; what it came to; where the end says the total, that with the answer counted.
    assert calculations.since() <= most


@pytest.mark.slow
async def test_an_editor_is_told_what_was_calculated_once(tmp_path: Path, calculations: Calculations) -> None:
    from acp import schema

    from agent_tui.acp import Open

    told: list[Any] = []

    async def session_update(_id: str, update: Any) -> None:
        told.append(update)

    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=LONG)) as (agent, recorder):
        session: Any = SimpleNamespace(agent=agent, id=agent.conversation.info.id)
        opened = Open(session, SimpleNamespace(session_update=session_update), schema.ElicitationCapabilities())
        await agent.events.settled()
        calculations.since()
        events: list[Event] = recorder.events
        events.clear()
        await say(agent, "hello")
        assert calculations.since() <= MOST["a turn of one step"]
        for event in events:
            await opened.tell_event(event)
        assert calculations.since() == 0
    assert "usage_update" in {update.session_update for update in told}
