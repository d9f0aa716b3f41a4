"""Long runs of the real program against providers that count truly, and what came of them.

The agent, its store, its tools and the provider worker are the product's; only the model is scripted. Everything the
product claims (the size of the next input, its rows, what it sends) is compared with what the server knows.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from agent_tui.commands.report import ContextReport, adds_up, proof_line
from agent_tui.commands.report_json import context_json
from agent_tui.config import AgentConfig, ContextConfig, ModelConfig, PermissionsConfig, Settings
from agent_tui.engine.agent import Agent
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import (
    CompactionEnded,
    ContextChanged,
    Event,
    Notice,
    StepEnded,
    StepStarted,
    TurnEnded,
)
from agent_tui.models.requests import Effort
from agent_tui.providers.worker.client import WorkerClient
from tests.support.agents import parts_for
from tests.support.end_to_end import KEY_VARIABLE
from tests.support.long_run_figures import FLAVOURS, Outcome
from tests.support.true_provider import Exchange, ProjectFile, Script, TrueProvider

LEAST_ANSWER = 1_024
"""Tokens of an answer that must have room for a turn to count as one that could have been answered."""


def make_project(folder: Path, seed: int) -> list[ProjectFile]:
    """A project whose files the scripted model reads."""
    files = []
    for n in range(12):
        rng = random.Random(f"{seed}/file/{n}")
        lines = 150 * (n + 1) if n < 11 else 6_000
        path = folder / "src" / f"part_{n}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(
            f"value_{rng.randint(1, 9999)} = compute(left={rng.randint(1, 99)}, right={rng.randint(1, 99)})\n"
            for _ in range(lines)
        )
        path.write_text(text, "utf-8")
        files.append(ProjectFile(f"src/part_{n}.py", lines))
    return files


@dataclass(slots=True)
class Plan:
    """How a run goes: the agent is closed and the session resumed every ``restart`` turns, ``/compact`` is given
    every ``manual`` turns; 0 is never. ``exact``: the provider may be asked for exact counts. ``configured``: the
    window that the configuration claims, where it is not the server's."""

    turns: int
    restart: int = 60
    manual: int = 75
    bad_summaries: bool = True
    effort: Effort = "medium"
    exact: bool = False
    configured: int | None = None


class LongRun:
    """One conversation of many turns with one flavour in one window."""

    def __init__(self, name: str, window: int, seed: int, plan: Plan, worker: WorkerClient, folder: Path) -> None:
        self.flavour, self.plan, self.worker, self.folder = FLAVOURS[name], plan, worker, folder
        self.seed, self.window = seed, window
        model = replace(self.flavour.model, window=window, max_output=min(self.flavour.model.max_output, window))
        files = make_project(folder / "project", seed)
        script = Script(seed, files, window, bad_summaries=plan.bad_summaries, line_tokens=24)
        self.server = TrueProvider(self.flavour.dialect, model, script)
        self.outcome = Outcome(name, window, seed)
        self._session: str | None = None
        self._shown: int | None = None
        self._ended: TurnEnded | None = None
        self._full = ""
        self._rebuilt: list[int] = []
        self._broken: Exception | None = None

    def _agent(self) -> Agent:
        config = ModelConfig(
            self.flavour.name,
            api_base=self.server.url + self.flavour.path,
            api_key_env=KEY_VARIABLE,
            context_window=self.plan.configured or self.window,
            api=self.flavour.api,
            reasoning_effort=self.plan.effort,
        )
        settings = Settings(
            default_model="m",
            models={"m": config},
            context=ContextConfig(exact_counting="auto" if self.plan.exact else "off"),
            permissions=PermissionsConfig(mode="auto"),
            agent=AgentConfig(retries=1, timeout=60.0),
        )
        parts = parts_for(
            self.folder,
            self.folder / "project",
            settings=settings,
            provider=lambda counter: self.worker,
            counter=self.worker,
            can_ask=False,
            resume=self._session,
        )
        return Agent(parts)

    async def go(self) -> Outcome:
        """Runs all turns and returns what was seen."""
        agent = await self._open()
        try:
            for turn in range(1, self.plan.turns + 1):
                if self.plan.restart and turn % self.plan.restart == 0:
                    await agent.close()
                    agent = await self._open()
                self.server.turn = turn
                if self.plan.manual and turn % self.plan.manual == 0:
                    await agent.compaction.now()
                await self._turn(agent, turn)
        finally:
            await agent.close()
            self.server.close()
        if self._broken is not None:
            raise self._broken
        if self.server.truth.crashes:
            raise AssertionError(self.server.truth.crashes[0])
        self._totals()
        return self.outcome

    async def _open(self) -> Agent:
        agent = self._agent()
        self._shown = None
        agent.subscribe(self._listen)
        await agent.start()
        await agent.context.ready()
        return agent

    async def _turn(self, agent: Agent, turn: int) -> None:
        text = self._message(turn)
        self._ended, self._full = None, ""
        agent.turns.submit(text)
        await agent.turns.join()
        outcome = self.outcome
        outcome.turns += 1
        self._session = agent.conversation.info.id
        if self._ended is None:
            outcome.failed.append(f"{turn}: it never ended")
            return
        outcome.cut += self._ended.stop_reason == "length"
        if self._ended.stop_reason in ("end", "length"):
            return
        failure = self._ended.failure
        why = (
            f"{turn}: {self._ended.stop_reason} {failure.kind if failure else ''} {failure.message if failure else ''}"
        )
        last = self._last()
        need = (last.fixed if last else 0) + self.server.count(text)
        if failure is not None and failure.kind == "context_overflow" and need + LEAST_ANSWER <= self.window:
            outcome.dead.append(f"{why} (needs {need:,} of {self.window:,}) {self._full[:160]}")
        else:
            outcome.failed.append(why)

    def _message(self, turn: int) -> str:
        rng = random.Random(f"{self.seed}/user/{turn}")
        words = rng.randint(8, 60)
        chance = rng.random()
        if chance < 0.05:
            words = int(self.window * 0.03)
        elif chance < 0.15:
            words = int(self.window * 0.01)
        rule = f"Rule {turn}: never rename value_{turn}. " if turn <= 3 else ""
        return f"[turn {turn}] {rule}{Script.words(rng, max(8, words))}"

    def _last(self) -> Exchange | None:
        return next((e for e in reversed(self.server.truth.exchanges) if e.kind == "turn" and e.input), None)

    def _listen(self, event: Event) -> None:
        """An error in here would only be logged by the agent."""
        try:
            self._see(event)
        except Exception as error:
            self._broken = self._broken or error

    def _see(self, event: Event) -> None:
        match event:
            case ContextChanged(usage, in_flight) if not usage.pending and not in_flight:
                self._shown = usage.total
                self._check_rows(usage)
            case StepStarted(step, _):
                if self._shown is not None and self._shown != step.estimated_input:
                    self.outcome.differs.append(
                        f"turn {self.server.turn}: shown {self._shown}, sent {step.estimated_input}"
                    )
            case StepEnded(step, _) if step.kind == "turn" and step.status == "complete":
                self._check_step(step.estimated_input or 0, step.estimated_spread or 0)
            case CompactionEnded():
                self._check_compaction(event)
            case Notice(level, text, code):
                self.outcome.notes[code or level] = self.outcome.notes.get(code or level, 0) + 1
                if code == "context_full":
                    self._full = text
            case TurnEnded():
                self._ended = event
            case _:
                pass

    def _check_step(self, estimated: int, spread: int) -> None:
        done = self.server.truth.turns()
        if not done:
            self.outcome.failed.append(f"{self.server.turn}: a step ended that was never answered")
            return
        last, outcome = done[-1], self.outcome
        outcome.steps += 1
        outcome.errors.append((last.turn, outcome.steps, estimated - last.input))
        outcome.spreads.append(spread)

    def _check_rows(self, usage: ContextUsage) -> None:
        rows = {row.id: row.tokens for row in usage.rows}
        where = f"turn {self.server.turn}"
        last = self._last()
        problem = ""
        if not rows.get("system") or (last is not None and last.tools and not rows.get("tools")):
            problem = f"system {rows.get('system')}, tools {rows.get('tools')}"
        elif not adds_up(usage) or not proof_line(usage, usage.total, adds_up(usage))[1]:
            problem = "the rows do not add up"
        elif scaled := [w for w in usage.warnings if "scaled" in w or "do not fit" in w]:
            problem = scaled[0]
        elif min(rows.values()) < 0:
            problem = f"negative: {rows}"
        if problem:
            self.outcome.wrong_rows.append(f"{where}: {problem} {_short(usage)}")

    def _check_compaction(self, event: CompactionEnded) -> None:
        counts = self.outcome.compactions
        if event.outcome != "done":
            counts["not_done"] = counts.get("not_done", 0) + 1
            return
        self._rebuilt.append(len(self.server.truth.exchanges))
        for record in event.records:
            kind = "clip" if record.kind == "prune" and record.clips and not record.message_ids else str(record.kind)
            counts[kind] = counts.get(kind, 0) + 1
        refused = self.server.truth.refused("input", "output")
        if any(r.reason == "overflow" for r in event.records) and refused and refused[-1].refusal == "output":
            last = refused[-1]
            self.outcome.needless.append(
                f"turn {self.server.turn}: {last.input} + {last.max_output} in {self.window}: {event.text}"
            )

    def _rewrites(self) -> None:
        """Steps that found less than half of what the step before left in the cache, though nothing was compacted."""
        before: Exchange | None = None
        for now in self.server.truth.turns():
            if before is not None and not any(before.number < n <= now.number for n in self._rebuilt):
                assert before.usage is not None and now.usage is not None
                left = before.usage.cache_read + before.usage.cache_write or before.input
                if left > 2_048 and now.usage.cache_read < left // 2:
                    self.outcome.rewrites.append(f"turn {now.turn}: {now.usage.cache_read} of {left}")
            before = now

    def _totals(self) -> None:
        truth, outcome = self.server.truth, self.outcome
        self._rewrites()
        for exchange in truth.turns():
            assert exchange.usage is not None
            outcome.input += exchange.input
            outcome.cached += exchange.usage.cache_read
            room = self.window - exchange.input
            if exchange.may_think and room > 3 * LEAST_ANSWER:
                outcome.may_think += 1
                if not exchange.thinking:
                    outcome.unthinking.append(f"turn {exchange.turn} at {exchange.input}")
        outcome.invalid = [f"turn {turn}: {message}" for turn, message, _ in truth.bodies]
        outcome.overflows = [
            f"turn {e.turn} {e.kind}: {e.input} + {e.max_output}" for e in truth.refused("input", "output")
        ]


def _short(usage: ContextUsage) -> str:
    data = context_json(ContextReport(usage))
    rows = {row["id"]: row["tokens"] for row in data["rows"]}
    return f"{rows} {data['calculation']}"


async def long_run(name: str, window: int, seed: int, plan: Plan, worker: WorkerClient) -> Outcome:
    """One run in a folder of its own."""
    folder = _folder()
    try:
        return await LongRun(name, window, seed, plan, worker, folder).go()
    finally:
        shutil.rmtree(folder)


def _folder() -> Path:
    """A new folder whose name is the same each time where nothing else runs: it is in the prompt, and counted."""
    root = Path(tempfile.gettempdir())
    for number in range(1_000):
        folder = root / f"full-context-{number}"
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise AssertionError(f"{root} is full of runs that were cut off; remove its full-context-* folders")
