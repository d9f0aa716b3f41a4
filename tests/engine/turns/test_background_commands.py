"""Commands in the background through the whole agent: who learns what, and when they end."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from agent_tui.config import ContextConfig, PermissionsConfig, Settings
from agent_tui.engine.agent import Agent
from agent_tui.engine.state import AgentParts
from agent_tui.errors import AgentError
from agent_tui.models.events import CompactionEnded, JobsChanged, Notice, PermissionAsked
from agent_tui.models.messages import NEWS, AttachmentPart, Message
from tests.support.agents import Recorder, parts_for, running
from tests.support.scripts import step
from tests.support.waiting import ended
from tests.support.waiting import running as is_running

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")

HOLD = {"command": "cat hold", "background": True}


def made(tmp_path: Path, script: str, **more: object) -> AgentParts:
    project = tmp_path / "project"
    project.mkdir(exist_ok=True)
    for name in ("hold", "go"):
        if not (project / name).exists():
            os.mkfifo(project / name)
    return parts_for(tmp_path / "home", project, script=script, **more)  # type: ignore[arg-type]


async def say(agent: Agent, text: str) -> None:
    agent.turns.submit(text)
    await agent.turns.join()


def told(message: Message) -> str:
    """What a message says of background commands."""
    return "\n".join(p.text or "" for p in message.parts if isinstance(p, AttachmentPart) and p.name == NEWS)


def users(agent: Agent) -> list[Message]:
    return [m for m in agent.conversation.path if m.role == "user"]


def results(agent: Agent) -> list[str]:
    return [m.tool_result.text for m in agent.conversation.path if m.tool_result is not None]


def notices(recorder: Recorder) -> list[str]:
    return [n.text for n in recorder.of(Notice) if n.code == "background"]


def counts(recorder: Recorder) -> list[int]:
    return [event.running for event in recorder.of(JobsChanged)]


async def test_an_end_between_turns_is_told_once_with_the_next_message(tmp_path: Path) -> None:
    script = step(bash={"command": "cat go; exit 3", "background": True}) + step("started") + step("ok") * 2
    async with running(made(tmp_path, script)) as (agent, recorder):
        await say(agent, "start it")
        assert [job.state for job in agent.background.infos()] == ["running"] and counts(recorder) == [1]
        assert users(agent)[0].parts and told(users(agent)[0]) == ""
        (agent.root / "go").write_text("done\n")
        await recorder.until(lambda: counts(recorder)[-1] == 0)
        (line,) = notices(recorder)
        assert line.startswith("b1 ended after") and line.endswith("exit code 3 · cat go; exit 3")
        await say(agent, "and now?")
        await say(agent, "and then?")
        assert "exit code 3" in told(users(agent)[1]) and told(users(agent)[2]) == ""


async def test_an_end_within_a_turn_is_told_with_the_next_result(tmp_path: Path) -> None:
    wait = {"command": "echo x > go; while [ -e running ]; do sleep 0.01; done; echo over"}
    script = (
        step(bash={"command": "touch running; cat go; rm running", "background": True})
        + step(jobs={"id": "b1", "wait": 0.01})
        + step(bash=wait)
        + step(list={"path": "."})
        + step("ok")
    )
    async with running(made(tmp_path, script)) as (agent, _):
        await say(agent, "go")
        text = "\n".join(results(agent)[2:])
        if "background command b1 ended" not in text:  # it ended with the last result: then the next message says so
            await say(agent, "and?")
            text = told(users(agent)[-1])
        assert text.count("b1 ended after") == 1 and "exit code 0" in text


async def test_an_end_the_model_has_seen_is_not_told_again(tmp_path: Path) -> None:
    script = step(bash={"command": "echo hi", "background": True}) + step(jobs={"id": "b1", "wait": 60})
    async with running(made(tmp_path, script + step("ok") * 2)) as (agent, _):
        await say(agent, "go")
        await say(agent, "and?")
        everything = "\n".join([*results(agent), *map(told, users(agent))])
        assert everything.count("b1 ended after") == 1 and "hi\n" in results(agent)[-1]


@pytest.mark.slow
async def test_a_compaction_leaves_them_running_and_the_model_is_told(tmp_path: Path) -> None:
    words = "many words are said here " * 60
    script = step(bash=HOLD) + step(words) + step(words) * 8
    settings = Settings(permissions=PermissionsConfig(mode="auto"), context=ContextConfig(auto_compact=False))
    async with running(made(tmp_path, script, settings=settings)) as (agent, recorder):
        for number in range(6):
            await say(agent, f"{number} {words}")
        await agent.compaction.now()
        assert recorder.of(CompactionEnded)[-1].outcome == "done"
        assert [job.state for job in agent.background.infos()] == ["running"]
        await say(agent, "what runs?")
        await say(agent, "again")
        assert "b1 has been running for" in told(users(agent)[-2]) and "cat hold" in told(users(agent)[-2])
        assert told(users(agent)[-1]) == ""


@pytest.mark.parametrize("way", ["clear", "resume", "close"])
@pytest.mark.quick
async def test_they_end_with_the_session(way: str, tmp_path: Path) -> None:
    script = step("hello") + step(bash=HOLD) + step("ok") * 3
    async with running(made(tmp_path, script)) as (agent, recorder):
        await say(agent, "hello")
        before = agent.conversation.info.id
        await agent.sessions.clear()
        await say(agent, "start it")
        pid = agent.background.infos()[0].pid
        if way == "close":
            await agent.close()
            assert not is_running(pid) and agent.background.left_running() == []
            return
        await (agent.sessions.clear() if way == "clear" else agent.sessions.resume(before))
        assert agent.background.infos() == [] and counts(recorder)[-1] == 0
        assert notices(recorder) == ["Ended with the session: b1 cat hold"]
        await ended(pid)
        await say(agent, "anything?")
        assert told(users(agent)[-1]) == ""


@pytest.mark.slow
async def test_a_session_that_is_resumed_later_learns_that_they_are_gone(tmp_path: Path) -> None:
    script = step(bash=HOLD) + step(bash={"command": "true", "background": True}) + step(jobs={"id": "b2", "wait": 60})
    async with running(made(tmp_path, script + step("ok"))) as (agent, _):
        await say(agent, "start them")
        session = agent.conversation.info.id
    again = made(tmp_path, step("ok") + step(bash=HOLD) + step("ok") * 2, resume=session)
    async with running(again) as (agent, _):
        await say(agent, "what runs?")
        assert told(users(agent)[-1]) == (
            "background command b1 is gone: it ended with the session, unless the user kept it"
        )
        await say(agent, "start another")
        assert told(users(agent)[-1]) == "" and [job.id for job in agent.background.infos()] == ["b3"]
    async with running(made(tmp_path, step("ok"), resume=session)) as (agent, _):
        await say(agent, "and now?")
        assert "b3 is gone" in told(users(agent)[-1]) and "b1" not in told(users(agent)[-1])


async def test_a_session_resumed_in_itself_and_a_copy_keep_theirs(tmp_path: Path) -> None:
    async with running(made(tmp_path, step(bash=HOLD) + step("ok") * 2)) as (agent, _):
        await say(agent, "start it")
        await agent.sessions.resume(agent.conversation.info.id)
        await agent.sessions.fork()
        assert [job.state for job in agent.background.infos()] == ["running"]


async def test_one_that_is_kept_is_named_at_the_end(tmp_path: Path) -> None:
    async with running(made(tmp_path, step(bash=HOLD) + step("ok"))) as (agent, _):
        await say(agent, "start it")
        (job,) = agent.background.infos()
        assert str(job.pid) in agent.background.keep("b1") and job.log in agent.background.keep("b1")
        await agent.sessions.clear()
        assert [j.kept for j in agent.background.infos()] == [True]
        await agent.close()
        try:
            (line,) = agent.background.left_running()
            assert str(job.pid) in line and job.log in line and "cat hold" in line
            assert is_running(job.pid)
        finally:
            os.kill(job.pid, 15)
            await asyncio.to_thread(os.waitpid, job.pid, 0)  # it is this process that let it go and goes on


async def test_the_user_stops_one_and_the_model_learns_who_did(tmp_path: Path) -> None:
    async with running(made(tmp_path, step(bash=HOLD) + step("ok") * 2)) as (agent, _):
        await say(agent, "start it")
        assert "You stopped b1 after" in await agent.background.stop("b1")
        with pytest.raises(AgentError, match="ended already"):
            agent.background.keep("b1")
        with pytest.raises(AgentError, match="nothing in the background called"):
            await agent.background.stop("b7")
        await say(agent, "and?")
        assert "by the user" in told(users(agent)[-1])


@pytest.mark.slow
async def test_it_is_asked_about_like_any_command(tmp_path: Path) -> None:
    settings = Settings(permissions=PermissionsConfig(mode="ask"))
    script = step(bash={"command": "touch made", "background": True}) + step("ok")
    async with running(made(tmp_path, script, settings=settings)) as (agent, recorder):
        agent.turns.submit("go")
        await recorder.until(lambda: recorder.of(PermissionAsked))
        (asked,) = recorder.of(PermissionAsked)
        assert asked.tool == "bash" and asked.summary == "in the background: touch made"
        agent.permissions.answer(asked.request_id, False)
        await agent.turns.join()
        assert agent.background.infos() == [] and not (agent.root / "made").exists()
