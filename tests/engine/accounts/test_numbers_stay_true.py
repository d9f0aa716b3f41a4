"""What is kept of the numbers is what a calculation from nothing gives, whatever is done, whenever somebody asks."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent_tui.config import ModelConfig, PermissionsConfig, Settings
from agent_tui.context.accounting.usage import calculate_context_usage
from agent_tui.context.view import ViewBuilder
from agent_tui.engine.agent import Agent
from agent_tui.engine.cache_forecast import CacheForecaster
from agent_tui.engine.runtime import Runtime
from agent_tui.engine.toolbox import Toolbox
from agent_tui.errors import AgentError
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import ContextChanged
from agent_tui.models.requests import ModelInfo, OfferedTool, ToolSchema
from tests.support.agents import Recorder, TokenCounter, parts_for, running
from tests.support.forms import examples
from tests.support.scripts import step

SCRIPT = "window = 7000\nmax_output = 1500\n" + (
    step("both", read={"path": "notes.txt"}, list={"path": "."}) + step("done " * 60)
)


class LateCounter(TokenCounter):
    """Answers when much else has been done."""

    running = True

    def __init__(self, rng: random.Random) -> None:
        self._random = rng

    async def count(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        for _ in range(self._random.choice([0, 0, 50, 400])):
            await asyncio.sleep(0)
        return await super().count(texts)


class Doing:
    """What is done at random, also while a turn runs."""

    def __init__(self, agent: Agent, recorder: Recorder, project: Path, rng: random.Random) -> None:
        self.agent, self.recorder, self.project, self.random = agent, recorder, project, rng
        self.servers_tools = 0

    def message(self) -> str:
        path = self.agent.conversation.path
        return self.random.choice(path).id if path else ""

    async def say(self) -> None:
        self.agent.turns.submit("read the notes " + "and more " * self.random.randrange(200))
        for _ in range(self.random.randrange(3)):
            for _ in range(self.random.randrange(60)):
                await asyncio.sleep(0)
            await self.one([self.drop, self.pin, self.pin_words, self.think, self.set, self.tools, self.write])
        await self.agent.turns.join()

    async def drop(self) -> None:
        await self.agent.edits.drop([self.message()], later=self.random.random() < 0.2)

    async def fold(self) -> None:
        await self.agent.edits.fold(self.message(), self.message())

    async def undo(self) -> None:
        await self.random.choice([self.agent.edits.undo, self.agent.compaction.undo])()

    async def compact(self) -> None:
        await self.agent.compaction.now()

    async def rewind(self) -> None:
        await self.agent.branches.rewind(self.message())

    async def pin(self) -> None:
        context = self.agent.context
        (context.unpin if context.pinned else context.pin)("notes.txt")

    async def pin_words(self) -> None:
        if (message := self.agent.conversation.messages.get(self.message())) is not None:
            self.random.choice([self.agent.pins.pin_message, self.agent.pins.unpin_message])(message)

    async def think(self) -> None:
        self.agent.models.set_effort(self.random.choice(["off", "low", "high"]))

    async def set(self) -> None:
        context = self.agent.settings.context
        context.auto_compact = self.random.random() < 0.7
        context.compact_at = self.random.choice([None, 0.5, 4_000])
        context.max_output_reserve = self.random.choice([1_000, 32_000])
        self.agent.context.tell()

    async def tools(self) -> None:
        self.servers_tools = self.random.randrange(3)
        self.agent.context.tools_changed()

    async def write(self) -> None:
        (self.project / "notes.txt").write_text("a note\n" * self.random.randrange(90))
        await self.agent.context.refresh()

    async def switch(self) -> None:
        await self.agent.models.switch(self.random.choice(["demo", "small", "priced"]))

    async def clear(self) -> None:
        await self.agent.sessions.clear()

    async def fork(self) -> None:
        await self.agent.sessions.fork()

    async def one(self, acts: Sequence[Callable[[], Any]]) -> None:
        with contextlib.suppress(AgentError):  # it cannot be done now
            await self.random.choice(acts)()
        self.agent.context.usage()

    async def act(self) -> None:
        acts = [self.drop, self.fold, self.undo, self.compact, self.rewind, self.pin, self.pin_words, self.think]
        acts += [self.set, self.tools, self.write, self.switch, self.clear, self.fork]
        await self.one([*acts, *[self.say] * 8])

    async def check(self) -> None:
        await self.agent.context.ready()
        usage, told = self.agent.context.usage(), self.recorder.of(ContextChanged)[-1].usage
        assert (told.total, told.limit, told.rows) == (usage.total, usage.limit, usage.rows)
        runtime = self.agent.runtime
        foreseen = runtime.conversation.steps and not usage.would_compact
        expected = CacheForecaster().forecast(runtime, runtime.usage()) if foreseen else None
        assert usage.forecast == expected


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(examples(2, 8)))
async def test_what_is_kept_is_what_is_calculated(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, project, answer, offered = random.Random(seed), tmp_path / "p", Runtime.usage, Toolbox.offered
    doing: list[Doing] = []

    def checked(runtime: Runtime) -> ContextUsage:
        usage, conversation = answer(runtime), runtime.conversation
        assert runtime._answer is not None
        view = ViewBuilder().build(conversation.path, conversation.records, conversation.summaries)
        assert conversation.view() == view
        assert runtime._answer[1] == calculate_context_usage(runtime.inputs(runtime.info))
        return usage

    def with_servers(toolbox: Toolbox, model: ModelInfo) -> list[OfferedTool]:
        more = [
            ToolSchema(f"mcp__s__{n}", "what it does " * 20, {}) for n in range(doing[0].servers_tools if doing else 0)
        ]
        return [*offered(toolbox, model), *(OfferedTool(schema, "mcp:s") for schema in more)]

    monkeypatch.setattr(Runtime, "usage", checked)
    monkeypatch.setattr(Toolbox, "offered", with_servers)
    settings = Settings(permissions=PermissionsConfig(mode="auto"))
    settings.models = {
        "small": ModelConfig(model="demo", context_window=9_000),
        "priced": ModelConfig(
            model="demo", context_window=20_000, prices={"input": 3, "output": 15, "cache_read": 0.3}
        ),
    }
    parts = parts_for(tmp_path / "home", project, script=SCRIPT, settings=settings, counter=LateCounter(rng))
    (project / "notes.txt").write_text("a note of some length\n" * 60)
    async with running(parts) as (agent, recorder):
        doing.append(Doing(agent, recorder, project, rng))
        for _ in range(60):
            await doing[0].act()
            await doing[0].check()
