"""Turns as a user of the Agent sees them: events in order, and what is stored afterwards."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.config import AgentConfig, PermissionsConfig, Settings
from agent_tui.engine.agent import Agent
from agent_tui.engine.compaction.service import CompactionService
from agent_tui.models.events import (
    ContextChanged,
    Event,
    MessageAdded,
    Notice,
    PartDelta,
    PermissionAsked,
    QueueChanged,
    RetryWaiting,
    StepEnded,
    StepStarted,
    TurnEnded,
)
from agent_tui.models.messages import INTERRUPTED_RESULT, Message, ToolCallPart, user_message
from agent_tui.models.requests import ModelRequest, Started, StreamItem
from agent_tui.models.usage import NO_COST
from agent_tui.providers.demo import DemoProvider
from agent_tui.store.store import Store
from tests.support.agents import TokenCounter, parts_for, running, waiting
from tests.support.scripts import step

pytestmark = [pytest.mark.quick, pytest.mark.versions]


def roles(messages: list[Message]) -> list[str]:
    return [m.role for m in messages]


async def test_a_turn_streams_calls_a_tool_and_ends(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "notes.txt").write_text("alpha\nbeta\n")
    async with running(parts_for(tmp_path / "home", project)) as (agent, seen):
        agent.turns.submit("read notes.txt please")
        await agent.turns.join()
        assert roles(agent.conversation.path) == ["user", "assistant", "tool", "assistant"]
        result = agent.conversation.path[2].tool_result
        assert result is not None and "alpha" in result.text and not result.is_error
        assert agent.conversation.path[1].reasoning
        assert [type(e) for e in seen.events if isinstance(e, (StepStarted, StepEnded))] == [
            StepStarted,
            StepEnded,
            StepStarted,
            StepEnded,
        ]
        assert seen.last_end.stop_reason == "end"
        answer = agent.conversation.path[3]
        streamed = "".join(
            e.delta.text for e in seen.of(PartDelta) if e.delta.kind == "text" and e.message_id == answer.id
        )
        assert streamed == answer.text


async def test_what_arrives_at_once_is_told_once(tmp_path: Path) -> None:
    told: dict[str, str] = {}

    def listen(event: Event) -> None:
        match event:
            case StepStarted(_, message):
                told[message.id] = message.text
            case PartDelta(message_id, delta) if delta.kind == "text":
                told[message_id] += delta.text

    script = """
    [[step]]
    text = "one piece"
    tool_calls = [{ name = "list", arguments = { path = "." } }]
    [[step]]
    text = "another"
    """
    project = tmp_path / "project"
    project.mkdir()
    async with running(parts_for(tmp_path / "home", project, script=script)) as (agent, _):
        agent.subscribe(listen)
        agent.turns.submit("look")
        await agent.turns.join()
        assert told == {m.id: m.text for m in agent.conversation.path if m.role == "assistant"}
        assert list(told.values()) == ["one piece", "another"]


async def test_steps_record_what_was_sent_estimated_and_measured(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, _):
        agent.turns.submit("hello")
        await agent.turns.join()
        agent.turns.submit("hello again")
        await agent.turns.join()
        first, second = agent.conversation.steps
        assert first.sent_count == 1 and second.sent_count == 3
        assert first.status == second.status == "complete"
        assert second.usage is not None and second.actual_input == second.usage.input
        assert second.estimated_input is not None and second.max_output
        assert {part.row for part in second.fixed} >= {"system", "environment", "tools"}


async def test_an_interrupt_keeps_what_arrived_and_leaves_a_valid_conversation(tmp_path: Path) -> None:
    script = """
    [[step]]
    reasoning = "thinking"
    text = "one two three"
    tool_calls = [{ name = "list", arguments = { path = "." } }]
    chunk = 4
    hang = true
    after = 14
    """
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=script)) as (agent, seen):
        arrived = asyncio.Event()
        agent.subscribe(lambda e: arrived.set() if isinstance(e, PartDelta) and e.delta.kind == "text" else None)
        agent.turns.submit("go")
        await arrived.wait()
        assert agent.turns.interrupt()
        await agent.turns.join()
        answer = agent.conversation.path[-1]
        assert answer.status == "stopped" and answer.text.startswith("one")
        assert agent.conversation.steps[-1].status == "stopped"
        agent.turns.submit("go on")
        await agent.turns.join()
        assert [e.stop_reason for e in seen.of(TurnEnded)] == ["interrupted", "end"]
        assert agent.context.usage().session.cost == NO_COST, "calls that are free cost nothing, also when cut off"


async def test_tools_cut_off_by_an_interrupt_get_a_result(tmp_path: Path) -> None:
    script = """
    [[step]]
    tool_calls = [
        { name = "bash", arguments = { command = "echo started; sleep 600" } },
        { name = "list", arguments = { path = "." } },
    ]
    """
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=script)) as (agent, seen):
        from agent_tui.models.events import ToolOutput

        started = asyncio.Event()
        agent.subscribe(lambda e: started.set() if isinstance(e, ToolOutput) else None)
        agent.turns.submit("run it")
        await started.wait()
        agent.turns.interrupt()
        await agent.turns.join()
        assert seen.last_end.stop_reason == "interrupted"
        results = [m.tool_result for m in agent.conversation.path if m.tool_result is not None]
        begun, waiting = [r.text for r in results if r]
        assert begun == f"{INTERRUPTED_RESULT} by the user. Its output until then:\nstarted"
        assert waiting == INTERRUPTED_RESULT


async def test_failures_before_the_first_delta_are_tried_again(tmp_path: Path) -> None:
    script = """
    [[step]]
    error = { kind = "overloaded", retry_after = 0.0 }
    repeat = 2
    [[step]]
    text = "third time lucky"
    """
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=script)) as (agent, seen):
        agent.turns.submit("hi")
        await agent.turns.join()
        assert [e.attempt for e in seen.of(RetryWaiting)] == [1, 2]
        assert agent.conversation.path[-1].text == "third time lucky"
        assert len(agent.conversation.steps) == 1


async def test_esc_ends_the_wait_for_a_retry(tmp_path: Path) -> None:
    script = """
    [[step]]
    error = { kind = "rate_limit", retry_after = 200.0 }
    repeat = 0
    """
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=script)) as (agent, seen):
        waiting = asyncio.Event()
        agent.subscribe(lambda e: waiting.set() if isinstance(e, RetryWaiting) else None)
        agent.turns.submit("hi")
        await waiting.wait()
        agent.turns.interrupt()
        await agent.turns.join()
        assert seen.last_end.stop_reason == "interrupted"
        assert roles(agent.conversation.path) == ["user"]


async def test_the_step_limit_stops_a_turn_visibly(tmp_path: Path) -> None:
    script = """
    [[step]]
    tool_calls = [{ name = "list", arguments = { path = "." } }]
    repeat = 0
    """
    settings = Settings(permissions=PermissionsConfig(mode="auto"), agent=AgentConfig(step_limit=3))
    parts = parts_for(tmp_path / "home", tmp_path / "p", script=script, settings=settings)
    async with running(parts) as (agent, seen):
        agent.turns.submit("loop")
        await agent.turns.join()
        assert seen.last_end.stop_reason == "step_limit"
        assert len(agent.conversation.steps) == 3
        assert any(n.code == "step_limit" for n in seen.of(Notice))
        assert agent.conversation.path[-1].role == "tool"


async def test_messages_typed_meanwhile_wait_and_can_be_taken_back(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, seen):
        agent.turns.submit("first")
        agent.turns.submit("second")
        agent.turns.submit("third")
        assert waiting(agent, "queued") == ["second", "third"]
        assert agent.turns.take_back() == ("third", [], [])
        await agent.turns.join()
        asked = [m.text for m in agent.conversation.path if m.role == "user"]
        assert asked == ["first", "second"]
        assert len(seen.of(TurnEnded)) == 2
        assert seen.of(QueueChanged)[-1].waiting == []


async def test_steering_goes_in_before_the_next_step(tmp_path: Path) -> None:
    script = """
    [[step]]
    tool_calls = [{ name = "list", arguments = { path = "." } }]
    [[step]]
    text = "done"
    """
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=script)) as (agent, seen):
        agent.subscribe(
            lambda e: (
                agent.turns.steer("also this") if isinstance(e, MessageAdded) and e.message.role == "tool" else None
            )
        )
        agent.turns.submit("go")
        await agent.turns.join()
        steered = next(i for i, m in enumerate(agent.conversation.path) if m.text == "also this")
        assert roles(agent.conversation.path[steered:]) == ["user", "assistant"]
        assert len(seen.of(TurnEnded)) == 1


async def test_an_unknown_tool_and_bad_arguments_are_answered_not_raised(tmp_path: Path) -> None:
    script = """
    [[step]]
    tool_calls = [{ name = "raed", arguments = "{}" }, { name = "read", arguments = "{broken" }]
    [[step]]
    text = "sorry"
    """
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=script)) as (agent, _):
        agent.turns.submit("go")
        await agent.turns.join()
        results = [m.tool_result for m in agent.conversation.path if m.tool_result is not None]
        assert [r.is_error for r in results] == [True, True]
        assert "read" in results[0].text
        assert agent.conversation.path[1].tool_calls[1].arguments == "{broken"


async def test_permission_is_asked_and_the_answer_obeyed(tmp_path: Path) -> None:
    script = """
    [[step]]
    tool_calls = [{ name = "write", arguments = { path = "a.txt", content = "new" } }]
    [[step]]
    text = "ok"
    """
    settings = Settings(permissions=PermissionsConfig(mode="ask"))
    project = tmp_path / "p"
    async with running(parts_for(tmp_path / "home", project, script=script, settings=settings)) as (agent, seen):
        agent.subscribe(
            lambda e: (
                agent.permissions.answer(e.request_id, False, feedback="not now")
                if isinstance(e, PermissionAsked)
                else None
            )
        )
        agent.turns.submit("write it")
        await agent.turns.join()
        assert not (project / "a.txt").exists()
        result = next(m.tool_result for m in agent.conversation.path if m.tool_result is not None)
        assert result.is_error and "not now" in result.text
        assert seen.of(PermissionAsked)[0].tool == "write"


async def test_a_session_resumes_with_messages_numbers_and_anchor(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "p"
    async with running(parts_for(home, project)) as (agent, _):
        agent.turns.submit("remember this")
        await agent.turns.join()
        before, session = agent.context.usage(), agent.conversation.info.id
        stored = [json.dumps(m.text) for m in agent.conversation.path]
    async with running(parts_for(home, project, resume=session)) as (agent, _):
        after = agent.context.usage()
        assert [json.dumps(m.text) for m in agent.conversation.path] == stored
        assert (after.total, after.anchor_step) == (before.total, before.anchor_step)
        assert after.anchor_step is not None


async def test_a_session_open_elsewhere_is_read_only(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "p"
    async with running(parts_for(home, project)) as (agent, _):
        agent.turns.submit("mine")
        await agent.turns.join()
        async with running(parts_for(home, project, resume=agent.conversation.info.id)) as (second, seen):
            assert second.conversation.read_only
            second.turns.submit("also mine")
            assert not second.turns.busy
            assert any(n.code == "read_only" for n in seen.of(Notice))
            await second.sessions.fork()
            assert not second.conversation.read_only
            second.turns.submit("a copy")
            await second.turns.join()
            assert seen.last_end.stop_reason == "end"
        assert [m.text for m in agent.conversation.path if m.role == "user"] == ["mine"]


async def test_a_fork_of_a_session_that_works_elsewhere_does_not_say_that_it_was_killed(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "p"
    async with running(parts_for(home, project)) as (agent, _):
        agent.conversation.append(user_message("build it"))
        agent.conversation.append(Message("answer", "assistant", [ToolCallPart("c", "bash", '{"command": "make"}')]))
        async with running(parts_for(home, project, resume=agent.conversation.info.id)) as (second, _):
            await second.sessions.fork()
            assert not second.conversation.read_only
            assert [message.role for message in second.conversation.path] == ["user", "assistant"]


async def test_rewind_returns_the_text_and_destroys_nothing(tmp_path: Path) -> None:
    project = tmp_path / "p"
    script = """
    [[step]]
    text = "one"
    [[step]]
    tool_calls = [{ name = "write", arguments = { path = "a.txt", content = "new" } }]
    [[step]]
    text = "two"
    """
    async with running(parts_for(tmp_path / "home", project, script=script)) as (agent, _):
        agent.turns.submit("first")
        await agent.turns.join()
        usage_then = agent.context.usage().total
        agent.turns.submit("second")
        await agent.turns.join()
        assert (project / "a.txt").read_text() == "new"
        second = agent.conversation.path[2]
        assert (await agent.branches.rewind(second.id, restore_files=True)).text == "second"
        assert not (project / "a.txt").exists()
        assert roles(agent.conversation.path) == ["user", "assistant"]
        assert agent.context.usage().total == usage_then
        assert second.id in agent.store.messages.all(agent.conversation.info.id)


async def test_an_empty_new_session_leaves_no_trace(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with running(parts_for(home, tmp_path / "p")):
        pass
    with Store.open(home / "data" / "sessions.db") as store:
        assert store.sessions.all(None) == []


async def test_an_unknown_model_is_one_clear_line(tmp_path: Path) -> None:
    from agent_tui.errors import ConfigError

    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, _):
        with pytest.raises(ConfigError, match="Unknown model 'nonsense'"):
            await agent.models.switch("nonsense")
        assert agent.models.spec.key == "demo"


class LateCounter(TokenCounter):
    """Counts nothing before it is let."""

    running = True

    def __init__(self) -> None:
        self.let = asyncio.Event()

    async def count(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        await self.let.wait()
        return await super().count(texts)


async def test_what_is_sent_is_what_was_shown_last_though_counts_come_in_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = parts_for(tmp_path / "home", tmp_path / "p", script=step("Fine."))
    counter = parts.counter = LateCounter()
    agent = Agent(parts)
    seen: list[Event] = []
    agent.subscribe(seen.append)
    before_step = CompactionService.before_step

    async def counted_meanwhile(service: CompactionService) -> str | None:
        blocked = await before_step(service)
        counter.let.set()
        await agent.context.count()
        return blocked

    monkeypatch.setattr(CompactionService, "before_step", counted_meanwhile)
    await agent.start()
    try:
        agent.turns.submit("1234567890 " * 300)
        await agent.turns.join()
    finally:
        await agent.close()
    at = next(n for n, event in enumerate(seen) if isinstance(event, StepStarted))
    shown = [event.usage.total for event in seen[:at] if isinstance(event, ContextChanged)]
    begun = seen[at]
    assert isinstance(begun, StepStarted) and shown[-1] == begun.step.estimated_input != shown[0]


async def test_what_holds_for_every_step_is_said_once(tmp_path: Path) -> None:
    class Noting(DemoProvider):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
            async for item in super().stream(request):
                yield replace(item, notes=("Thinking is off.",)) if isinstance(item, Started) else item

    parts = parts_for(tmp_path / "home", tmp_path / "p", provider=lambda counter: Noting(counter, None, pace=0.0))
    async with running(parts) as (agent, seen):
        for text in ("one", "two", "three"):
            agent.turns.submit(text)
            await agent.turns.join()
        assert [notice.text for notice in seen.of(Notice)] == ["Thinking is off."]
