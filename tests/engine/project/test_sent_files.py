"""Files that are sent without a call, in an agent that runs: pins and memory hold to the rules, and what is read
outside the project is marked as what tools read there."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from agent_tui.context.prompt import MemoryFiles
from agent_tui.engine.agent import Agent
from agent_tui.engine.extensions import Workspace
from agent_tui.engine.state import AgentParts
from agent_tui.models.events import Notice
from agent_tui.models.requests import ModelRequest, StreamItem
from agent_tui.providers.demo import DemoProvider
from tests.support.agents import parts_for, running, say

pytestmark = pytest.mark.quick

SECRET = "out" + "side-key"


def parts(tmp_path: Path, sent: list[str]) -> AgentParts:
    class Listening(DemoProvider):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
            sent.append("\n".join(block.text for block in (*request.system, *request.documents)))
            async for item in super().stream(request):
                yield item

    made = parts_for(tmp_path / "home", tmp_path / "p", provider=lambda counter: Listening(counter, None, pace=0.0))
    memory = MemoryFiles(tmp_path / "home" / "config", made.permissions.files, made.cwd)
    made.workspace = Workspace(made.permissions.files, made.cwd, [memory.blocks], watched=memory.candidates)
    return made


def reads_outside(agent: Agent) -> bool:
    return bool(agent.parts.permissions.reach.since())


async def test_a_rule_that_denies_reading_takes_pins_and_memory_out_of_the_next_request(tmp_path: Path) -> None:
    sent: list[str] = []
    async with running(parts(tmp_path, sent)) as (agent, seen):
        (agent.root / "spec.md").write_text("the plan")
        (agent.root / "AGENTS.md").write_text("be brief")
        agent.context.pin("spec.md")
        await say(agent, "one")
        assert "the plan" in sent[-1] and "be brief" in sent[-1]
        agent.project.add_permission_rule("deny", "read(*.md)")
        await say(agent, "two")
        assert "the plan" not in sent[-1] and "be brief" not in sent[-1]
        assert any("spec.md is kept from being read by a deny rule" in notice.text for notice in seen.of(Notice))


async def test_a_pin_that_became_a_link_is_not_followed_and_that_is_said(tmp_path: Path) -> None:
    sent: list[str] = []
    (tmp_path / "id_rsa").write_text(SECRET)
    async with running(parts(tmp_path, sent)) as (agent, seen):
        spec = agent.root / "spec.md"
        spec.write_text("the plan")
        agent.context.pin("spec.md")
        await say(agent, "one")
        spec.unlink()
        spec.symlink_to(tmp_path / "id_rsa")
        await say(agent, "two")
        assert SECRET not in "".join(sent) and not reads_outside(agent)
        assert any("spec.md is now reached by a link" in notice.text for notice in seen.of(Notice))


async def test_a_pin_from_outside_counts_as_read_and_one_of_the_project_does_not(tmp_path: Path) -> None:
    sent: list[str] = []
    (tmp_path / "notes.md").write_text("my notes")
    async with running(parts(tmp_path, sent)) as (agent, _):
        (agent.root / "spec.md").write_text("the plan")
        agent.context.pin("spec.md")
        assert not reads_outside(agent)
        agent.context.pin(str(tmp_path / "notes.md"))
        assert reads_outside(agent)
        await say(agent, "one")
        assert "my notes" in sent[-1] and agent.conversation.info.state.read_outside == (str(tmp_path / "notes.md"),)
