"""A model that takes all that it may and writes its own bill; and random runs of a whole agent that pays it."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent_tui.config import BudgetConfig, ModelConfig, PermissionsConfig, Settings
from agent_tui.engine.compaction.summary_call import request_tokens
from agent_tui.models.events import Notice, StepStarted, TurnEnded
from agent_tui.models.failure import Failure, FailureKind
from agent_tui.models.requests import Counter, Delta, Failed, Finished, ModelRequest, Started, StreamItem, UsageReport
from agent_tui.models.usage import Prices, TokenUsage
from agent_tui.providers.demo import DemoProvider
from tests.support.agents import Recorder, TokenCounter, parts_for, running

SUMMARY = "## Goal\nTo port it.\n\n## Progress\nAll done."
UNASKED = 32_000
"""Tokens of an answer of which nobody said how long it may be."""


@dataclass(slots=True)
class Bill:
    """What all calls cost in truth, and by how much their inputs were estimated too low, in dollars."""

    prices: Prices
    total: float = 0.0
    errors: list[float] = field(default_factory=list)
    calls: int = 0
    dearest: float = 0.0

    def add(self, usage: TokenUsage) -> None:
        self.calls += 1
        cost = self.prices.cost(usage) or 0.0
        self.total, self.dearest = self.total + cost, max(self.dearest, cost)


class Spender(DemoProvider):
    """Answers as long as it is allowed to, thinks unseen, finds the cache cold or warm, breaks off, calls tools."""

    def __init__(self, counter: Counter, dice: random.Random, bill: Bill, subagents: int) -> None:
        super().__init__(counter, None, pace=0.0)
        self._dice, self._bill, self._subagents = dice, bill, subagents
        self._open: dict[str, TokenUsage] = {}
        self._dead = False

    def die(self) -> None:
        """The program is killed now: what runs is billed as far as it came, and nothing that comes later."""
        for used in self._open.values():
            self._bill.add(used)
        self._dead = True

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        yield Started((await self.describe(request.spec)).target)
        dice, bill = self._dice, self._bill
        input_, cached = await self._witness.input_tokens(request)
        fate = dice.random()
        if fate < 0.05:
            yield Failed(_failure("rate_limit"))
            return
        reckoned = request.reckoned.total if request.reckoned is not None else input_
        expected = request_tokens(request) if request.kind == "compaction" else reckoned
        if input_ > expected:
            bill.errors.append((input_ - expected) * max(bill.prices.input or 0.0, bill.prices.cache_write or 0.0))
        read = dice.choice((0, cached, cached // 2))
        used = TokenUsage(input_, 0, cache_read=read, cache_write=input_ - read if bill.prices.cache_write else 0)
        most = request.max_output or UNASKED
        self._open[request.id] = used
        try:
            if fate < 0.12:
                # Nothing comes, and yet it was read.
                yield Failed(_failure(dice.choice(("timeout", "interrupted_stream"))))
                return
            calls, seen = self._calls(request), min(most, dice.choice((5, 40)))
            text = SUMMARY if request.kind == "compaction" else "word " * seen
            for index, piece in enumerate([text] if not calls else []):
                self._open[request.id] = replace(used, output=min(most, seen))
                yield Delta(index, "text", piece, closed=True)
            await asyncio.sleep(0)
            if fate < 0.18 and not calls:
                yield Failed(_failure("interrupted_stream"))
                return
            for index, (name, arguments) in enumerate(calls):
                said = json.dumps(arguments)
                yield Delta(index, "tool_call", said, closed=True, call_id=f"call_{index}", name=name)
            output = most if dice.random() < 0.5 else dice.randint(seen, most)
            used = replace(used, output=output, reasoning=max(0, output - 60 * len(calls) - seen))
            self._open[request.id] = used
            yield UsageReport(used)
            yield Finished("tool_calls" if calls else "length" if output == most else "stop")
        finally:
            used = self._open.pop(request.id)
            if not self._dead:
                bill.add(used)

    def _calls(self, request: ModelRequest) -> list[tuple[str, dict[str, object]]]:
        names, fate = {tool.name for tool in request.tools}, self._dice.random()
        if "subagent" in names and fate < 0.3:
            return [("subagent", {"description": "look", "prompt": "look around"})] * self._subagents
        return [("list", {"path": "."})] if "list" in names and fate < 0.6 else []


def _failure(kind: FailureKind) -> Failure:
    return Failure(kind, f"It went wrong: {kind}.", retry_after=0.0)


@dataclass(slots=True)
class Outcome:
    """One run: its budget, what it cost in truth, and by how much an input may have been estimated too low, or an
    answer that nobody reported was longer than expected."""

    budget: float
    spent: float
    slack: float
    calls: int
    stopped: bool
    cut: bool

    @property
    def over(self) -> float:
        """Dollars beyond the budget that this does not explain."""
        return self.spent - self.budget - self.slack


async def something_new(seen: Recorder) -> None:
    """Waits for the next call to begin, or a turn to end."""

    def heard() -> int:
        return len(seen.of(StepStarted)) + len(seen.of(TurnEnded))

    before = heard()
    await seen.until(lambda: heard() > before)


async def random_run(seed: int, folder: Path) -> Outcome:
    """A talk with everything that happens to one, of which a killed process and another one may be part."""
    dice = random.Random(seed)
    input_ = 10 ** dice.uniform(-7, -4.5)
    prices = {"input": input_ * 1e6, "output": input_ * 1e6 * dice.choice((1, 4, 5, 8))}
    if dice.random() < 0.7:
        prices |= {"cache_read": prices["input"] * 0.1, "cache_write": prices["input"] * dice.choice((1.0, 1.25, 2.0))}
    if dice.random() < 0.3:
        prices["reasoning"] = prices["output"] * dice.choice((0.5, 1.5))
    bill = Bill(Prices.per_million(prices))
    budget = input_ * 10 ** dice.uniform(3.8, 6.0)
    name = dice.choice(("run", "session_usd", "day_usd"))
    subagents = dice.choice((1, 3, 8))
    spec = ModelConfig(
        "demo",
        prices=prices,
        context_window=dice.choice((16_000, 64_000, 200_000, None)),
        max_output=dice.choice((2_000, 32_000, None)),
    )
    settings = Settings(
        default_model="paid",
        models={"paid": spec},
        permissions=PermissionsConfig(mode="auto"),
        budget=BudgetConfig(**({} if name == "run" else {name: budget})),
    )
    settings.agent.retries = 3
    stopped = cut = False
    unreported = 0
    home, session = folder / "home", None
    models: list[Spender] = []

    def model(counter: Counter) -> Spender:
        models.append(Spender(counter, dice, bill, subagents))
        return models[-1]

    lives = 1 if name == "run" else dice.choice((1, 2, 2))
    for life in range(lives):
        parts = parts_for(
            home,
            folder / "project",
            settings=settings,
            counter=TokenCounter(),
            provider=model,
            resume=session,
        )
        parts.run_budget = budget if name == "run" else None
        async with running(parts) as (agent, seen):
            for number in range(dice.randint(1, 6)):
                text = f"Question {number}: " + "please port the billing module. " * dice.choice((1, 100, 1_000))
                agent.turns.submit(text)
                if dice.random() < 0.1:
                    for _ in range(dice.randrange(200)):
                        await asyncio.sleep(0)
                    agent.turns.interrupt()
                    unreported += subagents
                await agent.turns.join()
                if dice.random() < 0.2:
                    await agent.compaction.now()
            if life < lives - 1:
                # Killed in the middle of a call: what is on the disk then is all that the next process has.
                agent.turns.submit("And then?")
                await something_new(seen)
                session = agent.conversation.info.id
                shutil.copytree(home, folder / "killed")
                models[-1].die()
                unreported += subagents
                agent.turns.interrupt()
                await agent.turns.join()
            told = [notice.text for notice in seen.of(Notice) if notice.code == "budget"]
            stopped = stopped or any("Stopped before" in text for text in told)
            cut = cut or any("cut off" in text for text in told)
        home = folder / "killed"
    slack = sum(sorted(bill.errors)[-subagents:]) + (subagents - 1 + unreported) * bill.dearest
    return Outcome(budget, bill.total, slack, bill.calls, stopped, cut)
