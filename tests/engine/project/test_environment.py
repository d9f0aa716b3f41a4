"""The environment a session is told of: the same bytes for its whole life, and what changes is told with a message."""

from __future__ import annotations

from datetime import date
from functools import partial
from pathlib import Path

import pytest

from agent_tui.context.prompt import GitFacts
from agent_tui.engine import extensions as workspace_module
from agent_tui.engine.agent import Agent
from agent_tui.engine.extensions import Workspace, update_text
from agent_tui.models.messages import CONTEXT_NOTE, TOLD_MODE, AttachmentPart
from agent_tui.models.requests import SystemBlock
from agent_tui.models.rows import FIXED_ROWS, RowId
from agent_tui.tools.files.access import FileAccess
from tests.support.agents import parts_for, running

pytestmark = pytest.mark.quick


@pytest.fixture
def git(monkeypatch: pytest.MonkeyPatch) -> list[GitFacts]:
    """What git says, the last entry of it."""
    said = [GitFacts("main", "", "abc first")]
    monkeypatch.setattr(workspace_module, "git_facts", lambda root: said[-1])
    return said


def sent_blocks(agent: Agent) -> tuple[str, list[SystemBlock]]:
    runtime = agent.runtime
    assert runtime is not None
    return runtime.request_prefix.fingerprint, runtime.request_prefix.system


def updates(agent: Agent) -> list[str]:
    parts = [
        p
        for m in agent.conversation.path
        for p in m.parts
        if isinstance(p, AttachmentPart) and p.name not in (TOLD_MODE, CONTEXT_NOTE)
    ]
    assert all(p.name == "environment update" for p in parts)
    return [p.text or "" for p in parts]


def at(project: Path, day: int) -> Workspace:
    return Workspace(FileAccess([project]), project, today=lambda: date(2026, 3, day))


def test_blocks_are_sent_in_the_order_of_their_rows_whoever_brings_them(tmp_path: Path) -> None:
    rows = sorted(FIXED_ROWS, key=lambda row: FIXED_ROWS[row].sent)
    assert (rows[0], rows[-1]) == ("tools", "documents"), "these two are sent apart from the blocks"
    behind: tuple[RowId, ...] = ("servers", "skills", "memory")
    brought = [[SystemBlock(row, text) for text in ("first", "second")] for row in behind]
    workspace = Workspace(
        FileAccess([tmp_path]), tmp_path, brought=[partial(list, some) for some in brought], appended=["more"]
    )
    blocks = workspace.blocks()
    assert list(dict.fromkeys(block.row for block in blocks)) == rows[1:-1]
    assert [block.group for block in blocks[:3]] == ["system", "appended", "environment"]
    assert [block.text for block in blocks[3:]] == ["first", "second"] * 3, "those of a row stay as they came"


async def test_the_prompt_stays_the_same_bytes_and_changes_are_told_once(tmp_path: Path, git: list[GitFacts]) -> None:
    home, project = tmp_path / "home", tmp_path / "p"
    async with running(parts_for(home, project, workspace=at(project, 1))) as (agent, _):
        agent.turns.submit("hello")
        await agent.turns.join()
        before, session = sent_blocks(agent), agent.conversation.info.id
        assert "2026-03-01" in before[1][1].text and updates(agent) == []
    git.append(GitFacts("feature", " M app.py\n?? new.py", "abc first"))
    async with running(parts_for(home, project, workspace=at(project, 2), resume=session)) as (agent, _):
        assert agent.project.branch == "feature"
        assert sent_blocks(agent) == before
        agent.turns.submit("and now?")
        await agent.turns.join()
        agent.turns.submit("again")
        await agent.turns.join()
        assert sent_blocks(agent) == before
        (update,) = updates(agent)
        assert update.splitlines()[1:] == [
            "- date: 2026-03-02",
            "- git branch: feature",
            "- git status:",
            " M app.py",
            "?? new.py",
        ]
        assert agent.conversation.path[2].text == "and now?"
        assert agent.conversation.steps[-1].usage is not None and agent.conversation.steps[-1].usage.cache_read
        assert agent.context.usage().calculation.fixed_delta == 0
    async with running(parts_for(home, project, workspace=at(project, 2), resume=session)) as (agent, _):
        agent.turns.submit("nothing new")
        await agent.turns.join()
        assert len(updates(agent)) == 1
    git.append(GitFacts("main", "", "abc first"))
    async with running(parts_for(home, project, workspace=at(project, 1), resume=session)) as (agent, _):
        agent.turns.submit("back again")
        await agent.turns.join()
        assert updates(agent)[1:] == ["The environment is again as at the start of the session."]
        agent.turns.submit("still")
        await agent.turns.join()
        assert len(updates(agent)) == 2


async def test_an_update_that_was_compacted_away_is_told_again(tmp_path: Path, git: list[GitFacts]) -> None:
    home, project = tmp_path / "home", tmp_path / "p"
    async with running(parts_for(home, project)) as (agent, _):
        agent.turns.submit("hello")
        await agent.turns.join()
        git.append(GitFacts("other"))
        await agent.sessions.resume(agent.conversation.info.id)
        for number in range(4):
            agent.turns.submit(f"{number}: tell me a lot")
            await agent.turns.join()
        assert len(updates(agent)) == 1
        await agent.compaction.now()
        assert agent.conversation.own_records
        agent.turns.submit("next")
        await agent.turns.join()
        assert len(updates(agent)) == 2


async def test_a_new_session_is_told_of_the_environment_as_it_is(tmp_path: Path, git: list[GitFacts]) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, _):
        agent.turns.submit("hello")
        await agent.turns.join()
        git.append(GitFacts("other"))
        await agent.sessions.clear()
        agent.turns.submit("hello")
        await agent.turns.join()
        assert updates(agent) == []
        assert "git branch: other" in sent_blocks(agent)[1][1].text


def test_an_update_lists_only_what_is_different() -> None:
    then = "Environment:\n- date: 1\n- git status:\n M a\n- newest commits:\nabc"
    assert update_text(then, then) == ""
    assert update_text(then, then.replace(" M a", " M b")).splitlines()[1:] == ["- git status:", " M b"]
