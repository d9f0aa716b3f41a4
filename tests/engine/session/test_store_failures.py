"""A store that cannot be written while a turn runs: nothing is silent, nothing is lost, no gap stays behind."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent_tui.engine import conversation as storing
from agent_tui.engine.agent import Agent
from agent_tui.engine.turns import step
from agent_tui.errors import StoreError, StoreLockedError
from agent_tui.models.events import (
    CompactionEnded,
    CompactionStarted,
    MessageAdded,
    PartDelta,
    QueueChanged,
    StepEnded,
    TurnEnded,
)
from agent_tui.models.messages import AttachmentPart, user_message
from agent_tui.store.backup import backups_of
from agent_tui.store.store import Store
from tests.engine.failing_store import failing
from tests.support.agents import parts_for, running, waiting

pytestmark = pytest.mark.quick

FULL = "the disk is full, this was not saved: free some space, then try again (sessions.db)"
LOCKED = "the session database is locked by another program"
HANGING = """
[[step]]
text = "one two three four"
chunk = 4
hang = true
after = 10
[[step]]
text = "again"
"""


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing, "WAITS", (0.0, 0.0, 0.0))


def consistent(agent: Agent) -> None:
    """What is stored is what the agent has, and nothing is left in the middle."""
    held, id = agent.conversation, agent.conversation.info.id
    stored = agent.store.messages.path(id, agent.store.sessions.get(id).head_id)
    assert [(m.id, m.role, m.status, m.text) for m in stored] == [(m.id, m.role, m.status, m.text) for m in held.path]
    assert all(m.status != "streaming" for m in stored)
    steps = agent.store.steps.all(id)
    assert [(s.id, s.status, s.message_id) for s in steps] == [(s.id, s.status, s.message_id) for s in held.steps]
    assert all(s.status != "running" for s in steps)


async def test_a_message_that_cannot_be_stored_waits_again_and_goes_out_next(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, seen):
        picture = AttachmentPart("a.txt", "text/plain", text="attached")
        with failing(agent.store.messages, "add", StoreError(FULL)):
            agent.turns.submit("precious", [picture])
            await agent.turns.join()
        failure = seen.last_end.failure
        assert failure is not None
        assert failure.kind == "store"
        assert failure.message.startswith("The disk is full") and "Your text is kept" in failure.message
        assert agent.conversation.path == []
        assert waiting(agent, "failed") == ["precious"]
        requeued = max(i for i, e in enumerate(seen.events) if isinstance(e, QueueChanged) and e.waiting)
        assert requeued < seen.events.index(seen.last_end)
        assert agent.turns.take_back() == ("precious", [picture], [])
        agent.turns.submit("precious")
        await agent.turns.join()
        assert [m.role for m in agent.conversation.path] == ["user", "assistant"]
        consistent(agent)


async def test_what_waits_to_be_stored_is_stored_together_or_not_at_all(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, _):
        held, stored = agent.conversation, agent.store.waiting
        for text in ("one", "two"):
            held.keep_waiting(user_message(text))
        with failing(stored, "add", StoreError(FULL), when=lambda _, message: message.text == "two"):
            held.save_if_possible()
        assert held.unsaved and stored.all(held.info.id) == []
        held.save()
        assert not held.unsaved and [message.text for message in stored.all(held.info.id)] == ["one", "two"]


async def test_steering_that_cannot_be_stored_is_not_lost(tmp_path: Path) -> None:
    script = """
    [[step]]
    tool_calls = [{ name = "list", arguments = { path = "." } }]
    [[step]]
    text = "done"
    """
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=script)) as (agent, seen):

        def steer(event: object) -> None:
            if isinstance(event, MessageAdded) and event.message.role == "tool":
                agent.turns.steer("first")
                agent.turns.steer("second")

        agent.subscribe(steer)
        with failing(agent.store.messages, "add", StoreError(FULL), when=lambda _, m: m.text == "first"):
            agent.turns.submit("go")
            await agent.turns.join()
        assert seen.last_end.failure is not None and seen.last_end.failure.kind == "store"
        assert waiting(agent, "failed") == ["first", "second"]


async def test_a_disk_that_fills_up_at_the_end_of_an_answer_ends_the_turn_visibly(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, seen):
        with failing(agent.store.messages, "write", StoreError(FULL), when=lambda _, m, *__: m.status == "complete"):
            agent.turns.submit("hello")
            await agent.turns.join()
        assert seen.last_end.failure is not None and seen.last_end.failure.kind == "store"
        assert seen.of(StepEnded)[-1].message.status == "complete"
        assert agent.conversation.path[-1].text
        agent.turns.submit("go on")
        await agent.turns.join()
        assert seen.last_end.stop_reason == "end"
        consistent(agent)


async def test_an_answer_whose_beginning_cannot_be_stored_ends_with_that_failure(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, seen):
        with failing(agent.store.messages, "add", StoreError(FULL), when=lambda _, m: m.role == "assistant"):
            agent.turns.submit("hello")
            await agent.turns.join()
        ended = seen.of(StepEnded)[-1]
        assert ended.step.failure is not None and ended.step.failure.kind == "store"
        assert ended.message.status == "failed" and ended.message.note
        assert seen.last_end.failure == ended.step.failure
        agent.turns.submit("go on")
        await agent.turns.join()
        consistent(agent)


async def test_a_flush_of_the_timer_that_fails_ends_a_silent_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step, "FLUSH_SECONDS", 0.02)
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=HANGING)) as (agent, seen):
        with failing(agent.store.messages, "write", StoreError(FULL)):
            agent.turns.submit("hello")
            await agent.turns.join()
        assert seen.last_end.stop_reason == "error"
        assert seen.last_end.failure is not None and seen.last_end.failure.kind == "store"
        assert agent.conversation.path[-1].text.startswith("one")
        agent.turns.submit("go on")
        await agent.turns.join()
        assert seen.of(TurnEnded)[-1] == TurnEnded("end")
        consistent(agent)


async def test_a_lock_only_postpones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step, "FLUSH_SECONDS", 0.0)
    script = """
    [[step]]
    tool_calls = [{ name = "list", arguments = { path = "." } }]
    [[step]]
    text = "a longer answer in many pieces"
    chunk = 2
    """
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=script)) as (agent, seen):
        with (
            failing(agent.store.messages, "add", StoreLockedError(LOCKED), 3) as added,
            failing(agent.store.messages, "write", StoreLockedError(LOCKED), 3) as written,
            failing(agent.store.steps, "add", StoreLockedError(LOCKED), 3) as steps,
        ):
            agent.turns.submit("hello")
            await agent.turns.join()
        assert (added, written, steps) == ([3], [3], [3])
        assert seen.last_end == TurnEnded("end")
        assert [m.role for m in agent.conversation.path] == ["user", "assistant", "tool", "assistant"]
        consistent(agent)


async def test_an_interrupted_answer_that_could_not_be_stored_is_stored_afterwards(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=HANGING)) as (agent, seen):
        arrived = asyncio.Event()
        agent.subscribe(lambda e: arrived.set() if isinstance(e, PartDelta) and e.delta.text else None)
        with failing(agent.store.messages, "write", StoreLockedError(LOCKED), 2):
            agent.turns.submit("hello")
            await arrived.wait()
            agent.turns.interrupt()
            await agent.turns.join()
            assert seen.last_end.stop_reason == "interrupted"
            await agent.events.settled()
        assert not agent.conversation.unsaved
        consistent(agent)


async def test_what_is_left_is_stored_when_the_agent_closes(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "p"
    async with running(parts_for(home, project)) as (agent, _):
        with failing(agent.store.messages, "write", StoreError(FULL)):
            agent.turns.submit("hello")
            await agent.turns.join()
        session, text = agent.conversation.info.id, agent.conversation.path[-1].text
    with Store.open(home / "data" / "sessions.db") as store:
        messages = [*store.messages.all(session).values()]
        assert [(m.role, m.status) for m in messages] == [("user", "complete"), ("assistant", "complete")]
        assert messages[-1].text == text


async def test_a_tool_result_that_could_not_be_stored_is_kept_and_the_turn_ends(tmp_path: Path) -> None:
    script = """
    [[step]]
    tool_calls = [{ name = "list", arguments = { path = "." } }]
    [[step]]
    text = "done"
    """
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=script)) as (agent, seen):
        with failing(agent.store.messages, "add", StoreError(FULL), when=lambda _, m: m.role == "tool"):
            agent.turns.submit("go")
            await agent.turns.join()
        assert seen.last_end.failure is not None and seen.last_end.failure.kind == "store"
        assert [m.role for m in agent.conversation.path] == ["user", "assistant", "tool"]
        agent.turns.submit("go on")
        await agent.turns.join()
        consistent(agent)


async def test_a_compaction_that_cannot_be_stored_changes_nothing(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, _):
        for n in range(4):
            agent.turns.submit(f"question {n} " + "words " * 3000)
            await agent.turns.join()
        before, records = agent.context.usage().total, list(agent.conversation.own_records)
        with (
            failing(agent.store.compactions, "commit", StoreError(FULL)) as failed,
            pytest.raises(StoreError, match="disk is full"),
        ):
            await agent.compaction.now()
        assert failed == [1]
        assert agent.conversation.own_records == records
        assert agent.context.usage().total == before
        assert not agent.turns.busy


async def test_a_compaction_whose_call_cannot_be_stored_is_not_begun_and_says_so(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, seen):
        for n in range(4):  # So little that no summary was prepared, which would need no call.
            agent.turns.submit(f"question {n} " + "words " * 1500)
            await agent.turns.join()
        with (
            failing(agent.store.steps, "add", StoreError(FULL)) as failed,
            pytest.raises(StoreError, match="disk is full"),
        ):
            await agent.compaction.now()
        assert failed == [1]
        assert len(seen.of(CompactionStarted)) == len(seen.of(CompactionEnded)) > 0
        assert seen.of(CompactionEnded)[-1].outcome == "failed" and not agent.turns.busy
        await agent.compaction.now()
        assert seen.of(CompactionEnded)[-1].outcome == "done"


async def test_what_is_lost_at_the_end_is_said(tmp_path: Path) -> None:
    agent = Agent(parts_for(tmp_path / "home", tmp_path / "p"))
    await agent.start()
    agent.turns.submit("kept")
    await agent.turns.join()
    with failing(agent.store.sessions, "save", StoreError(FULL)):
        agent.conversation.info.title = "never stored"
        with pytest.raises(StoreError):
            agent.conversation.save_info()
        with pytest.raises(StoreError, match="is lost: the disk is full"):
            await agent.close()


async def test_a_damaged_session_is_refused_with_a_line_and_the_chat_goes_on(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, _):
        agent.turns.submit("first")
        await agent.turns.join()
        session, question = agent.conversation.info.id, agent.conversation.path[0].id
        spoil = "UPDATE part SET data = '{' WHERE message = (SELECT n FROM message WHERE id = ?)"
        agent.store.database.run(spoil, (question,))
        await agent.sessions.clear()
        with pytest.raises(StoreError, match="agent-tui sessions repair"):
            await agent.sessions.resume(session)
        assert agent.conversation.info.id != session
        agent.turns.submit("second")
        await agent.turns.join()
        assert [m.text for m in agent.conversation.path if m.role == "user"] == ["second"]
        assert session in [info.id for info in agent.store.sessions.all()]


async def test_the_backup_of_the_day_says_what_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_tui.engine.agent.BACKUP_AFTER", 0.0)
    parts = parts_for(tmp_path / "home", tmp_path / "p")
    async with running(parts) as (agent, _):
        while not backups_of(parts.store.file):
            await asyncio.sleep(0)
            await agent.events.settled()
        (made,) = backups_of(parts.store.file)
    made.unlink()
    monkeypatch.setattr("agent_tui.store.backup.file_problems", lambda path: ["page 7 is never used"])
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, told):
        while "page 7" not in str(told.events):
            await asyncio.sleep(0)
            await agent.events.settled()
    assert backups_of(parts.store.file) == []
