"""What waits can be ordered, edited, sent and dropped; what failed waits for the user's word and goes with nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_tui.engine.agent import Agent
from agent_tui.errors import StoreError
from agent_tui.models.events import QueueChanged, TurnEnded
from tests.engine.failing_store import failing
from tests.support.agents import parts_for, running, waiting

pytestmark = [pytest.mark.quick, pytest.mark.versions]

HANGING = """
[[step]]
match = "first"
text = "one two three four"
chunk = 4
hang = true
after = 4
"""
REFUSED = """
[[step]]
match = "bad"
error = { kind = "auth", message = "The key was refused." }
"""


def asked(agent: Agent) -> list[str]:
    return [m.text for m in agent.conversation.path if m.role == "user"]


def named(agent: Agent, text: str) -> str:
    return next(waits.id for waits in agent.waiting.listed if waits.text == text)


async def test_what_waits_is_ordered_edited_and_dropped_and_stays_so_after_a_restart(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "p"
    async with running(parts_for(home, project, script=HANGING)) as (agent, seen):
        session = agent.conversation.info.id
        for text in ("first", "a", "b", "c", "d"):
            agent.turns.submit(text)
        await agent.context.ready()
        assert agent.waiting.move(named(agent, "d"), -1) and agent.waiting.move(named(agent, "a"), 1)
        assert waiting(agent) == ["b", "a", "d", "c"]
        assert not agent.waiting.move(named(agent, "b"), -1) and not agent.waiting.move(named(agent, "c"), 1)
        # Edited: taken into the prompt, and sent again from there.
        behind = named(agent, "b")
        assert agent.turns.take_back(named(agent, "a")) == ("a", [], [])
        agent.turns.submit("A", behind=behind)
        agent.turns.take_back(named(agent, "c"))
        assert waiting(agent) == ["b", "A", "d"]
        agent.turns.interrupt()
        await agent.turns.join()
        assert seen.of(QueueChanged)[-1].paused and asked(agent) == ["first"]
    async with running(parts_for(home, project, resume=session)) as (agent, _):
        assert waiting(agent, "held") == waiting(agent) == ["b", "A", "d"]
        assert agent.turns.send_waiting(named(agent, "d"))
        await agent.turns.join()
        assert asked(agent) == ["first", "d"] and waiting(agent, "held") == ["b", "A"]
        assert agent.turns.send_waiting()
        await agent.turns.join()
        assert asked(agent) == ["first", "d", "b", "A"] and waiting(agent) == []


async def test_one_that_is_queued_goes_into_the_running_turn(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=HANGING)) as (agent, _):
        agent.turns.submit("first")
        await agent.context.ready()
        agent.turns.submit("a")
        agent.turns.submit("b")
        assert agent.turns.send_waiting(named(agent, "b"))
        assert waiting(agent, "steer") == ["b"] and waiting(agent, "queued") == ["a"]
        assert not agent.turns.send_waiting("gone"), "what waits no more is not sent"


async def test_a_failed_request_keeps_the_queue_and_its_message_can_be_sent_again(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=REFUSED)) as (agent, seen):
        agent.turns.submit("bad")
        agent.turns.submit("later")
        await agent.turns.join()
        assert [e.stop_reason for e in seen.of(TurnEnded)] == ["error"]
        (unanswered, queued) = agent.waiting.listed
        assert (unanswered.text, unanswered.kind, unanswered.why) == ("bad", "unanswered", "The key was refused.")
        assert queued.kind == "queued" and seen.of(QueueChanged)[-1].paused
        before = [m.id for m in agent.conversation.path]
        assert agent.turns.send_waiting()
        await agent.turns.join()
        assert [m.id for m in agent.conversation.path][:1] == before, "it is answered where it stands"
        assert [m.role for m in agent.conversation.path] == ["user", "assistant"] * 2
        assert asked(agent) == ["bad", "later"] and waiting(agent) == []


async def test_a_request_that_cannot_be_made_again_still_waits(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=REFUSED)) as (agent, _):
        agent.turns.submit("bad")
        await agent.turns.join()
        with failing(agent.conversation, "set_model", StoreError("The disk is full.")) as failed:
            assert agent.turns.send_waiting()
            await agent.turns.join()
        assert failed == [1] and waiting(agent, "unanswered") == ["bad"]
        assert agent.turns.send_waiting()
        await agent.turns.join()
        assert asked(agent) == ["bad"] and agent.conversation.path[-1].status == "complete"


async def test_what_got_no_answer_is_known_after_a_restart_and_can_be_dropped(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "p"
    async with running(parts_for(home, project, script=REFUSED)) as (agent, _):
        session = agent.conversation.info.id
        agent.turns.submit("bad")
        await agent.turns.join()
    async with running(parts_for(home, project, resume=session)) as (agent, _):
        assert waiting(agent, "unanswered") == ["bad"]
        assert agent.turns.take_back() == ("bad", [], []) and agent.conversation.path == []
        assert waiting(agent) == [] and agent.turns.take_back() is None
        agent.turns.submit("something else")
        await agent.turns.join()
        assert asked(agent) == ["something else"]


async def test_the_next_message_answers_for_the_one_before_it(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=REFUSED)) as (agent, _):
        agent.turns.submit("bad")
        await agent.turns.join()
        agent.turns.submit("go on")
        assert waiting(agent, "unanswered") == []
        await agent.turns.join()
        assert asked(agent) == ["bad", "go on"] and agent.conversation.path[-1].status == "complete"


async def test_all_that_got_no_answer_is_marked_however_often_it_failed(tmp_path: Path) -> None:
    """None goes along silently: each stays marked until an answer came, also after a restart, and can be dropped or
    sent again by itself."""
    home, project = tmp_path / "home", tmp_path / "p"
    async with running(parts_for(home, project, script=REFUSED * 4)) as (agent, _):
        session = agent.conversation.info.id
        await agent.shell("echo kept")
        for count, text in enumerate(("bad 1", "bad 2", "bad 3"), 1):
            agent.turns.submit(text)
            await agent.turns.join()
            assert waiting(agent, "unanswered") == ["bad 1", "bad 2", "bad 3"][:count]
    async with running(parts_for(home, project, resume=session, script=REFUSED)) as (agent, _):
        assert waiting(agent, "unanswered") == ["bad 1", "bad 2", "bad 3"]
        assert agent.turns.take_back(named(agent, "bad 2")) == ("bad 2", [], [])
        assert asked(agent) == ["!echo kept", "bad 1"]
        assert (waiting(agent, "unanswered"), waiting(agent, "failed")) == (["bad 1"], ["bad 3"])
        agent.turns.submit("good")
        await agent.turns.join()
        assert asked(agent) == ["!echo kept", "bad 1", "good"] and waiting(agent) == ["bad 3"]
        assert agent.turns.send_waiting(named(agent, "bad 3"))
        await agent.turns.join()
        assert asked(agent) == ["!echo kept", "bad 1", "good", "bad 3"] and waiting(agent, "failed") == []
        assert waiting(agent, "unanswered") == ["bad 3"], "refused once more"
        agent.turns.submit("bad 3")
        await agent.turns.join()
        assert asked(agent)[-2:] == ["good", "bad 3"] and waiting(agent) == [], "written again it is the same message"


async def test_a_message_that_could_not_be_stored_goes_with_no_other(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, _):
        with failing(agent.store.messages, "add", StoreError("the disk is full")):
            agent.turns.submit("precious")
            await agent.turns.join()
        assert [(w.text, w.kind) for w in agent.waiting.listed] == [("precious", "failed")]
        assert "disk is full" in agent.waiting.listed[0].why.lower()
        agent.turns.submit("other")
        await agent.turns.join()
        assert asked(agent) == ["other"] and waiting(agent, "failed") == ["precious"]
        assert agent.turns.send_waiting(named(agent, "precious"))
        await agent.turns.join()
        assert asked(agent) == ["other", "precious"] and waiting(agent) == []


async def test_a_new_session_has_nothing_unanswered(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=REFUSED)) as (agent, _):
        agent.turns.submit("bad")
        await agent.turns.join()
        assert waiting(agent, "unanswered") == ["bad"]
        await agent.sessions.clear()
        assert waiting(agent) == []
