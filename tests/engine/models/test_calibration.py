"""The calibration of a model: over its newest steps in all sessions, under one name for writing and reading."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.config import PermissionsConfig, Settings
from agent_tui.context.tokens import O200K
from agent_tui.engine.models import calibration_key
from agent_tui.engine.state import AgentParts
from agent_tui.models.calibration import Calibration, raw_total, usable
from agent_tui.models.events import ContextChanged, Event, PartDelta
from agent_tui.providers.demo import DemoProvider
from tests.support.agents import TokenCounter, parts_for, running, words_only
from tests.support.forms import one_of


class More(TokenCounter):
    """A provider's tokenizer that finds five tokens where ours finds four."""

    async def count(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        return [words_only(round(1.25 * raw_total(counts))) for counts in await super().count(texts)]


@pytest.mark.slow
async def test_what_a_session_learned_the_next_one_knows(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "p"
    # A model of which nothing is known.
    settings = Settings(default_model="lemonade/new", permissions=PermissionsConfig(mode="auto"))

    def parts() -> AgentParts:
        provider = DemoProvider(More(), pace=0.0)
        return parts_for(home, project, settings=settings, counter=TokenCounter(), provider=lambda _: provider)

    async with running(parts()) as (agent, _):
        await agent.context.ready()
        assert agent.context.usage().accuracy.ratio == 1.0
        for number in range(9):
            agent.turns.submit(f"question {number}: " + "why is that so " * 520)
            await agent.turns.join()
        assert agent.models.info is not None
        key = calibration_key(agent.models.info)
        learned = agent.store.measured.calibration(key, "")
        assert learned is not None and learned.reports >= 6
        assert agent.runtime is not None and agent.runtime.calibration == learned
        assert agent.context.usage().accuracy.ratio == pytest.approx(1.25, abs=0.05)
        await agent.sessions.clear()
        await agent.context.ready()
        assert agent.runtime.calibration == learned
    async with running(parts()) as (agent, _):
        await agent.context.ready()
        assert agent.runtime is not None and agent.runtime.calibration == learned
        agent.turns.submit("hello")
        await agent.turns.join()
        agent.turns.submit("and once more: " + "why is that so " * 520)
        await agent.turns.join()
        step = agent.conversation.steps[-1]
        assert step.estimated_growth is not None and step.actual_growth is not None
        assert step.actual_growth > 1.2 * step.estimated_growth, "stored without the correction: not learned twice"
        assert step.estimated_input is not None and step.actual_input is not None
        assert abs(step.estimated_input - step.actual_input) < 80, "and corrected by it"


DAMAGED = (
    replace(O200K, factors=O200K.factors[:-1]),
    replace(O200K, factors=(math.nan, *O200K.factors[1:])),
    replace(O200K, covariance=O200K.covariance[:-1]),
    replace(O200K, covariance=(*O200K.covariance[:-1], O200K.covariance[0])),
    replace(O200K, covariance=((-1e-9,), *O200K.covariance[1:])),
    replace(O200K, noise=math.inf),
    replace(O200K, noise="0.03"),  # type: ignore[arg-type]
)


@pytest.mark.parametrize("stored", one_of(DAMAGED))
async def test_what_is_no_calibration_is_not_used_and_learned_anew(tmp_path: Path, stored: Calibration) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p", counter=TokenCounter())) as (agent, _):
        await agent.context.ready()
        assert agent.models.info is not None
        key = calibration_key(agent.models.info)
        agent.store.measured.learn(key, "", lambda before: stored)
        await agent.sessions.clear()
        await agent.context.ready()
        assert agent.runtime is not None and agent.runtime.calibration is None
        for text in ("hello " * 200, "and again " * 200):
            agent.turns.submit(text)
            await agent.turns.join()
        learned = agent.store.measured.calibration(key, "")
        assert learned is not None and learned.reports and usable(learned) == learned


async def test_every_number_while_an_answer_streams_has_what_is_in_flight(tmp_path: Path) -> None:
    script = '[[step]]\ntext = "%s"\nhang = true\nafter = 400\n' % ("word " * 100)
    parts = parts_for(tmp_path / "home", tmp_path / "p", script=script, counter=TokenCounter())
    async with running(parts) as (agent, seen):
        await agent.context.ready()
        arrived, streamed = asyncio.Event(), [0]

        def during(event: Event) -> None:
            if isinstance(event, PartDelta):
                streamed[0] += len(event.delta.text)
                if streamed[0] >= 400:
                    arrived.set()

        agent.subscribe(during)
        agent.turns.submit("hello")
        await arrived.wait()
        agent.context.recount()
        told = seen.of(ContextChanged)[-1]
        assert told.in_flight == -(-streamed[0] // 4), "the character rule, rounded up once"
        assert told.usage == agent.context.usage()
        agent.turns.interrupt()
        await agent.turns.join()
        assert seen.of(ContextChanged)[-1].in_flight == 0


async def test_missing_usage_is_a_warning_once_a_step(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    script = '[[step]]\ntext = "no numbers"\nusage = false\n'
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=script)) as (agent, _):
        agent.turns.submit("hello")
        await agent.turns.join()
        agent.context.usage()
        told = [r.getMessage() for r in caplog.records if "not built on" in r.getMessage()]
        assert len(told) == 1 and "no usage" in told[0] and agent.conversation.steps[-1].id in told[0]


@pytest.mark.slow
async def test_the_demo_model_counts_what_is_known_of_it(tmp_path: Path) -> None:
    """Every input is estimated to a few tokens, the first too, and a long result of which only a part is sent."""
    numbers = "\n".join(map(str, range(1, 20_000)))
    for name, text in (("read", "1,2,3\n" * 400), ("all", numbers)):
        (tmp_path / "p").mkdir(exist_ok=True)
        (tmp_path / "p" / name).write_text(text, "utf-8")
    script = "".join(
        f"[[step]]\nreasoning = 'Look at {name} first.'\ntext = 'So.'\n"
        f"tool_calls = [{{ name = 'bash', arguments = {{ command = 'cat {name}' }} }}]\n"
        for name in ("read", "all")
    )
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=script, counter=TokenCounter())) as (
        agent,
        _,
    ):
        await agent.context.ready()
        assert agent.context.usage().spread <= 12
        for question in ("look", "and now?", "thank you"):
            agent.turns.submit(question)
            await agent.turns.join()
        steps = [step for step in agent.conversation.steps if step.kind == "turn"]
    assert len(steps) == 5 and all(step.status == "complete" for step in steps)
    for step in steps:
        assert step.estimated_input is not None and step.actual_input is not None
        off, spread = abs(step.estimated_input - step.actual_input), step.estimated_spread or 0
        assert off <= spread and (off <= 12 or step.prune_ids), (off, spread)
