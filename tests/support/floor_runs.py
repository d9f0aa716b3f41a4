"""The session of ``floor`` with the real agent, its store and a provider with a true cache: what five compactions in a
row leave of its facts, what they cost, and whether undoing all of them brings every byte back."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agent_tui.config import Settings
from agent_tui.context.compaction.summary import FACTS, MODEL_SECTIONS
from agent_tui.engine.agent import Agent
from agent_tui.models.events import CompactionEnded, Event, PlanPresented
from agent_tui.models.usage import NO_COST, Cost
from agent_tui.providers.client import ModelClient
from tests.support import floor
from tests.support.cached_models import KEPT
from tests.support.floor import Act, Fact, Kind, Plan, Turn
from tests.support.true_provider import Script
from tests.support.true_provider.wire import Answer, Call, Question, unmarked
from tests.support.true_runs import TrueRun

WINDOW = 64_000
_HIT = re.compile(r"^\[(\d{6}) · ", re.MULTILINE)


@dataclass(slots=True)
class FloorScript(Script):
    """Answers as the session says, and summarises as ``summariser`` does."""

    summariser: str = ""
    turns: dict[int, Turn] = field(default_factory=dict)

    def answer(self, question: Question, turn: int, step: int, number: int) -> Answer:
        scripted = self.turns[turn]
        if step < len(scripted.does):
            return Answer(calls=list(_calls(scripted.does[step], f"call_{number}")))
        return Answer(scripted.answers)

    def summary(self, question: Question, call: int) -> Answer | None:
        source = "\n".join(segment.key for segment in question.segments if segment.kind not in ("tools", "system"))
        source = source.partition("This message comes from the program")[0] or source
        text = floor.summary(self.summariser, MODEL_SECTIONS, source)
        return Answer(text, cut=self.summariser == "truncated", refused=self.summariser == "refused")


def _calls(act: Act, call_id: str) -> Iterator[Call]:
    match act:
        case floor.Read(path):
            yield Call(call_id, "read", {"path": path})
        case floor.Run(command):
            yield Call(call_id, "bash", {"command": command})
        case floor.Write(path, text):
            yield Call(call_id, "write", {"path": path, "content": text})
        case floor.Todo(items, done):
            states = ("completed" if n < done else "pending" for n in range(len(items)))
            listed = [{"text": text, "status": status} for text, status in zip(items, states, strict=True)]
            yield Call(call_id, "todo", {"items": listed})
        case Plan(text):
            yield Call(call_id, "present_plan", {"plan": text})
        case floor.Recall(queries, ids):
            for number, query in enumerate(queries):
                yield Call(f"{call_id}_{number}", "recall", {"id" if ids else "query": query})


def texts(value: Any) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


@dataclass(slots=True)
class Standing:
    """Where the facts that were planted so far stand after a compaction, by kind; ``gone`` are those that are not
    sent, of which ``found`` were recalled."""

    planted: Counter[Kind] = field(default_factory=Counter)
    sent: Counter[Kind] = field(default_factory=Counter)
    gone: list[Fact] = field(default_factory=list)
    found: list[Fact] = field(default_factory=list)

    @property
    def lost(self) -> list[Fact]:
        return [fact for fact in self.gone if fact not in self.found]

    def of(self, *kinds: Kind) -> tuple[int, int, int]:
        """How many facts are sent, how many of the others were recalled, and how many were planted."""
        wanted = kinds or tuple(self.planted)
        recalled = sum(fact.kind in wanted for fact in self.found)
        return sum(self.sent[k] for k in wanted), recalled, sum(self.planted[k] for k in wanted)


@dataclass(slots=True)
class FloorOutcome:
    """What one run showed. ``outcomes`` are those of the compactions, ``after`` what stood after each; ``same`` says of
    each undo, the newest compaction's first, whether the request after it began with the bytes of the one before that
    compaction. ``read`` and ``input`` are tokens of the summary calls, ``added`` the
    most that was added to a summary of what it lacked, ``limit`` that of the conversation."""

    summariser: str
    outcomes: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    after: list[Standing] = field(default_factory=list)
    same: list[bool] = field(default_factory=list)
    calls: int = 0
    cost: Cost = NO_COST
    read: int = 0
    input: int = 0
    added: int = 0
    limit: int = 0
    seconds: float = 0.0

    @property
    def made(self) -> int:
        """Compactions that were made."""
        return self.outcomes.count("done")

    @property
    def warm(self) -> float:
        """The share of the summary calls' input that was read from the cache."""
        return self.read / self.input if self.input else 0.0


class FloorRun(TrueRun):
    """One session with one summariser. ``rounds``: how many of its five compactions are made."""

    can_ask = True
    retries = 0
    keeps = True

    def __init__(self, summariser: str, worker: ModelClient, folder: Path, rounds: int = len(floor.ROUNDS)) -> None:
        self.rounds, self.outcome = rounds, FloorOutcome(summariser)
        floor.write_project(folder / "project")
        self.turns: dict[int, Turn] = {}
        script = FloorScript(1, (), WINDOW, bad_summaries=False, summariser=summariser, turns=self.turns)
        flavour = KEPT["anthropic"].flavour
        flavour = replace(flavour, model=replace(flavour.model, max_output=8_000))
        super().__init__({"m": flavour}, WINDOW, script, worker, folder, reasoning_effort=None)

    def settings(self) -> Settings:
        settings = super().settings()
        settings.permissions.allow = ["bash(sh check.sh *)", "write(**)"]
        return settings

    async def go(self) -> FloorOutcome:
        begun, agent = time.monotonic(), await self.open()
        self._agent = agent
        try:
            before: dict[int, Any] = {}
            for number, turns in enumerate(floor.session(self.rounds)):
                for turn in turns:
                    first = await self._say(agent, turn)
                    if number and turn is turns[0]:
                        self._measure(first, number)
                before[len(self.outcome.outcomes)] = self.server.kept[self.server.truth.turns()[-1].number]
                await agent.compaction.now()
            self._measure(await self._say(agent, floor.idle(900)), self.rounds)
            self._count(agent)
            await self._recall(agent)
            for number, outcome in reversed(list(enumerate(self.outcome.outcomes))):
                if outcome == "done":
                    await agent.compaction.undo()
                    if number in before:  # else it was one at the limit
                        sent = await self._say(agent, floor.idle(1_000 + number))
                        self.outcome.same.append(_begins(sent, before[number]))
        finally:
            await agent.close()
            self.close()
        self.check()
        self.outcome.seconds = time.monotonic() - begun
        return self.outcome

    async def _say(self, agent: Agent, turn: Turn) -> Any:
        """Has one turn; returns the body of its first request."""
        self.turn += 1
        self.turns[self.turn] = turn
        if any(isinstance(act, Plan) for act in turn.does):
            agent.mode.set("plan")
        since = len(self.server.truth.turns())
        ended = await self.say(agent, turn.says)
        await agent.context.ready()
        if ended is None or ended.stop_reason != "end":
            raise AssertionError(f"{turn.says[:60]}: {ended}")
        return self.server.kept[self.server.truth.turns()[since].number]

    def see(self, event: Event) -> None:
        match event:
            case PlanPresented(request_id=request_id, plan=plan):
                self._agent.questions.answer_plan(request_id, "auto", plan)
            case CompactionEnded(outcome=outcome, text=text) if outcome != "undone":
                self.outcome.outcomes.append(outcome)
                self.outcome.told.append(text)
            case _:
                pass

    def _measure(self, body: Any, rounds: int) -> None:
        sent, standing = "\n".join(texts([body["system"], body["messages"]])), Standing()
        for fact in floor.planted(rounds):
            standing.planted[fact.kind] += 1
            if fact.stands_in(sent):
                standing.sent[fact.kind] += 1
            else:
                standing.gone.append(fact)
        self.outcome.after.append(standing)
        ledger = re.search(rf"\n## {re.escape(FACTS)}\n(.*?)(?:\n\n## |\Z)", sent, re.DOTALL)
        if ledger is not None:
            self.outcome.added = max(self.outcome.added, self.server.count(ledger[1]))

    async def _recall(self, agent: Agent) -> None:
        """Asks for what is no longer sent: by words, then for the messages of the first hits."""
        last = self.outcome.after[-1]
        hits = await self._asked(agent, 950, floor.Recall(tuple(fact.asked for fact in last.gone)))
        places = [_HIT.findall(text)[:3] for text in hits]
        wanted = tuple(dict.fromkeys(place for each in places for place in each))
        whole = dict(zip(wanted, await self._asked(agent, 951, floor.Recall(wanted, ids=True)), strict=True))
        for fact, text, each in zip(last.gone, hits, places, strict=True):
            if fact.stands_in("\n".join([text, *(whole[place] for place in each)])):
                last.found.append(fact)

    async def _asked(self, agent: Agent, number: int, act: floor.Recall) -> list[str]:
        """The results of calls that look for something."""
        told = len(agent.conversation.path)
        if act.queries:
            await self._say(agent, replace(floor.idle(number), does=(act,)))
        return [r.text for m in agent.conversation.path[told:] if (r := m.tool_result) is not None]

    def _count(self, agent: Agent) -> None:
        steps = [step for step in agent.conversation.steps if step.kind == "compaction"]
        self.outcome.limit = agent.context.usage().limit or 0
        self.outcome.calls = len(steps)
        self.outcome.cost = sum((step.cost for step in steps), NO_COST)
        usages = [e.usage for e in self.server.truth.exchanges if e.kind == "summary" and e.usage is not None]
        self.outcome.read = sum(usage.cache_read for usage in usages)
        self.outcome.input = sum(usage.input for usage in usages)


def _begins(sent: Any, before: Any) -> bool:
    """Whether a request begins with all of an earlier one, byte for byte but for the cache's markers."""
    one, other = unmarked(sent), unmarked(before)
    fixed = all(one[name] == other[name] for name in ("system", "tools"))
    return fixed and one["messages"][: len(other["messages"])] == other["messages"]
