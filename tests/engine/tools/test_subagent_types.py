"""Subagents of a type, in the background, and within limits: through the whole agent."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_tui.config import ModelConfig, PermissionMode, PermissionsConfig, Settings
from agent_tui.engine.agent import Agent
from agent_tui.engine.extensions import Extensions
from agent_tui.engine.state import AgentParts
from agent_tui.errors import AgentError
from agent_tui.models.events import JobInfo, Notice, PermissionAnswered, PermissionAsked, StepStarted, TurnEnded
from agent_tui.models.messages import NEWS, AttachmentPart, Message, ToolResultPart
from agent_tui.models.steps import Step
from tests.support.agents import Recorder, parts_for, results, running, say
from tests.support.scripts import step
from tests.support.tool_context import fill_disk

DEMO = ModelConfig(model="demo", prices={"input": 1_000.0, "output": 1_000.0})


def agent_parts(
    tmp_path: Path,
    script: str,
    mode: PermissionMode = "auto",
    types: dict[str, str] | None = None,
    resume: str | None = None,
    **limits: Any,
) -> AgentParts:
    settings = Settings(permissions=PermissionsConfig(mode=mode), models={"demo": DEMO, "fast": DEMO})
    settings.default_model = "demo"
    for name, value in limits.items():
        setattr(settings.agent, name, value)
    parts = parts_for(tmp_path / "home", tmp_path / "project", script=script, settings=settings, resume=resume)
    for name, text in (types or {}).items():
        path = parts.paths.config / "agents" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    parts.extensions = Extensions(
        settings, parts.paths, parts.permissions.files, parts.cwd, parts.trust, home=tmp_path / "nobody"
    )
    return parts


def scripted(match: str, text: str = "", more: str = "", **calls: Any) -> str:
    """An answer to whoever was asked what matches."""
    made = step(text, **calls).split("\n", 1)[1]
    return f"[[step]]\nmatch = {json.dumps(match)}\n{more}\n{made}"


def child_of(agent: Agent) -> tuple[list[Message], list[Step]]:
    store, own = agent.store, agent.conversation.info.id
    (child,) = [s for s in store.sessions.all(subagents=True) if s.parent_session == own]
    return store.messages.path(child.id, child.head_id), store.steps.all(child.id)


def job(agent: Agent) -> JobInfo:
    (info,) = agent.background.infos()
    return info


def news(message: Message) -> str:
    return "\n".join(p.text or "" for p in message.parts if isinstance(p, AttachmentPart) and p.name == NEWS)


EXPLORER = "---\nname: explorer\ndescription: Finds things\ntools: Read, Grep\n{more}---\nYou find and never change."


@pytest.mark.slow
async def test_a_type_has_its_prompt_and_only_its_tools(tmp_path: Path) -> None:
    script = (
        scripted("^go", subagent={"description": "find", "prompt": "Find it", "subagent_type": "explorer"})
        + scripted("^Find it", bash={"command": "touch made"}, mcp_call={"tool": "x"}, read={"path": "a.py"})
        + scripted("^Find it", "It is in a.py.")
        + scripted("^go", "Done.")
    )
    parts = agent_parts(tmp_path, script, types={"explorer": EXPLORER.format(more="")})
    (parts.root / "a.py").write_text("x = 1\n")
    async with running(parts) as (agent, _):
        await say(agent, "go")
        assert results(agent)[0].text == "It is in a.py."
        path, steps = child_of(agent)
        answers = [m.tool_result for m in path if m.tool_result is not None]
        assert ["no tool named" in r.text for r in answers] == [True, True, False]
        assert not (parts.root / "made").exists()
        labels = [part.label for part in steps[0].fixed]
        assert {p.label for p in steps[0].fixed if p.row == "tools"} == {"read", "grep"}
        assert "Subagent type explorer" in labels and "System prompt" in labels
        turn = next(s for s in agent.conversation.steps if s.kind == "turn")
        tool = next(p for p in turn.fixed if p.label == "subagent")
        text = agent.context.part_text(tool.fingerprint)
        assert text is not None and "explorer: Finds things" in text, "what the model is told of them counts in tools"
        made = [s.agent for s in agent.conversation.steps if s.kind == "subagent"]
        assert [(a.type, a.title) for a in made if a is not None] == [("explorer", "find")] * 2


async def test_a_type_that_is_not_there_is_said_with_those_that_are(tmp_path: Path) -> None:
    script = step(subagent={"description": "x", "prompt": "y", "type": "nobody"}) + step("Well.")
    async with running(agent_parts(tmp_path, script, types={"explorer": EXPLORER.format(more="")})) as (agent, _):
        await say(agent, "go")
        (result,) = results(agent)
        assert result.is_error and "'nobody'" in result.text and "explorer" in result.text


@pytest.mark.forms(2)
@pytest.mark.parametrize(
    ("model", "used", "told"), [("fast", "fast", 0), ("sonnet", "demo", 1), ("inherit", "demo", 0)]
)
async def test_the_model_of_a_type_or_the_session_s_where_it_is_not_found(
    tmp_path: Path, model: str, used: str, told: int
) -> None:
    call = {"description": "find", "prompt": "Find it", "type": "explorer"}
    script = scripted("^go", subagent=call, subagent2=call) + scripted("^Find it", "Here.", "repeat = 2")
    types = {"explorer": EXPLORER.format(more=f"model: {model}\n")}
    async with running(agent_parts(tmp_path, script + scripted("^go", "Done."), types=types)) as (agent, seen):
        await say(agent, "go")
        assert [s.model_key for s in agent.conversation.steps if s.kind == "subagent"] == [used] * 2
        said = [n.text for n in seen.of(Notice) if n.code == "subagent_model"]
        assert len(said) == told and all("works with demo, not sonnet" in line for line in said)


BEGIN = scripted("^go", subagent={"description": "find it", "prompt": "Find it", "background": True})


async def test_one_in_the_background_answers_at_once_and_tells_its_result_later(tmp_path: Path) -> None:
    script = (
        BEGIN
        + scripted("^go", "It works.")
        + scripted("^Find it", bash={"command": "echo looked"})
        + scripted("^Find it", "It is\nin a.py.")
        + scripted("^and", "Good.", "repeat = 0")
    )
    async with running(agent_parts(tmp_path, script)) as (agent, seen):
        await say(agent, "go")
        (begun,) = results(agent)
        assert begun.text.startswith("Runs in the background as a1;") and not begun.is_error
        await seen.until(lambda: any(n.code == "background" for n in seen.of(Notice)))
        (line,) = [n.text for n in seen.of(Notice) if n.code == "background"]
        assert line.startswith("a1 ended after") and "done, 2 steps" in line and "general-purpose: find it" in line
        info = job(agent)
        assert info.agent is not None and (info.state, info.code, info.agent.steps) == ("ended", 0, 2)
        assert info.agent.tokens > 0 and info.agent.cost.known > 0 and info.last_line == "in a.py."
        shown = agent.background.output("a1")
        assert "▸ bash" in shown and "looked" in shown and "It is\nin a.py." in shown
        await say(agent, "and?")
        told = [news(m) for m in agent.conversation.path if m.role == "user"]
        assert told[0] == "" and "background subagent a1 ended" in told[1] and "It is\nin a.py." in told[1]
        await say(agent, "and now?")
        assert news([m for m in agent.conversation.path if m.role == "user"][-1]) == "", "once is enough"
        assert agent.context.usage().session.by_kind["subagent"].calls == 2


async def test_none_works_beside_a_server_that_answers_one_request_at_a_time(tmp_path: Path) -> None:
    script = BEGIN + scripted("^go", "It works.") + scripted("^Find it", "It is\nin a.py.")
    async with running(agent_parts(tmp_path, script)) as (agent, _):
        await agent.context.ready()
        agent.runtime.learn_limits(replace(agent.runtime.info, parallel=False))
        await say(agent, "go")
        (answer,) = results(agent)
        assert "It is\nin a.py." in answer.text and agent.background.infos() == []


async def test_one_cannot_wait_for_itself(tmp_path: Path) -> None:
    script = (
        BEGIN
        + scripted("^go", "It works.")
        + scripted("^Find it", jobs={"id": "a1", "wait": 600}, jobs2={"id": "a1", "stop": True})
        + scripted("^Find it", "Here.")
    )
    async with running(agent_parts(tmp_path, script)) as (agent, seen):
        await say(agent, "go")
        await seen.until(lambda: any(n.code == "background" for n in seen.of(Notice)))
        path, _ = child_of(agent)
        answers = [m.tool_result.text for m in path if m.tool_result is not None]
        assert len(answers) == 2 and all("nothing in the background called 'a1'" in text for text in answers)
        assert job(agent).state == "ended"


HANGS = scripted("^Find it", "I am loo", "hang = true")


async def working(agent: Agent, seen: Recorder) -> None:
    """Waits until the one in the background is in the middle of its answer."""
    await say(agent, "go")
    await seen.until(lambda: any(s.kind == "subagent" for s in agent.conversation.steps))


async def test_an_interrupt_leaves_it_and_the_end_of_the_session_ends_it(tmp_path: Path) -> None:
    script = BEGIN + scripted("^go", "It works.") + HANGS + scripted("^wait", "Hm", "hang = true")
    async with running(agent_parts(tmp_path, script)) as (agent, seen):
        await working(agent, seen)
        agent.turns.submit("wait")
        await seen.until(lambda: len(seen.of(StepStarted)) == 3)
        assert agent.turns.interrupt()
        await agent.turns.join()
        assert seen.of(TurnEnded)[-1].stop_reason == "interrupted" and job(agent).state == "running"
        with pytest.raises(AgentError, match="only commands can be kept"):
            agent.background.keep("a1")
        first = agent.conversation
        await agent.sessions.clear()
        assert agent.background.infos() == []
        assert not any(s.status == "running" for s in first.steps), "it ended before its session was left"
        agent.store.locks.take(first.info.id).release()
        await agent.sessions.resume(first.info.id)
        await say(agent, "what now?")
        assert "background subagent a1 is gone" in news([m for m in agent.conversation.path if m.role == "user"][-1])


async def test_the_user_and_the_model_stop_one(tmp_path: Path) -> None:
    script = (
        BEGIN
        + scripted("^go", "It works.")
        + HANGS
        + scripted("^look", jobs={"id": "a1"}, jobs2={"id": "a1", "stop": True})
        + scripted("^look", "Stopped.")
    )
    async with running(agent_parts(tmp_path, script)) as (agent, seen):
        await working(agent, seen)
        await say(agent, "look")
        _, looked, stopped = results(agent)
        assert "a1 has been running" in looked.text and "a1 was stopped after" in stopped.text
        assert job(agent).state == "stopped" and "was stopped" in await agent.background.stop("a1")
        path, steps = child_of(agent)
        assert all(m.status != "streaming" for m in path) and [s.status for s in steps] == ["stopped"]


@pytest.mark.slow
async def test_its_question_stays_open_when_a_turn_ends_and_keeps_no_other_call_waiting(tmp_path: Path) -> None:
    script = (
        BEGIN
        + scripted("^go", "It works.")
        + scripted("^Find it", write={"path": "found.txt", "content": "x"})
        + scripted("^Find it", "Written.")
        + scripted("^list", list={"path": "."})
        + scripted("^list", "Nothing.")
    )
    async with running(agent_parts(tmp_path, script, "ask")) as (agent, seen):
        await say(agent, "go")
        await seen.until(lambda: seen.of(PermissionAsked))
        (asked,) = seen.of(PermissionAsked)
        assert asked.reason.startswith("subagent “find it”: ")
        await say(agent, "list")
        assert results(agent)[-1].name == "list" and not results(agent)[-1].is_error
        assert not seen.of(PermissionAnswered)
        agent.permissions.answer(asked.request_id, True)
        await seen.until(lambda: any(n.code == "background" for n in seen.of(Notice)))
        assert (agent.root / "found.txt").read_text() == "x"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
async def test_one_whose_answer_cannot_be_saved_ends_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = scripted("^Find it", " ".join(f"word {n}" for n in range(4_000)))
    async with running(agent_parts(tmp_path, BEGIN + scripted("^go", "Ok.") + long)) as (agent, seen):
        fill_disk(monkeypatch)
        await say(agent, "go")
        await seen.until(lambda: any(n.code == "background" for n in seen.of(Notice)))
        assert job(agent).state == "ended" and "No space" in agent.background.jobs.get("a1").news


async def test_a_question_goes_with_the_subagent_that_asks_it(tmp_path: Path) -> None:
    script = BEGIN + scripted("^go", "Ok.") + scripted("^Find it", write={"path": "found.txt", "content": "x"})
    async with running(agent_parts(tmp_path, script, "ask")) as (agent, seen):
        await say(agent, "go")
        await seen.until(lambda: seen.of(PermissionAsked))
        await agent.background.stop("a1")
        assert [e.allowed for e in seen.of(PermissionAnswered)] == [False]


@pytest.mark.slow
async def test_a_killed_program_leaves_a_session_that_is_valid(tmp_path: Path) -> None:
    script = BEGIN + scripted("^go", "It works.") + HANGS + scripted("^and", "I see.")
    parts = agent_parts(tmp_path, script)
    async with running(parts) as (agent, seen):
        await working(agent, seen)
        own = agent.conversation.info.id
        parts.store.database.connection.commit()
        home = tmp_path / "home" / "data"
        copied = {path.name: path.read_bytes() for path in home.iterdir() if path.is_file()}
    for name, data in copied.items():  # as it was while it worked
        (home / name).write_bytes(data)
    async with running(agent_parts(tmp_path, script.replace("^go", "^never"), resume=own)) as (agent, _):
        assert all(s.status != "running" for s in agent.conversation.steps)
        await say(agent, "and?")
        assert "background subagent a1 is gone" in news(agent.conversation.path[-2])
        assert agent.conversation.path[-1].text == "I see."


async def test_at_most_so_many_at_once(tmp_path: Path) -> None:
    script = (
        scripted(
            "^go",
            subagent={"description": "one", "prompt": "Find it", "background": True},
            subagent2={"description": "two", "prompt": "Find it"},
        )
        + scripted("^go", "Well.")
        + HANGS
    )
    async with running(agent_parts(tmp_path, script, subagents_at_once=1)) as (agent, _):
        await say(agent, "go")
        first, second = results(agent)
        assert not first.is_error
        assert second.is_error and "agent.subagents_at_once = 1" in second.text and "\n" not in second.text


async def test_one_deeper_waits_and_costs_and_two_deeper_is_refused(tmp_path: Path) -> None:
    deeper = {"description": "deeper", "prompt": "Deeper"}
    script = (
        scripted("^go", subagent={"description": "deep", "prompt": "Deep"})
        + scripted("^Deep$", subagent=deeper, subagent2=deeper | {"background": True})
        + scripted("^Deeper", subagent=deeper)
        + scripted("^Deeper", "From below.")
        + scripted("^Deep$", "Told.")
        + scripted("^go", "Done.")
    )
    async with running(agent_parts(tmp_path, script, subagent_depth=2)) as (agent, _):
        await say(agent, "go")
        assert results(agent)[0].text == "Told."
        told: dict[str, list[ToolResultPart]] = {}
        for info in agent.store.sessions.all(subagents=True):
            path = agent.store.messages.path(info.id, info.head_id)
            told[info.title] = [m.tool_result for m in path if m.tool_result is not None]
        assert [r.is_error for r in told["↳ deep"]] == [False, True]
        assert told["↳ deep"][0].text == "From below." and "leave background out" in told["↳ deep"][1].text
        assert "agent.subagent_depth = 2" in told["↳ deeper"][0].text
        assert agent.context.usage().session.by_kind["subagent"].calls == 4


@pytest.mark.slow
async def test_one_gets_no_tool_by_another_that_it_starts(tmp_path: Path) -> None:
    types = {"explorer": "---\nname: explorer\ndescription: d\ndisallowedTools: Bash, Write\n---\nLook."}
    types["grepper"] = "---\nname: grepper\ndescription: d\ntools: Grep, Bash\n---\nGrep."
    made = {"bash": {"command": "touch made"}, "write": {"path": "made", "content": "x"}, "list": {"path": "."}}
    below = {"description": "below", "prompt": "Below"}
    script = (
        scripted("^go", subagent={"description": "above", "prompt": "Above", "type": "explorer"})
        + scripted("^Above", subagent=below, subagent2=below | {"type": "grepper"})
        + scripted("^Below", "", "repeat = 2", **made)
        + scripted("^Below", "Nothing.", "repeat = 2")
        + scripted("^Above", "Nothing.")
        + scripted("^go", "Done.")
    )
    async with running(agent_parts(tmp_path, script, types=types, subagent_depth=2)) as (agent, _):
        await say(agent, "go")
        assert not (agent.root / "made").exists()
        refused: list[list[bool]] = []
        for info in agent.store.sessions.all(subagents=True):
            if info.title == "↳ below":
                path = agent.store.messages.path(info.id, info.head_id)
                refused.append(["no tool named" in m.tool_result.text for m in path if m.tool_result is not None])
                labels = {p.label for s in agent.store.steps.all(info.id) for p in s.fixed}
                assert "grep" in labels and not labels & {"bash", "write", "apply_patch"}
        assert sorted(refused) == [[True, True, False], [True, True, True]]
