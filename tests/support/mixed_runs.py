"""Long runs in which everything happens: the program is restarted and killed, models are switched, files of the prompt
change and come and go, compactions are undone, and the server refuses, misreports and shrinks.

The texts are of every kind that agents meet (``tests/benchmarks/vocabulary_texts.py``), so that no vocabulary is
another one times a number.
"""

from __future__ import annotations

import asyncio
import random
import shutil
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

from agent_tui.engine.agent import Agent
from agent_tui.engine.calls import next_call
from agent_tui.engine.compaction.compactor import CompactionResult
from agent_tui.engine.compaction.service import CompactionService
from agent_tui.engine.runtime import Emit, Runtime
from agent_tui.models.events import Event, PartDelta, StepEnded, StepStarted
from agent_tui.providers.client import ModelClient
from tests.benchmarks.vocabulary_texts import texts
from tests.support.long_run_figures import Flavour, Outcome
from tests.support.long_runs import LongRun, Plan
from tests.support.true_provider import ProjectFile, Script, Truth
from tests.support.true_provider.wire import Exchange, Usage
from tests.support.true_runs import scratch

EVENTS = (
    "edit",
    "lie",
    "pin",
    "kill",
    "switch",
    "edit",
    "back",
    "undo",
    "restart",
    "lie",
    "unpin",
    "refuse",
)
"""What happens, in this order, again and again: ``lie`` is one bad report, ``refuse`` one refusal of a request that
would fit, as too long."""

LIES: Sequence[Callable[[Usage], Usage]] = (
    lambda usage: Usage(0, 0, 0, 0, 0),
    lambda usage: replace(usage, input=3 * usage.input),
    lambda usage: replace(usage, input=max(1, usage.input // 20), cache_read=0, cache_write=0),
    lambda usage: replace(usage, input=1_000_000_000),
    lambda usage: replace(usage, output=0, reasoning=0),
)
WRITTEN = ("python", "markdown", "javascript", "typescript", "rust", "c", "json", "yaml", "ru", "zh_CN", "de", "ja")
"""Kinds of text that people and models write; what is read, and what commands print, is of all kinds."""
DOCUMENTS = ("markdown", "python", "text", "json", "html", "csv")
MOMENTS = (StepStarted, PartDelta, StepEnded)
SHRINKS_AFTER, SHRUNK = 0.85, 0.8
"""The share of the run after which the server is started anew with this share of its window."""
LEAST_PROBE = 4_096
KILLED = 1_000
"""Added to the number of a turn: one that is cut off before it."""


class MixedScript(Script):
    """A model that writes, and reads, texts of every kind."""

    def __init__(self, seed: int, window: int, folder: Path, bad_summaries: bool) -> None:
        self.pool: dict[str, list[str]] = defaultdict(list)
        for kind, text in texts(seed):
            self.pool[kind].append(text)
        Script.__init__(self, seed, self._project(random.Random(seed), folder, window), window, bad_summaries, 24)

    def _project(self, rng: random.Random, folder: Path, window: int) -> list[ProjectFile]:
        files = []
        for number in range(24):
            path = folder / "src" / f"part_{number}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            kind, wanted = rng.choice(sorted(self.pool)), (number % 12 + 1) * max(150, window // 400)
            lines: list[str] = []
            while len(lines) < wanted:
                lines += self.piece(rng, kind).splitlines()
            path.write_text("\n".join(lines), "utf-8")
            files.append(ProjectFile(f"src/{path.name}", len(lines)))
        return files

    def piece(self, rng: random.Random, *kinds: str) -> str:
        """A text of one of these kinds, or of any."""
        known = [kind for kind in kinds if kind in self.pool]
        return rng.choice(self.pool[rng.choice(known or sorted(self.pool))])

    def says(self, rng: random.Random, words: int) -> str:
        if rng.random() < 0.5:
            return self.words(rng, words)
        said, kinds = self.words(rng, 8), WRITTEN if rng.random() < 0.9 else ()
        while len(said) < 5 * words:
            said += f"\n\n{self.piece(rng, *kinds)}"
        return said[: 5 * words].strip()


@dataclass(slots=True, frozen=True)
class Mix:
    """One event every so many turns, with this model to switch to."""

    other: Flavour
    every: int = 4


class MixedRun(LongRun):
    """A long run with all that happens."""

    brings = True

    def __init__(
        self,
        flavour: Flavour,
        window: int,
        seed: int,
        plan: Plan,
        mix: Mix,
        worker: ModelClient,
        folder: Path,
    ) -> None:
        super().__init__({"m": flavour, "n": mix.other}, window, seed, plan, worker, folder)
        self.mix, self.home = mix, folder / "home-0"
        self._lies = self._happened = 0
        self._killed: asyncio.Event | None = None
        self._moment: type[Any] = StepStarted

    def make_script(self, project: Path, window: int) -> Script:
        return MixedScript(self.seed, window, project, self.plan.bad_summaries)

    async def go(self) -> Outcome:
        compact, run = CompactionService.compact, self

        async def checked(service: CompactionService, reason: Any, emit: Emit, *given: Any, **more: Any) -> Any:
            if reason == "auto":
                await run.check_need(service)
            result: CompactionResult = await compact(service, reason, emit, *given, **more)
            return result

        with mock.patch.object(CompactionService, "compact", checked):
            return await super().go()

    async def check_need(self, service: CompactionService) -> None:
        """Has the server count the request that is held to be too long: a compaction that it shows no need for is
        needless."""
        runtime: Runtime = service._runtime
        usage, server = runtime.usage(), self.server
        call = next_call(runtime, usage)
        if (call.request.max_output or 0) < LEAST_PROBE:
            call = next_call(runtime, usage, max_output=LEAST_PROBE)
        server.only_count = True
        async for _ in runtime.provider.stream(call.request):
            pass
        server.only_count = False
        counted: Exchange = server.truth.exchanges[-1]
        if counted.refusal != "only counted":
            raise AssertionError(f"turn {server.turn}: the next request cannot be counted: {counted.message}")
        error = usage.total - counted.input
        self.outcome.checked += 1
        if abs(error) > usage.spread:
            self.outcome.compacted_off.append(error)
        limit = usage.limit or self.window
        if counted.input < limit - self.window // 100 and usage.total > limit:
            self.outcome.needless.append(
                f"turn {server.turn}: {counted.input} in truth, {usage.total} ± {usage.spread} shown, limit {limit}"
            )

    async def before_turn(self, agent: Agent, turn: int) -> Agent:
        if turn == int(SHRINKS_AFTER * self.plan.turns):
            self.servers["m"].resize(int(SHRUNK * self.window))
            self.outcome.refusals += 1
        if turn % self.mix.every == 0:
            what = EVENTS[self._happened % len(EVENTS)]
            self._happened += 1
            self.outcome.events[turn] = what
            return await self._do(agent, what, turn)
        return agent

    async def _do(self, agent: Agent, what: str, turn: int) -> Agent:
        rng, project = random.Random(f"{self.seed}/{what}/{turn}"), self.project
        match what:
            case "restart":
                await agent.close()
                return await self.open()
            case "kill":
                return await self._kill(agent, rng.choice(MOMENTS), turn)
            case "switch" | "back":
                self.key = "n" if what == "switch" else "m"
                await agent.models.switch(self.key)
                await agent.context.ready()
            case "edit":
                memory = self._text(rng, self.window * rng.choice((0.005, 0.02)), "markdown")
                (project / "AGENTS.md").write_text(memory, "utf-8")
                await agent.context.refresh()
            case "pin":
                path = project / "pinned.txt"
                path.write_text(self._text(rng, self.window * 0.12, rng.choice(DOCUMENTS)), "utf-8")
                agent.context.pin(str(path))
            case "unpin":
                agent.context.unpin(str(project / "pinned.txt"))
            case "undo":
                if turn // self.mix.every % 2:
                    await agent.compaction.now()
                await agent.compaction.undo()
            case "lie":
                self.server.lie = LIES[self._lies % len(LIES)]
                self._lies += 1
            case "refuse":
                self.server.refuse = True
        return agent

    def _text(self, rng: random.Random, tokens: float, kind: str) -> str:
        assert isinstance(self.script, MixedScript)
        found = ""
        while len(found) < 3 * tokens:
            found += f"{self.script.piece(rng, kind)}\n"
        return found[: int(3 * tokens)]

    def rewrites(self, truth: Truth) -> None:
        """What happens here costs the cache; ``tests.benchmarks.cache`` looks at that."""

    async def _kill(self, agent: Agent, moment: type[Any], turn: int) -> Agent:
        """Begins a turn, and ends the program in the middle of it."""
        killed = self._killed = asyncio.Event()
        self._moment, self.turn = moment, KILLED + turn
        agent.turns.submit(self.message(turn))
        await killed.wait()
        self.session = agent.conversation.info.id
        await agent.close()
        self._killed, self.turn = None, turn
        return await self.open()

    def see(self, event: Event) -> None:
        killed = self._killed
        if killed is not None and isinstance(event, self._moment) and not killed.is_set():
            # What is on the disk in this moment is all that is left by a process that is killed in it.
            left, self.home = self.home, self.home.with_name(f"home-{self.server.turn}")
            shutil.copytree(left, self.home)
            killed.set()
        if killed is None or not killed.is_set():
            super().see(event)


async def mixed_run(flavour: Flavour, window: int, seed: int, plan: Plan, mix: Mix, worker: ModelClient) -> Outcome:
    """One run in a folder of its own."""
    with scratch() as folder:
        return await MixedRun(flavour, window, seed, plan, mix, worker, folder).go()
