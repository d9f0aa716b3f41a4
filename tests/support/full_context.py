"""Long runs of the real program against providers that count truly, and what came of them.

The agent, its store, its tools and the provider worker are the product's; only the model is scripted. Everything the
product claims (the size of the next input, its rows, what it sends) is compared with what the server knows.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import quantiles
from typing import Any

from agent_tui.commands.usage_json import context_json
from agent_tui.commands.usage_text import adds_up, proof_line
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
from agent_tui.providers.client import WorkerClient
from tests.support.agents import parts_for
from tests.support.end_to_end import KEY_VARIABLE
from tests.support.true_provider import Exchange, Model, ProjectFile, Script, TrueProvider

WARM_UP = 20
"""Steps after which estimates are held to their bounds."""

LEAST_ANSWER = 1_024
"""Tokens of an answer that must have room for a turn to count as one that could have been answered."""


@dataclass(slots=True, frozen=True)
class Flavour:
    """A model as it is configured (``name``, ``path`` of the address, ``api``) and as its provider has it."""

    dialect: str
    name: str
    model: Model
    path: str = ""
    api: str = "auto"


FLAVOURS = {
    "claude-4.5": Flavour(
        "anthropic", "anthropic/claude-sonnet-4-5", Model("claude-sonnet-4-5", 0, 64_000, 1.30, summarised=True)
    ),
    "claude-4.6": Flavour(
        "anthropic", "anthropic/claude-sonnet-4-6", Model("claude-sonnet-4-6", 0, 128_000, 1.30, summarised=True)
    ),
    "claude-5.1": Flavour(
        "anthropic",
        "anthropic/claude-fable-5-1",
        Model("claude-fable-5-1", 0, 128_000, 1.25, summarised=True, details=True),
    ),
    "openai-chat": Flavour(
        "chat", "openai/gpt-5-mini", Model("gpt-5-mini", 0, 128_000, 1.0, details=True), path="/v1", api="chat"
    ),
    "vllm": Flavour("chat", "hosted_vllm/qwen3-coder", Model("qwen3-coder", 0, 65_536, 1.10, templates=True), "/v1"),
    "responses": Flavour(
        "responses", "openai/responses/gpt-5", Model("gpt-5", 0, 128_000, 1.0, details=True), path="/v1"
    ),
    "gemini": Flavour(
        "gemini", "gemini/gemini-3-pro-preview", Model("gemini-3-pro-preview", 0, 65_536, 1.02, details=True)
    ),
}


@dataclass(slots=True)
class Outcome:
    """What one run showed. Lists hold a line for each fault: turn, and what was seen."""

    flavour: str
    window: int
    seed: int
    turns: int = 0
    steps: int = 0
    dead: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    cut: int = 0
    wrong_rows: list[str] = field(default_factory=list)
    needless: list[str] = field(default_factory=list)
    overflows: list[str] = field(default_factory=list)
    invalid: list[str] = field(default_factory=list)
    differs: list[str] = field(default_factory=list)
    errors: list[tuple[int, int, int]] = field(default_factory=list)
    unthinking: list[str] = field(default_factory=list)
    may_think: int = 0
    compactions: dict[str, int] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)
    input: int = 0
    cached: int = 0

    @property
    def tokens_off(self) -> list[int]:
        """Absolute errors after the warm-up."""
        return [abs(e) for _, _, e in self.errors[WARM_UP:]]

    def percentile(self, share: int) -> float:
        found = self.tokens_off
        if len(found) < 2:
            return float(found[0]) if found else 0.0
        return quantiles(found, n=100, method="inclusive")[share - 1]

    @property
    def thinking_share(self) -> float:
        return 1 - len(self.unthinking) / self.may_think if self.may_think else 1.0

    def faults(self) -> list[str]:
        """Every expectation that was not met, in words."""
        p95 = self.percentile(95)
        found = [f"dead turn {line}" for line in self.dead]
        found += [f"failed turn {line}" for line in self.failed]
        found += [f"wrong row {line}" for line in self.wrong_rows]
        found += [f"needless compaction {line}" for line in self.needless]
        found += [f"invalid request {line}" for line in self.invalid]
        found += [f"shown is not sent {line}" for line in self.differs]
        if p95 > min(300, self.window / 100):
            worst = sorted(self.errors[WARM_UP:], key=lambda e: -abs(e[2]))[:5]
            found.append(f"p95 {p95:.0f} tokens, {100 * p95 / self.window:.2f} % of the window; worst {worst}")
        if self.thinking_share < 0.99:
            found.append(f"thinking {100 * self.thinking_share:.1f} %: {self.unthinking[:3]}")
        return found

    def row(self) -> dict[str, Any]:
        """One line of the table."""
        return {
            "model": self.flavour,
            "window": self.window,
            "seed": self.seed,
            "turns": self.turns,
            "steps": self.steps,
            "dead": len(self.dead),
            "failed": len(self.failed),
            "cut": self.cut,
            "wrong_rows": len(self.wrong_rows),
            "overflows": len(self.overflows),
            "needless": len(self.needless),
            "invalid": len(self.invalid),
            "differs": len(self.differs),
            "p50": round(self.percentile(50)),
            "p95": round(self.percentile(95)),
            "p95_percent": round(100 * self.percentile(95) / self.window, 2),
            "thinking_percent": round(100 * self.thinking_share, 1),
            "cached_percent": round(100 * self.cached / self.input, 1) if self.input else 0.0,
            **{name: self.compactions.get(name, 0) for name in ("prune", "clip", "summary", "drop", "not_done")},
        }


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
    every ``manual`` turns; 0 is never."""

    turns: int
    restart: int = 60
    manual: int = 75
    bad_summaries: bool = True
    effort: str = "medium"


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

    def _agent(self) -> Agent:
        config = ModelConfig(
            self.flavour.name,
            api_base=self.server.url + self.flavour.path,
            api_key_env=KEY_VARIABLE,
            context_window=self.window,
            api=self.flavour.api,  # type: ignore[arg-type]
            reasoning_effort=self.plan.effort,  # type: ignore[arg-type]
        )
        settings = Settings(
            default_model="m",
            models={"m": config},
            context=ContextConfig(exact_counting="off"),
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
                    await agent.compact()
                await self._turn(agent, turn)
        finally:
            await agent.close()
            self.server.close()
        if self.server.truth.crashes:
            raise AssertionError(self.server.truth.crashes[0])
        self._totals()
        return self.outcome

    async def _open(self) -> Agent:
        agent = self._agent()
        self._shown = None
        agent.subscribe(lambda event: self._see(agent, event))
        await agent.start()
        await agent.ready()
        return agent

    async def _turn(self, agent: Agent, turn: int) -> None:
        text = self._message(turn)
        self._ended, self._full = None, ""
        agent.submit(text)
        await agent.join()
        outcome = self.outcome
        outcome.turns += 1
        self._session = agent.info.id
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

    def _see(self, agent: Agent, event: Event) -> None:
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
                self._check_step(step.estimated_input or 0)
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

    def _check_step(self, estimated: int) -> None:
        done = self.server.truth.turns()
        if not done:
            self.outcome.failed.append(f"{self.server.turn}: a step ended that was never answered")
            return
        last, outcome = done[-1], self.outcome
        outcome.steps += 1
        outcome.errors.append((last.turn, outcome.steps, estimated - last.input))

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
        for record in event.records:
            kind = "clip" if record.kind == "prune" and record.clips and not record.message_ids else str(record.kind)
            counts[kind] = counts.get(kind, 0) + 1
        refused = self.server.truth.refused("input", "output")
        if any(r.reason == "overflow" for r in event.records) and refused and refused[-1].refusal == "output":
            last = refused[-1]
            self.outcome.needless.append(
                f"turn {self.server.turn}: {last.input} + {last.max_output} in {self.window}: {event.text}"
            )

    def _totals(self) -> None:
        truth, outcome = self.server.truth, self.outcome
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
    data = context_json(usage)
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
