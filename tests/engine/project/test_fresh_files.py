"""Files that go with every request: a change is seen while nothing runs, and no change tells nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent_tui.context.prompt import MemoryFiles
from agent_tui.engine.extensions import Workspace
from agent_tui.engine.state import AgentParts
from agent_tui.models.events import ContextChanged, PartDelta
from agent_tui.tools.files.access import FileAccess
from tests.support.agents import parts_for, running
from tests.support.contexts import row

pytestmark = pytest.mark.quick


def parts(tmp_path: Path, script: str | None = None) -> AgentParts:
    home, project = tmp_path / "home", tmp_path / "p"
    project.mkdir()
    memory = MemoryFiles(home / "config", FileAccess([project]), project)
    workspace = Workspace(FileAccess([project]), project, brought=[memory.blocks], watched=memory.candidates)
    return parts_for(home, project, workspace=workspace, script=script)


async def test_changed_files_move_the_number_between_turns(tmp_path: Path) -> None:
    async with running(parts(tmp_path)) as (agent, seen):
        await agent.context.ready()
        notes, spec = tmp_path / "p" / "AGENTS.md", tmp_path / "p" / "spec.md"
        spec.write_text("short")
        agent.context.pin("spec.md")
        await agent.context.ready()
        before = agent.context.usage()
        told = len(seen.of(ContextChanged))
        assert not await agent.context.refresh()
        assert len(seen.of(ContextChanged)) == told, "nothing changed, nothing is told"

        notes.write_text("remember this\n" * 50)
        assert await agent.context.refresh()
        assert row(agent.context.usage(), "memory").tokens > 100
        assert seen.of(ContextChanged)[-1].usage.total > before.total

        spec.write_text("a longer line\n" * 50)
        assert await agent.context.refresh()
        await agent.context.ready()
        assert row(agent.context.usage(), "documents").tokens > row(before, "documents").tokens + 100

        notes.unlink()
        assert await agent.context.refresh()
        assert row(agent.context.usage(), "memory").tokens == 0
        spec.touch()
        told = len(seen.of(ContextChanged))
        assert not await agent.context.refresh()
        assert len(seen.of(ContextChanged)) == told, "a file that was only touched changes nothing"


async def test_while_a_turn_runs_only_documents_are_taken_anew(tmp_path: Path) -> None:
    script = '[[step]]\ntext = "%s"\nhang = true\nafter = 3\n' % ("word " * 20)
    async with running(parts(tmp_path, script)) as (agent, _):
        await agent.context.ready()
        notes, spec = tmp_path / "p" / "AGENTS.md", tmp_path / "p" / "spec.md"
        spec.write_text("short")
        agent.context.pin("spec.md")
        streaming = asyncio.Event()
        agent.subscribe(lambda event: streaming.set() if isinstance(event, PartDelta) else None)
        agent.turns.submit("hello")
        await streaming.wait()
        before = agent.context.usage()
        notes.write_text("remember this\n" * 50)
        assert not await agent.context.refresh()
        assert row(agent.context.usage(), "memory").tokens == 0
        spec.write_text("a longer line\n" * 50)
        assert await agent.context.refresh()
        assert row(agent.context.usage(), "documents").tokens > row(before, "documents").tokens + 100
        agent.turns.interrupt()
        await agent.turns.join()
        assert row(agent.context.usage(), "memory").tokens > 100, "the turn is over: memory counts again"
