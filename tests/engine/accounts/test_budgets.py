"""Money through the whole agent: one figure wherever it is asked for, and budgets that stop before the call."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_tui.commands import registry
from agent_tui.commands.bookkeeping import session_line
from agent_tui.commands.info import Info
from agent_tui.commands.registry import Text
from agent_tui.commands.report import ContextReport
from agent_tui.commands.report_json import context_json
from agent_tui.config import BudgetConfig, ModelConfig, PermissionsConfig, Settings
from agent_tui.context.accounting.spending import ExpectedCall
from agent_tui.engine.agent import Agent
from agent_tui.engine.calls import next_call
from agent_tui.engine.model_call import NoRoomError, PlannedCall, open_call
from agent_tui.engine.state import AgentParts
from agent_tui.headless.output import bill
from agent_tui.models.events import CompactionEnded, Notice, StepEnded, StepStarted, TurnEnded
from agent_tui.models.requests import ModelInfo, ModelRequest, ModelSpec, StreamItem
from agent_tui.models.usage import NO_COST, Cost, Prices, cost_fields
from agent_tui.providers.demo import DemoProvider
from agent_tui.store.steps import day_of
from agent_tui.text.numbers import money
from tests.support.agents import Recorder, TokenCounter, parts_for, running
from tests.support.forms import one_of
from tests.support.scripts import step

MODELS: dict[str, dict[str, float]] = {
    "paid": {"input": 3.0, "output": 15.0, "cache_read": 0.3},
    "free": {},
    "unpriced": {},
}
SUMMARY = '[[step]]\nkind = "compaction"\nrepeat = 0\ntext = "## Goal\\nTo port it.\\n\\n## Progress\\nAll done."\n'
SILENT = '[[step]]\ntext = "Nobody counted this."\nusage = false\n'
FAILS = '[[step]]\ntext = "It breaks off here."\nafter = 8\nerror = { kind = "interrupted_stream" }\n'
REFUSED = '[[step]]\nerror = { kind = "auth", message = "No key." }\n'
HANGS = '[[step]]\ntext = "And then"\nhang = true\n'


class SomeUnpriced(DemoProvider):
    """The demo model, of which nobody knows what it costs where it is called ``unpriced``."""

    async def describe(self, spec: ModelSpec) -> ModelInfo:
        info = await super().describe(spec)
        return replace(info, prices=Prices()) if spec.key == "unpriced" else info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        async for item in super().stream(request):
            yield item


def parts(
    folder: Path,
    script: str = "",
    *,
    model: str = "paid",
    resume: str | None = None,
    run: float | None = None,
    **budget: float,
) -> AgentParts:
    settings = Settings(
        default_model=model,
        models={name: ModelConfig("demo", prices=prices) for name, prices in MODELS.items()},
        permissions=PermissionsConfig(mode="auto"),
        budget=BudgetConfig(**budget),
    )
    settings.agent.retries = 1
    (folder / "home").mkdir(parents=True, exist_ok=True)
    file = folder / "home" / "script.toml"
    file.write_text(script, "utf-8")
    made = parts_for(
        folder / "home",
        folder / "project",
        settings=settings,
        counter=TokenCounter(),
        provider=lambda counter: SomeUnpriced(counter, file, pace=0.0),
        resume=resume,
    )
    made.run_budget = run
    return made


def opened(folder: Path, script: str = "", **more: Any) -> AbstractAsyncContextManager[tuple[Agent, Recorder]]:
    """An agent for which ``paid`` costs what ``MODELS`` says; of ``more`` the numbers are budgets."""
    return running(parts(folder, script, **more))


async def say(agent: Agent, seen: Recorder, text: str) -> TurnEnded:
    agent.turns.submit(text)
    await agent.turns.join()
    await agent.context.ready()
    return seen.last_end


def stops(seen: Recorder) -> list[str]:
    return [n.text for n in seen.of(Notice) if n.code == "budget"]


def delegate(prompt: str = "look around") -> str:
    return step("Let me look.", subagent={"description": "look", "prompt": prompt})


async def figures(agent: Agent) -> set[str]:
    """The session's cost as each place prints it that the user can see or read."""
    usage = agent.context.usage()
    shown = await registry.run(agent, "/usage")
    status = await registry.run(agent, "/status")
    assert isinstance(shown, Info) and isinstance(status, Info)
    data, run = context_json(ContextReport(usage))["session"], bill(agent.conversation.steps)
    exported = agent.store.export(agent.conversation.info.id)
    in_json = [Cost(d["cost_known_usd"], d["unpriced_calls"]) for d in (data, run, exported)]
    for source in (data, run):
        kinds = [Cost(k["cost_known_usd"], k["unpriced_calls"]) for k in source["usage_by_kind"].values()]
        assert sum(kinds, NO_COST).known == pytest.approx(source["cost_known_usd"])
        assert (source["cost_usd"] is None) == (source["unpriced_calls"] > 0)
    return {
        *(money(cost) for cost in in_json),
        next(row.value for row in shown.rows if row.name == "Cost"),
        next(row.text for row in status.rows if row.name == "Cost"),
        session_line(replace(usage, session=replace(usage.session, compactions=0)), []).rpartition(" · ")[2],
    }


@pytest.mark.parametrize("seed", one_of(range(6)))
async def test_screen_json_shell_and_export_name_one_figure_whatever_was_called(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    kinds = dice.choices((step("Fine."), SILENT, FAILS, REFUSED, delegate() + step("Found.") + step("Done.")), k=5)
    script = SUMMARY + "".join(kinds)
    async with opened(tmp_path, script) as (agent, seen):
        for number in range(5):
            if dice.random() < 0.3:
                await agent.models.switch(dice.choice(("paid", "free", "unpriced")))
            await say(agent, seen, f"Question {number}: " + "please port the billing module. " * 60)
            if dice.random() < 0.4:
                await agent.compaction.now()
            found = await figures(agent)
            assert len(found) == 1, found
        live, session = context_json(ContextReport.of(agent))["session"], agent.conversation.info.id
        looking = Agent(parts(tmp_path, script, resume=session))
        await looking.inspect()
        assert context_json(ContextReport.of(looking))["session"] == live
        await looking.close()
        spent = sum((s.cost for s in agent.conversation.steps if s.kind != "count"), NO_COST)
        day, _ = agent.store.spending.on(day_of(agent.conversation.steps[-1].created))
        assert day.known == pytest.approx(spent.known) and day.unpriced == spent.unpriced
    async with opened(tmp_path, resume=session) as (agent, _):
        assert await figures(agent) == found and "$0.0000" not in found


async def test_a_subagent_counts_while_it_works_and_is_not_lost_with_it(tmp_path: Path) -> None:
    async with opened(tmp_path, delegate() + HANGS) as (agent, seen):
        agent.turns.submit("look")
        await seen.until(lambda: any(s.kind == "subagent" for s in agent.conversation.steps))
        held = agent.context.usage().session
        assert held.by_kind["subagent"].calls == 1 and held.held_usd > 0
        stored = [s for s in agent.store.steps.all(agent.conversation.info.id) if s.kind == "subagent"]
        assert [s.status for s in stored] == ["running"], "killed now, it would be there when the session is opened"
        agent.turns.interrupt()
        await agent.turns.join()
        cost = agent.context.usage().session.by_kind["subagent"].cost
        assert cost.unpriced == 1
        assert len(await figures(agent)) == 1


async def test_each_turn_ends_with_what_all_its_calls_cost(tmp_path: Path) -> None:
    async with opened(tmp_path, delegate() + step("Found.") + step("Done.")) as (agent, seen):
        first = await say(agent, seen, "look")
        assert {kind: of.calls for kind, of in first.bill.by_kind.items()} == {"turn": 2, "subagent": 1}
        assert first.bill.cost == agent.context.usage().session.cost
        kinds = [entry["kind"] for entry in context_json(ContextReport.of(agent))["cache"]["steps"]]
        assert sorted(kinds) == ["subagent", "turn", "turn"]
        second = await say(agent, seen, "and again")
        assert (first.bill.cost + second.bill.cost).known == pytest.approx(agent.context.usage().session.cost.known)


def looks(times: int) -> str:
    """So many calls, no two of them the same."""
    return "".join(step(list={"path": ".", "depth": number + 1}) for number in range(times))


@pytest.mark.quick
async def test_a_turn_stops_before_the_call_that_would_break_its_budget_and_another_has_its_own(
    tmp_path: Path,
) -> None:
    script = looks(90) + step("Done.")
    async with opened(tmp_path, script, turn_usd=0.03) as (agent, seen):
        ended = await say(agent, seen, "work")
        (text,) = stops(seen)
        assert (ended.stop_reason, ended.failure) == ("budget", None)
        assert 0 < ended.bill.cost.known <= 0.03
        assert "budget.turn_usd = $0.0300" in text and money(ended.bill.cost, 4) in text
        calls = len(agent.conversation.steps)
        assert 1 < calls < 90
        assert (await say(agent, seen, "go on")).stop_reason == "budget"
        assert len(agent.conversation.steps) > calls, "another turn has its own budget"


@pytest.mark.slow
async def test_a_session_goes_on_when_its_budget_is_raised_and_keeps_that(tmp_path: Path) -> None:
    async with opened(tmp_path, session_usd=0.001) as (agent, seen):
        assert (await say(agent, seen, "hello")).stop_reason == "budget"
        assert agent.conversation.steps == [] and len(stops(seen)) == 1
        shown = await registry.run(agent, "/budget session 5")
        assert isinstance(shown, Text) and not shown.error and "of $5.00" in shown.text
        assert (await say(agent, seen, "go on")).stop_reason == "end"
        session = agent.conversation.info.id
    async with opened(tmp_path, resume=session, session_usd=0.001) as (agent, seen):
        assert (await say(agent, seen, "and on")).stop_reason == "end"
        await registry.run(agent, "/budget session 0.001")
        assert (await say(agent, seen, "and on")).stop_reason == "budget"
        info, _ = await agent.models.switch("free")
        assert info.spec.key == "free"
        assert (await say(agent, seen, "and on")).stop_reason == "end", "what costs nothing breaks no budget in dollars"


@pytest.mark.parametrize(
    "line",
    [
        "/budget week 5",
        "/budget session",
        "/budget session -1",
        "/budget run 5",
        "/budget turn x",
        "/budget turn nan",
        "/budget turn inf",
        "/budget turn 1e400",
        "/budget turn 0",
        "/budget turn 5k",
        "/budget tokens 500k",
        "/budget turn 1,5",
        "/budget session 0,75",
    ],
)
async def test_what_is_no_budget_is_one_line(line: str, tmp_path: Path) -> None:
    async with opened(tmp_path) as (agent, _):
        shown = await registry.run(agent, line)
        assert isinstance(shown, Text) and shown.error and "\n" not in shown.text
        assert agent.conversation.info.state.budget == {}


@pytest.mark.parametrize(
    ("typed", "limit"),
    [
        ("session 5", 5.0),
        ("session $0.50", 0.5),
        ("session .5", 0.5),
        ("session 1,250.75", 1250.75),
        ("session off", None),
    ],
)
async def test_a_budget_is_what_was_typed(typed: str, limit: float | None, tmp_path: Path) -> None:
    async with opened(tmp_path) as (agent, _):
        shown = await registry.run(agent, f"/budget {typed}")
        assert isinstance(shown, Text) and not shown.error
        assert agent.conversation.info.state.budget == {typed.split()[0]: limit}


async def test_a_budget_does_not_hold_for_a_model_without_a_price_which_is_said_once(tmp_path: Path) -> None:
    async with opened(tmp_path, model="unpriced", session_usd=0.000001) as (agent, seen):
        for _ in range(2):
            assert (await say(agent, seen, "hello")).stop_reason == "end"
        (told,) = [n.text for n in seen.of(Notice) if n.code == "budget_unpriced"]
        assert "unpriced" in told and "budget.session_usd" in told


async def test_a_subagent_stops_at_its_session_s_budget(tmp_path: Path) -> None:
    script = delegate() + looks(30)
    async with opened(tmp_path, script, session_usd=0.03) as (agent, seen):
        ended = await say(agent, seen, "look")
        assert ended.stop_reason == "budget"
        spent = agent.context.usage().session
        assert spent.by_kind["subagent"].calls > 2 and spent.cost.known <= 0.03
        answer = next(m.tool_result for m in agent.conversation.path if m.tool_result is not None)
        assert answer.is_error and "Stopped at budget.session_usd = $0.0300" in answer.text


@pytest.mark.quick
async def test_a_summary_is_not_paid_for_beyond_the_budget(tmp_path: Path) -> None:
    async with opened(tmp_path, SUMMARY) as (agent, seen):
        for number in range(4):
            await say(agent, seen, f"Question {number}: " + "please port the billing module. " * 150)
        spent = agent.context.usage().session.cost.known
        agent.budget.set("session", spent + 0.0001)
        await agent.compaction.now()
        (ended,) = seen.of(CompactionEnded)
        assert ended.outcome == "failed" and "budget.session_usd" in ended.text and "the summary call" in ended.text
        assert agent.context.usage().session.cost.known == spent
        agent.budget.set("session", spent + 1)
        await agent.compaction.now()
        assert seen.of(CompactionEnded)[-1].outcome == "done"


@pytest.mark.slow
async def test_a_day_is_of_all_sessions_and_another_agent_raises_it(tmp_path: Path) -> None:
    async with opened(tmp_path, day_usd=0.02) as (agent, seen), opened(tmp_path, day_usd=0.03) as (other, others):
        assert (await say(agent, seen, "hello")).stop_reason == "end"
        while (await say(other, others, "hello")).stop_reason == "end":
            assert len(other.conversation.steps) < 20
        assert (await say(agent, seen, "hello")).stop_reason == "budget"
        assert "budget.day_usd" in stops(seen)[0] and len(agent.conversation.steps) == 1
        line = next(line for line in agent.budget.lines() if line.name == "day")
        both = agent.context.usage().session.cost + other.context.usage().session.cost
        assert line.spent.known == pytest.approx(both.known)


@pytest.mark.slow
async def test_a_run_s_budget_is_of_what_was_called_since_it_began(tmp_path: Path) -> None:
    async with opened(tmp_path) as (agent, seen):
        await say(agent, seen, "hello")
        session = agent.conversation.info.id
    async with opened(tmp_path, resume=session, run=0.02) as (agent, seen):
        assert (await say(agent, seen, "hello")).stop_reason == "end"
        run = next(line for line in agent.budget.lines() if line.name == "run")
        assert 0 < run.spent.known < agent.context.usage().session.cost.known
        await agent.models.switch("free")
        await agent.models.switch("paid")
        assert next(line for line in agent.budget.lines() if line.name == "run").spent == run.spent


@pytest.mark.slow
@pytest.mark.parametrize("seed", one_of(range(3)))
async def test_a_run_s_budget_is_of_all_sessions_that_it_goes_through(seed: int, tmp_path: Path) -> None:
    """Forks, new sessions, others and back again: the run spent what its turns cost, and ends at its budget."""
    dice, spent = random.Random(seed), NO_COST
    async with opened(tmp_path, run=0.05) as (agent, seen):
        sessions = [agent.conversation.info.id]
        for _ in range(40):
            ended = await say(agent, seen, "hello")
            run = next(line for line in agent.budget.lines() if line.name == "run")
            spent += ended.bill.cost
            assert run.spent.known == pytest.approx(spent.known) and not run.spent.unpriced and not run.held
            if ended.stop_reason == "budget":
                break
            way = dice.choice(("fork", "clear", "resume", "stay"))
            if way == "fork":
                await agent.sessions.fork()
            elif way == "clear":
                await agent.sessions.clear()
            elif way == "resume":
                await agent.sessions.resume(dice.choice(sessions))
            sessions.append(agent.conversation.info.id)
            await agent.context.ready()
        assert ended.stop_reason == "budget" and len(set(sessions)) > 1
        assert "--budget" in stops(seen)[0] and 0.02 < run.spent.known <= 0.05
        await agent.sessions.clear()
        again = next(line for line in agent.budget.lines() if line.name == "run")
        assert again.spent == run.spent, "and a new session does not begin it anew"


async def test_an_answer_without_end_gets_one_so_that_others_can_be_asked_for_beside_it(tmp_path: Path) -> None:
    call = ExpectedCall(0.02, 1, 0, 1, cold_usd=0.02, rate=0.001)
    async with opened(tmp_path) as (agent, _):
        assert agent.budget.longest(call, None) == (None, None), "where no budget is set"
        agent.budget.set("session", 1_000.0)
        assert agent.budget.longest(call, None) == (32_000, None)
        assert agent.budget.longest(call, 64_000) == (64_000, None)
        agent.budget.set("session", 1.0205)
        room, line = agent.budget.longest(call, None)
        assert room == 1_000 and line is not None and line.name == "session"


@pytest.mark.quick
@pytest.mark.parametrize(("turn", "session"), [(1_000.0, 1.0205), (1.0205, 1_000.0)])
async def test_of_several_budgets_the_tightest_says_how_long_an_answer_may_be(
    tmp_path: Path, turn: float, session: float
) -> None:
    call = ExpectedCall(0.02, 1, 0, 1, cold_usd=0.02, rate=0.001)
    async with opened(tmp_path, turn_usd=turn, session_usd=session) as (agent, _):
        room, line = agent.budget.longest(call, None)
        assert room == 1_000 and line is not None and line.name == ("turn" if turn < session else "session")


async def test_a_report_that_cannot_be_judged_holds_nothing_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    async with opened(tmp_path, session_usd=1_000.0) as (agent, seen):
        monkeypatch.setattr("agent_tui.engine.runtime.believe", fails)
        assert (await say(agent, seen, "hello")).stop_reason == "error"
        assert len(seen.of(StepEnded)) == 1
        assert all(line.held == 0 for line in agent.budget.lines())


async def test_a_call_under_way_holds_its_money_back_from_others(tmp_path: Path) -> None:
    async with opened(tmp_path, HANGS, day_usd=0.02) as (agent, seen):
        agent.turns.submit("hello")
        await seen.until(lambda: seen.of(StepStarted))
        (begun,) = seen.of(StepStarted)
        assert begun.step.assumed_usd is not None and 0 < begun.step.assumed_usd < 0.02
        async with opened(tmp_path, day_usd=0.02) as (other, others):
            other.budget.set("day", begun.step.assumed_usd + 0.000001)
            assert (await say(other, others, "hello")).stop_reason == "budget"
            assert " pending)" in stops(others)[0]
        agent.turns.interrupt()
        await agent.turns.join()
        assert cost_fields(agent.context.usage().session.cost)["cost_usd"] is None


async def test_an_interrupted_call_counts_with_what_it_was_expected_to_cost(tmp_path: Path) -> None:
    async with opened(tmp_path, HANGS, session_usd=0.02) as (agent, seen):
        agent.turns.submit("hello")
        await seen.until(lambda: seen.of(StepStarted))
        agent.turns.interrupt()
        await agent.turns.join()
        (call,) = agent.conversation.steps
        line = next(line for line in agent.budget.lines() if line.name == "session")
        assert call.assumed_usd is not None and line.held == call.assumed_usd > 0


async def test_calls_at_once_are_measured_one_after_another(tmp_path: Path) -> None:
    async with opened(tmp_path, session_usd=1.0) as (agent, _):
        call = ExpectedCall(0.4, 1, 0, 1, cold_usd=0.4)

        def planned() -> PlannedCall:
            runtime = agent.runtime
            made: PlannedCall = next_call(runtime, runtime.usage())
            made.expected, made.most = call, None
            return made

        begun = await asyncio.gather(
            *(open_call(agent.runtime, planned(), lambda event: None) for _ in range(4)), return_exceptions=True
        )
        refused = [str(one) for one in begun if isinstance(one, NoRoomError)]
        assert len(refused) == 2 and "up to $0.80 pending" in refused[0]


async def test_the_steps_say_what_they_were_expected_to_cost(tmp_path: Path) -> None:
    async with opened(tmp_path, step("x" * 400)) as (agent, seen):
        await say(agent, seen, "hello")
        await asyncio.sleep(0)
        exported = json.loads(json.dumps(agent.store.export(agent.conversation.info.id)))
        (call,) = exported["steps"]
        assert call["assumed_usd"] >= call["cost_usd"] > 0
