"""Long runs of the real program against providers with a true prefix cache, and whether every miss is named rightly.

Whoever drives a run knows what it did between two requests; the provider knows from the bytes what it could give back
and why it did not. What the program says of a step has to agree with both.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from unittest import mock

from agent_tui.config import McpServer, Settings
from agent_tui.engine import model_call as requests
from agent_tui.engine.agent import Agent
from agent_tui.models.events import CompactionEnded, Event, StepEnded
from agent_tui.models.messages import new_id
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.providers.client import ModelClient
from tests.support.cache_outcomes import Outcome, Seen
from tests.support.cached_models import KEPT, MINUTE, plan_of
from tests.support.long_run_figures import Flavour
from tests.support.true_provider import BusyScript, Exchange, ProjectFile, Script, TrueProvider
from tests.support.true_provider.cache import LastPrompt, PrefixCache
from tests.support.true_runs import TrueRun, make_project, scratch

MCP = str(Path(__file__).with_name("mcp_server.py"))
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


class Clock:
    """Seconds since the epoch, and as many more as it was moved."""

    def __init__(self) -> None:
        self.moved = 0.0

    def time(self) -> float:
        return time.time() + self.moved


MakeScript = Callable[[Sequence[ProjectFile], int], Script]


def _script(files: Sequence[ProjectFile], window: int) -> Script:
    return Script(1, files, window, bad_summaries=False, line_tokens=24)


class CachedRun(TrueRun):
    """One conversation with one provider, with ``plan`` (turn → what is done before it)."""

    brings = True

    def __init__(
        self,
        name: str,
        window: int,
        plan: dict[int, str],
        worker: ModelClient,
        folder: Path,
        make_script: MakeScript = _script,
    ) -> None:
        self.kept, self.plan = KEPT[name], plan
        self.clock, self.outcome, self._last = Clock(), Outcome(self.kept.forgets), LastPrompt()
        self._done: list[str] = []
        self.disabled: list[str] = []
        self.mcp: dict[str, McpServer] = {}
        script = make_script(make_project(folder / "project", 1), window)
        flavours = {"m": self.kept.flavour, "n": self.kept.other}
        super().__init__(flavours, window, script, worker, folder)

    def serve(self, flavour: Flavour) -> TrueProvider:
        model = replace(flavour.model, window=self.window, max_output=min(flavour.model.max_output, self.window))
        kept, last = self.kept, self._last
        cache = partial(PrefixCache, unit=kept.unit, life=kept.life, clock=self.clock.time, last=last)
        return TrueProvider(flavour.dialect, model, self.script, cache)

    def settings(self) -> Settings:
        settings = super().settings()
        settings.tools.disabled, settings.mcp = self.disabled, self.mcp
        return settings

    async def go(self, turns: int) -> Outcome:
        with mock.patch.object(requests, "time", self.clock):
            agent = await self.open()
            try:
                for self.turn in range(1, turns + 1):
                    if (what := self.plan.get(self.turn)) is not None:
                        agent = await self._do(agent, what)
                    self.about_to_send(agent)
                    words = Script.words(random.Random(f"user/{self.turn}"), 40)
                    ended = await self.say(agent, f"[turn {self.turn}] {words}")
                    if ended is None or ended.stop_reason not in ("end", "length"):
                        raise AssertionError(f"turn {self.turn}: {ended or 'it never ended'}")
            finally:
                await agent.close()
                self.close()
        self.check()
        return self.outcome

    def about_to_send(self, agent: Agent) -> None:
        """Called before each of the user's messages."""

    def _edit_memory(self) -> None:
        (self.project / "AGENTS.md").write_text(f"Mind rule {self.turn}. " * 40, "utf-8")

    async def _do(self, agent: Agent, what: str) -> Agent:
        """Does one thing that costs the cache, or that the provider does to it."""
        self._done.append(what)
        match what:
            case "memory":
                # Alone it would wait, and be told with the next message: a pinned file ends that.
                self._edit_memory()
                (self.project / "notes.txt").write_text("Tea at five.", "utf-8")
                (agent.context.unpin if agent.context.pinned else agent.context.pin)("notes.txt")
            case "edited":
                await agent.close()
                self._edit_memory()
                agent = await self.open()
            case "tool went" | "tool came" | "server came" | "server went":
                await agent.close()
                if what.startswith("tool"):
                    self.disabled = ["grep"] if what == "tool went" else []
                else:
                    configured = McpServer(command=sys.executable, args=[MCP])
                    self.mcp = {"github": configured} if what == "server came" else {}
                agent = await self.open()
                if self.key != "m":
                    await agent.models.switch(self.key)
            case "resumed" | "a day":
                await agent.close()
                if what == "a day":
                    self.clock.moved += 24 * 60 * MINUTE
                agent = await self.open()
                if self.key != "m":
                    await agent.models.switch(self.key)
            case "forked":
                await agent.sessions.fork()
            case "there and back":
                await agent.models.switch("n" if self.key == "m" else "m")
                await agent.context.ready()
                await agent.models.switch(self.key)
                await agent.context.ready()
            case "compacted":
                await agent.compaction.now()
            case "undone":
                await agent.compaction.undo()
            case "pruned":
                self._prune(agent)
            case "taken out":
                results = [s.message.id for s in agent.conversation.view() if s.message.role == "tool"]
                await agent.edits.drop(results[: max(1, len(results) // 4)])
            case "put back":
                await agent.edits.restore([dropped.message.id for dropped in agent.edits.dropped()])
            case "edit undone":
                await agent.edits.undo()
            case "rewound":
                users = [m for m in agent.conversation.path if m.role == "user"]
                await agent.branches.rewind(users[-2].id)
            case "model" | "model back":
                self.key = "n" if what == "model" else "m"
                await agent.models.switch(self.key)
                await agent.context.ready()
            case "thinking" | "thinking back":
                agent.models.set_effort("low" if what == "thinking" else "medium")
            case "schema" | "schema off":
                agent.runtime.expect(SCHEMA if what == "schema" else None, False)
            case "expired":
                self.clock.moved += (self.kept.life or 10 * 60 * MINUTE) + MINUTE
            case "waited":
                self.clock.moved += 4 * MINUTE
            case "dropped" | "evicted":
                cache = self.servers[self.key].cache
                (cache.drop if what == "dropped" else cache.evict)()
        return agent

    @staticmethod
    def _prune(agent: Agent) -> None:
        """Clears the older half of the results, as an automatic prune does."""
        view = agent.conversation.view()
        results = [s.message.id for s in view if s.message.role == "tool" and s.stored is None]
        older = results[: len(results) // 2]
        record = CompactionRecord(new_id("cmp"), new_id("op"), "prune", older, created=time.time())
        agent.conversation.commit_compaction([record], None, None)
        agent.context.recount()

    def see(self, event: Event) -> None:
        match event:
            case StepEnded(step, _) if step.kind == "turn":
                self._step(step)
            case CompactionEnded(outcome="done"):
                self._done.append("compacted")
            case _:
                pass

    def _step(self, step: Step) -> None:
        done = self.servers[self.key].truth.turns()
        if step.failure is not None and step.failure.kind == "context_overflow":
            return
        if step.status != "complete" or not done or step.usage is None:
            raise AssertionError(f"a step was {step.status}: {step.failure}")
        miss = step.miss
        self.outcome.judge(
            Seen(
                self.turn,
                tuple(self._done),
                step.expected_read,
                step.usage.cache_read,
                miss.cause if miss is not None else "",
                miss.what if miss is not None else "",
                miss.cost_usd if miss is not None else None,
                done[-1].verdict,
            )
        )
        self._done.clear()


async def cached_run(
    name: str, turns: int, kinds: Sequence[str], worker: ModelClient, window: int = 60_000, every: int = 6
) -> Outcome:
    """One run in a folder of its own."""
    with scratch() as folder:
        return await CachedRun(name, window, plan_of(kinds, turns, every=every), worker, folder).go(turns)


@dataclass(slots=True, frozen=True)
class Busy:
    """What a run of turns with many tool calls showed: every answered request as the provider knows it, and every step
    as the program judged it."""

    exchanges: list[Exchange]
    outcome: Outcome

    @property
    def share(self) -> float:
        """How much of all input came from the cache."""
        usages = [e.usage for e in self.exchanges if e.usage is not None]
        return sum(u.cache_read for u in usages) / sum(u.input for u in usages)


async def busy_run(name: str, turns: int, steps: int, calls: int, worker: ModelClient) -> Busy:
    """Turns of ``steps`` answers with ``calls`` tool calls each, in a window that holds all of them."""
    window = 400_000

    def script(files: Sequence[ProjectFile], size: int) -> Script:
        return BusyScript(1, files, size, bad_summaries=False, line_tokens=40, steps=steps, calls=calls)

    with scratch() as folder:
        run = CachedRun(name, window, {}, worker, folder, script)
        outcome = await run.go(turns)
        return Busy(run.servers["m"].truth.turns(), outcome)
