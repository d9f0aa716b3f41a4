"""Long runs of the real program against providers that count truly, and what came of them.

The agent, its store, its tools and the provider worker are the product's; only the model is scripted. Everything the
product claims (the size of the next input, its rows, what it sends) is compared with what the server knows.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from agent_tui.commands.bookkeeping import adds_up, proof_line
from agent_tui.commands.report import ContextReport
from agent_tui.commands.report_json import context_json
from agent_tui.config import Settings
from agent_tui.engine.agent import Agent
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import CompactionEnded, ContextChanged, Event, Notice, StepEnded, StepStarted
from agent_tui.models.requests import Effort
from agent_tui.models.steps import Step
from agent_tui.providers.client import ModelClient
from tests.support.agents import Recorder
from tests.support.long_run_figures import Flavour, Outcome
from tests.support.true_provider import Exchange, Script, TrueProvider, Truth
from tests.support.true_runs import TrueRun, make_project, scratch

LEAST_ANSWER = 1_024
"""Tokens of an answer that must have room for a turn to count as one that could have been answered."""


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


class LongRun(TrueRun):
    """One conversation of many turns with one flavour, which goes by ``m``, in one window."""

    def __init__(
        self, flavours: Mapping[str, Flavour], window: int, seed: int, plan: Plan, worker: ModelClient, folder: Path
    ) -> None:
        self.plan, self.seed, self.outcome = plan, seed, Outcome(flavours["m"], window, seed)
        self._shown: int | None = None
        self._full = ""
        self._rebuilt: list[int] = []
        script = self.make_script(folder / "project", window)
        told = {"reasoning_effort": plan.effort, "context_window": plan.configured or window}
        super().__init__(flavours, window, script, worker, folder, **told)

    def make_script(self, project: Path, window: int) -> Script:
        """What the model says, with the project that it speaks of."""
        files = make_project(project, self.seed)
        return Script(self.seed, files, window, bad_summaries=self.plan.bad_summaries, line_tokens=24)

    def settings(self) -> Settings:
        settings = super().settings()
        settings.context.exact_counting = "auto" if self.plan.exact else "off"
        settings.tools.output_limit = max(30_000, self.window)
        return settings

    async def go(self) -> Outcome:
        """Runs all turns and returns what was seen."""
        agent = await self.open()
        try:
            for turn in range(1, self.plan.turns + 1):
                self.turn = turn
                agent = await self.before_turn(agent, turn)
                if self.plan.manual and turn % self.plan.manual == 0:
                    await agent.compaction.now()
                await self.take_turn(agent, turn)
        finally:
            await agent.close()
            self.close()
        self.check()
        for server in self.servers.values():
            self._totals(server)
        return self.outcome

    async def before_turn(self, agent: Agent, turn: int) -> Agent:
        """Does what is due before a turn; returns the agent that goes on."""
        if self.plan.restart and turn % self.plan.restart == 0:
            await agent.close()
            return await self.open()
        return agent

    async def open(self, seen: Recorder | None = None) -> Agent:
        self._shown = None
        return await super().open(seen)

    async def take_turn(self, agent: Agent, turn: int) -> None:
        """The user says something, and the model answers."""
        text, outcome = self.message(turn), self.outcome
        self._full = ""
        ended = await self.say(agent, text)
        outcome.turns += 1
        if ended is None:
            outcome.failed.append(f"{turn}: it never ended")
            return
        outcome.cut += ended.stop_reason == "length"
        if ended.stop_reason in ("end", "length"):
            return
        failure = ended.failure
        why = f"{turn}: {ended.stop_reason} {failure.kind if failure else ''} {failure.message if failure else ''}"
        last = self._last()
        need = (last.fixed if last else 0) + self.server.count(text)
        if failure is not None and failure.kind == "context_overflow" and need + LEAST_ANSWER <= self.window:
            outcome.dead.append(f"{why} (needs {need:,} of {self.window:,}) {self._full[:160]}")
        else:
            outcome.failed.append(why)

    def message(self, turn: int) -> str:
        """What the user says."""
        rng = random.Random(f"{self.seed}/user/{turn}")
        words = rng.randint(8, 60)
        chance = rng.random()
        if chance < 0.05:
            words = int(self.window * 0.03)
        elif chance < 0.15:
            words = int(self.window * 0.01)
        rule = f"Rule {turn}: never rename value_{turn}. " if turn <= 3 else ""
        return f"[turn {turn}] {rule}{self.script.says(rng, max(8, words))}"

    def _last(self) -> Exchange | None:
        return next((e for e in reversed(self.server.truth.exchanges) if e.kind == "turn" and e.input), None)

    def see(self, event: Event) -> None:
        """Holds what is told against what the server knows."""
        match event:
            case ContextChanged(usage, in_flight) if not usage.pending and not in_flight:
                self._shown = usage.total
                self._check_rows(usage)
            case StepStarted(step, _):
                if self._shown is not None and self._shown != step.estimated_input:
                    self.outcome.differs.append(
                        f"turn {self.server.turn}: shown {self._shown}, sent {step.estimated_input}"
                    )
            case StepEnded(step, _) if step.kind == "turn":
                self._check_step(step)
            case CompactionEnded():
                self._check_compaction(event)
            case Notice(level, text, code):
                self.outcome.notes[code or level] = self.outcome.notes.get(code or level, 0) + 1
                if code == "context_full":
                    self._full = text
            case _:
                pass

    def _check_step(self, step: Step) -> None:
        overflow = step.failure is not None and step.failure.kind == "context_overflow"
        done = [e for e in self.server.truth.exchanges if e.kind == "turn" and (e.usage or overflow) and e.input]
        if step.status != "complete" and not overflow:
            return
        if not done:
            self.outcome.failed.append(f"{self.server.turn}: a step ended that was never answered")
            return
        last, outcome = done[-1], self.outcome
        outcome.steps += 1
        outcome.errors.append((last.turn, outcome.steps, (step.estimated_input or 0) - last.input))
        outcome.spreads.append(step.estimated_spread or 0)
        if self.key != "m":
            outcome.other.add(outcome.steps)
        if step.growth is not None and step.known_input is not None:
            name, growth = self.flavours[self.key].name, asdict(step.growth)
            believed = step.status == "complete" and not last.lied and step.doubt is None
            outcome.told.append(
                {"model": name, "known": step.known_input, "true": last.input, "taught": believed, "content": growth}
            )
        if overflow:
            return
        outcome.fullest = max(outcome.fullest, last.input / self.window)
        if last.lied:
            outcome.lies += 1
        elif step.doubt is not None:
            outcome.doubted.append(
                f"turn {last.turn}: {step.doubt}, {last.input} where {step.estimated_input} expected"
            )

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
        refused = self.server.truth.refused("input", "output", "told to")
        if any(r.reason == "overflow" for r in event.records) and refused and refused[-1].refusal == "output":
            last = refused[-1]
            self.outcome.needless.append(
                f"turn {self.server.turn}: {last.input} + {last.max_output} in {self.window}: {event.text}"
            )

    def rewrites(self, truth: Truth) -> None:
        """Steps that found less than half of what the step before left in the cache, though nothing was compacted."""
        before: Exchange | None = None
        for now in truth.turns():
            if before is not None and not any(before.number < n <= now.number for n in self._rebuilt):
                assert before.usage is not None and now.usage is not None
                left = before.usage.cache_read + before.usage.cache_write or before.input
                if left > 2_048 and now.usage.cache_read < left // 2:
                    self.outcome.rewrites.append(f"turn {now.turn}: {now.usage.cache_read} of {left}")
            before = now

    def _totals(self, server: TrueProvider) -> None:
        truth, outcome = server.truth, self.outcome
        self.rewrites(truth)
        for exchange in truth.turns():
            assert exchange.usage is not None
            outcome.input += exchange.input
            outcome.cached += exchange.usage.cache_read
            room = self.window - exchange.input
            if exchange.may_think and room > 3 * LEAST_ANSWER:
                outcome.may_think += 1
                if not exchange.thinking:
                    outcome.unthinking.append(f"turn {exchange.turn} at {exchange.input}")
        outcome.invalid += [f"turn {turn}: {message}" for turn, message, _ in truth.bodies]
        for refused in truth.refused("input", "output"):
            lines = outcome.refused if refused.refusal == "input" else outcome.overflows
            lines.append(f"turn {refused.turn} {refused.kind}: {refused.input} + {refused.max_output}")


def _short(usage: ContextUsage) -> str:
    data = context_json(ContextReport(usage))
    rows = {row["id"]: row["tokens"] for row in data["rows"]}
    return f"{rows} {data['calculation']}"


async def long_run(flavour: Flavour, window: int, seed: int, plan: Plan, worker: ModelClient) -> Outcome:
    """One run in a folder of its own."""
    with scratch() as folder:
        return await LongRun({"m": flavour}, window, seed, plan, worker, folder).go()
