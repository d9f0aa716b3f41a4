"""The first request of a process goes out before its tokens are counted, and its numbers end up as if they had been."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from agent_tui.engine.runtime import DECISION_SHARE
from agent_tui.models.requests import ModelRequest, StreamItem
from agent_tui.models.steps import Step
from agent_tui.providers.demo import DemoProvider
from tests.support.agents import WordCounter, parts_for, running, words_only

pytestmark = pytest.mark.quick


class HeldCounter:
    """Counts twice what the character rule guesses, once it is let."""

    running = True

    def __init__(self) -> None:
        self.asked, self.free = asyncio.Event(), asyncio.Event()

    async def count(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        self.asked.set()
        await self.free.wait()
        return [words_only(-(-len(text) // 2)) for text in texts]


class HeldProvider(DemoProvider):
    """Answers once it is let."""

    def __init__(self) -> None:
        super().__init__(WordCounter(), None, pace=0.0)
        self.asked, self.free = asyncio.Event(), asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        self.asked.set()
        await self.free.wait()
        async for item in super().stream(request):
            yield item


async def test_counts_that_come_while_it_is_answered_are_those_of_its_step(tmp_path: Path) -> None:
    counter, provider = HeldCounter(), HeldProvider()
    parts = parts_for(tmp_path / "home", tmp_path / "p", counter=counter, provider=lambda _: provider)
    async with running(parts) as (agent, _):
        agent.turns.submit("hello " * 100)
        await provider.asked.wait()
        guessed = agent.context.usage()
        assert guessed.pending
        counter.free.set()
        await agent.context.ready()
        counted = agent.context.usage()
        provider.free.set()
        await agent.turns.join()
        step = agent.conversation.steps[-1]
        assert counted.total > guessed.total
        assert step.estimated_input == counted.total
        assert step.estimated_growth == counted.calculation.new_estimated


async def test_nothing_is_learned_where_no_counts_came(tmp_path: Path) -> None:
    counter, provider = HeldCounter(), HeldProvider()
    parts = parts_for(tmp_path / "home", tmp_path / "p", counter=counter, provider=lambda _: provider)
    async with running(parts) as (agent, _):
        agent.turns.submit("hello " * 100)
        await provider.asked.wait()
        provider.free.set()
        await agent.turns.join()
        assert _learns_nothing(agent.conversation.steps[-1])
        counter.free.set()


async def test_nothing_is_learned_where_other_files_are_pinned_meanwhile(tmp_path: Path) -> None:
    project = tmp_path / "p"
    project.mkdir()
    (project / "spec.md").write_text("a line of the specification\n" * 40)
    counter, provider = HeldCounter(), HeldProvider()
    parts = parts_for(tmp_path / "home", project, counter=counter, provider=lambda _: provider)
    async with running(parts) as (agent, _):
        agent.turns.submit("hello " * 100)
        await provider.asked.wait()
        sent = agent.context.usage().total
        agent.context.pin("spec.md")
        counter.free.set()
        await agent.context.ready()
        provider.free.set()
        await agent.turns.join()
        step = agent.conversation.steps[-1]
        assert _learns_nothing(step)
        assert step.estimated_input == sent


async def test_what_may_be_beyond_the_limit_is_counted_first(tmp_path: Path) -> None:
    counter, provider = HeldCounter(), HeldProvider()
    parts = parts_for(tmp_path / "home", tmp_path / "p", counter=counter, provider=lambda _: provider)
    async with running(parts) as (agent, _):
        described = asyncio.Event()
        agent.subscribe(lambda _: described.set() if agent.models.info is not None else None)
        await described.wait()
        limit = agent.context.usage().limit
        assert limit is not None
        provider.free.set()
        agent.turns.submit("x" * round(4 * limit * (DECISION_SHARE + 0.02)))
        await counter.asked.wait()
        waiting = asyncio.create_task(provider.asked.wait())
        for _ in range(200):
            await asyncio.sleep(0)
        assert not provider.asked.is_set()
        counter.free.set()
        await waiting
        await agent.turns.join()


def _learns_nothing(step: Step) -> bool:
    return step.estimated_growth is None and step.actual_growth is None
