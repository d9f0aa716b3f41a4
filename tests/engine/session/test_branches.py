"""Branches of a session: nothing that leaves the conversation is lost, and going to it brings it back as it was."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.commands.sessions import moved_text
from agent_tui.engine.agent import Agent
from agent_tui.errors import AgentError
from agent_tui.models.events import Notice
from agent_tui.models.messages import Message, user_message
from agent_tui.models.session import FilesMoved
from agent_tui.tools.files.snapshots import RestorePlan
from tests.engine.session.branch_child import SCRIPT as BOTH
from tests.support.agents import parts_for, running
from tests.support.cli import REPOSITORY
from tests.support.scripts import step

CHILD = Path(__file__).with_name("branch_child.py")


async def say(agent: Agent, text: str) -> None:
    agent.turns.submit(text)
    await agent.turns.join()
    await agent.context.ready()


def killed_child(folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(REPOSITORY), "PATH": ""}
    return subprocess.run([sys.executable, str(CHILD), str(folder)], capture_output=True, text=True, env=environment)


def users(agent: Agent) -> list[str]:
    return [m.text for m in agent.conversation.path if m.role == "user"]


@pytest.mark.slow
@pytest.mark.parametrize("leaving", ["fork", "clear", "resume"])
async def test_a_session_is_not_left_when_a_turn_began_while_its_subagents_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leaving: str
) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, _):
        await say(agent, "one")
        first = agent.conversation.info.id
        await agent.sessions.clear()
        await say(agent, "two")
        stays = agent.conversation

        async def ended_late() -> None:
            agent.turns.submit("three")

        monkeypatch.setattr(agent.background.jobs, "end_subagents", ended_late)
        with pytest.raises(AgentError, match="while the model works"):
            if leaving == "resume":
                await agent.sessions.resume(first)
            elif leaving == "clear":
                await agent.sessions.clear()
            else:
                await agent.sessions.fork()
        assert agent.conversation is stays
        await agent.turns.join()


@pytest.mark.quick
async def test_a_branch_that_was_left_is_one_step_away_and_counts_as_it_did(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, _):
        for text in ("one", "two", "three"):
            await say(agent, text)
        end, before = agent.conversation.info.head_id, agent.context.usage()
        moved = await agent.branches.rewind(agent.conversation.path[2].id)
        assert (moved.left, moved.came, moved.text) == (4, 0, "two")
        assert moved_text(moved, agent.root) == "4 messages moved to a branch. /rewind back undoes this."
        (branch,) = agent.branches.all()
        assert (branch.end, branch.fork, branch.shared) == (end, agent.conversation.info.head_id, 2)
        assert [m.text for m in branch.own if m.role == "user"] == ["two", "three"]
        assert branch.tokens > 0
        await say(agent, "another two")
        assert agent.conversation.info.messages == agent.store.sessions.get(agent.conversation.info.id).messages == 4
        assert agent.store.messages.tree_size(agent.conversation.info.id) == (8, 1)
        other = agent.conversation.info.head_id

        moved = await agent.branches.back()
        assert (moved.left, moved.came) == (2, 4)
        assert "2 messages moved to a branch, 4 messages restored from the other branch." in moved_text(
            moved, agent.root
        )
        now = agent.context.usage()
        assert (users(agent), agent.conversation.info.messages) == (["one", "two", "three"], 6)
        assert (now.total, now.rows, now.calculation) == (before.total, before.rows, before.calculation)
        assert [b.end for b in agent.branches.all()] == [other]
        await agent.branches.back()
        assert users(agent) == ["one", "another two"]


@pytest.mark.slow
async def test_what_one_branch_compacted_is_sent_in_full_on_another(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, _):
        for number in range(6):
            await say(agent, f"{number}: tell me a lot")
        left, keys = agent.context.usage(), [item.key for item in agent.conversation.view()]
        await agent.branches.rewind(agent.conversation.path[-2].id)
        await say(agent, "the other way")
        await agent.compaction.now()
        await agent.context.ready()
        assert any(record.active for record in agent.conversation.own_records)
        compacted = agent.context.usage()
        assert compacted.total < left.total
        await agent.branches.back()
        assert [item.key for item in agent.conversation.view()] == keys
        assert (agent.context.usage().total, agent.context.usage().rows) == (left.total, left.rows)
        assert agent.conversation.own_records == [] and agent.context.usage().session.compactions == 0
        await agent.compaction.undo()
        await agent.branches.back()
        assert agent.context.usage().total == compacted.total, "an undo takes back what holds here, and nothing did"
        await agent.branches.back()
        await say(agent, "and on")
        past = agent.context.history()
        moments = [past.moment(number) for number in range(1, past.count + 1)]
        assert all(moment.usage is not None and not moment.differs for moment in moments)


async def test_each_branch_has_its_files_and_the_users_own_edits_stay(tmp_path: Path) -> None:
    project = tmp_path / "p"
    script = (
        step(write={"path": "a.py", "content": "a1\n"}, read={"path": "mine.txt"})
        + step("one")
        + step(edit={"path": "a.py", "edits": [{"old_string": "a1", "new_string": "a2"}]})
        + step(write={"path": "new.py", "content": "new\n"})
        + step("two")
        + step(read={"path": "a.py"})
        + step(edit={"path": "a.py", "edits": [{"old_string": "a1", "new_string": "a3"}]})
        + step("another two")
    )
    async with running(parts_for(tmp_path / "home", project, script=script)) as (agent, seen):
        (project / "mine.txt").write_text("mine")
        await say(agent, "first")
        await say(agent, "second")
        second = [m for m in agent.conversation.path if m.role == "user"][1]
        (project / "a.py").chmod(0o755)
        assert {p.name for p in agent.branches.files(second.parent_id).put} == {"a.py", "new.py"}
        moved = await agent.branches.rewind(second.id, restore_files=True)
        assert (project / "a.py").read_text() == "a1\n" and not (project / "new.py").exists()
        assert "Restored 2 files: a.py, new.py. /rewind back files undoes this." in moved_text(moved, agent.root)
        await say(agent, "second, otherwise")
        assert (project / "a.py").read_text() == "a3\n"

        await agent.branches.back(restore_files=True)
        assert (project / "a.py").read_text() == "a2\n"
        assert (project / "new.py").read_text() == "new\n"
        assert (project / "a.py").stat().st_mode & 0o777 == 0o755

        # What the user changes by hand is left alone when a branch is left, named, and there when it is gone to again.
        (project / "new.py").write_text("by hand\n")
        moved = await agent.branches.back(restore_files=True)
        assert (project / "a.py").read_text() == "a3\n"
        assert (project / "new.py").read_text() == "by hand\n"
        assert moved.files is not None and len(moved.files.left) == 1
        assert any("new.py: changed since by something else" in n.text for n in seen.of(Notice))
        assert (project / "mine.txt").read_text() == "mine"
        (project / "new.py").unlink()
        await agent.branches.back(restore_files=True)
        assert (project / "new.py").read_text() == "by hand\n"


async def test_without_the_files_nothing_on_the_disk_changes_and_they_can_come_later(tmp_path: Path) -> None:
    project = tmp_path / "p"
    async with running(parts_for(tmp_path / "home", project, script=BOTH)) as (agent, _):
        await say(agent, "write both")
        await agent.branches.rewind(agent.conversation.path[0].id)
        assert (project / "a").read_text() == "a1"
        (project / "a").unlink()
        await agent.branches.back()
        assert not (project / "a").exists()
        await agent.branches.rewind(agent.conversation.path[0].id)
        await agent.branches.back(restore_files=True)
        assert (project / "a").read_text() == "a1", "what the branch was left with is kept whole"


async def test_an_interrupt_among_the_files_leaves_no_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "p"
    async with running(parts_for(tmp_path / "home", project, script=BOTH)) as (agent, _):
        await say(agent, "write both")
        started, go_on = asyncio.Event(), asyncio.Event()
        restore = agent.toolbox.restore_files

        async def slowly(plan: RestorePlan) -> FilesMoved:
            started.set()
            await go_on.wait()
            return await restore(plan)

        monkeypatch.setattr(agent.toolbox, "restore_files", slowly)
        moving = asyncio.create_task(agent.branches.rewind(agent.conversation.path[0].id, restore_files=True))
        await started.wait()
        assert agent.turns.interrupt()
        go_on.set()
        assert (await moving).left == 5
        assert (agent.conversation.path, list(project.iterdir()), agent.conversation.info.state.going) == ([], [], None)


async def test_what_cannot_be_gone_to_says_so_and_changes_nothing(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, _):
        with pytest.raises(AgentError, match="Nothing to return to"):
            await agent.branches.back()
        await say(agent, "one")
        with pytest.raises(AgentError, match="No such message"):
            await agent.branches.go_to("nowhere")
        with pytest.raises(AgentError, match="Already there"):
            await agent.branches.go_to(agent.conversation.info.head_id)
        session = agent.conversation.info.id
        await agent.branches.rewind(agent.conversation.path[0].id)
        assert agent.conversation.path == [] and agent.conversation.info.messages == 0
        assert agent.store.sessions.newest(agent.root) is not None, "the session is not empty"
    async with running(parts_for(tmp_path / "home", tmp_path / "p", resume=session)) as (agent, _):
        await agent.branches.back()
        assert users(agent) == ["one"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
async def test_killed_among_the_files_it_is_where_it_was_and_can_go_on(tmp_path: Path) -> None:
    project = tmp_path / "p"
    killed = await asyncio.to_thread(killed_child, tmp_path)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert sorted(p.name for p in project.iterdir()) == ["b"], "one of the two was put back"
    session, end = (tmp_path / "session").read_text(), (tmp_path / "end").read_text()
    async with running(parts_for(tmp_path / "home", project, resume=session)) as (agent, seen):
        assert agent.conversation.info.head_id == end and users(agent) == ["write both"]
        assert any(n.code == "branch_cut_off" for n in seen.of(Notice))
        await agent.branches.rewind(agent.conversation.path[0].id, restore_files=True)
        assert list(project.iterdir()) == []
        await agent.branches.back(restore_files=True)
        assert [(project / name).read_text() for name in "ab"] == ["a1", "b1"]
    async with running(parts_for(tmp_path / "home", project, resume=session)) as (_, seen):
        assert not any(n.code == "branch_cut_off" for n in seen.of(Notice))


async def test_a_fork_spends_its_own_money_and_keeps_the_form_of_its_answers(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, _):
        await say(agent, "one")
        steps = agent.conversation.steps
        for number, step_ in enumerate(steps):
            # A call that has ended does not change: the sums follow those that end.
            steps[number] = replace(step_, cost_usd=0.5)
            agent.conversation.save_step(steps[number])
        agent.conversation.save()
        spent = next(line.spent for line in agent.budget.lines() if line.name == "session")
        assert spent.known > 0
        anchor = agent.context.usage().anchor_step
        agent.runtime.expect({"type": "object"}, due=True)
        await agent.sessions.fork()
        await agent.context.ready()
        assert next(line.spent for line in agent.budget.lines() if line.name == "session").known == 0
        assert agent.context.usage().session.cost.known == 0
        assert agent.context.usage().anchor_step == anchor is not None
        assert (agent.runtime.output_schema, agent.runtime.output_due) == ({"type": "object"}, True)
        exported = agent.store.export(agent.conversation.info.id)
        assert (exported["cost_known_usd"], len(exported["steps"])) == (0, len(agent.conversation.steps))
        session = agent.conversation.info.id
    async with running(parts_for(tmp_path / "home", tmp_path / "p", resume=session)) as (agent, _):
        assert next(line.spent for line in agent.budget.lines() if line.name == "session").known == 0


@pytest.mark.slow
async def test_fifty_branches_of_a_long_session_are_all_there(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, _):
        await say(agent, "begin")
        store, session = agent.store, agent.conversation.info.id
        trunk = [m.id for m in agent.conversation.path]
        with store.transaction():
            for number in range(1_000):
                message = user_message(f"message {number}")
                message.parent_id = trunk[-1]
                store.messages.add(session, message)
                trunk.append(message.id)
            for number in range(50):
                message = user_message(f"branch {number}")
                message.parent_id = trunk[number * 20]
                store.messages.add(session, message, head=False)
                inner = Message(f"inner{number}", "assistant", [], parent_id=message.id)
                store.messages.add(session, inner, head=False)
    async with running(parts_for(tmp_path / "home", tmp_path / "p", resume=session)) as (agent, _):
        found = agent.branches.all()
        assert [b.end for b in found] == [f"inner{number}" for number in range(50)]
        assert [b.fork for b in found] == [trunk[number * 20] for number in range(50)]
        await agent.branches.go_to("inner7")
        assert agent.conversation.path[-1].id == "inner7" and len(agent.branches.all()) == 50
