"""``[context] native = true``: the provider compacts by itself, only it gets that back, and everything else goes on."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agent_tui.config import AgentConfig, ContextConfig, ModelConfig, PermissionsConfig, Settings
from agent_tui.context.view import for_model
from agent_tui.engine.agent import Agent
from agent_tui.models.events import CompactionEnded, CompactionStarted, Notice
from agent_tui.models.messages import SummaryPart, summary_text
from agent_tui.providers.worker.client import WorkerClient
from tests.support.agents import Recorder, parts_for
from tests.support.cached_models import CLAUDE, GPT
from tests.support.end_to_end import KEY_VARIABLE
from tests.support.floor_runs import KeepingProvider
from tests.support.forms import one_of
from tests.support.loopback import sse
from tests.support.model_calls import KEY, environment
from tests.support.true_provider import BusyScript, Model, ProjectFile
from tests.support.true_provider.wire import Answer, Question, Refused, only, words_of

WINDOW, TURNS = 120_000, 4
RULE = "Never touch the file legacy/billing.py."
BETA = "compact-2026-09-04"
OF_OPENAI = words_of(
    "model image input instructions previous_response_id prompt_cache_key prompt_cache_options prompt_cache_retention "
    "service_tier"
)
"""The fields of ``ResponseCompactParams`` (openai 3.54.0)."""
OF_ANTHROPIC = words_of(
    "model messages max_tokens system tools thinking output_config stream metadata service_tier temperature compaction"
)
"""Those of ``MessageCreateParams`` (anthropic 2.12.0) that go with ``BetaCompactionConfigParam``."""
UNKNOWN = {"made_in": ["a", "later", {"version": 1}]}
"""Fields that nobody knows yet come back as they came."""


class Talk(BusyScript):
    """Calls a tool twice a turn, then says much."""

    def answer(self, question: Question, turn: int, step: int, number: int) -> Answer:
        answer = super().answer(question, turn, step, number)
        if step == self.steps:
            answer.text = self.words(Random(turn), 150 if turn == TURNS else 2_500)
        return answer


class Native(KeepingProvider):
    """A provider that compacts by itself, and knows what it made."""

    def __init__(self, dialect: str, model: Model, script: BusyScript) -> None:
        super().__init__(dialect, model, script)
        self.fails: str = ""
        self.forgets = False
        self.held: threading.Event | None = None
        self.reached = threading.Event()
        self.asked: list[dict[str, Any]] = []
        """Bodies of compactions."""
        self.bodies: list[dict[str, Any]] = []
        """Of all other requests, as they came."""
        self.made: list[Any] = []
        """What has to come back, of each compaction."""
        self.hidden = ""

    def handle(self, path: str, headers: Mapping[str, str], raw: bytes) -> tuple[int, str, bytes]:
        body = json.loads(raw)
        try:
            plain = self._understood(body, headers)
            if path.endswith("/compact") or "compaction" in body:
                self.asked.append(body)
                return self._compact(path, headers, body, plain)
        except Refused as refused:
            return refused.status, "application/json", self.dialect.error(refused)
        self.bodies.append(body)
        return super().handle(path, headers, json.dumps(plain).encode())

    def _understood(self, body: dict[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        """The body with text in the place of what was made before."""
        if "input" in body:
            return {**body, "input": self._items(body["input"])}
        messages = body["messages"]
        for n, message in enumerate(messages):
            for i, block in enumerate(message["content"]):
                if isinstance(block, dict) and block.get("type") == "compaction" and (n or i):
                    raise Refused(f"messages.{n}: compaction_block_misplaced")
        first = messages[0]["content"][0]
        if not isinstance(first, dict) or first.get("type") != "compaction":
            return body
        assert BETA in headers.get("anthropic-beta", "").split(","), "it goes with the header"
        if self.forgets or first not in self.made:
            raise Refused("messages.0.content.0: compaction_signature_invalid")
        told = {"type": "text", "text": first["content"]}
        return {**body, "messages": [{**messages[0], "content": [told, *messages[0]["content"][1:]]}, *messages[1:]]}

    def _items(self, items: list[Any]) -> list[Any]:
        places = [n for n, item in enumerate(items) if item.get("type") == "compaction"]
        if not places:
            return items
        (place,) = places
        if self.forgets or items[: place + 1] not in self.made:
            raise Refused("The encrypted content of the compaction could not be verified.")
        kept = [{"type": "message", "role": "user", "content": item["content"]} for item in items[:place]]
        secret = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": self.hidden}]}
        return [*kept, secret, *items[place + 1 :]]

    def _compact(
        self, path: str, headers: Mapping[str, str], body: dict[str, Any], plain: dict[str, Any]
    ) -> tuple[int, str, bytes]:
        if self.held is not None:
            self.reached.set()
            self.held.wait(20)
        if self.fails.isdigit():
            raise Refused("This is not offered here.", status=int(self.fails))
        if "input" in body:
            only(body, OF_OPENAI, "", "Unknown parameter: '{name}'.")
            question = self.dialect.read(plain, headers, path)
            return 200, "application/json", self._openai(body, question.input)
        only(body, OF_ANTHROPIC, "", "{name}: Extra inputs are not permitted")
        assert body["compaction"] == {"type": "summarize"} and BETA in headers["anthropic-beta"]
        asked = {name: value for name, value in plain.items() if name != "compaction"}
        last = {"role": "user", "content": [{"type": "text", "text": "x"}]}
        question = self.dialect.read({**asked, "messages": [*asked["messages"], last]}, headers, path)
        return 200, "text/event-stream", self._anthropic(question.input)

    def _openai(self, body: dict[str, Any], size: int) -> bytes:
        self.hidden = BusyScript.words(Random(len(self.asked)), 400)
        users = [item for item in body["input"] if item.get("role") == "user" and item not in self._own(body["input"])]
        output = [
            {"id": f"msg_kept_{n}", "type": "message", "status": "completed", "role": "user", **UNKNOWN}
            | {"content": item["content"]}
            for n, item in enumerate(users)
        ]
        secret = {"id": "cmp_1", "type": "compaction", "encrypted_content": "gAAAA" + "b" * 1_600, **UNKNOWN}
        output += [secret] if self.fails != "missing" else []
        self.made.append(output)
        count = self.count(self.hidden) + 64
        usage: dict[str, Any] = {"input_tokens": size, "output_tokens": count, "total_tokens": size + count}
        usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 64}}
        answer = {"id": "resp_1", "object": "response.compaction", "created_at": 1, "output": output, "usage": usage}
        data = json.dumps(answer).encode()
        return data[:-40] if self.fails == "cut" else b"" if self.fails == "empty" else data

    def _own(self, items: list[Any]) -> list[Any]:
        return [item for made in self.made if items[: len(made)] == made for item in made]

    def _anthropic(self, size: int) -> bytes:
        text = f"The user builds a compiler. {BusyScript.words(Random(len(self.asked)), 300)}"
        block = {"type": "compaction", "content": text, "signature": f"EuYB{len(self.asked)}", **UNKNOWN}
        self.made.append(block)
        rounds = [{"type": "compaction", "input_tokens": size, "output_tokens": self.count(text)}]
        rounds[0] |= {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
        nothing = {"input_tokens": 0, "output_tokens": 0}
        message = {"id": "msg_c", "type": "message", "role": "assistant", "model": self.model.name, "content": []}
        events: list[Any] = [
            {"type": "message_start", "message": {**message, "usage": nothing}},
            {"type": "ping"},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": "compaction"},
                "usage": {**nothing, "iterations": rounds},
            },
            {"type": "message_stop"},
        ]
        if self.fails == "missing":
            events[2]["content_block"] = {**block, "content": None}
        if self.fails == "empty":
            events[4]["delta"] = {"stop_reason": "max_tokens"}
            del events[2:4]
        return sse(events[:2] if self.fails == "cut" else events, named=True)


MODELS: dict[str, tuple[str, str, Model, str, Any]] = {
    "OpenAI": ("responses", "openai/", GPT, "/v1", "responses"),
    "Anthropic": ("anthropic", "anthropic/", CLAUDE, "", "auto"),
}
pytestmark = pytest.mark.usefixtures("forked_worker")

BOTH = pytest.mark.parametrize("maker", list(MODELS))


@asynccontextmanager
async def opened(folder: Path, server: Native, maker: str, **context: Any) -> AsyncIterator[tuple[Agent, Recorder]]:
    _, prefix, model, path, api = MODELS[maker]
    spec = ModelConfig(
        prefix + model.name, api_base=server.url + path, api_key_env=KEY_VARIABLE, context_window=WINDOW,
        api=api, reasoning_effort="medium",
    )  # fmt: skip
    settings = Settings(
        default_model="m",
        models={"m": spec, "other": replace(spec, context_window=WINDOW, model=prefix + "other-9-9")},
        context=ContextConfig(**{"native": True, "exact_counting": "off", **context}),
        permissions=PermissionsConfig(mode="auto"),
        agent=AgentConfig(retries=0, timeout=60.0),
    )
    worker = WorkerClient()
    with environment({KEY_VARIABLE: KEY}):
        parts = parts_for(
            folder, folder / "project", settings=settings, provider=lambda counter: worker, counter=worker
        )
        agent, seen = Agent(parts), Recorder()
        agent.subscribe(seen)
        await agent.start()
        try:
            await agent.context.ready()
            yield agent, seen
        finally:
            await agent.close()
            await worker.close()


@asynccontextmanager
async def talked(folder: Path, maker: str, **context: Any) -> AsyncIterator[tuple[Agent, Recorder, Native]]:
    """An agent that has had some turns with a provider that compacts by itself."""
    (folder / "project").mkdir()
    (folder / "project" / "a.txt").write_text("".join(f"line {n} of a file of the project\n" for n in range(900)))
    dialect, _, model, *_ = MODELS[maker]
    script = Talk(1, [ProjectFile("a.txt", 900)], WINDOW, bad_summaries=False, steps=2)
    server = Native(dialect, replace(model, window=WINDOW, max_output=16_000), script)
    try:
        async with opened(folder, server, maker, **context) as (agent, seen):
            for server.turn in range(1, TURNS + 1):
                await say(agent, f"[turn {server.turn}] {RULE} " + BusyScript.words(Random(server.turn), 100))
            yield agent, seen, server
    finally:
        server.close()
    assert not server.truth.crashes, server.truth.crashes[0]


async def say(agent: Agent, text: str) -> None:
    agent.turns.submit(text)
    await agent.turns.join()
    await agent.context.ready()


async def next_turn(agent: Agent, server: Native) -> dict[str, Any]:
    """The body of the first request of another turn."""
    server.turn += 1
    before = len(server.bodies)
    await say(agent, f"[turn {server.turn}] Go on.")
    return server.bodies[before]


def told(seen: Recorder) -> list[str]:
    return [notice.text for notice in seen.of(Notice) if notice.code == "native_compaction"]


def conversation_of(body: dict[str, Any]) -> list[Any]:
    found: list[Any] = body.get("input") or body["messages"]
    return found


@BOTH
async def test_the_provider_compacts_and_gets_back_what_it_made(tmp_path: Path, maker: str) -> None:
    async with talked(tmp_path, maker) as (agent, seen, server):
        last = server.bodies[-1]
        await agent.compaction.now()
        ended = seen.of(CompactionEnded)[-1]
        assert ended.outcome == "done" and f"by {maker}" in ended.text, ended.text
        (asked,) = server.asked
        gone = conversation_of(asked)
        assert json.dumps(conversation_of(last)[0]) == json.dumps(gone[0]) or maker == "Anthropic"
        assert asked.get("instructions") == last.get("instructions") and asked.get("system") == last.get("system")
        (record,) = agent.conversation.own_records
        assert record.own == maker and record.step_id is not None
        step = next(step for step in agent.conversation.steps if step.id == record.step_id)
        assert step.kind == "compaction" and step.usage is not None and step.usage.input > 1_000
        assert step.usage.output == record_output(server)

        expected = agent.context.usage()
        body = await next_turn(agent, server)
        sent, made = conversation_of(body), server.made[0]
        if maker == "OpenAI":
            assert sent[: len(made)] == made, "verbatim, in the place of the summary"
            beside = sent[len(made)]["content"][0]["text"]
            assert str(sent).count(RULE) <= str(made).count(RULE) + 1 + str(sent[len(made) + 1 :]).count(RULE)
        else:
            assert sent[0]["role"] == "user" and sent[0]["content"][0] == made
            beside = sent[0]["content"][1]["text"]
            assert "The user builds a compiler" not in beside, "only once"
        assert beside.startswith("[The earlier part of this conversation")
        assert RULE in beside or RULE in str(made)
        truth = server.truth.turns()[-3].input
        room = 0.05 * truth
        assert abs(expected.total + 10 - truth) < room, (expected.total, truth)
        assert not agent.context.usage().approximate or agent.context.usage().spread < room
        rows = agent.context.usage().rows
        assert sum(row.tokens for row in rows if row.id not in ("free", "reserve")) == agent.context.usage().total
        assert not told(seen)


def record_output(server: Native) -> int:
    made = server.made[-1]
    return server.count(server.hidden) + 64 if isinstance(made, list) else server.count(made["content"])


@BOTH
async def test_every_other_model_gets_the_summary_that_can_be_read(tmp_path: Path, maker: str) -> None:
    async with talked(tmp_path, maker) as (agent, _, server):
        await agent.compaction.now()
        (summary,) = agent.conversation.summaries.values()
        text = summary_text(summary)
        assert RULE in text and "gAAAA" not in text and "EuYB" not in text
        assert maker == "OpenAI" or "The user builds a compiler" in text
        await agent.models.switch("other")
        agent.turns.submit("And you?")
        await agent.turns.join()
        other = server.bodies[-1]
        assert "compaction" not in [item.get("type") for item in conversation_of(other)]
        assert not any(key in str(other) for key in ("encrypted_content': 'gAAAA", "EuYB", "made_in"))
        assert RULE in str(conversation_of(other)[0])
        await agent.models.switch("m")
        body = await next_turn(agent, server)
        assert "made_in" in str(conversation_of(body)[0])


@BOTH
async def test_an_undo_brings_every_byte_back(tmp_path: Path, maker: str) -> None:
    async with talked(tmp_path, maker) as (agent, _, server):
        before, total = conversation_of(server.bodies[-1]), agent.context.usage().total
        await agent.compaction.now()
        assert agent.context.usage().total < total
        await agent.compaction.undo()
        assert agent.context.usage().total == total
        body = await next_turn(agent, server)
        assert unmarked_text(conversation_of(body)[: len(before)]) == unmarked_text(before)
        assert all(not record.active for record in agent.conversation.own_records)


def unmarked_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: unmarked_text(one) for name, one in value.items() if name != "cache_control"}
    return [unmarked_text(one) for one in value] if isinstance(value, list) else value


@BOTH
async def test_it_is_stored_and_compacted_again_as_it_came(tmp_path: Path, maker: str) -> None:
    async with talked(tmp_path, maker) as (agent, _, server):
        await agent.compaction.now()
        session = agent.conversation.info.id
        first = server.made[0]
        async with opened(tmp_path, server, maker) as (late, _):
            await late.sessions.resume(session)
            view = late.conversation.view()
            part = view[0].message.parts[0]
            assert isinstance(part, SummaryPart) and part.own is not None
            assert part.own.items == (first if isinstance(first, list) else [first])
        for _ in range(3):
            await next_turn(agent, server)
        await agent.compaction.now()
        again = conversation_of(server.asked[1])
        assert again[: len(first)] == first if isinstance(first, list) else again[0]["content"][0] == first
        body = await next_turn(agent, server)
        assert str(first) not in str(body) and "made_in" in str(conversation_of(body)[0])
        assert [record.own for record in agent.conversation.own_records] == [maker, maker]


@pytest.mark.parametrize(
    ("maker", "fails"),
    one_of(
        [("OpenAI", why) for why in ("404", "500", "empty", "missing", "cut")]
        + [("Anthropic", why) for why in ("missing", "400", "empty", "cut")],
        every=3,
    ),
)
async def test_where_it_fails_the_summary_is_written_as_without(tmp_path: Path, maker: str, fails: str) -> None:
    async with talked(tmp_path, maker) as (agent, seen, server):
        server.fails = fails
        await agent.compaction.now()
        ended = seen.of(CompactionEnded)[-1]
        assert ended.outcome == "done" and f"by {maker}" not in ended.text
        assert any(e.kind == "summary" for e in server.truth.exchanges)
        (line,) = told(seen)
        assert line.startswith(f"{maker}'s own compaction failed: ") and "\n" not in line
        (record,) = agent.conversation.own_records
        assert record.own == "" and not agent.conversation.info.state.compaction_off
        first, *_ = conversation_of(await next_turn(agent, server))
        assert "The earlier part of this conversation" in str(first) and "made_in" not in str(first)
        for _ in range(2):
            await next_turn(agent, server)
        await agent.compaction.now()
        again = fails not in ("404", "400")
        assert (len(server.asked), len(told(seen))) == ((2, 2) if again else (1, 1)), told(seen)


@BOTH
async def test_what_its_maker_refuses_is_sent_as_text(tmp_path: Path, maker: str) -> None:
    async with talked(tmp_path, maker) as (agent, seen, server):
        await agent.compaction.now()
        server.forgets = True
        server.turn += 1
        await say(agent, f"[turn {server.turn}] Go on.")
        (line,) = told(seen)
        assert "the summary in the place of the provider's own compaction" in line
        assert "made_in" not in str(conversation_of(server.bodies[-1]))
        assert RULE in str(conversation_of(server.bodies[-1])[0])
        assert agent.conversation.steps[-1].status == "complete"


@BOTH
async def test_a_cancelled_one_changes_nothing_and_its_step_is_kept(tmp_path: Path, maker: str) -> None:
    async with talked(tmp_path, maker) as (agent, seen, server):
        before = [sent.key for sent in agent.conversation.view()]
        server.held = threading.Event()
        work = asyncio.create_task(agent.compaction.now())
        assert await asyncio.to_thread(server.reached.wait, 20)
        assert agent.turns.interrupt()
        await work
        server.held.set()
        assert seen.of(CompactionEnded)[-1].outcome == "cancelled"
        assert [sent.key for sent in agent.conversation.view()] == before and not agent.conversation.own_records
        (step,) = [step for step in agent.conversation.steps if step.kind == "compaction"]
        assert step.status == "stopped"


@BOTH
async def test_the_preview_says_who_compacts_and_asks_nobody(tmp_path: Path, maker: str) -> None:
    async with talked(tmp_path, maker) as (agent, _, server):
        assert f"Compacted by {maker} (native)" in (await agent.compaction.preview()).say
        assert not server.asked


@BOTH
async def test_it_is_off_by_default_and_takes_no_focus(tmp_path: Path, maker: str) -> None:
    assert ContextConfig().native is False
    async with talked(tmp_path, maker) as (agent, seen, server):
        await agent.compaction.now("the parser")
        assert not server.asked and seen.of(CompactionEnded)[-1].outcome == "done"
        (line,) = told(seen)
        assert "takes no focus" in line


@BOTH
async def test_it_is_only_for_its_maker(tmp_path: Path, maker: str) -> None:
    async with talked(tmp_path, maker) as (agent, _, _):
        await agent.compaction.now()
        runtime = agent.runtime
        assert runtime is not None
        view, info = agent.conversation.view(), runtime.info

        def gets_it(model: Any) -> bool:
            return any(part.items for part in for_model(view, model)[0].message.parts if isinstance(part, SummaryPart))

        assert gets_it(info)
        elsewhere = replace(info, spec=replace(info.spec, api_base="https://example.invalid/v1"))
        library = replace(info, spec=replace(info.spec, via="litellm"))
        other = replace(info, target=replace(info.target, model="another"))
        for model in (elsewhere, library, other, replace(info, compacts=False)):
            assert not gets_it(model)
        assert await seen_by_ledger(agent)


async def seen_by_ledger(agent: Agent) -> bool:
    (record,) = agent.conversation.own_records
    return not (await agent.compaction.ledger(record.operation_id)).lost


@BOTH
async def test_at_the_limit_what_was_prepared_beside_the_turn_is_its_own_too(tmp_path: Path, maker: str) -> None:
    limit = {"OpenAI": 14_000, "Anthropic": 18_000}[maker]
    async with talked(tmp_path, maker, compact_at=limit) as (agent, seen, server):
        agent.runtime.learn_limits(replace(agent.runtime.info, parallel=True))
        for _ in range(4):
            if not agent.conversation.own_records:
                await next_turn(agent, server)
        (record,) = [record for record in agent.conversation.own_records if record.kind == "summary"]
        assert (record.own, record.reason) == (maker, "auto")
        (step,) = [step for step in agent.conversation.steps if step.kind == "compaction"]
        assert step.prepared and step.id == record.step_id and len(server.asked) == 1
        first = conversation_of(await next_turn(agent, server))[0]
        assert "made_in" in str(first) and not told(seen)


async def test_where_nobody_offers_it_that_is_said_once(tmp_path: Path) -> None:
    async with talked(tmp_path, "OpenAI") as (agent, seen, server):
        runtime = agent.runtime
        assert runtime is not None
        runtime.learn_limits(replace(runtime.info, spec=replace(runtime.info.spec, via="litellm")))
        for _ in range(2):
            await agent.compaction.now()
            await agent.compaction.undo()
        assert not server.asked and len(seen.of(CompactionStarted)) == 2
        (line,) = told(seen)
        assert line.startswith("native = true works only with OpenAI's Responses API and Anthropic's Messages API")
