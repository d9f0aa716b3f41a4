"""Compactions before the limit: what is offered, what is spent, and that nobody is asked twice."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.config import CompactWhen, ContextConfig, ModelConfig, PermissionsConfig, Settings
from agent_tui.context.cache_forecast import Moment
from agent_tui.context.compaction.worth import Pace, Worth
from agent_tui.engine import cache_forecast, calls, sent_log, session_control
from agent_tui.engine.compaction.early import Offers
from agent_tui.models.codec import from_dict, to_dict
from agent_tui.models.events import CompactionEnded, CompactionOffered, CompactionStarted, Notice
from agent_tui.models.failure import Failure
from agent_tui.models.requests import Counter, Failed, ModelInfo, ModelRequest, ModelSpec, StreamItem
from agent_tui.models.session import SessionState
from agent_tui.models.usage import Limits, Prices
from agent_tui.providers.demo import DemoProvider
from agent_tui.providers.dialects.record import Caching
from tests.support.agents import Recorder, parts_for, running


def worth(moment: Moment = "warm", going_on: float = 2.0, compacting: float = 0.5, priced: bool = True) -> Worth:
    return Worth(moment, Pace(3, 4), 150_000, 30_000, 0, compacting / 2, 0.4, going_on, compacting / 2, priced)


@pytest.mark.slow
def test_at_the_limit_alone_nothing_is_ever_said() -> None:
    offers = Offers("limit")
    assert not offers.open("s1", "cold")
    assert offers.look("s1", worth("cold")) == "nothing"


@pytest.mark.slow
def test_it_is_offered_once_and_goes_when_it_is_no_longer_true() -> None:
    offers = Offers("ask")
    assert offers.look("s1", worth("expiring")) == "offer"
    assert offers.look("s1", worth("expiring")) == "nothing"
    assert offers.look("s1", surer := worth("expiring", going_on=1.4)) == "renew"
    assert offers.standing is surer, "the figures that are shown are those of now"
    assert offers.look("s1", None) == "withdraw"
    assert offers.standing is None and offers.accept() is None
    assert offers.look("s1", worth("expiring")) == "nothing", "never twice for the same moment"
    assert not offers.open("s1", "expiring") and offers.open("s1", "cold") and offers.open("s2", "expiring")


def test_nobody_who_did_not_answer_is_asked_after_each_turn() -> None:
    offers = Offers("ask")
    assert offers.look("s1", worth(going_on=1.0)) == "offer"
    offers.withdraw()
    assert offers.look("s2", worth(going_on=1.4)) == "nothing"
    assert offers.look("s3", worth(going_on=1.6)) == "offer", "twice as much could be saved"
    offers.settle("s3", done=True)
    assert offers.look("s4", worth(going_on=1.0)) == "offer"


def test_cheaper_spends_only_where_it_is_plainly_cheaper_and_allowed() -> None:
    assert Offers("cheaper").look("s1", worth(compacting=0.9)) == "compact"
    assert Offers("cheaper").look("s1", worth(compacting=1.2)) == "offer"
    assert Offers("cheaper").look("s1", worth(), held=True) == "offer"
    assert Offers("cheaper").look("s1", worth(going_on=2e5, compacting=1e4, priced=False)) == "offer", "no price"
    assert Offers("cheaper").look("s1", worth(going_on=0.04, compacting=0.0)) == "nothing"


def test_what_was_asked_survives_a_restart() -> None:
    offers = Offers("ask")
    offers.look("s1", worth(going_on=1.0))
    state = from_dict(SessionState, to_dict(offers.kept_in(SessionState())))
    again = Offers.from_state(state, "ask")
    assert again.unanswered == offers.unanswered
    assert again.look("s1", worth(going_on=9.0)) == "nothing"
    assert again.look("s2", worth(going_on=1.0)) == "nothing"


ACTS = st.one_of(
    st.tuples(
        st.just("look"),
        st.sampled_from(get_args(Moment)),
        st.floats(0, 5),
        st.floats(0, 5),
        st.booleans(),
        st.booleans(),
    ),
    st.sampled_from([("turn",), ("accept",), ("withdraw",), ("settle",), ("undo",), ("restart",), ("nothing",)]),
)


@given(st.sampled_from(get_args(CompactWhen)), st.lists(ACTS, max_size=40))
def test_whatever_happens_nobody_is_asked_twice_and_nothing_is_spent_unasked(
    when: CompactWhen, acts: list[Any]
) -> None:
    offers, step, told = Offers(when), 0, list[tuple[int, str]]()
    shown, line = False, ""
    for act in acts:
        match act:
            case ("look", moment, going_on, compacting, priced, held):
                now = worth(moment, going_on, compacting, priced)
                decision = offers.look(f"s{step}", now, held=held)
                assert decision != "compact" or (when == "cheaper" and now.plainly and priced and not held)
                assert decision not in ("offer", "compact") or now.worthwhile
                if decision in ("offer", "compact"):
                    assert (step, moment) not in told
                    told.append((step, moment))
                assert decision != "withdraw" or shown
                assert decision != "renew" or shown
                shown = decision == "offer" or (shown and decision in ("nothing", "renew"))
                line = now.line() if decision in ("offer", "renew") else line
                assert offers.standing is None or offers.standing.line() == line, "what is shown is what is taken up"
                assert shown == (offers.standing is not None)
                assert when != "limit" or decision == "nothing"
            case ("nothing",):
                offers.look(f"s{step}", None)
                shown = False
            case ("turn",):
                offers.withdraw()
                step, shown = step + 1, False
            case ("accept",):
                assert (offers.accept() is not None) is shown
                assert offers.accept() is None, "one key, one compaction"
                shown = False
            case ("withdraw",):
                assert offers.withdraw() is shown
                shown = False
            case ("settle",) | ("undo",):
                offers.settle(f"s{step}", done=act == ("settle",))
                told += [(step, moment) for moment in get_args(Moment)]
                shown = False
            case ("restart",):
                offers = Offers.from_state(from_dict(SessionState, to_dict(offers.kept_in(SessionState()))), when)
                shown = False


class Clock:
    moved = 0.0

    def time(self) -> float:
        return time.time() + self.moved


class Priced(DemoProvider):
    """The demo model at a price; ``cheap`` writes the summaries. Those in ``broken`` do not answer."""

    broken: Sequence[str] = ()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        if request.spec.key in self.broken:
            yield Failed(Failure("auth", "No key."))
            return
        async for item in super().stream(request):
            yield item

    async def describe(self, spec: ModelSpec) -> ModelInfo:
        prices = Prices(1e-6, 1e-6, 0.1e-6) if spec.key == "cheap" else Prices(30e-6, 30e-6, 3e-6)
        found = await super().describe(spec)
        target = replace(found.target, model=spec.key)
        return replace(found, target=target, prices=prices, limits=Limits(120_000, None, 4_096, "config"))


class Table:
    """An agent whose cache lives for five minutes, and the time."""

    def __init__(self, folder: Path, when: CompactWhen) -> None:
        self.clock, self.folder, self.when = Clock(), folder, when
        self.broken: list[str] = []

    def parts(self, *, resume: bool = False, **context: Any) -> Any:
        settings = Settings(
            permissions=PermissionsConfig(mode="auto"),
            context=ContextConfig(compact_when=self.when, summary_model="cheap", **context),
            models={"cheap": ModelConfig(model="demo")},
        )
        home = self.folder / "home"

        def make(counter: Counter) -> Priced:
            provider = Priced(counter, None, pace=0.0)
            provider.broken = self.broken
            return provider

        parts = parts_for(home, self.folder / "p", settings=settings, provider=make, continue_newest=resume)
        parts.model_key = "demo"
        return parts

    def between_two(self) -> Any:
        """The same with a second model of the same price, and each writes its own summaries."""
        parts = self.parts()
        parts.settings.context.summary_model = None
        parts.settings.models["two"] = ModelConfig(model="demo")
        return parts

    def __enter__(self) -> Table:
        kept = Caching(minimum=0, life=300.0)
        self.patches: list[Any] = [
            mock.patch.object(module, "time", self.clock) for module in (cache_forecast, calls, session_control)
        ]
        self.patches.append(mock.patch.object(sent_log, "caching_of", return_value=kept))
        for patch in self.patches:
            patch.start()
        return self

    def __exit__(self, *_: object) -> None:
        for patch in self.patches:
            patch.stop()


async def talk(agent: Any, turns: int = 5) -> None:
    for number in range(turns):
        agent.turns.submit(f"{number}: " + "We speak of many things at length here. " * 1_200)
        await agent.turns.join()
    await agent.events.settled()


def offered(seen: Recorder) -> list[str]:
    return [event.line for event in seen.of(CompactionOffered) if not event.renewed]


@pytest.mark.slow
async def test_before_the_cache_expires_one_line_offers_it_and_one_word_does_it(tmp_path: Path) -> None:
    with Table(tmp_path, "ask") as table:
        async with running(table.parts()) as (agent, seen):
            await talk(agent)
            before = len(offered(seen))
            table.clock.moved = 200.0
            for _ in range(3):
                await agent.context.refresh()
                await agent.events.settled()
            (line,) = [line for line in offered(seen)[before:] if line]
            assert line.startswith("Compact now ~$") and "; after " in line and line.count("~$") == 3
            assert not seen.of(CompactionStarted), "nothing is spent unasked"
            await agent.compaction.accept()
            assert [event.outcome for event in seen.of(CompactionEnded)] == ["done"]
            assert offered(seen)[-1] == "", "it stands no more"
            calls_made = sum(step.kind == "compaction" for step in agent.conversation.steps)
            await agent.compaction.accept()
            assert sum(step.kind == "compaction" for step in agent.conversation.steps) == calls_made
            await agent.compaction.undo()
            await agent.events.settled()
            assert offered(seen)[-1] == "", "what was just taken back is not offered"


@pytest.mark.slow
async def test_a_message_takes_the_offer_away(tmp_path: Path) -> None:
    with Table(tmp_path, "ask") as table:
        async with running(table.parts()) as (agent, seen):
            await talk(agent)
            table.clock.moved = 200.0
            await agent.context.refresh()
            await agent.events.settled()
            assert offered(seen)[-1]
            agent.turns.submit("And on.")
            await agent.turns.join()
            await agent.compaction.accept()
            assert "" in offered(seen) and not seen.of(CompactionStarted)


async def test_a_restart_does_not_ask_again(tmp_path: Path) -> None:
    with Table(tmp_path, "ask") as table:
        async with running(table.parts()) as (agent, seen):
            await talk(agent)
            table.clock.moved = 200.0
            await agent.context.refresh()
            await agent.events.settled()
            asked = agent.conversation.info.state.compaction_asked
        async with running(table.parts(resume=True)) as (agent, seen):
            await agent.context.ready()
            await agent.context.refresh()
            await agent.events.settled()
            assert agent.conversation.info.state.compaction_asked == asked
            assert not [line for line in offered(seen) if line]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_in_ask_only_what_was_taken_up_is_spent_whatever_happens(tmp_path: Path, seed: int) -> None:
    rng, taken = random.Random(seed), 0
    with Table(tmp_path, "ask") as table:
        async with running(table.between_two()) as (agent, seen):
            await talk(agent, 4)
            acts = ["turn", *["time"] * 4, *["switch"] * 2, *["accept"] * 4, *["undo"] * 2]
            for act in ["time", "accept", *rng.choices(acts, k=16)]:
                spent, stands = calls_for_summaries(agent), bool(offered(seen)) and bool(offered(seen)[-1])
                match act:
                    case "turn":
                        await talk(agent, 1)
                    case "time":
                        table.clock.moved += rng.choice((30.0, 200.0, 400.0))
                    case "switch":
                        await agent.models.switch(rng.choice(("demo", "two")))
                    case "accept":
                        await agent.compaction.accept()
                        taken += stands
                    case "undo":
                        await agent.compaction.undo()
                await agent.context.refresh()
                await agent.events.settled()
                assert (calls_for_summaries(agent) > spent) == (act == "accept" and stands), act
            assert len(seen.of(CompactionStarted)) == taken


def calls_for_summaries(agent: Any) -> int:
    return sum(step.kind == "compaction" for step in agent.conversation.steps)


@pytest.mark.parametrize(("when", "made"), [("limit", 0), ("ask", 0), ("cheaper", 1)])
async def test_only_cheaper_compacts_by_itself_and_says_so(tmp_path: Path, when: CompactWhen, made: int) -> None:
    with Table(tmp_path, when) as table:
        async with running(table.parts()) as (agent, seen):
            await talk(agent)
            table.clock.moved = 200.0
            for _ in range(2):
                await agent.context.refresh()
                await agent.events.settled()
            told = [notice for notice in seen.of(Notice) if notice.code == "compact_cheaper"]
            assert len(told) == len(seen.of(CompactionStarted)) == made
            assert {record.reason for record in agent.conversation.records} <= {"cheaper"}
            assert bool(offered(seen)) is (when == "ask")
            why = await agent.compaction.worth()
            assert f'compact_when = "{when}"' in why or made


async def test_why_shows_the_inequality_that_holds(tmp_path: Path) -> None:
    with Table(tmp_path, "limit") as table:
        async with running(table.parts()) as (agent, _):
            await talk(agent)
            table.clock.moved = 400.0
            why = await agent.compaction.worth()
            assert "Compacting now: summary ~$" in why and "Going on: next 4 turns of 1 call" in why
            assert "the first of them uncached" in why
            sums = [line.rpartition("~$")[2] for line in why.splitlines()[:2]]
            assert why.splitlines()[2].startswith(f"~${sums[0]}") and f"~${sums[1]}:" in why.splitlines()[2]


@pytest.mark.slow
async def test_after_a_switch_the_model_that_has_it_in_its_cache_writes_the_summary_where_that_is_cheaper(
    tmp_path: Path,
) -> None:
    with Table(tmp_path, "ask") as table:
        async with running(table.between_two()) as (agent, seen):
            (agent.cwd / "large.txt").write_text("We speak of many things at length here. " * 900)
            await talk(agent)
            await agent.models.switch("two")
            await agent.context.refresh()
            await agent.events.settled()
            line = offered(seen)[-1]
            assert (
                line.startswith("Compact now ~$") and ", uncached: ~$" in line and line.endswith(" · summary by demo")
            )
            for _ in range(2):
                await agent.context.refresh()
                await agent.events.settled()
            agent.context.pin("large.txt")
            await agent.context.refresh()
            await agent.events.settled()
            newest = seen.of(CompactionOffered)[-1]
            assert newest.renewed and newest.line != line, "its figures are those of now"
            assert (await agent.compaction.worth()).startswith("Compacting now: summary by demo ~$")
            assert [said for said in offered(seen) if "by demo" in said] == [line], "never twice"
            await agent.compaction.accept()
            assert [event.outcome for event in seen.of(CompactionEnded)] == ["done"]
            (call,) = [step for step in agent.conversation.steps if step.kind == "compaction"]
            assert call.model_key == "demo" and agent.conversation.records[-1].warm
            agent.turns.submit("And on.")
            await agent.turns.join()
            assert agent.conversation.steps[-1].model_key == "two"


@pytest.mark.slow
async def test_where_the_old_models_cache_is_cold_or_it_does_not_answer_the_new_one_writes(tmp_path: Path) -> None:
    with Table(tmp_path, "limit") as table:
        async with running(table.between_two()) as (agent, seen):
            await talk(agent)
            await agent.models.switch("two")
            table.clock.moved = 400.0
            await agent.compaction.now()
            await agent.compaction.undo()
            table.clock.moved = 0.0
            table.broken.append("demo")
            await agent.compaction.now()
            assert [event.outcome for event in seen.of(CompactionEnded)] == ["done", "undone", "done"]
            assert len(seen.of(CompactionStarted)) == 2, (
                "one beginning for each, also where a second model has to write"
            )
            made = [step for step in agent.conversation.steps if step.kind == "compaction"]
            assert [(step.model_key, step.status) for step in made] == [
                ("two", "complete"), ("demo", "failed"), ("two", "complete"),
            ]  # fmt: skip
