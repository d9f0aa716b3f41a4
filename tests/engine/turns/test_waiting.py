"""Messages that wait are stored when they are queued: shown again after a crash, sent only when the user says so."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from agent_tui.errors import StoreError, StoreLockedError
from agent_tui.models.events import MessageAdded, Notice, QueueChanged, TurnEnded
from agent_tui.models.messages import AttachmentPart
from agent_tui.store.store import Store
from tests.engine.failing_store import failing
from tests.support.agents import Recorder, parts_for, running, waiting
from tests.support.terminal import in_terminal
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.quick

HANGING = """
[[step]]
match = "first"
text = "one two three four"
chunk = 4
hang = true
after = 4
"""


def stored(store: Store, session: str) -> list[str]:
    return [message.text for message in store.waiting.all(session)]


def told(seen: Recorder) -> list[str]:
    return [n.text for n in seen.of(Notice) if n.code == "waiting"]


async def test_what_is_queued_is_stored_and_leaves_when_it_is_sent_or_taken_back(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=HANGING)) as (agent, _):
        agent.turns.submit("first")
        await agent.context.ready()
        assert stored(agent.store, agent.conversation.info.id) == []
        picture = AttachmentPart("a.png", "image/png", data="aGk=")
        agent.turns.submit("second", [picture])
        agent.turns.steer("third")
        agent.turns.submit("fourth")
        assert stored(agent.store, agent.conversation.info.id) == ["second", "third", "fourth"]
        assert agent.turns.take_back() == ("fourth", [], [])
        assert stored(agent.store, agent.conversation.info.id) == ["second", "third"]
        kept = agent.store.waiting.all(agent.conversation.info.id)[0]
        assert [p for p in kept.parts if isinstance(p, AttachmentPart)] == [picture]
        agent.turns.interrupt()
        await agent.turns.join()
        assert agent.turns.send_waiting()
        await agent.turns.join()
        assert sorted(m.text for m in agent.conversation.path if m.role == "user") == ["first", "second", "third"]
        assert stored(agent.store, agent.conversation.info.id) == []
        assert not agent.turns.send_waiting()


async def test_enter_between_the_interrupt_and_the_end_of_its_turn_is_not_lost(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=HANGING)) as (agent, seen):
        agent.turns.submit("first")
        await agent.context.ready()
        agent.turns.submit("second")
        assert not agent.turns.send_waiting(), "a turn that runs is waited for"
        agent.turns.interrupt()
        assert agent.turns.busy and agent.turns.send_waiting()
        await agent.turns.join()
        assert [e.stop_reason for e in seen.of(TurnEnded)] == ["interrupted", "end"]
        assert [m.text for m in agent.conversation.path if m.role == "user"] == ["first", "second"]


async def test_enter_as_soon_as_the_end_is_seen_is_not_lost(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=HANGING)) as (agent, _):
        sent: list[bool] = []
        agent.subscribe(lambda event: sent.append(agent.turns.send_waiting()) if isinstance(event, TurnEnded) else None)
        agent.turns.submit("first")
        await agent.context.ready()
        agent.turns.submit("second")
        agent.turns.interrupt()
        await agent.turns.join()
        assert sent == [True, False]
        assert [m.text for m in agent.conversation.path if m.role == "user"] == ["first", "second"]


async def test_what_is_typed_after_an_interrupt_goes_out_when_its_turn_has_ended(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=HANGING)) as (agent, seen):
        agent.turns.submit("first")
        await agent.context.ready()
        agent.turns.interrupt()
        agent.turns.submit("this instead")
        await agent.turns.join()
        assert [m.text for m in agent.conversation.path if m.role == "user"] == ["first", "this instead"]
        assert [e.stop_reason for e in seen.of(TurnEnded)] == ["interrupted", "end"]


async def test_after_a_restart_they_are_shown_and_never_sent_by_themselves(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "p"
    async with running(parts_for(home, project, script=HANGING)) as (agent, _):
        session = agent.conversation.info.id
        agent.turns.submit("first")
        agent.turns.submit("second")
        agent.turns.submit("third")
    async with running(parts_for(home, project, resume=session)) as (agent, seen):
        assert waiting(agent) == waiting(agent, "held") == ["second", "third"]
        assert [w.text for w in seen.of(QueueChanged)[-1].waiting] == ["second", "third"]
        assert len(told(seen)) == 1 and "2 messages wait" in told(seen)[0]
        agent.turns.submit("something else")
        await agent.turns.join()
        assert [m.text for m in agent.conversation.path if m.role == "user"] == ["first", "something else"]
        assert waiting(agent, "held") == ["second", "third"]
        assert agent.turns.take_back() == ("third", [], [])
        assert stored(agent.store, session) == ["second"]
        assert agent.turns.send_waiting()
        await agent.turns.join()
        assert [m.text for m in agent.conversation.path if m.role == "user"] == ["first", "something else", "second"]
    async with running(parts_for(home, project, resume=session)) as (agent, seen):
        assert waiting(agent) == [] and told(seen) == []


async def test_what_waits_belongs_to_its_session(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=HANGING)) as (agent, seen):
        old = agent.conversation.info.id
        agent.turns.submit("first")
        agent.turns.submit("for the old one")
        await agent.context.ready()
        agent.turns.interrupt()
        await agent.turns.join()
        await agent.sessions.clear()
        # A new session of the same user at the same moment: nothing typed disappears from the screen.
        assert waiting(agent, "queued") == ["for the old one"]
        new = agent.conversation.info.id
        assert stored(agent.store, old) == [] and stored(agent.store, new) == ["for the old one"]
        await agent.sessions.resume(old)
        assert waiting(agent) == []
        await agent.sessions.resume(new)
        assert waiting(agent) == waiting(agent, "held") == ["for the old one"]
        assert "1 message waits" in told(seen)[-1]
        await agent.sessions.resume(new)
        assert waiting(agent, "held") == ["for the old one"]


async def test_a_session_in_which_something_waits_is_listed_and_not_removed(tmp_path: Path) -> None:
    parts = parts_for(tmp_path / "home", tmp_path / "p", script=HANGING)
    async with running(parts) as (agent, seen):
        running_work = asyncio.create_task(agent.shell("sleep 60"))
        await seen.until(lambda: agent.turns.busy)
        agent.turns.submit("typed while something else ran")
        session = agent.conversation.info.id
        assert stored(agent.store, session) == ["typed while something else ran"]
        assert [s.id for s in agent.store.sessions.all(empty=False)] == [session]
        assert agent.turns.interrupt()
        await running_work
        await agent.turns.join()


async def test_a_queue_that_cannot_be_stored_now_is_stored_later_or_said_to_be_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=HANGING)) as (agent, seen):
        agent.turns.submit("first")
        await agent.context.ready()
        written, write = asyncio.Event(), agent.store.waiting.add

        def tell(*values: Any) -> None:
            write(*values)
            written.set()

        monkeypatch.setattr(agent.store.waiting, "add", tell)
        with failing(agent.store.waiting, "add", StoreLockedError("locked"), times=2) as failed:
            agent.turns.submit("second")
            async with asyncio.timeout(PATIENCE):
                await written.wait()
            assert failed == [2] and not agent.conversation.unsaved
        assert stored(agent.store, agent.conversation.info.id) == ["second"]
        with failing(agent.store.waiting, "add", StoreError("the disk is full")):
            agent.turns.submit("third")
            await seen.until(lambda: any(n.code == "store" for n in seen.of(Notice)))
        assert waiting(agent, "queued") == ["second", "third"]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo terminal")
async def test_kill_nine_loses_no_queued_message(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "p"
    project.mkdir()
    await asyncio.to_thread(_live_and_be_killed, home, project)
    parts = parts_for(home, project, continue_newest=True)
    async with running(parts) as (agent, recorder):
        assert waiting(agent, "held") == ["queued one", "queued two"]
        assert [m.text for m in agent.conversation.path if m.role == "user"] == ["the first"]
        assert not recorder.of(MessageAdded)


def _live_and_be_killed(home: Path, project: Path) -> None:
    script = project.parent / "script.toml"
    script.write_text(HANGING)
    with in_terminal(project, {"AGENT_TUI_HOME": str(home), "AGENT_TUI_DEMO_SCRIPT": str(script)}) as terminal:
        terminal.wait_for(b"DEMO")
        terminal.type(b"the first\r")
        terminal.wait_for(b"one")
        path = next(home.rglob("*.db"))
        store = Store.open(path)
        (session,) = [s.id for s in store.sessions.all(empty=False)]
        waiting: list[str] = []
        # What stands on the screen comes in pieces; that a message is kept is what matters here.
        for text in ("queued one", "queued two"):
            waiting.append(text)
            terminal.type(text.encode() + b"\r")
            terminal.wait_until(lambda: stored(store, session) == waiting, path.parent)
        store.close()
