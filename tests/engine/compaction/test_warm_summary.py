"""A summary at the price of a cache read: asked for as the next message of the conversation, byte for byte."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agent_tui.engine.agent import Agent
from agent_tui.models.events import CompactionEnded
from agent_tui.models.messages import SummaryPart
from agent_tui.models.usage import Limits
from agent_tui.providers.client import ModelClient
from tests.support.agents import Recorder
from tests.support.cached_models import KEPT
from tests.support.forms import one_of
from tests.support.true_provider import Script, TrueProvider
from tests.support.true_provider.wire import Answer, Call, unmarked
from tests.support.true_runs import LongAnswers, TrueRun, write_lines

WINDOW, TURNS = 120_000, 4

pytestmark = pytest.mark.asyncio(loop_scope="module")


class WarmRun(TrueRun):
    keeps = True
    retries = 0


@asynccontextmanager
async def talked(
    worker: ModelClient, folder: Path, name: str, answers: list[Answer] | None = None, **model: Any
) -> AsyncIterator[tuple[Agent, Recorder, WarmRun]]:
    """An agent that has had some turns with a provider of this dialect, which caches. The first of ``answers`` are
    given to requests for a summary."""
    script = LongAnswers(
        1, [write_lines(folder / "project")], WINDOW, bad_summaries=False, brief=TURNS, summaries=answers or []
    )
    flavour = KEPT[name].flavour
    flavour = replace(flavour, model=replace(flavour.model, max_output=16_000))
    run = WarmRun({"m": flavour}, WINDOW, script, worker, folder, **model)
    try:
        async with run.opened() as (agent, seen):
            for run.turn in range(1, TURNS + 1):
                await run.say(agent, f"[turn {run.turn}] " + Script.words(Random(run.turn), 100))
            await agent.context.ready()
            yield agent, seen, run
    finally:
        run.close()
    run.check()


def summaries(server: TrueProvider) -> list[Any]:
    return [e for e in server.truth.exchanges if e.kind == "summary"]


def holds_all_of(asked: Any, said: Any) -> None:
    """Whether a request is the last one, byte for byte, and something more."""
    (told,) = (name for name in ("messages", "input", "contents") if name in said)
    assert asked[told][: len(said[told])] == said[told]
    for name in said.keys() - {told, "max_tokens", "max_output_tokens", "max_completion_tokens"}:
        assert _least(asked[name]) == _least(said[name]), name


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", one_of(["anthropic", "old claude", "openai chat", "responses", "gemini", "deepseek", "vllm"])
)
async def test_a_warm_conversation_is_summarised_from_the_cache(worker: ModelClient, tmp_path: Path, name: str) -> None:
    """And so is the brief for another session."""
    async with talked(worker, tmp_path, name) as (agent, seen, run):
        server, last = run.server, unmarked(run.server.kept[run.server.truth.turns()[-1].number])
        await agent.compaction.now()
        ended = seen.of(CompactionEnded)[-1]
        assert ended.outcome == "done", ended.text
        call = summaries(server)[-1]
        holds_all_of(unmarked(server.kept[call.number]), last)
        record = agent.conversation.own_records[-1]
        assert call.usage is not None and record.warm and call.usage.cache_read / call.usage.input >= 0.9
        assert (record.input_tokens, record.cache_read) == (call.usage.input, call.usage.cache_read)
        assert "from the cache" in ended.text

        await agent.compaction.undo()
        brief = await agent.handoff.begin("Go on with the store")
        call = server.truth.exchanges[-1]
        holds_all_of(unmarked(server.kept[call.number]), last)
        assert call.usage is not None and call.usage.cache_read / call.usage.input >= 0.9
        assert brief.text.startswith("Go on with the store\n\n")


def _least(value: Any) -> Any:
    """A field of a body without the longest answer that is asked for."""
    return {k: v for k, v in value.items() if k != "maxOutputTokens"} if isinstance(value, dict) else value


@pytest.mark.slow
async def test_a_conversation_that_is_no_longer_cached_is_summarised_apart(worker: ModelClient, tmp_path: Path) -> None:
    async with talked(worker, tmp_path, "anthropic") as (agent, seen, run):
        server = run.server
        for step in agent.conversation.steps:
            step.created -= 3_600
        await agent.compaction.now()
        assert seen.of(CompactionEnded)[-1].outcome == "done"
        (call,) = summaries(server)
        body = server.kept[call.number]
        assert "tools" not in body and len(body["messages"]) == 1
        (record,) = agent.conversation.own_records
        assert not record.warm and record.cache_read == 0

        await agent.compaction.undo()
        agent.budget.set("session", 1e-10)
        await agent.compaction.now()
        assert seen.of(CompactionEnded)[-1].outcome == "failed" and len(summaries(server)) == 1


@pytest.mark.slow
async def test_where_it_does_not_fit_beside_the_conversation_it_is_asked_for_apart(
    worker: ModelClient, tmp_path: Path
) -> None:
    async with talked(worker, tmp_path, "anthropic") as (agent, seen, run):
        server = run.server
        runtime = agent.runtime
        assert runtime is not None
        limits = Limits(agent.context.usage().total + 1_500, None, 16_000, "config")
        runtime.learn_limits(replace(runtime.info, limits=limits))
        await agent.compaction.now()
        assert seen.of(CompactionEnded)[-1].outcome == "done"
        assert all(len(server.kept[call.number]["messages"]) == 1 for call in summaries(server))


@pytest.mark.slow
async def test_a_tool_call_in_the_answer_is_not_run_and_asked_about_once_more(
    worker: ModelClient, tmp_path: Path
) -> None:
    calls = Answer("I look first.", calls=[Call("c1", "bash", {"command": "touch ran.txt"})])
    async with talked(worker, tmp_path, "anthropic", [calls]) as (agent, seen, run):
        server = run.server
        await agent.compaction.now()
        assert seen.of(CompactionEnded)[-1].outcome == "done"
        first, second = summaries(server)
        assert second.usage.cache_read >= 0.9 * second.usage.input, "the prefix is the same"
        told = str(server.kept[second.number]["messages"][-1])
        assert "it was not run" in told and "it was not run" not in str(server.kept[first.number]["messages"][-1])
        assert not (tmp_path / "project" / "ran.txt").exists()
        assert agent.conversation.own_records[-1].warm


@pytest.mark.slow
@pytest.mark.parametrize("name", ["openai chat", pytest.param("anthropic", marks=pytest.mark.slow)])
async def test_a_summary_that_has_to_be_written_again_is_asked_for_within_the_conversation_too(
    worker: ModelClient, tmp_path: Path, name: str
) -> None:
    prose = Answer("The parser was written, the lexer is next, and E4417 came from the ledger.")
    async with talked(worker, tmp_path, name, [prose]) as (agent, seen, run):
        server = run.server
        last = server.kept[server.truth.turns()[-1].number]
        await agent.compaction.now()
        assert seen.of(CompactionEnded)[-1].outcome == "done"
        first, second = summaries(server)
        said, *asked = (unmarked(body) for body in (last, server.kept[first.number], server.kept[second.number]))
        assert all(body["messages"][: len(said["messages"])] == said["messages"] for body in asked)
        question, again = (str(body["messages"][-1]["content"]) for body in asked)
        assert "It has none of the headings." in again
        assert again.startswith(question.rstrip("]}'\"")), "it goes on with the request for the summary"
        assert second.usage.cache_read >= 0.9 * second.usage.input
        (record,) = agent.conversation.own_records
        assert record.warm and len([s for s in agent.conversation.steps if s.kind == "compaction"]) == 2


@pytest.mark.slow
async def test_a_model_that_does_nothing_but_call_tools_is_done_without(worker: ModelClient, tmp_path: Path) -> None:
    calls = [Answer("", calls=[Call(f"c{n}", "bash", {"command": "ls"})]) for n in range(2)]
    async with talked(worker, tmp_path, "openai chat", calls) as (agent, seen, run):
        server = run.server
        await agent.compaction.now()
        assert seen.of(CompactionEnded)[-1].outcome == "done"
        assert "called a tool instead of summarising; summarised without" in seen.of(CompactionEnded)[-1].text
        steps = [step for step in agent.conversation.steps if step.kind == "compaction"]
        assert len(summaries(server)) == len(steps) == 2 and all(step.usage is not None for step in steps)


@pytest.mark.slow
async def test_the_next_turn_goes_on_from_the_summary(worker: ModelClient, tmp_path: Path) -> None:
    async with talked(worker, tmp_path, "responses") as (agent, _, run):
        server = run.server
        await agent.compaction.now()
        run.turn += 1
        await run.say(agent, "And now?")
        body = server.kept[server.truth.turns()[-1].number]
        assert "Answer with exactly these headings" not in str(body)
        assert any(isinstance(p, SummaryPart) for s in agent.conversation.view() for p in s.message.parts)


@pytest.mark.slow
@pytest.mark.parametrize("cold", one_of([False, True]))
@pytest.mark.parametrize("name", ["anthropic", pytest.param("openai chat", marks=pytest.mark.slow)])
async def test_the_price_that_is_said_before_is_that_of_the_call_in_the_form_in_which_it_is_made(
    worker: ModelClient, tmp_path: Path, name: str, cold: bool
) -> None:
    """The first summary may be as long as it may be; from then on it is known how long they are."""
    prices = {"input": 30.0, "output": 150.0, "cache_read": 3.0, "cache_write": 37.5}
    async with talked(worker, tmp_path, name, prices=prices) as (agent, _, _):

        async def offered_and_paid() -> tuple[float, float]:
            if cold:
                for step in agent.conversation.steps:
                    step.created -= 3_600
            said = re.search(r"\$([\d.]+) for the summary", (await agent.compaction.preview()).say)
            await agent.compaction.now()
            record = agent.conversation.records[-1]
            assert said is not None and record.cost is not None and record.warm is not cold
            await agent.compaction.undo()
            return float(said[1]), record.cost.known

        said, paid = await offered_and_paid()
        assert paid <= said * 1.05
        if cold:
            return  # Sent again, the same request would be read from the provider's cache.
        said, paid = await offered_and_paid()
        assert said == pytest.approx(paid, rel=0.25)
