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

from agent_tui.config import ContextConfig, Settings
from agent_tui.context.view import for_model
from agent_tui.engine.agent import Agent
from agent_tui.models.events import CompactionEnded, CompactionStarted, Notice
from agent_tui.models.messages import SummaryPart, summary_text
from agent_tui.providers.worker.client import WorkerClient
from tests.support.agents import Recorder
from tests.support.cached_models import CLAUDE, GPT
from tests.support.long_run_figures import Flavour
from tests.support.loopback import sse
from tests.support.true_provider import BusyScript, Model, Script, TrueProvider
from tests.support.true_provider.wire import Refused, only, words_of
from tests.support.true_runs import LongAnswers, TrueRun, write_lines

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


class Native(TrueProvider):
    """A provider that compacts by itself, and knows what it made."""

    def __init__(self, dialect: str, model: Model, script: Script) -> None:
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


MODELS = {
    "OpenAI": Flavour("responses", "openai/gpt-5-mini", GPT, "/v1", "responses"),
    "Anthropic": Flavour("anthropic", "anthropic/claude-sonnet-4-6", CLAUDE),
}
pytestmark = pytest.mark.asyncio(loop_scope="module")


class NativeRun(TrueRun):
    """A session with a provider that compacts by itself; ``other`` is another model of the same server."""

    retries = 0

    def __init__(self, worker: WorkerClient, folder: Path, maker: str, **context: Any) -> None:
        self.maker, self.context = maker, context
        script = LongAnswers(1, [write_lines(folder / "project")], WINDOW, bad_summaries=False, brief=TURNS)
        super().__init__({"m": MODELS[maker]}, WINDOW, script, worker, folder)

    def serve(self, flavour: Flavour) -> Native:
        self.native = Native(flavour.dialect, replace(flavour.model, window=WINDOW, max_output=16_000), self.script)
        return self.native

    def settings(self) -> Settings:
        settings = super().settings()
        spec = settings.models["m"]
        settings.models["other"] = replace(spec, model=f"{spec.model.partition('/')[0]}/other-9-9")
        for name, value in {"native": True, **self.context}.items():
            setattr(settings.context, name, value)
        return settings


@asynccontextmanager
async def talked(
    worker: WorkerClient, folder: Path, maker: str, **context: Any
) -> AsyncIterator[tuple[Agent, Recorder, NativeRun]]:
    """An agent that has had some turns with a provider that compacts by itself."""
    (folder / "project").mkdir(exist_ok=True)
    run = NativeRun(worker, folder, maker, **context)
    try:
        async with run.opened() as (agent, seen):
            for run.turn in range(1, TURNS + 1):
                await run.say(agent, f"[turn {run.turn}] {RULE} " + BusyScript.words(Random(run.turn), 100))
            await agent.context.ready()
            yield agent, seen, run
    finally:
        run.close()
    run.check()


async def next_turn(agent: Agent, run: NativeRun) -> dict[str, Any]:
    """The body of the first request of another turn."""
    run.turn += 1
    before = len(run.native.bodies)
    await run.say(agent, f"[turn {run.turn}] Go on.")
    await agent.context.ready()
    return run.native.bodies[before]


def told(seen: Recorder) -> list[str]:
    return [notice.text for notice in seen.of(Notice) if notice.code == "native_compaction"]


def conversation_of(body: dict[str, Any]) -> list[Any]:
    found: list[Any] = body.get("input") or body["messages"]
    return found


def unmarked_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: unmarked_text(one) for name, one in value.items() if name != "cache_control"}
    return [unmarked_text(one) for one in value] if isinstance(value, list) else value


def record_output(server: Native) -> int:
    made = server.made[-1]
    return server.count(server.hidden) + 64 if isinstance(made, list) else server.count(made["content"])


@pytest.mark.parametrize("maker", list(MODELS))
async def test_the_provider_compacts_and_only_it_gets_back_what_it_made(
    worker: WorkerClient, tmp_path: Path, maker: str
) -> None:
    async with talked(worker, tmp_path, maker) as (agent, seen, run):
        server, last = run.native, run.native.bodies[-1]
        assert f"Compacted by {maker} (native)" in (await agent.compaction.preview()).say
        assert not server.asked, "a preview asks nobody"

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
        assert not (await agent.compaction.ledger(record.operation_id)).lost
        only_its_maker_gets_it(agent)

        expected = agent.context.usage()
        body = await next_turn(agent, run)
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
        usage = agent.context.usage()
        assert not usage.approximate or usage.spread < room
        assert sum(row.tokens for row in usage.rows if row.id not in ("free", "reserve")) == usage.total
        assert not told(seen)

        await every_other_model_gets_the_summary_that_can_be_read(agent, run)


def only_its_maker_gets_it(agent: Agent) -> None:
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


async def every_other_model_gets_the_summary_that_can_be_read(agent: Agent, run: NativeRun) -> None:
    (summary,) = agent.conversation.summaries.values()
    text = summary_text(summary)
    assert RULE in text and "gAAAA" not in text and "EuYB" not in text
    assert run.maker == "OpenAI" or "The user builds a compiler" in text
    await agent.models.switch("other")
    await run.say(agent, "And you?")
    other = run.native.bodies[-1]
    assert "compaction" not in [item.get("type") for item in conversation_of(other)]
    assert not any(key in str(other) for key in ("encrypted_content': 'gAAAA", "EuYB", "made_in"))
    assert RULE in str(conversation_of(other)[0])
    await agent.models.switch("m")
    assert "made_in" in str(conversation_of(await next_turn(agent, run))[0])


@pytest.mark.parametrize("maker", ["Anthropic", pytest.param("OpenAI", marks=pytest.mark.slow)])
async def test_it_is_stored_compacted_again_and_taken_back_as_it_came(
    worker: WorkerClient, tmp_path: Path, maker: str
) -> None:
    async with talked(worker, tmp_path, maker) as (agent, _, run):
        before, total = conversation_of(run.native.bodies[-1]), agent.context.usage().total
        await agent.compaction.now()
        assert agent.context.usage().total < total
        await agent.compaction.undo()
        assert agent.context.usage().total == total
        body = await next_turn(agent, run)
        assert unmarked_text(conversation_of(body)[: len(before)]) == unmarked_text(before)
        assert all(not record.active for record in agent.conversation.own_records)

        await agent.compaction.now()
        first = run.native.made[1]
        async with run.opened() as (late, _):
            view = late.conversation.view()
            part = view[0].message.parts[0]
            assert isinstance(part, SummaryPart) and part.own is not None
            assert part.own.items == (first if isinstance(first, list) else [first])
        for _ in range(3):
            await next_turn(agent, run)
        await agent.compaction.now()
        again = conversation_of(run.native.asked[2])
        assert again[: len(first)] == first if isinstance(first, list) else again[0]["content"][0] == first
        body = await next_turn(agent, run)
        assert str(first) not in str(body) and "made_in" in str(conversation_of(body)[0])
        assert [record.own for record in agent.conversation.own_records if record.active] == [maker, maker]


@pytest.mark.parametrize(
    ("maker", "fails"),
    [
        ("OpenAI", ("empty", "missing", "cut", "404")),
        pytest.param("OpenAI", ("500",), marks=pytest.mark.slow),
        pytest.param("Anthropic", ("missing", "empty", "cut", "400"), marks=pytest.mark.slow),
    ],
)
async def test_where_it_fails_the_summary_is_written_as_without(
    worker: WorkerClient, tmp_path: Path, maker: str, fails: tuple[str, ...]
) -> None:
    """What is not offered (400, 404) is not asked for again."""
    async with talked(worker, tmp_path, maker) as (agent, seen, run):
        for number, run.native.fails in enumerate(fails, 1):
            seen.events.clear()
            await agent.compaction.now()
            ended = seen.of(CompactionEnded)[-1]
            assert ended.outcome == "done" and f"by {maker}" not in ended.text
            assert [e.kind for e in run.native.truth.exchanges].count("summary") == number
            (line,) = told(seen)
            assert line.startswith(f"{maker}'s own compaction failed: ") and "\n" not in line
            record = agent.conversation.own_records[-1]
            assert record.own == "" and not agent.conversation.info.state.compaction_off
            assert len(run.native.asked) == number
            if number < len(fails):
                await agent.compaction.undo()
        first, *_ = conversation_of(await next_turn(agent, run))
        assert "The earlier part of this conversation" in str(first) and "made_in" not in str(first)
        seen.events.clear()
        for _ in range(2):
            await next_turn(agent, run)
        await agent.compaction.now()
        again = fails[-1] not in ("404", "400")
        assert (len(run.native.asked), len(told(seen))) == (len(fails) + again, again), told(seen)


@pytest.mark.parametrize("maker", ["OpenAI", pytest.param("Anthropic", marks=pytest.mark.slow)])
async def test_a_focus_and_what_was_cancelled_or_is_refused_leave_a_summary_as_text(
    worker: WorkerClient, tmp_path: Path, maker: str
) -> None:
    assert ContextConfig().native is False
    async with talked(worker, tmp_path, maker) as (agent, seen, run):
        server, before = run.native, [sent.key for sent in agent.conversation.view()]
        server.held = threading.Event()
        work = asyncio.create_task(agent.compaction.now())
        assert await asyncio.to_thread(server.reached.wait, 20)
        assert agent.turns.interrupt()
        await work
        server.held.set()
        assert seen.of(CompactionEnded)[-1].outcome == "cancelled"
        assert [sent.key for sent in agent.conversation.view()] == before and not agent.conversation.own_records
        (step,) = [step for step in agent.conversation.steps if step.kind == "compaction"]
        assert step.status == "stopped" and not told(seen)

        server.held = None
        server.asked.clear()
        await agent.compaction.now("the parser")
        assert not server.asked and seen.of(CompactionEnded)[-1].outcome == "done"
        (line,) = told(seen)
        assert "takes no focus" in line
        await agent.compaction.undo()

        await agent.compaction.now()
        server.forgets = True
        seen.events.clear()
        run.turn += 1
        await run.say(agent, f"[turn {run.turn}] Go on.")
        (line,) = told(seen)
        assert "the summary in the place of the provider's own compaction" in line
        assert "made_in" not in str(conversation_of(server.bodies[-1]))
        assert RULE in str(conversation_of(server.bodies[-1])[0])
        assert agent.conversation.steps[-1].status == "complete"


@pytest.mark.slow
@pytest.mark.parametrize("maker", list(MODELS))
async def test_at_the_limit_what_was_prepared_beside_the_turn_is_its_own_too(
    worker: WorkerClient, tmp_path: Path, maker: str
) -> None:
    limit = {"OpenAI": 14_000, "Anthropic": 18_000}[maker]
    async with talked(worker, tmp_path, maker, compact_at=limit) as (agent, seen, run):
        agent.runtime.learn_limits(replace(agent.runtime.info, parallel=True))
        for _ in range(4):
            if not agent.conversation.own_records:
                await next_turn(agent, run)
        (record,) = [record for record in agent.conversation.own_records if record.kind == "summary"]
        assert (record.own, record.reason) == (maker, "auto")
        (step,) = [step for step in agent.conversation.steps if step.kind == "compaction"]
        assert step.prepared and step.id == record.step_id and len(run.native.asked) == 1
        first = conversation_of(await next_turn(agent, run))[0]
        assert "made_in" in str(first) and not told(seen)


@pytest.mark.slow
async def test_where_nobody_offers_it_that_is_said_once(worker: WorkerClient, tmp_path: Path) -> None:
    async with talked(worker, tmp_path, "OpenAI") as (agent, seen, run):
        runtime = agent.runtime
        assert runtime is not None
        runtime.learn_limits(replace(runtime.info, spec=replace(runtime.info.spec, via="litellm")))
        for _ in range(2):
            await agent.compaction.now()
            await agent.compaction.undo()
        assert not run.native.asked and len(seen.of(CompactionStarted)) == 2
        (line,) = told(seen)
        assert line.startswith("native = true works only with OpenAI's Responses API and Anthropic's Messages API")
