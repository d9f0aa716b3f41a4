"""Answers that break off, come to nothing or end in an unknown way: what is tried again, shown, stored and paid."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path

import pytest

from agent_tui.config import BudgetConfig, ModelConfig, PermissionsConfig, Settings
from agent_tui.engine.agent import Agent
from agent_tui.engine.model_call import NOT_RUN
from agent_tui.engine.turns.toolrunner import CUT_OFF
from agent_tui.models.events import AnswerInterrupted, MessagesWithdrawn, Notice, PartDelta, RetryWaiting, TurnEnded
from agent_tui.models.failure import Failure, FailureKind, Overflow
from agent_tui.models.messages import Message, TextPart
from agent_tui.models.requests import Counter, Delta, Failed, Finished, ModelRequest, StreamItem, UsageReport
from agent_tui.models.usage import TokenUsage
from agent_tui.providers.demo import DemoProvider
from tests.support.agents import Recorder, parts_for, running

pytestmark = pytest.mark.quick

BREAKS = '[[step]]\ntext = "half an answer"\nchunk = 4\nafter = 6\nerror = { kind = "%s", retry_after = 0.0 }\n'
GOOD = '[[step]]\ntext = "The whole answer."\n'
LIST = '{ name = "list", arguments = { path = "." } }'
WRITE = '{ name = "write", arguments = { path = "a", content = "b" } }'
CALL = f"[[step]]\ntool_calls = [{LIST}]\n"


class Lines(DemoProvider):
    """Answers with these items, one list a request, then as the demo model does; ``requests`` are what came."""

    def __init__(
        self, counter: Counter, answers: Sequence[Sequence[StreamItem]] = (), script: Path | None = None
    ) -> None:
        super().__init__(counter, script, pace=0.0)
        self._answers = list(answers)
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        self.requests.append(request)
        if request.kind == "turn" and self._answers:
            for item in self._answers.pop(0):
                yield item
            return
        async for item in super().stream(request):
            yield item


def failed(kind: FailureKind, text: str = "It broke.", again: bool | None = None) -> Failed:
    return Failed(Failure(kind, text, retry_after=0.0, again=again))


def used(input_: int, output: int) -> UsageReport:
    return UsageReport(TokenUsage(input_, output), None)


def text(words: str) -> Delta:
    return Delta(0, "text", words, closed=True)


def thought(words: str) -> Delta:
    return Delta(0, "reasoning", words, closed=True)


def answers(*lists: Sequence[StreamItem]) -> Callable[[Counter], Lines]:
    return lambda counter: Lines(counter, lists)


async def asked(agent: Agent, words: str = "hi") -> None:
    agent.turns.submit(words)
    await agent.turns.join()


def shown(seen: Recorder) -> str:
    """The text of the newest answer as a face builds it from what it is told."""
    said, void = "", False
    for event in seen.events:
        if isinstance(event, AnswerInterrupted):
            void = True
        elif isinstance(event, PartDelta):
            said, void = ("" if void else said) + event.delta.text, False
    return said


def texts(path: Sequence[Message]) -> list[str]:
    return [message.text for message in path]


@pytest.mark.parametrize("kind", ["interrupted_stream", "overloaded", "rate_limit", "timeout", "connection", "worker"])
async def test_an_answer_that_breaks_off_is_replaced_not_doubled(tmp_path: Path, kind: str) -> None:
    home, project = tmp_path / "home", tmp_path / "p"
    async with running(parts_for(home, project, script=BREAKS % kind * 2 + GOOD)) as (agent, seen):
        await asked(agent)
        assert texts(agent.conversation.path) == ["hi", "The whole answer."]
        assert [event.attempt for event in seen.of(RetryWaiting)] == [1, 2] and len(seen.of(AnswerInterrupted)) == 2
        assert shown(seen) == "The whole answer."
        assert [(step.kind, step.status) for step in agent.conversation.steps] == [
            ("turn", "complete"),
            ("attempt", "failed"),
            ("attempt", "failed"),
        ]
        session = agent.conversation.info.id
    async with running(parts_for(home, project, resume=session)) as (agent, _):
        assert texts(agent.conversation.path) == ["hi", "The whole answer."]
        assert [part.type for part in agent.conversation.path[1].parts] == ["text"]


async def test_what_comes_anew_replaces_more_parts_than_it_has(tmp_path: Path) -> None:
    broken = [Delta(0, "reasoning", "hm"), Delta(1, "text", "so"), Delta(2, "search", metadata={"id": "s"})]
    provider = answers([*broken, failed("interrupted_stream")], [text("Done."), used(9, 1), Finished("stop")])
    home, project = tmp_path / "home", tmp_path / "p"
    async with running(parts_for(home, project, provider=provider)) as (agent, _):
        await asked(agent)
        session = agent.conversation.info.id
    async with running(parts_for(home, project, resume=session)) as (agent, _):
        assert agent.conversation.path[1].parts == [TextPart("Done.")]


async def test_five_tries_then_what_came_is_kept(tmp_path: Path) -> None:
    script = (BREAKS % "interrupted_stream").replace("[[step]]", "[[step]]\nrepeat = 0")
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=script)) as (agent, seen):
        await asked(agent)
        assert [(event.attempt, event.attempts) for event in seen.of(RetryWaiting)] == [(n, 5) for n in range(1, 5)]
        answer = agent.conversation.path[-1]
        assert answer.status == "failed" and answer.text == "half an "
        assert seen.last_end.stop_reason == "error"


async def test_what_came_stands_where_nothing_comes_anew(tmp_path: Path) -> None:
    provider = answers([text("half"), failed("interrupted_stream")], [failed("auth", "No key.")])
    async with running(parts_for(tmp_path / "home", tmp_path / "p", provider=provider)) as (agent, seen):
        await asked(agent)
        answer = agent.conversation.path[-1]
        assert (answer.text, answer.status, answer.note) == ("half", "failed", "No key.")
        assert seen.last_end.stop_reason == "error"


@pytest.mark.parametrize("again", [None, False])
async def test_what_will_not_change_is_not_tried_again(tmp_path: Path, again: bool | None) -> None:
    end = failed("invalid_request") if again is None else failed("overloaded", again=again)
    async with running(parts_for(tmp_path / "home", tmp_path / "p", provider=answers([text("half"), end]))) as (
        agent,
        seen,
    ):
        await asked(agent)
        assert not seen.of(RetryWaiting) and agent.conversation.path[-1].text == "half"


async def test_with_a_call_begun_nothing_is_tried_again_and_nothing_run(tmp_path: Path) -> None:
    script = (
        '[[step]]\ntext = "I write."\ntool_calls = [{ name = "write", arguments = { path = "a", content = "b" } }]\n'
    )
    script += 'after = 9\nchunk = 3\nerror = { kind = "interrupted_stream", message = "It was cut off." }\n'
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=script + GOOD)) as (agent, seen):
        await asked(agent)
        assert not seen.of(RetryWaiting) and not (tmp_path / "p" / "a").exists()
        failure = seen.last_end.failure
        assert failure is not None and failure.message == f"It was cut off. {NOT_RUN}"
        await asked(agent, "go on")
        assert seen.last_end.stop_reason == "end"


async def test_esc_ends_the_wait_in_an_answer_and_what_came_is_kept(tmp_path: Path) -> None:
    script = (BREAKS % "rate_limit").replace("0.0", "200.0")
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=script + GOOD)) as (agent, seen):
        agent.turns.submit("hi")
        await seen.until(lambda: seen.of(RetryWaiting))
        agent.turns.interrupt()
        await agent.turns.join()
        assert seen.last_end.stop_reason == "interrupted"
        assert [(m.text, m.status) for m in agent.conversation.path[1:]] == [("half an ", "stopped")]


async def test_killed_in_the_wait_the_session_is_as_it_was_shown(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "p"
    script = (BREAKS % "rate_limit").replace("0.0", "200.0")
    async with running(parts_for(home, project, script=script)) as (agent, seen):
        agent.turns.submit("hi")
        await seen.until(lambda: seen.of(RetryWaiting))
        session = agent.conversation.info.id
        shutil.copytree(home, tmp_path / "killed")
        agent.turns.interrupt()
        await agent.turns.join()
    async with running(parts_for(tmp_path / "killed", project, script=GOOD, resume=session)) as (agent, seen):
        assert agent.conversation.path[0].text == "hi"
        assert [m.status for m in agent.conversation.path[1:]] == ["stopped"]
        await asked(agent, "again")
        assert seen.last_end.stop_reason == "end" and agent.conversation.path[-1].text == "The whole answer."


PRICES = {"input": 3.0, "output": 15.0}


def paid(budget: float | None = None) -> Settings:
    return Settings(
        default_model="paid",
        models={"paid": ModelConfig("demo", prices=PRICES, context_window=50_000, max_output=500)},
        permissions=PermissionsConfig(mode="auto"),
        budget=BudgetConfig(session_usd=budget),
    )


async def test_what_a_broken_attempt_reported_is_paid(tmp_path: Path) -> None:
    provider = answers(
        [used(4_000, 1), text("half"), failed("overloaded")], [used(4_000, 100), text("Done."), Finished("stop")]
    )
    async with running(parts_for(tmp_path / "home", tmp_path / "p", settings=paid(), provider=provider)) as (agent, _):
        await asked(agent)
        totals = agent.context.usage().session
        assert totals.usage is not None and (totals.usage.input, totals.usage.output) == (8_000, 101)
        assert totals.cost.known == pytest.approx((8_000 * 3 + 101 * 15) / 1e6)
        # Of what broke off nobody knows the rest.
        assert totals.cost.unpriced == 1
        assert set(totals.by_kind) == {"turn", "attempt"}


async def test_what_an_attempt_without_a_word_reported_is_paid_too(tmp_path: Path) -> None:
    provider = answers([used(4_000, 0), failed("overloaded")], [used(4_000, 100), text("Done."), Finished("stop")])
    async with running(parts_for(tmp_path / "home", tmp_path / "p", settings=paid(), provider=provider)) as (agent, _):
        await asked(agent)
        totals = agent.context.usage().session
        assert totals.usage is not None and totals.usage.input == 8_000


async def test_of_a_broken_attempt_without_a_report_the_price_is_not_known(tmp_path: Path) -> None:
    provider = answers([text("half"), failed("overloaded")], [used(4_000, 100), text("Done."), Finished("stop")])
    async with running(parts_for(tmp_path / "home", tmp_path / "p", settings=paid(), provider=provider)) as (agent, _):
        await asked(agent)
        assert agent.context.usage().session.cost.unpriced == 1


async def test_no_budget_is_broken_by_trying_again(tmp_path: Path) -> None:
    answer: list[StreamItem] = [used(4_000, 1), text("half"), failed("overloaded")]
    settings = paid(0.05)
    provider = answers(*[answer] * 5)
    async with running(parts_for(tmp_path / "home", tmp_path / "p", settings=settings, provider=provider)) as (
        agent,
        seen,
    ):
        await asked(agent)
        session = agent.context.usage().session
        assert seen.last_end.stop_reason == "error" and 0 < len(seen.of(RetryWaiting)) < 4
        assert session.cost.known + session.held_usd <= 0.05


@pytest.mark.parametrize("empty", [[], [thought("hm")]], ids=["nothing", "thoughts"])
@pytest.mark.parametrize("before", ["", CALL], ids=["at once", "after a call"])
async def test_an_empty_answer_is_asked_for_once_more(tmp_path: Path, empty: list[StreamItem], before: str) -> None:
    first: list[StreamItem] = [Delta(0, "tool_call", '{"path": "."}', call_id="c", name="list"), Finished("tool_calls")]
    made: list[Lines] = []

    def provider(counter: Counter) -> Lines:
        lists: list[Sequence[StreamItem]] = [
            *([first] if before else []),
            [*empty, used(9, 1), Finished("stop")],
            [text("Done."), Finished("stop")],
        ]
        made.append(Lines(counter, lists))
        return made[-1]

    async with running(parts_for(tmp_path / "home", tmp_path / "p", provider=provider)) as (agent, seen):
        await asked(agent)
        answer = agent.conversation.path[-1]
        assert answer.text == "Done." and not answer.reasoning and seen.last_end.stop_reason == "end"
        assert [notice.text for notice in seen.of(Notice) if notice.code == "asked_again"] == [
            "demo gave an empty answer. Asking again."
        ]
        one, two = made[0].requests[-2:]
        assert [sent.key for sent in one.messages] == [sent.key for sent in two.messages]


async def test_an_answer_that_is_empty_twice_ends_with_one_line(tmp_path: Path) -> None:
    made: list[Lines] = []

    def provider(counter: Counter) -> Lines:
        made.append(Lines(counter, [[thought("hm"), Finished("stop")]] * 2))
        return made[-1]

    async with running(parts_for(tmp_path / "home", tmp_path / "p", provider=provider)) as (agent, seen):
        await asked(agent)
        said = [notice.text for notice in seen.of(Notice) if notice.code == "empty_answer"]
        assert said == ["demo gave an empty answer twice. Send “continue” to go on, or /rewind to ask again."]
        await asked(agent, "and now?")
        assert len(made[0].requests) == 3
        assert [sent.message.role for sent in made[0].requests[-1].messages] == ["user", "user"]


@pytest.mark.parametrize("finish", ["refused", "length", "paused"])
async def test_what_has_another_reason_to_be_empty_is_not_asked_again(tmp_path: Path, finish: str) -> None:
    script = f'[[step]]\ntext = ""\nfinish = "{finish}"\n' + GOOD
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=script)) as (agent, seen):
        await asked(agent)
        assert not [notice for notice in seen.of(Notice) if notice.code == "asked_again"]


@pytest.mark.parametrize("before", ["", CALL], ids=["at once", "after a call"])
async def test_an_unknown_end_is_shown_and_said(tmp_path: Path, before: str) -> None:
    script = before + '[[step]]\ntext = "So far"\nfinish = "unknown"\n' + GOOD
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=script)) as (agent, seen):
        await asked(agent)
        assert agent.conversation.path[-1].text == "So far"
        failure = seen.last_end.failure
        assert failure is not None and "may not be complete" in failure.message and "continue" in failure.message
        await asked(agent, "go on")
        assert [event.stop_reason for event in seen.of(TurnEnded)] == ["error", "end"]


async def test_no_call_of_an_answer_that_was_cut_off_is_run(tmp_path: Path) -> None:
    calls = (
        '{ name = "list", arguments = { path = "." } }, { name = "write", arguments = { path = "a", content = "b" } }'
    )
    script = f'[[step]]\ntext = "I do."\ntool_calls = [{calls}]\nfinish = "length"\n' + GOOD
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=script)) as (agent, seen):
        await asked(agent)
        results = [message.tool_result for message in agent.conversation.path if message.tool_result is not None]
        assert [(result.text, result.is_error) for result in results] == [(CUT_OFF, True)] * 2
        assert not (tmp_path / "p" / "a").exists()
        assert agent.conversation.path[-1].text == "The whole answer." and seen.last_end.stop_reason == "end"


FULL = Failed(Failure("context_overflow", "The window is full. Use /compact.", overflow=Overflow(answering=True)))


async def test_an_answer_that_fills_the_window_is_written_anew_after_a_compaction(tmp_path: Path) -> None:
    talk: list[Sequence[StreamItem]] = [[text("word " * 3_000), Finished("stop")] for _ in range(3)]
    provider = answers(*talk, [text("half"), FULL], [text("Done."), Finished("stop")])
    settings = Settings(
        default_model="small",
        models={"small": ModelConfig("demo", context_window=20_000)},
        permissions=PermissionsConfig(mode="auto"),
    )
    async with running(parts_for(tmp_path / "home", tmp_path / "p", settings=settings, provider=provider)) as (
        agent,
        seen,
    ):
        for number in range(4):
            await asked(agent, f"question {number}")
        assert texts(agent.conversation.path)[-2:] == ["question 3", "Done."]
        assert "half" not in texts(agent.conversation.path) and len(seen.of(MessagesWithdrawn)) == 1
        assert agent.conversation.records and not any("output limit" in notice.text for notice in seen.of(Notice))


async def test_where_nothing_can_be_compacted_what_came_is_kept(tmp_path: Path) -> None:
    provider = answers([text("half"), FULL])
    async with running(parts_for(tmp_path / "home", tmp_path / "p", provider=provider)) as (agent, seen):
        await asked(agent)
        assert texts(agent.conversation.path) == ["hi", "half"] and not seen.of(MessagesWithdrawn)
        failure = seen.last_end.failure
        assert failure is not None and failure.kind == "context_overflow"


async def test_closing_the_program_in_the_wait_ends_it(tmp_path: Path) -> None:
    script = (BREAKS % "rate_limit").replace("0.0", "200.0")
    async with asyncio.timeout(20):
        async with running(parts_for(tmp_path / "home", tmp_path / "p", script=script)) as (agent, seen):
            agent.turns.submit("hi")
            await seen.until(lambda: seen.of(RetryWaiting))
