"""What a change is said to take of earlier reasoning, against what the provider then gets, and gets again on the way
back: real requests to providers that count and that check signatures."""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent_tui.context.accounting.lost import LostReasoning, lost_text
from agent_tui.engine.agent import Agent
from agent_tui.models.events import CompactionEnded
from agent_tui.providers.client import ModelClient
from tests.support.agents import Recorder
from tests.support.forms import one_of
from tests.support.long_run_figures import FLAVOURS
from tests.support.true_provider import Exchange, Script
from tests.support.true_provider.wire import Answer, Question
from tests.support.true_runs import TrueRun

pytestmark = pytest.mark.asyncio(loop_scope="module")

WINDOW = 30_000
SIGNED, BOUND = "claude-4.6", "claude-5.1"
DROPPING = ("claude-4.5", "openai-chat", "responses", "gemini", "vllm")
"""Models whose provider takes no reasoning of closed turns into account."""


class Thinker(Script):
    """Thinks long and says little."""

    def answer(self, question: Question, turn: int, step: int, number: int) -> Answer:
        rng = random.Random(turn)
        thought = self.words(rng, 900) if question.thinking else ""
        return Answer(text=self.words(rng, 60), reasoning=thought)


class Talk(TrueRun):
    """A session with the model ``m`` of a provider, and another one ``n``."""

    agent: Agent
    seen: Recorder

    async def next(self) -> int:
        """One turn; tokens of earlier thinking that the provider found in its request and counted."""
        self.turn += 1
        ended = await self.say(self.agent, f"[{self.turn}] {Script.words(random.Random(self.turn), 40)}")
        await self.agent.context.ready()
        assert ended is not None and ended.stop_reason == "end", ended
        return self._turns()[-1].thought

    async def talk(self) -> int:
        """A few turns; what the next request to the model would count of their thinking."""
        for _ in range(3):
            counted = await self.next()
        return counted + self.last_thought()

    def first_thought(self) -> int:
        return self._thought(0)

    def last_thought(self) -> int:
        return self._thought(-1)

    def _thought(self, turn: int) -> int:
        usage = self._turns()[turn].usage
        return usage.reasoning if usage is not None else 0

    def _turns(self) -> list[Exchange]:
        return self.servers[self.agent.models.spec.key].truth.turns()


@asynccontextmanager
async def world(worker: ModelClient, name: str, folder: Path) -> AsyncIterator[Talk]:
    flavours = {"m": FLAVOURS[name], "n": FLAVOURS[SIGNED if name != SIGNED else BOUND]}
    run = Talk(flavours, WINDOW, Thinker(1, (), WINDOW, bad_summaries=False), worker, folder)
    try:
        async with run.opened() as (run.agent, run.seen):
            yield run
    finally:
        run.close()
    run.check()


def about(lost: LostReasoning | None, tokens: int) -> LostReasoning:
    """The loss, which the provider counts as ``tokens``. What it does not report is what the answer, as estimated,
    leaves of the output; and it counts all kinds of text alike, as no vocabulary of Claude does."""
    assert lost is not None
    assert abs(lost.tokens - tokens) <= 0.03 * tokens
    return lost


@pytest.mark.slow
@pytest.mark.parametrize("name", one_of([BOUND, SIGNED]))
async def test_a_switch_loses_what_was_thought_and_the_switch_back_brings_it(
    worker: ModelClient, tmp_path: Path, name: str
) -> None:
    async with world(worker, name, tmp_path) as w:
        expected = await w.talk()
        foretold = w.agent.models.lost_by(await w.agent.models.describe("n"))
        _, lost = await w.agent.models.switch("n")
        assert about(lost, expected) == foretold
        assert await w.next() == 0, "the other model gets none of it"
        await w.agent.models.switch("m")
        assert await w.next() == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", one_of(DROPPING, every=3))
async def test_nothing_is_lost_where_the_provider_drops_it_anyway(
    worker: ModelClient, tmp_path: Path, name: str
) -> None:
    async with world(worker, name, tmp_path) as w:
        await w.talk()
        assert await w.next() == 0
        assert w.agent.branches.lost(w.agent.conversation.path[0].parent_id) is None
        assert w.agent.models.lost_by(await w.agent.models.describe("n")) is None
        assert w.agent.models.set_effort("off") is None
        _, lost = await w.agent.models.switch("n")
        assert lost is None and lost_text(lost) == ""
        assert await w.agent.sessions.clear() is None


@pytest.mark.slow
async def test_thinking_off_is_undone_before_the_next_answer_only(worker: ModelClient, tmp_path: Path) -> None:
    async with world(worker, SIGNED, tmp_path) as w:
        expected = await w.talk()
        assert w.agent.models.set_effort("low") is None
        about(w.agent.models.set_effort("off"), expected)
        w.agent.models.set_effort("medium")
        assert await w.next() == expected, "taken back at once"
        w.agent.models.set_effort("off")
        assert await w.next() == 0
        w.agent.models.set_effort("medium")
        assert await w.next() == 0, "and not any more after an answer"


@pytest.mark.slow
@pytest.mark.parametrize("name", one_of([SIGNED, BOUND]))
async def test_a_compaction_loses_what_undoing_it_brings_back(worker: ModelClient, tmp_path: Path, name: str) -> None:
    async with world(worker, name, tmp_path) as w:
        for _ in range(2):
            await w.talk()
        expected = await w.talk()
        preview = next(line for line in (await w.agent.compaction.preview()).say.splitlines() if "reasoning" in line)
        assert "would no longer be sent." in preview
        await w.agent.compaction.now()
        [done] = [e for e in w.seen.of(CompactionEnded) if e.outcome == "done"]
        assert preview.partition(" would")[0] in done.text
        kept = await w.next()
        lost = expected - kept
        said = re.search(r"without ~?([\d.]+)k reasoning tokens", done.text)
        assert said is not None and abs(1_000 * float(said[1]) - lost) <= 0.02 * lost + 50
        behind = w.last_thought()
        await w.agent.compaction.undo()
        undone = w.seen.of(CompactionEnded)[-1].text
        again = await w.next()
        if name == BOUND:
            assert "are no longer sent" in undone, "made behind the summary, it fits nowhere else"
            assert again == expected
        else:
            assert "reasoning" not in undone
            assert again == expected + behind


@pytest.mark.parametrize("name", one_of([BOUND, SIGNED]))
async def test_going_back_to_a_message_loses_what_came_after_it(worker: ModelClient, tmp_path: Path, name: str) -> None:
    async with world(worker, name, tmp_path) as w:
        expected = await w.talk()
        second = [m for m in w.agent.conversation.path if m.role == "user"][1]
        about(w.agent.branches.lost(second.parent_id), expected - w.first_thought())
        await w.agent.branches.rewind(second.id)
        assert await w.next() == w.first_thought()
        # The branch that was left is as it was.
        await w.agent.branches.back()
        assert await w.next() == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", one_of([SIGNED, BOUND]))
async def test_what_stays_in_another_session_is_there_when_it_is_resumed(
    worker: ModelClient, tmp_path: Path, name: str
) -> None:
    async with world(worker, name, tmp_path) as w:
        expected = await w.talk()
        session = w.agent.conversation.info.id
        await w.agent.sessions.fork(w.agent.conversation.path[1].id)
        assert await w.next() == w.first_thought(), "the copy has what it was copied up to"
        await w.agent.sessions.resume(session)
        await w.agent.context.ready()
        about(await w.agent.sessions.clear(), expected)
        assert await w.next() == 0
        await w.agent.sessions.resume(session)
        await w.agent.context.ready()
        assert await w.next() == expected
