"""A summary at the price of a cache read: asked for as the next message of the conversation, byte for byte."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agent_tui.config import AgentConfig, ContextConfig, ModelConfig, PermissionsConfig, Settings
from agent_tui.engine.agent import Agent
from agent_tui.models.events import CompactionEnded
from agent_tui.models.messages import SummaryPart
from agent_tui.models.usage import Limits
from agent_tui.providers.worker.client import WorkerClient
from tests.support.agents import Recorder, parts_for
from tests.support.cached_models import KEPT
from tests.support.end_to_end import KEY_VARIABLE
from tests.support.floor_runs import KeepingProvider
from tests.support.forms import one_of
from tests.support.model_calls import KEY, environment
from tests.support.true_provider import BusyScript, ProjectFile
from tests.support.true_provider.wire import Answer, Call, Question, unmarked

WINDOW, TURNS = 120_000, 6


@dataclass(slots=True)
class Talk(BusyScript):
    """Calls a tool twice a turn, then says much. The first of ``answers`` are given to requests for a summary."""

    answers: list[Answer] = field(default_factory=list)

    def answer(self, question: Question, turn: int, step: int, number: int) -> Answer:
        answer = super(Talk, self).answer(question, turn, step, number)
        if step == self.steps:
            answer.text = self.words(Random(turn), 2_500 if turn < TURNS else 150)
        return answer

    def summary(self, question: Question, call: int) -> Answer | None:
        return self.answers.pop(0) if self.answers else super(BusyScript, self).summary(question, call)


pytestmark = pytest.mark.usefixtures("forked_worker")


@asynccontextmanager
async def talked(
    folder: Path, name: str, answers: list[Answer] | None = None, window: int = WINDOW, **model: Any
) -> AsyncIterator[tuple[Agent, Recorder, KeepingProvider]]:
    """An agent that has had six turns with a provider of this dialect, which caches."""
    project = folder / "project"
    project.mkdir()
    (project / "a.txt").write_text("".join(f"line {n} of a file of the project\n" for n in range(900)))
    kept = KEPT[name]
    script = Talk(1, [ProjectFile("a.txt", 900)], window, bad_summaries=False, steps=2, answers=answers or [])
    flavour = kept.flavour
    server = KeepingProvider(flavour.dialect, replace(flavour.model, window=window, max_output=16_000), script)
    settings = Settings(
        default_model="m",
        models={
            "m": ModelConfig(
                flavour.name, api_base=server.url + flavour.path, api_key_env=KEY_VARIABLE, context_window=window,
                api=flavour.api, reasoning_effort="medium", **model,
            ),
        },
        context=ContextConfig(exact_counting="off"),
        permissions=PermissionsConfig(mode="auto"),
        agent=AgentConfig(retries=0, timeout=60.0),
    )  # fmt: skip
    worker = WorkerClient()
    with environment({KEY_VARIABLE: KEY}):
        parts = parts_for(folder, project, settings=settings, provider=lambda counter: worker, counter=worker)
        agent, seen = Agent(parts), Recorder()
        agent.subscribe(seen)
        await agent.start()
        try:
            await agent.context.ready()
            for server.turn in range(1, TURNS + 1):
                await say(agent, f"[turn {server.turn}] " + Talk.words(Random(server.turn), 100))
            yield agent, seen, server
        finally:
            await agent.close()
            server.close()
            await worker.close()
    assert not server.truth.crashes, server.truth.crashes[0]


async def say(agent: Agent, text: str) -> None:
    agent.turns.submit(text)
    await agent.turns.join()
    await agent.context.ready()


def summaries(server: KeepingProvider) -> list[Any]:
    return [e for e in server.truth.exchanges if e.kind == "summary"]


@pytest.mark.parametrize(
    "name", one_of(["anthropic", "old claude", "openai chat", "responses", "gemini", "deepseek", "vllm"], every=3)
)
async def test_a_warm_conversation_is_summarised_from_the_cache(tmp_path: Path, name: str) -> None:
    async with talked(tmp_path, name) as (agent, seen, server):
        last = server.kept[server.truth.turns()[-1].number]
        await agent.compaction.now()
        ended = seen.of(CompactionEnded)[-1]
        assert ended.outcome == "done", ended.text
        (call,) = summaries(server)
        share = call.usage.cache_read / call.usage.input
        said, asked = unmarked(last), unmarked(server.kept[call.number])
        (told,) = (name for name in ("messages", "input", "contents") if name in said)
        assert asked[told][: len(said[told])] == said[told], "the last request, byte for byte"
        for field_ in said.keys() - {told, "max_tokens", "max_output_tokens", "max_completion_tokens", "diagnostics"}:
            assert _least(asked[field_]) == _least(said[field_]), field_
        (record,) = [r for r in agent.conversation.own_records if r.kind == "summary"]
        assert record.warm and share >= 0.9
        assert (record.input_tokens, record.cache_read) == (call.usage.input, call.usage.cache_read)
        assert "from the cache" in ended.text


def _least(value: Any) -> Any:
    """A field of a body without the longest answer that is asked for."""
    return {k: v for k, v in value.items() if k != "maxOutputTokens"} if isinstance(value, dict) else value


async def test_a_conversation_that_is_no_longer_cached_is_summarised_apart(tmp_path: Path) -> None:
    async with talked(tmp_path, "anthropic") as (agent, seen, server):
        for step in agent.conversation.steps:
            step.created -= 3_600
        await agent.compaction.now()
        assert seen.of(CompactionEnded)[-1].outcome == "done"
        (call,) = summaries(server)
        body = server.kept[call.number]
        assert "tools" not in body and len(body["messages"]) == 1
        (record,) = agent.conversation.own_records
        assert not record.warm and record.cache_read == 0


@pytest.mark.slow
async def test_where_it_does_not_fit_beside_the_conversation_it_is_asked_for_apart(tmp_path: Path) -> None:
    async with talked(tmp_path, "anthropic") as (agent, seen, server):
        runtime = agent.runtime
        assert runtime is not None
        runtime.info.limits = Limits(agent.context.usage().total + 1_500, None, 16_000, "config")
        await agent.compaction.now()
        assert seen.of(CompactionEnded)[-1].outcome == "done"
        assert all(len(server.kept[call.number]["messages"]) == 1 for call in summaries(server))


@pytest.mark.slow
async def test_a_tool_call_in_the_answer_is_not_run_and_asked_about_once_more(tmp_path: Path) -> None:
    calls = Answer("I look first.", calls=[Call("c1", "bash", {"command": "touch ran.txt"})])
    async with talked(tmp_path, "anthropic", [calls]) as (agent, seen, server):
        await agent.compaction.now()
        assert seen.of(CompactionEnded)[-1].outcome == "done"
        first, second = summaries(server)
        assert second.usage.cache_read >= 0.9 * second.usage.input, "the prefix is the same"
        told = str(server.kept[second.number]["messages"][-1])
        assert "it was not run" in told and "it was not run" not in str(server.kept[first.number]["messages"][-1])
        assert not (tmp_path / "project" / "ran.txt").exists()
        assert agent.conversation.own_records[-1].warm


@pytest.mark.parametrize("name", ["anthropic", "openai chat"])
async def test_a_summary_that_has_to_be_written_again_is_asked_for_within_the_conversation_too(
    tmp_path: Path, name: str
) -> None:
    prose = Answer("The parser was written, the lexer is next, and E4417 came from the ledger.")
    async with talked(tmp_path, name, [prose]) as (agent, seen, server):
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


async def test_a_model_that_does_nothing_but_call_tools_is_done_without(tmp_path: Path) -> None:
    calls = [Answer("", calls=[Call(f"c{n}", "bash", {"command": "ls"})]) for n in range(2)]
    async with talked(tmp_path, "openai chat", calls) as (agent, seen, server):
        await agent.compaction.now()
        assert seen.of(CompactionEnded)[-1].outcome == "done"
        assert "called a tool instead of summarising; summarised without" in seen.of(CompactionEnded)[-1].text
        steps = [step for step in agent.conversation.steps if step.kind == "compaction"]
        assert len(summaries(server)) == len(steps) == 2 and all(step.usage is not None for step in steps)


async def test_a_budget_holds_for_it(tmp_path: Path) -> None:
    async with talked(tmp_path, "anthropic") as (agent, seen, server):
        agent.budget.set("tokens", 1)
        await agent.compaction.now()
        assert seen.of(CompactionEnded)[-1].outcome == "failed" and not summaries(server)


@pytest.mark.slow
async def test_the_next_turn_goes_on_from_the_summary(tmp_path: Path) -> None:
    async with talked(tmp_path, "responses") as (agent, _, server):
        await agent.compaction.now()
        server.turn += 1
        await say(agent, "And now?")
        body = server.kept[server.truth.turns()[-1].number]
        assert "Answer with exactly these headings" not in str(body)
        assert any(isinstance(p, SummaryPart) for s in agent.conversation.view() for p in s.message.parts)


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize("name", ["anthropic", pytest.param("openai chat", marks=pytest.mark.slow)])
async def test_the_price_that_is_said_before_is_that_of_the_call_in_the_form_in_which_it_is_made(
    tmp_path: Path, name: str, cold: bool
) -> None:
    """The first summary may be as long as it may be; from then on it is known how long they are."""
    prices = {"input": 30.0, "output": 150.0, "cache_read": 3.0, "cache_write": 37.5}
    async with talked(tmp_path, name, prices=prices) as (agent, _, _):

        async def offered_and_paid() -> tuple[float, float]:
            if cold:
                for step in agent.conversation.steps:
                    step.created -= 3_600
            said = re.search(r"summary ~\$([\d.]+)", await agent.compaction.worth())
            await agent.compaction.now()
            record = agent.conversation.records[-1]
            assert said is not None and record.cost_usd is not None and record.warm is not cold
            await agent.compaction.undo()
            return float(said[1]), record.cost_usd

        said, paid = await offered_and_paid()
        assert paid <= said * 1.05
        if cold:
            return  # Sent again, the same request would be read from the provider's cache.
        said, paid = await offered_and_paid()
        assert said == pytest.approx(paid, rel=0.25)


@pytest.mark.parametrize("name", one_of(["anthropic", "openai chat", "responses", "gemini"]))
async def test_the_brief_of_a_warm_conversation_is_written_from_the_cache(tmp_path: Path, name: str) -> None:
    async with talked(tmp_path, name) as (agent, _, server):
        last = server.kept[server.truth.turns()[-1].number]
        brief = await agent.handoff.begin("Go on with the store")
        call = server.truth.exchanges[-1]
        said, asked = unmarked(last), unmarked(server.kept[call.number])
        (told,) = (name for name in ("messages", "input", "contents") if name in said)
        assert asked[told][: len(said[told])] == said[told], "the last request, byte for byte"
        assert call.usage is not None and (call.usage.cache_read or 0) / call.usage.input >= 0.9
        assert brief.text.startswith("Go on with the store\n\n")
