"""One thing at a time: early interrupts, work that excludes turns, models that cannot be described or are gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_tui.config import ModelConfig, Settings
from agent_tui.engine.agent import Agent
from agent_tui.errors import AgentError, ConfigError, WorkerError
from agent_tui.models.events import MessageAdded, Notice, TurnEnded, TurnStarted
from agent_tui.models.messages import AttachmentPart
from agent_tui.models.requests import Counter, ModelInfo, ModelSpec
from agent_tui.models.session import FilesMoved
from agent_tui.providers.demo import DemoProvider
from agent_tui.store.store import Store
from agent_tui.tools.files.snapshots import RestorePlan
from tests.support.agents import parts_for, running, waiting

pytestmark = pytest.mark.quick


class Gated(DemoProvider):
    """Describes when the gate is open; ``errors`` are raised first, one for each question."""

    def __init__(self, counter: Counter, errors: list[Exception] | None = None) -> None:
        super().__init__(counter, None, pace=0.0)
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked = asyncio.Event()
        self.errors = errors or []

    async def describe(self, spec: ModelSpec) -> ModelInfo:
        self.asked.set()
        await self.gate.wait()
        if self.errors:
            raise self.errors.pop(0)
        return await super().describe(spec)


def provider(errors: list[Exception] | None = None) -> tuple[list[Gated], Callable[[Counter], Gated]]:
    made: list[Gated] = []

    def make(counter: Counter) -> Gated:
        made.append(Gated(counter, errors))
        return made[0]

    return made, make


@pytest.mark.parametrize("pauses", [0, 1, 2, 3, 4])
async def test_an_interrupt_right_after_a_message_stores_it_and_ends_the_turn(tmp_path: Path, pauses: int) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, seen):
        ended = asyncio.Event()
        agent.subscribe(lambda e: ended.set() if isinstance(e, TurnEnded) else None)
        agent.turns.submit("wait, no")
        for _ in range(pauses):
            await asyncio.sleep(0)
        assert agent.turns.interrupt()
        await ended.wait()
        await agent.turns.join()
        assert seen.last_end == TurnEnded("interrupted")
        assert [m.text for m in agent.conversation.path if m.role == "user"] == ["wait, no"]
        assert len(seen.of(TurnStarted)) == len(seen.of(TurnEnded)) == 1
        assert not agent.turns.interrupt()
        agent.turns.submit("go on")
        await agent.turns.join()
        assert seen.last_end.stop_reason == "end"


async def test_closing_right_after_a_message_keeps_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with running(parts_for(home, tmp_path / "p")) as (agent, _):
        session = agent.conversation.info.id
        agent.turns.submit("remember me")
    with Store.open(home / "data" / "sessions.db") as store:
        assert [m.text for m in store.messages.all(session).values()] == ["remember me"]


async def test_a_message_sent_during_a_switch_of_models_waits_for_it(tmp_path: Path) -> None:
    made, make = provider()
    settings = Settings(models={"other": ModelConfig("demo")})
    async with running(parts_for(tmp_path / "home", tmp_path / "p", provider=make, settings=settings)) as (agent, seen):
        await agent.context.ready()
        gated = made[0]
        gated.asked.clear()
        gated.gate.clear()
        switching = asyncio.create_task(agent.models.switch("other" if agent.models.spec.key != "other" else "demo"))
        await gated.asked.wait()
        agent.turns.submit("to the new one")
        assert waiting(agent, "queued") == ["to the new one"]
        for work in (
            agent.compaction.now(),
            agent.models.switch("demo"),
            agent.branches.rewind("x", restore_files=True),
        ):
            with pytest.raises(AgentError, match="while the model works"):
                await work
        assert not seen.of(TurnStarted)
        gated.gate.set()
        info, _ = await switching
        await agent.turns.join()
        assert [s.model_key for s in agent.conversation.steps if s.kind == "turn"] == [info.spec.key]
        assert len(seen.of(TurnEnded)) == 1


async def test_a_message_sent_while_files_are_restored_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, seen):
        agent.turns.submit("first")
        await agent.turns.join()
        restoring, go_on = asyncio.Event(), asyncio.Event()

        async def restore(plan: RestorePlan) -> FilesMoved:
            restoring.set()
            await go_on.wait()
            return FilesMoved()

        monkeypatch.setattr(agent.toolbox, "restore_files", restore)
        rewinding = asyncio.create_task(agent.branches.rewind(agent.conversation.path[0].id, restore_files=True))
        await restoring.wait()
        agent.turns.submit("second")
        assert len(seen.of(TurnStarted)) == 1
        go_on.set()
        assert (await rewinding).text == "first"
        await agent.turns.join()
        assert [m.text for m in agent.conversation.path if m.role == "user"] == ["second"]


async def test_an_interrupted_switch_keeps_the_model(tmp_path: Path) -> None:
    made, make = provider()
    settings = Settings(models={"a": ModelConfig("demo"), "b": ModelConfig("demo")})
    async with running(parts_for(tmp_path / "home", tmp_path / "p", provider=make, settings=settings)) as (agent, _):
        await agent.context.ready()
        made[0].asked.clear()
        made[0].gate.clear()
        switching = asyncio.create_task(agent.models.switch("b"))
        await made[0].asked.wait()
        assert agent.turns.interrupt()
        with pytest.raises(AgentError, match="stays on a"):
            await switching
        assert agent.models.spec.key == "a" and not agent.turns.busy


@pytest.mark.parametrize("error", [WorkerError("The provider worker died."), KeyError("limits")])
async def test_a_model_that_could_not_be_described_is_described_before_the_next_step(
    tmp_path: Path, error: Exception
) -> None:
    _, make = provider([error])
    async with running(parts_for(tmp_path / "home", tmp_path / "p", provider=make)) as (agent, seen):
        await agent.context.ready()
        assert agent.context.usage().window is None
        assert [n.code for n in seen.of(Notice)].count("model_problem") == 1
        agent.turns.submit("hello")
        await agent.turns.join()
        assert seen.last_end.stop_reason == "end"
        assert agent.context.usage().window is not None
        assert agent.models.info is not None and agent.models.info.problem is None


def named(agent: Agent) -> str:
    return agent.store.sessions.get(agent.conversation.info.id).model


async def test_a_session_whose_model_is_gone_keeps_its_name_until_a_message_is_sent(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "p"
    async with running(parts_for(home, project, settings=Settings(models={"mine": ModelConfig("demo")}))) as (agent, _):
        agent.turns.submit("hello")
        await agent.turns.join()
        session = agent.conversation.info.id
        assert named(agent) == "mine"
    async with running(parts_for(home, project, resume=session)) as (agent, seen):
        told = [n.text for n in seen.of(Notice) if n.code == "model_gone"]
        assert told == ["mine is no longer configured; continuing with demo. Run /model to change it."]
        agent.sessions.rename("a title")
        assert named(agent) == "mine"
    async with running(parts_for(home, project, resume=session)) as (agent, _):
        agent.turns.submit("go on")
        await agent.turns.join()
        assert named(agent) == "demo"


async def test_without_a_screen_a_session_whose_model_is_gone_is_refused(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "p"
    async with running(parts_for(home, project, settings=Settings(models={"mine": ModelConfig("demo")}))) as (agent, _):
        agent.turns.submit("hello")
        await agent.turns.join()
        session = agent.conversation.info.id
    parts = parts_for(home, project, resume=session)
    parts.is_chat = False
    agent = Agent(parts)
    try:
        with pytest.raises(ConfigError, match="'mine'") as error:
            await agent.start()
        assert "-m" in str(error.value) and error.value.exit_code == 2
    finally:
        await agent.close()


async def test_what_waits_is_taken_back_with_its_attachments(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, _):
        file = AttachmentPart("a.txt", "text/plain", text="attached")
        agent.turns.submit("first")
        agent.turns.submit("second", [file])
        assert agent.turns.take_back() == ("second", [file], [])
        assert agent.turns.take_back() is None
        agent.turns.steer("also", [file])
        assert waiting(agent, "steer") == ["also"]
        await agent.turns.join()
        steered = next(m for m in agent.conversation.path if m.text == "also")
        assert file in steered.parts


async def test_events_of_a_message_that_is_stored_come_in_order(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, seen):
        agent.turns.submit("x")
        agent.turns.interrupt()
        await agent.turns.join()
        kinds = [type(e) for e in seen.events if isinstance(e, (TurnStarted, MessageAdded, TurnEnded))]
        assert kinds == [TurnStarted, MessageAdded, TurnEnded]
