"""A session with a provider that counts truly: its own tokenizer, its own idea of which reasoning it keeps.

Everything is numbers, no text is tokenized: a message has an o200k_base count, and the provider counts a factor of it.
Steps are stored as the engine stores them; what the calculator says before each is compared with what is counted then.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

from agent_tui.context.accounting.reports import after_step, before_step, verified_growth
from agent_tui.context.accounting.usage import Calculator
from agent_tui.context.anchor import runs_of
from agent_tui.context.tokens import family_of
from agent_tui.models.calibration import Calibration
from agent_tui.models.context import ContextUsage
from agent_tui.models.messages import Message, ReasoningPart, SummaryPart
from agent_tui.models.requests import Effort, ReplayRule, SentMessage, Target
from agent_tui.models.steps import CompactionRecord, FixedPart
from agent_tui.models.usage import Limits, TokenUsage
from agent_tui.providers.catalog import retention
from agent_tui.providers.dialects.shared import ReplayPlan
from agent_tui.providers.reasoning import plan_replay, turn_is_closed
from tests.support.contexts import Conversation, fixed_part

SIGNED = {"type": "thinking", "signature": "s", "encrypted_content": "e"}
AROUND = 9
"""Tokens this provider's template puts around every message."""


@dataclass
class Outcome:
    """One step: what was expected, what was counted, and the calculator's whole answer from before it."""

    usage: ContextUsage
    actual: int
    fixed: int
    thinking: bool


@dataclass
class Session:
    """``factor``: tokens of this provider for each of o200k_base. ``counts_reasoning``: it says how much of
    an answer was thinking."""

    target: Target
    seed: int
    factor: float = 1.0
    counts_reasoning: bool = True
    window: int = 200_000
    remembered: bool = True
    conversation: Conversation = field(init=False)
    accounts: Calculator = field(init=False)
    effort: Effort = "medium"
    outcomes: list[Outcome] = field(default_factory=list)
    thought: dict[str, int] = field(default_factory=dict)
    calibration: Calibration | None = None
    number: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.conversation = Conversation(target=self.target)
        self.accounts = self.conversation.calculator
        self.use_tools(3)

    def use_tools(self, count: int) -> None:
        tools = [fixed_part("tools", 600, f"tool{n}", "builtin") for n in range(count)]
        self.conversation.fixed = [fixed_part(raw=2_500), *tools]
        self.conversation.fixed_fingerprint = f"fixed{count}"

    def usage(self) -> ContextUsage:
        return self.conversation.usage(
            self.accounts, calibration=self.calibration, effort=self.effort, limits=Limits(self.window, None, 32_000)
        )

    # What the session does

    def turn(self, tool_steps: int) -> None:
        self.conversation.say(raw=self.random.choice([3, 40, 400]))
        for _ in range(tool_steps):
            calls = tuple(f"c{self.number}_{n}" for n in range(self.random.choice([1, 1, 2])))
            self.step(calls)
            for call in calls:
                raw = self.random.choice([20, 300, 3_000])
                self.conversation.result(call, "word" * raw, raw)
        self.step(())

    def step(self, calls: tuple[str, ...]) -> None:
        conversation, view = self.conversation, self.conversation.view()
        usage = self.usage()
        rule = self._rule()
        plan = plan_replay(view, self.target, conversation.fixed_fingerprint, self.effort, rule)
        thinking = self.effort != "off" and plan.thinking_off is None
        if not thinking:
            plan = plan_replay(view, self.target, conversation.fixed_fingerprint, "off", rule)
        fixed, actual = self.count_fixed(conversation.fixed), self.count(view, plan)
        thought = self.random.choice([60, 700, 4_000]) if thinking and self.random.random() < 0.9 else 0
        spoken = self.random.choice([8, 90, 600])
        self.number += 1
        reasoning = ReasoningPart("In short: " + "so " * self.random.randint(1, 30), SIGNED, "now") if thought else None
        output = thought + self._tokens(spoken)
        reported = TokenUsage(actual + fixed, output, thought if self.counts_reasoning else None)
        step = conversation.answer(
            reported, calls=calls, reasoning=reasoning, raw=spoken, before=usage, effort=self.effort, settles=False
        )
        self.thought[step.message_id or ""] = thought
        if self.remembered:
            step.sent_reasoning = runs_of(view, plan, self.target.family)
        step.thinking = self.effort if thinking else "off"
        before_step(step, usage)
        after_step(step)
        conversation.settle(step, self.calibration)
        growth = verified_growth(step)
        if growth is not None:
            self.calibration = (self.calibration or family_of(self.target).beginning).learned(*growth)
        self.outcomes.append(Outcome(usage, actual + fixed, fixed, thinking))

    def prune(self) -> None:
        """Clears the older half of the results that are sent whole, or cuts them."""
        results = [i.message.id for i in self.conversation.view() if i.message.role == "tool" and i.stored is None]
        chosen = results[: len(results) // 2]
        if chosen:
            clips = dict.fromkeys(chosen, 40) if self.random.random() < 0.2 else {}
            name = f"prune{len(self.conversation.records)}"
            self.conversation.records.append(CompactionRecord(name, name, "prune", chosen, clips=clips))

    def summarise(self) -> None:
        """Puts a summary in the place of everything but the newest turn."""
        path = self.conversation.path
        users = [n for n, m in enumerate(path) if m.role == "user"]
        if len(users) < 2 or not turn_is_closed(self.conversation.view()):
            return
        name = f"summary{len(self.conversation.records)}"
        message = Message(name, "user", [SummaryPart("What happened so far.", name)], raw_tokens=800)
        self.conversation.summaries[name] = message
        ids = [m.id for m in path[: users[-1]]]
        record = CompactionRecord(name, name, "summary", ids, summary_id=name, created=float(len(path)))
        self.conversation.records.append(record)

    def undo(self) -> None:
        active = [r for r in self.conversation.records if r.active]
        if active:
            active[-1].active = False

    def run(self, turns: int) -> None:
        """So many turns with everything that happens in between."""
        for _ in range(turns):
            self.turn(self.random.choice([0, 1, 3, 6]))
            total, chance = self.usage().total, self.random.random()
            if total > 0.8 * self.window or chance < 0.04:
                self.summarise()
            elif total > 0.5 * self.window or chance < 0.12:
                self.prune()
            elif chance < 0.15:
                self.undo()
            elif chance < 0.18:
                self.use_tools(self.random.choice([2, 3, 5]))
            elif chance < 0.22:
                self.effort = "off" if self.effort != "off" else "medium"

    # How the provider counts

    def count_fixed(self, parts: list[FixedPart]) -> int:
        return sum(self._tokens(p.raw_tokens or 0) for p in parts)

    def count(self, view: list[SentMessage], plan: ReplayPlan) -> int:
        return sum(self._tokens(i.message.raw_tokens or 0) + AROUND + self._kept(i.message, view, plan) for i in view)

    def _kept(self, message: Message, view: list[SentMessage], plan: ReplayPlan) -> int:
        status = plan.message_status(message.id)
        if status is None or not status.resent:
            return 0
        last_user = max(n for n, i in enumerate(view) if i.message.role == "user")
        mine = next(n for n, i in enumerate(view) if i.message.id == message.id)
        in_loop, after = retention(self.target)
        return round(self.thought.get(message.id, 0) * (in_loop if mine > last_user else after))

    def _tokens(self, raw: int) -> int:
        return math.ceil(raw * self.factor)

    def _rule(self) -> ReplayRule:
        return self.accounts.rule(self.conversation.inputs(effort=self.effort))
