"""What is tried again for one reason, and then meets another: no answer is lost, doubled, run or ended for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from agent_tui.config import ModelConfig, PermissionsConfig, Settings
from agent_tui.models.events import CompactionStarted, MessagesWithdrawn, Notice
from agent_tui.models.failure import Failure
from agent_tui.models.requests import WITHOUT_CALL, Counter, Delta, Failed, Finished, ModelRequest, StreamItem
from tests.engine.turns.test_interrupted_answers import FULL, Lines, answers, asked, failed, text, texts, thought, used
from tests.support.agents import parts_for, results, running

pytestmark = pytest.mark.quick

Answers = Sequence[Sequence[StreamItem]]

REFUSED = Failed(Failure("invalid_request", "Refused.", detail="bad thing", status=400))
CALL = Delta(0, "tool_call", '{"path": "."}', call_id="c", name="list")
CALLED: Sequence[StreamItem] = [CALL, Finished("tool_calls")]
GOOD: Sequence[StreamItem] = [text("Good."), used(9, 2), Finished("stop")]
EMPTY: Sequence[StreamItem] = [used(9, 0), Finished("stop")]
BROKEN = failed("interrupted_stream")
WRITTEN = text('<tool_call>{"name": "list", "arguments": {"path": "."}}</tool_call>')


def written_run() -> Settings:
    settings = Settings(default_model="demo", permissions=PermissionsConfig(mode="auto"))
    settings.tools.text_calls = True
    return settings


def said(seen_notices: Sequence[Notice], code: str) -> list[str]:
    return [notice.text for notice in seen_notices if notice.code == code]


@pytest.mark.parametrize(
    "first", [[thought("hm"), BROKEN], [text("half"), BROKEN], [thought("hm"), Finished("stop")]], ids=str
)
async def test_a_refusal_after_an_answer_that_came_to_nothing_is_repaired(
    tmp_path: Path, first: Sequence[StreamItem]
) -> None:
    provider = answers(CALLED, first, [REFUSED], GOOD)
    async with running(parts_for(tmp_path / "home", tmp_path / "p", provider=provider)) as (agent, seen):
        await asked(agent)
        assert seen.last_end.stop_reason == "end" and texts(agent.conversation.path)[-1] == "Good."
        assert len(agent.conversation.path) == 4 and len(seen.of(MessagesWithdrawn)) == 1
        assert len(said(seen.of(Notice), "call_ids")) == 1


async def test_half_an_answer_is_not_the_answer_where_nothing_comes_anew(tmp_path: Path) -> None:
    provider = answers([text("half"), BROKEN], EMPTY, GOOD)
    async with running(parts_for(tmp_path / "home", tmp_path / "p", provider=provider)) as (agent, _):
        await asked(agent)
        assert texts(agent.conversation.path) == ["hi", "Good."]


@pytest.mark.parametrize("half", [text("half"), WRITTEN], ids=["words", "call"])
async def test_half_an_answer_that_is_empty_twice_then_is_a_failure(tmp_path: Path, half: Delta) -> None:
    parts = parts_for(
        tmp_path / "home", tmp_path / "p", settings=written_run(), provider=answers([half, BROKEN], EMPTY, EMPTY)
    )
    async with running(parts) as (agent, seen):
        await asked(agent)
        answer, failure = agent.conversation.path[-1], seen.last_end.failure
        assert (answer.text, answer.status) == (half.text, "failed") and not results(agent)
        assert failure is not None and "broke off" in failure.message


async def test_thoughts_that_go_in_circles_are_not_asked_for_again(tmp_path: Path) -> None:
    circles = [Delta(0, "reasoning", "Wait, let me check.\n") for _ in range(200)]
    provider = answers([*circles, Finished("stop")], GOOD)
    async with running(parts_for(tmp_path / "home", tmp_path / "p", provider=provider)) as (agent, seen):
        await asked(agent)
        assert seen.last_end.stop_reason == "length" and not said(seen.of(Notice), "asked_again")
        assert len(agent.conversation.steps) == 1 and agent.conversation.path[-1].reasoning


async def test_what_came_before_a_break_is_no_repetition_of_what_comes_anew(tmp_path: Path) -> None:
    line = text("=-=-=-=\n" * 180)
    provider = answers([line, BROKEN], [line, Finished("stop")])
    async with running(parts_for(tmp_path / "home", tmp_path / "p", provider=provider)) as (agent, seen):
        await asked(agent)
        assert seen.last_end.stop_reason == "end" and agent.conversation.path[-1].status == "complete"


async def test_nothing_of_an_empty_answer_stays_with_the_next(tmp_path: Path) -> None:
    provider = answers([thought("hm"), Finished("stop", {"id": "first"})], GOOD)
    async with running(parts_for(tmp_path / "home", tmp_path / "p", provider=provider)) as (agent, _):
        await asked(agent)
        assert agent.conversation.path[-1].provider_metadata is None


async def test_a_written_call_is_not_run_where_nobody_knows_how_the_answer_ended(tmp_path: Path) -> None:
    provider = answers([WRITTEN, Finished("unknown")])
    parts = parts_for(tmp_path / "home", tmp_path / "p", settings=written_run(), provider=provider)
    async with running(parts) as (agent, seen):
        await asked(agent)
        failure = seen.last_end.failure
        assert failure is not None and "may not be complete" in failure.message and not results(agent)


async def test_a_written_call_is_run_where_the_server_says_that_there_is_one(tmp_path: Path) -> None:
    provider = answers([WRITTEN, Finished("unknown", words=f"tool_calls {WITHOUT_CALL}")], GOOD)
    parts = parts_for(tmp_path / "home", tmp_path / "p", settings=written_run(), provider=provider)
    async with running(parts) as (agent, seen):
        await asked(agent)
        assert seen.last_end.stop_reason == "end" and len(results(agent)) == 1


class NoSummary(Lines):
    """Never comes to the end of a summary."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        if request.kind != "turn":
            await asyncio.Event().wait()
        async for item in super().stream(request):
            yield item


async def test_esc_while_room_is_made_keeps_what_came(tmp_path: Path) -> None:
    talk: Answers = [[text("word " * 3_000), Finished("stop")] for _ in range(3)]

    def provider(counter: Counter) -> NoSummary:
        return NoSummary(counter, [*talk, [text("half"), FULL]])

    settings = Settings(
        default_model="small",
        models={"small": ModelConfig("demo", context_window=20_000)},
        permissions=PermissionsConfig(mode="auto"),
    )
    async with running(parts_for(tmp_path / "home", tmp_path / "p", settings=settings, provider=provider)) as (
        agent,
        seen,
    ):
        for number in range(3):
            await asked(agent, f"question {number}")
        agent.turns.submit("question 3")
        await seen.until(lambda: seen.of(CompactionStarted))
        agent.turns.interrupt()
        await agent.turns.join()
        assert texts(agent.conversation.path)[-2:] == ["question 3", "half"] and not seen.of(MessagesWithdrawn)
