"""What ``agent-tui context --session`` says of a session is what the running one says; no server is started for it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_tui.config import ModelConfig, PermissionsConfig, Settings, ToolsConfig
from agent_tui.engine.agent import Agent
from agent_tui.engine.extensions import Extensions, Workspace
from agent_tui.engine.state import AgentParts
from agent_tui.models.context import ContextUsage
from agent_tui.tools.files.access import FileAccess
from agent_tui.tools.mcp.offer import RememberedOffers
from tests.support.agents import TokenCounter, parts_for, running
from tests.support.forms import one_of
from tests.support.mcp_servers import stdio

pytestmark = pytest.mark.usefixtures("forked_host", "forked_servers")


def configured(*arguments: str, disabled: tuple[str, ...] = (), share: float = 0.1) -> Settings:
    settings = Settings(permissions=PermissionsConfig(mode="auto"), tools=ToolsConfig(list(disabled)))
    settings.tools.mcp_defer_share = share
    settings.mcp = {"test": stdio(*arguments)}
    settings.models = {
        "demo": ModelConfig(model="demo", context_window=16_000),
        "wide": ModelConfig(model="demo", context_window=200_000),
    }
    return settings


def parts(folder: Path, settings: Settings, session: str | None = None) -> AgentParts:
    """As the program puts them together."""
    project = folder / "p"
    built = parts_for(folder / "home", project, settings=settings, counter=TokenCounter(), resume=session)
    if not built.trust.trusted:
        assert built.trust.accept()
    offers = RememberedOffers(built.store.offers, project)
    ext = Extensions(
        settings, built.paths, built.permissions.files, project, built.trust, home=folder / "user", offers=offers
    )
    built.extensions, built.extra_tools = ext, ext.tools
    brought = ext.memory.blocks, ext.skills.blocks, ext.mcp.instructions
    built.workspace = Workspace(FileAccess([project]), project, brought, watched=ext.memory.candidates)
    return built


@asynccontextmanager
async def live(folder: Path, settings: Settings) -> AsyncIterator[Agent]:
    built = parts(folder, settings)
    async with asyncio.timeout(120), running(built) as (agent, _):
        assert built.extensions is not None
        await built.extensions.mcp.settled()  # no request waits for a server
        await agent.context.ready()
        yield agent


async def shell(folder: Path, settings: Settings, session: str) -> ContextUsage:
    """What a process of its own would say."""
    built = parts(folder, settings, session)
    agent = Agent(built)
    try:
        usage = await agent.inspect()
        assert built.extensions is not None and built.extensions.mcp._host.pid is None
        return usage
    finally:
        await agent.close()


def figures(usage: ContextUsage) -> list[Any]:
    """Every number of every row."""
    rows = [(r.id, r.tokens, r.deferred_tokens, [(c.id, c.label, c.tokens) for c in r.children]) for r in usage.rows]
    return [usage.total, usage.limit, usage.calculation, rows]


@pytest.mark.parametrize("share", one_of([0.0001, 1.0]), ids=["deferred", "sent"])
async def test_the_tools_of_servers_are_in_it_before_the_first_step_and_after(tmp_path: Path, share: float) -> None:
    settings = configured("--big", "12", "--instructions", "Add before you take away.", share=share)
    async with live(tmp_path, settings) as agent:
        names = {p.label for p in agent.runtime.request_prefix.fixed}
        assert ({"tool_search", "mcp_call"} <= names) == (share < 1)
        agent.models.set_effort("low")
        before = agent.context.usage()
        assert figures(await shell(tmp_path, settings, agent.conversation.info.id)) == figures(before)
        agent.turns.submit("hello")
        await agent.turns.join()
        await agent.context.ready()
        now = agent.context.usage()
        assert figures(await shell(tmp_path, settings, agent.conversation.info.id)) == figures(now)
        assert now.total > before.total


class User:
    """Does what changes the next request, in any order."""

    def __init__(self, agent: Agent, project: Path, seed: int) -> None:
        self.agent, self.project, self.random = agent, project, random.Random(seed)
        self.done: list[str] = []

    async def send(self) -> None:
        self.agent.turns.submit(self.random.choice(["why?", "tell me a lot", "list the files"]))
        await self.agent.turns.join()

    async def pin(self) -> None:
        (self.project / "notes.txt").write_text("a note\n" * self.random.randrange(1, 90))
        if self.agent.context.pinned:
            self.agent.context.unpin("notes.txt")
        else:
            self.agent.context.pin("notes.txt")

    async def edit_memory(self) -> None:
        (self.project / "AGENTS.md").write_text("Use tabs.\n" * self.random.randrange(1, 60))
        # The screen looks at the files when the numbers are asked for.
        await self.agent.context.refresh()

    async def compact(self) -> None:
        await self.agent.compaction.now()

    async def undo(self) -> None:
        await self.agent.compaction.undo()

    async def switch(self) -> None:
        await self.agent.models.switch("wide" if self.agent.models.spec.key == "demo" else "demo")

    async def act(self) -> None:
        act = self.random.choice(
            [self.send, self.send, self.pin, self.edit_memory, self.compact, self.undo, self.switch]
        )
        self.done.append(act.__name__)
        await act()
        await self.agent.turns.join()
        await self.agent.context.ready()


@pytest.mark.slow
@pytest.mark.parametrize("seed", one_of([0, 1, 2, 3, 4, 5]))
async def test_it_is_the_running_total_after_whatever_the_user_did(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    settings = configured(
        *("--big", str(chance.choice([0, 8, 40]))),
        disabled=tuple(chance.sample(["bash", "grep", "mcp__test__add", "tool_search"], chance.randrange(3))),
        share=chance.choice([0.0001, 0.1, 1.0]),
    )
    skill = tmp_path / "p/.agents/skills/tidy/SKILL.md"
    if chance.random() < 0.5:
        skill.parent.mkdir(parents=True)
        skill.write_text("---\ndescription: keeps things tidy\n---\nPut it away.")
    async with live(tmp_path, settings) as agent:
        user = User(agent, tmp_path / "p", seed)
        await user.send()
        for _ in range(8):
            await user.act()
            seen = await shell(tmp_path, settings, agent.conversation.info.id)
            assert (seen.total, user.done) == (agent.context.usage().total, user.done)
            assert figures(seen) == figures(agent.context.usage()), user.done
