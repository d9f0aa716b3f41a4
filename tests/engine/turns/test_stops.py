"""What stops a turn and can be changed is a question, and its answer lets the turn go on without another word."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from threading import Event

import pytest

from agent_tui.commands import registry
from agent_tui.config import BudgetConfig, ContextConfig, ModelConfig, PermissionsConfig, Settings
from agent_tui.engine.agent import Agent
from agent_tui.engine.calls import RoutedProvider
from agent_tui.errors import AgentError
from agent_tui.models.events import Notice, QuestionClosed, StopAsked, TurnEnded
from agent_tui.models.failure import Failure
from agent_tui.models.requests import Counter, Failed, ModelRequest, StreamItem
from agent_tui.providers import keys as keys_of_providers
from agent_tui.providers.demo import DemoProvider
from tests.support.agents import Recorder, parts_for, running
from tests.support.forms import one_of
from tests.support.keyrings import Kept, use_keyring
from tests.support.scripts import step

GOOD = "sk-good-0123456789"
NO_ROOM = '[[step]]\nerror = { kind = "context_overflow", message = "Too long." }\n'


class Locked(DemoProvider):
    """Answers for one key alone; the demo model needs none."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        if request.spec.model == "openai/gpt-5-mimi":
            yield Failed(Failure("not_found", "openai does not know the model.", status=404))
            return
        if request.spec.model == "openai/x" and request.spec.api_key != GOOD:
            yield Failed(Failure("auth", "openai refused the key.", status=401))
            return
        async for item in super().stream(request):
            yield item


def opened(
    folder: Path, script: str = "", *, model: str = "paid", can_ask: bool = True, **budget: float
) -> AbstractAsyncContextManager[tuple[Agent, Recorder]]:
    settings = Settings(
        default_model=model,
        models={
            "paid": ModelConfig("demo", prices={"input": 3.0, "output": 15.0}),
            "locked": ModelConfig("openai/x"),
            "free": ModelConfig("demo"),
            "typo": ModelConfig("openai/gpt-5-mimi"),
        },
        permissions=PermissionsConfig(mode="auto"),
        context=ContextConfig(auto_compact=False),
        budget=BudgetConfig(**budget),
    )
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "script.toml"
    file.write_text(script, "utf-8")

    def provider(counter: Counter) -> Locked:
        return Locked(counter, file, pace=0.0)

    made = parts_for(folder / "home", folder / "project", settings=settings, provider=provider, can_ask=can_ask)
    made.provider = RoutedProvider(made.provider, made.provider, made.catalogue.with_key)
    return running(made)


async def asked(agent: Agent, seen: Recorder, text: str, count: int = 1) -> StopAsked:
    """The question after a turn that begins with this text."""
    agent.turns.submit(text)
    await seen.until(lambda: len(seen.of(StopAsked)) == count)
    return seen.of(StopAsked)[-1]


async def answered(agent: Agent, question: StopAsked, key: str, text: str = "") -> None:
    await agent.stops.answer(question.request_id, key, text)
    await agent.turns.join()


def keys(question: StopAsked) -> list[str]:
    return [way.key for way in question.ways]


def reasons(seen: Recorder) -> Sequence[str]:
    return [ended.stop_reason for ended in seen.of(TurnEnded)]


def said(agent: Agent) -> list[str]:
    return [m.text for m in agent.conversation.path if m.role == "user"]


@pytest.mark.slow
async def test_a_budget_is_raised_by_one_key_and_the_turn_goes_on_between_its_steps(tmp_path: Path) -> None:
    script = "".join(step(list={"path": ".", "depth": n}) for n in range(1, 5)) + step("Done.")
    async with opened(tmp_path, script, turn_usd=0.03) as (agent, seen):
        question = await asked(agent, seen, "work")
        assert question.question.startswith("The turn's budget of $0.03 is too small: $0.0")
        assert (keys(question), question.ways[0].label) == (["y", "o", "m", "n"], "Raise it to $0.10 and continue")
        await answered(agent, question, "y")
        assert reasons(seen) == ["budget", "end"] and said(agent) == ["work"]
        assert agent.conversation.path[-1].text == "Done."
        assert agent.conversation.info.state.budget == {"turn": 0.1}
        assert seen.of(QuestionClosed) == [QuestionClosed(question.request_id)]
        await answered(agent, question, "y")
        assert reasons(seen) == ["budget", "end"], "an answer to a question that is closed does nothing"


@pytest.mark.quick
async def test_an_answer_to_another_question_leaves_this_one_open(tmp_path: Path) -> None:
    async with opened(tmp_path, session_usd=0.001) as (agent, seen):
        question = await asked(agent, seen, "hello")
        for key in keys(question):
            await agent.stops.answer("an earlier one", key, "5")
        assert seen.of(QuestionClosed) == [] and reasons(seen) == ["budget"]
        await answered(agent, question, "n")
        assert seen.of(QuestionClosed) == [QuestionClosed(question.request_id)]


@pytest.mark.parametrize("typed", one_of(["0.0001", "nonsense", "-1", "0", "1e9", "0.001\n", "$", "5k"], 4))
async def test_an_amount_that_does_not_help_leaves_the_question_open(typed: str, tmp_path: Path) -> None:
    async with opened(tmp_path, session_usd=0.001) as (agent, seen):
        question = await asked(agent, seen, "hello")
        with pytest.raises(AgentError) as refused:
            await agent.stops.answer(question.request_id, "o", typed)
        assert "\n" not in str(refused.value)
        assert reasons(seen) == ["budget"] and agent.conversation.info.state.budget == {}
        await answered(agent, question, "o", "off")
        assert reasons(seen) == ["budget", "end"] and said(agent) == ["hello"]


async def test_another_model_lets_the_turn_go_on_and_stopping_leaves_the_message(tmp_path: Path) -> None:
    async with opened(tmp_path, session_usd=0.001) as (agent, seen):
        question = await asked(agent, seen, "hello")
        await answered(agent, question, "n")
        assert [w.kind for w in agent.waiting.listed] == ["unanswered"] and seen.of(QuestionClosed)
        agent.turns.send_waiting()
        await seen.until(lambda: len(seen.of(StopAsked)) == 2)
        await agent.models.switch("free")
        await seen.until(lambda: reasons(seen)[-1] == "end")
        assert said(agent) == ["hello"] and len(seen.of(QuestionClosed)) == 2


async def test_a_message_or_another_session_closes_the_question(tmp_path: Path) -> None:
    async with opened(tmp_path, session_usd=0.001) as (agent, seen):
        await asked(agent, seen, "hello")
        question = await asked(agent, seen, "again", 2)
        assert len(seen.of(QuestionClosed)) == 1
        await agent.sessions.clear()
        assert seen.of(QuestionClosed)[-1].request_id == question.request_id
        await answered(agent, question, "y")
        assert agent.conversation.path == []


async def test_nobody_is_asked_where_nobody_can_answer(tmp_path: Path) -> None:
    async with opened(tmp_path, session_usd=0.001, can_ask=False) as (agent, seen):
        agent.turns.submit("hello")
        await agent.turns.join()
        await agent.events.settled()
        assert reasons(seen) == ["budget"] and seen.of(StopAsked) == []


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> Kept:
    """A keyring in memory, beside a variable with a key that is refused; the provider cannot be reached."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-refused")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    return use_keyring(monkeypatch)


@pytest.mark.forms(1)
@pytest.mark.parametrize("key", ["k", "s"])
async def test_a_refused_key_is_asked_for_and_used_at_once(key: str, keyring: Kept, tmp_path: Path) -> None:
    async with opened(tmp_path, model="locked") as (agent, seen):
        question = await asked(agent, seen, "hello")
        assert question.question == "Openai refused the key" or question.question == "openai refused the key"
        assert keys(question) == ["k", "s", "t", "m", "n"] and question.ways[0].secret and question.ways[1].secret
        for bad in ("", "sk-one two", "sk-one\nsk-two", "sk-schlüssel", "sk-\x1b[31m"):
            with pytest.raises(AgentError):
                await agent.stops.answer(question.request_id, key, bad)
        await answered(agent, question, key, f"  {GOOD}\n")
        assert reasons(seen) == ["error", "end"] and said(agent) == ["hello"]
        assert keyring.get(("agent-tui", "openai")) == (GOOD if key == "k" else None)
        told = next(notice.text for notice in seen.of(Notice) if notice.code == "key_taken")
        assert "could not be checked" in told and ("the system's keyring" if key == "k" else "until you quit") in told
        assert GOOD not in agent.parts.secrets(f"the key is {GOOD}")


async def test_a_key_that_was_entered_is_in_no_export_for_people(keyring: Kept, tmp_path: Path) -> None:
    key = "hunter2-of-my-own-gateway"
    async with opened(tmp_path, model="free") as (agent, _):
        await agent.models.take_key("openai/x", key)
        agent.turns.submit(f"The key is {key}, remember it")
        await agent.turns.join()
        for form in ("md", "html"):
            await registry.run(agent, f"/export {form} {tmp_path}/out.{form}")
            text = (tmp_path / f"out.{form}").read_text("utf-8")
            assert "remember it" in text and key not in text


@pytest.mark.forms(1)
@pytest.mark.parametrize("meanwhile", ["stop", "message", "session"])
async def test_an_answer_that_takes_long_goes_on_nowhere_else(
    meanwhile: str, keyring: Kept, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asks, unlocked = Event(), Event()

    def set_password(service: str, name: str, key: str) -> None:
        asks.set()
        unlocked.wait()
        keyring[service, name] = key

    monkeypatch.setattr(sys.modules["keyring"], "set_password", set_password)
    async with opened(tmp_path, model="locked") as (agent, seen):
        question = await asked(agent, seen, "hello")
        answer = asyncio.create_task(answered(agent, question, "k", GOOD))
        await asyncio.to_thread(asks.wait)
        match meanwhile:
            case "stop":
                await agent.stops.answer(question.request_id, "n")
            case "message":
                await asked(agent, seen, "something else", 2)
            case "session":
                await agent.sessions.clear()
        assert seen.of(QuestionClosed)[-1].request_id == question.request_id
        before = (reasons(seen), said(agent))
        unlocked.set()
        await answer
        await agent.events.settled()
        assert (reasons(seen), said(agent)) == before
        assert "Go on." not in [each.text for each in agent.waiting.listed]


async def test_a_keyring_that_does_not_answer_holds_nothing_up(
    keyring: Kept, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    never = Event()
    monkeypatch.setattr(keys_of_providers, "SAID", 0.01)
    monkeypatch.setattr(sys.modules["keyring"], "get_keyring", never.wait)
    async with opened(tmp_path, model="locked") as (agent, seen):
        assert keys(await asked(agent, seen, "hello")) == ["k", "s", "t", "m", "n"]
        assert "keys.json, which only you can read" in await agent.models.take_key("locked", GOOD)
    never.set()


async def test_without_a_keyring_or_credit_only_what_helps_is_offered(tmp_path: Path) -> None:
    async with opened(tmp_path, model="locked") as (agent, seen):
        question = await asked(agent, seen, "hello")
        assert keys(question) == ["k", "s", "t", "m", "n"] and "keys.json" in question.ways[0].label
    broke = '[[step]]\nerror = { kind = "auth", message = "No credit left.", status = 402 }\n'
    async with opened(tmp_path / "broke", broke) as (agent, seen):
        question = await asked(agent, seen, "hello")
        assert (question.question, keys(question)) == ("demo has no credit left", ["t", "m", "n"])
        await answered(agent, question, "t")
        assert reasons(seen) == ["error", "end"] and said(agent) == ["hello"]


async def test_a_model_the_provider_does_not_know_is_replaced_by_one_key(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", GOOD)
    async with opened(tmp_path, model="typo") as (agent, seen):
        question = await asked(agent, seen, "hello")
        assert question.question.endswith(" does not know openai/gpt-5-mimi")
        assert (keys(question), question.ways[0].label) == (["y", "t", "m", "n"], "Continue with openai/gpt-5-mini")
        await answered(agent, question, "y")
        assert reasons(seen) == ["error", "end"] and said(agent) == ["hello"]
        assert agent.models.spec.model == "openai/gpt-5-mini"


@pytest.mark.slow
async def test_without_a_model_like_it_that_can_be_used_none_is_proposed(tmp_path: Path) -> None:
    async with opened(tmp_path, model="typo") as (agent, seen):
        question = await asked(agent, seen, "hello")
        assert keys(question) == ["t", "m", "n"]
        await agent.models.switch("free")
        await seen.until(lambda: reasons(seen) == ["error", "end"])


async def test_of_a_full_context_the_largest_message_is_dropped_and_the_turn_goes_on(tmp_path: Path) -> None:
    script = step(read={"path": "big.txt"}) + NO_ROOM * 2 + step("Done.")
    async with opened(tmp_path, script, model="free") as (agent, seen):
        (tmp_path / "project" / "big.txt").write_text("".join(f"line {n}\n" for n in range(1_500)))
        question = await asked(agent, seen, "read it")
        assert question.question.startswith("The context is full: ")
        drop = next(way for way in question.ways if way.key == "d")
        assert drop.label.startswith("Drop the result of read (~") and keys(question)[-2:] == ["m", "n"]
        await answered(agent, question, "d")
        assert reasons(seen) == ["error", "end"] and agent.conversation.path[-1].text == "Done."
        assert any("Dropped" in notice.text for notice in seen.of(Notice))
