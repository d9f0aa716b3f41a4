"""Exact counts through the agent: stored only where they are still about what would be sent, never in the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.config import ContextConfig, PermissionsConfig, Settings
from agent_tui.context.tokens import format_metrics
from agent_tui.engine.agent import Agent
from agent_tui.engine.calls import stand_in
from agent_tui.engine.models import recalled_calibration
from agent_tui.errors import WorkerError
from agent_tui.models.events import ContextChanged, Event, Notice
from agent_tui.models.requests import Counter, ModelInfo, ModelRequest, ModelSpec
from agent_tui.providers.catalog import resolve_target
from agent_tui.providers.demo import DemoProvider
from agent_tui.providers.demo_script import Witness
from tests.support.agents import Recorder, parts_for, running

pytestmark = pytest.mark.quick

LONG = "word " * 10_000
"""Longer than what an estimate is good enough for, well inside the demo model's window."""


COUNTED = 12_345 - stand_in(resolve_target(ModelSpec("demo", "demo")))[1]
"""What the provider counts, less what stood for the user's next message."""


class Counting(DemoProvider):
    """The demo model, with an endpoint that counts when the test says so."""

    def __init__(self, counter: Counter) -> None:
        super().__init__(counter, None, pace=0.0)
        self.asked: list[ModelRequest] = []
        self.tokens = 12_345
        self.answer = asyncio.Event()
        self.on_ask: Callable[[], None] = lambda: None
        self._done = asyncio.Semaphore(0)

    async def count_exact(self, request: ModelRequest) -> int | None:
        self.asked.append(request)
        self.on_ask()
        await self.answer.wait()
        self._done.release()
        return self.tokens

    async def answered(self, times: int) -> None:
        """Waits until so many counts have been answered and taken in."""
        for _ in range(times):
            await self._done.acquire()
        await asyncio.sleep(0)


class OwnServer(Counting):
    """A server that counts by itself, as it counts what it is sent."""

    def __init__(self, counter: Counter) -> None:
        super().__init__(counter)
        self.answer.set()
        self._own = Witness(counter)

    async def describe(self, spec: ModelSpec) -> ModelInfo:
        return replace(await super().describe(spec), counting="input_tokens")

    async def count_exact(self, request: ModelRequest) -> int | None:
        self.tokens, _ = await self._own.input_tokens(request)
        return await super().count_exact(request)


class NoCounter:
    """A tokenizer that cannot be had."""

    running = True

    async def count(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        raise WorkerError("There is none.")


@asynccontextmanager
async def counting(
    tmp_path: Path,
    exact: str = "auto",
    resume: str | None = None,
    kind: type[Counting] = Counting,
    counter: Counter | None = None,
) -> AsyncIterator[tuple[Agent, Recorder, Counting]]:
    made: list[Counting] = []

    def provider(counter: Counter) -> Counting:
        made.append(kind(counter))
        return made[0]

    context = ContextConfig(exact_counting=exact)  # type: ignore[arg-type]
    settings = Settings(permissions=PermissionsConfig(mode="auto"), context=context)
    parts = parts_for(
        tmp_path / "home", tmp_path / "p", settings=settings, provider=provider, resume=resume, counter=counter
    )
    async with running(parts) as (agent, seen):
        await agent.context.ready()
        yield agent, seen, made[0]


def when(agent: Agent, fits: Callable[[Event], bool]) -> asyncio.Event:
    """Set once an event that fits has been published."""
    happened = asyncio.Event()
    agent.subscribe(lambda event: happened.set() if fits(event) else None)
    return happened


def counts(agent: Agent) -> list[int]:
    return [s.usage.input for s in agent.conversation.steps if s.kind == "count" and s.usage is not None]


async def test_a_count_of_what_is_sent_now_anchors(tmp_path: Path) -> None:
    async with counting(tmp_path) as (agent, _, provider):
        agent.turns.submit("hello")
        await agent.turns.join()
        provider.answer.set()
        assert await agent.context.count_exact() == COUNTED
        assert agent.context.usage().total == COUNTED and counts(agent) == [COUNTED]
        assert provider.asked[-1].messages[-1].message.role == "user", "what goes out next ends with the user's words"


async def test_a_count_anchors_where_no_text_was_counted_yet(tmp_path: Path) -> None:
    async with counting(tmp_path, counter=NoCounter()) as (agent, _, provider):
        agent.turns.submit("hello")
        await agent.turns.join()
        provider.answer.set()
        assert agent.context.usage().pending
        assert await agent.context.count_exact() == COUNTED
        assert (agent.context.usage().total, agent.context.usage().basis) == (COUNTED, "measured")


async def test_a_count_is_discarded_when_the_conversation_moved_on(tmp_path: Path) -> None:
    async with counting(tmp_path) as (agent, _, provider):
        agent.turns.submit("hello")
        await agent.turns.join()
        asked = asyncio.create_task(agent.context.count_exact())
        await asyncio.sleep(0)
        agent.turns.submit("more")
        await agent.turns.join()
        total = agent.context.usage().total
        provider.answer.set()
        assert await asked is None
        assert counts(agent) == [] and agent.context.usage().total == total


async def test_a_count_is_discarded_when_the_fixed_parts_changed(tmp_path: Path) -> None:
    async with counting(tmp_path) as (agent, _, provider):
        (tmp_path / "p" / "spec.md").write_text("a line\n" * 100)
        agent.turns.submit("hello")
        await agent.turns.join()
        asked = asyncio.create_task(agent.context.count_exact())
        await asyncio.sleep(0)
        agent.context.pin("spec.md")
        provider.answer.set()
        assert await asked is None and counts(agent) == []


async def test_a_count_is_discarded_when_the_session_was_left(tmp_path: Path) -> None:
    async with counting(tmp_path) as (agent, _, provider):
        agent.turns.submit("hello")
        await agent.turns.join()
        left = agent.conversation.info.id
        asked = asyncio.create_task(agent.context.count_exact())
        await asyncio.sleep(0)
        await agent.sessions.clear()
        provider.answer.set()
        assert await asked is None
        assert all(s.kind != "count" for s in agent.store.steps.all(left))


async def test_off_is_told_and_asks_nobody(tmp_path: Path) -> None:
    async with counting(tmp_path, "off") as (agent, seen, provider):
        provider.answer.set()
        agent.turns.submit(LONG)
        await agent.turns.join()
        assert await agent.context.count_exact() is None
        assert provider.asked == []
        assert [e.text for e in seen.of(Notice) if e.code == "exact_counting"] == [
            "Exact counting is off (context.exact_counting)."
        ]


async def test_a_long_first_prompt_is_counted_beside_its_step(tmp_path: Path) -> None:
    async with counting(tmp_path) as (agent, _, provider):
        asked = asyncio.Event()
        provider.on_ask = asked.set
        agent.turns.submit(LONG)
        await asked.wait()
        await agent.turns.join()
        measured = agent.context.usage()
        assert measured.anchor_step == agent.conversation.steps[0].id, "the step did not wait for the count"
        provider.answer.set()
        await provider.answered(1)
        assert agent.context.usage().total == measured.total and counts(agent) == []
        agent.turns.submit("hello")
        await agent.turns.join()
        assert len(provider.asked) == 1, "with an anchor nothing is asked"


async def test_a_session_without_an_anchor_is_counted_when_it_is_resumed(tmp_path: Path) -> None:
    async with counting(tmp_path) as (agent, _, provider):
        provider.tokens = 0
        provider.answer.set()
        agent.turns.submit(LONG)
        await agent.turns.join()
        agent.conversation.steps[0].usage = None
        agent.conversation.save_step(agent.conversation.steps[0])
        session = agent.conversation.info.id
    async with counting(tmp_path, resume=session) as (agent, _, provider):
        changed = when(agent, lambda e: isinstance(e, ContextChanged) and e.usage.total == COUNTED)
        provider.answer.set()
        await changed.wait()
        assert counts(agent) == [COUNTED]


async def test_what_changes_the_conversation_at_its_root_is_a_recalculation(tmp_path: Path) -> None:
    async with counting(tmp_path) as (agent, _, provider):
        provider.answer.set()
        for text in ("hello " * 1_000, "more " * 1_000, "and " * 1_000):
            agent.turns.submit(text)
            await agent.turns.join()
        assert agent.context.metrics.recalculations == 0
        await agent.compaction.now()
        assert agent.context.metrics.recalculations == 1
        await agent.compaction.undo()
        assert agent.context.metrics.recalculations == 2
        await agent.branches.rewind(agent.conversation.path[-2].id)
        assert agent.context.metrics.recalculations == 3
        await agent.models.switch("demo")
        assert agent.context.metrics.recalculations == 4
        assert "Recalculations: 4" in format_metrics(agent.context.metrics)
        assert agent.context.metrics.hits > 0 and agent.context.metrics.misses > 0


async def test_ones_own_server_counts_before_the_first_word_and_the_first_request(tmp_path: Path) -> None:
    async with counting(tmp_path, kind=OwnServer) as (agent, _, provider):
        await agent.events.settled()
        usage = agent.context.usage()
        assert usage.basis == "measured", "system and tools, before anything was said"
        assert usage.total == counts(agent)[-1] == sum(row.tokens for row in usage.rows)
        agent.turns.submit("row,12345\n" * 300)
        await agent.turns.join()
        first = next(s for s in agent.conversation.steps if s.kind == "turn")
        assert first.usage is not None
        assert first.estimated_input == first.usage.input
        learned = recalled_calibration(agent.store, await agent.models.describe("demo"))
        assert learned is not None
        assert learned.reports == 2, "both counts have taught how this model counts: the tools, and the message"
        assert [m.message.role for m in provider.asked[-1].messages] == ["user"]
        asked = len(provider.asked)
        agent.turns.submit("and now?")
        await agent.turns.join()
        assert len(provider.asked) == asked, "what was measured is not counted again"
        session = agent.conversation.info.id
    async with counting(tmp_path, resume=session, kind=OwnServer) as (agent, _, provider):
        assert [s.kind for s in agent.conversation.steps] == ["count", "count", "turn", "turn"]


async def test_a_server_that_counts_slowly_is_not_waited_for(tmp_path: Path) -> None:
    async with counting(tmp_path, kind=OwnServer) as (agent, seen, provider):
        await agent.events.settled()
        provider.answer.clear()
        agent.turns.submit("row,12345\n" * 300)
        await agent.turns.join()
        assert seen.last_end.stop_reason == "end"
        provider.answer.set()
        await agent.events.settled()
        total = agent.context.usage().total
        assert agent.context.usage().anchor_step == agent.conversation.steps[-1].id, total


async def test_what_was_not_sent_yet_is_told_to_no_provider(tmp_path: Path) -> None:
    async with counting(tmp_path) as (agent, _, provider):
        provider.answer.set()
        assert await agent.context.count_exact() is None
        assert provider.asked == []
