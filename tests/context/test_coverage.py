"""The interval holds 95 of 100 inputs, also where a turn closes and its reasoning, which nobody counted, stays out."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from random import Random

import pytest

from agent_tui.context.accounting.reports import after_step, before_step, verified_growth
from agent_tui.context.anchor import runs_of
from agent_tui.context.tokens import family_of
from agent_tui.models.calibration import Calibration
from agent_tui.models.context import ContextUsage
from agent_tui.models.messages import ReasoningPart
from agent_tui.models.requests import Target
from agent_tui.models.usage import TokenUsage
from agent_tui.providers.reasoning import plan_replay
from tests.support.contexts import Conversation, fixed_part

pytestmark = pytest.mark.quick

LOCAL = Target("hosted_vllm", "chat", "mistral-small", "mistral")
AROUND, CALL = 4, 11
"""Tokens that this server's template takes for a message and for a call."""
OFF = 0.03
"""Standard deviation of a text's tokens from the factor, as a share of them."""


@dataclass
class Server:
    """Counts truly, and reports the output as one number. ``seed`` also says what a token of o200k_base is here."""

    seed: int
    conversation: Conversation = field(init=False)
    calibration: Calibration | None = None
    seen: list[tuple[ContextUsage, int]] = field(default_factory=list)
    """What was said before each step, and the input in truth."""

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.factor = self.random.uniform(0.9, 1.2)
        self.conversation = Conversation(target=LOCAL, fixed=[fixed_part(raw=900), fixed_part("tools", 500, "read")])
        self.prefix = sum(self._tokens(part.raw_tokens or 0) for part in self.conversation.fixed)
        self.texts: dict[str, int] = {}
        self.thoughts: dict[str, int] = {}

    def _tokens(self, raw: int) -> int:
        return max(1, round(raw * self.factor * self.random.gauss(1.0, OFF)))

    def turn(self) -> None:
        message = self.conversation.say(raw=(raw := self.random.randint(5, 300)))
        self.texts[message.id] = self._tokens(raw) + AROUND
        for number in range(self.random.choice([0, 1, 2, 5])):
            calls = tuple(f"{message.id}_{number}_{n}" for n in range(self.random.choice([1, 1, 3])))
            self.step(calls)
            for call in calls:
                result = self.conversation.result(call, raw=(raw := self.random.randint(5, 900)))
                self.texts[result.id] = self._tokens(raw) + AROUND
        self.step(())

    def step(self, calls: tuple[str, ...]) -> None:
        conversation, view = self.conversation, self.conversation.view()
        usage = conversation.usage(conversation.calculator, calibration=self.calibration)
        plan = plan_replay(view, LOCAL, conversation.fixed_fingerprint, None)
        counted = {item.message.id: plan.message_status(item.message.id) for item in view}
        true = self.prefix + sum(self.texts[item.message.id] for item in view)
        true += sum(
            self.thoughts.get(id_, 0) for id_, status in counted.items() if status is not None and status.counted
        )
        raw, thought = self.random.randint(8, 200) + 12 * len(calls), self.random.randint(10, 900)
        spoken = self._tokens(raw) + CALL * len(calls)
        # How many characters a token has is nothing that a text tells before it is counted.
        text = "x" * round(raw * self.random.uniform(2.4, 4.4))
        step = conversation.answer(
            TokenUsage(true, spoken + 1 + thought), text=text, calls=calls, raw=None,
            reasoning=ReasoningPart("so " * thought, None, "now"), before=usage, settles=False,
        )  # fmt: skip
        step.sent_reasoning = runs_of(view, plan, LOCAL.family)
        before_step(step, usage)
        after_step(step)
        conversation.settle(step, self.calibration)
        if (growth := verified_growth(step)) is not None:
            self.calibration = (self.calibration or family_of(LOCAL).beginning).learned(*growth)
        answer = conversation.path[-1]
        # It is counted once it is complete.
        answer.raw_tokens = raw
        self.texts[answer.id], self.thoughts[answer.id] = spoken + AROUND, thought
        self.seen.append((usage, true))


def _figures(seen: list[tuple[ContextUsage, int]]) -> tuple[float, float, float]:
    """The share of the inputs that were within their interval, and the mean and the root mean square of their errors,
    in standard deviations of the interval."""
    off = [1.96 * (usage.total - true) / max(1, usage.spread) for usage, true in seen]
    held = sum(abs(usage.total - true) <= usage.spread for usage, true in seen) / len(seen)
    return held, sum(off) / len(off), math.sqrt(sum(each * each for each in off) / len(off))


def test_the_interval_holds_where_reasoning_that_nobody_counted_is_left_out() -> None:
    """The split of an answer is undone there: what is not known of it is no more than that of its text."""
    seen: list[tuple[ContextUsage, int]] = []
    for seed in range(4):
        server = Server(seed)
        for _ in range(30):
            server.turn()
        seen += server.seen
    moved = [each for each in seen if each[0].calculation.dropped_reasoning]
    assert len(moved) > 100 and len(seen) > 300
    held, mean, rms = _figures(moved)
    assert held >= 0.95 and abs(mean) < 0.5 and rms > 0.4
    held, mean, rms = _figures(seen)
    assert held >= 0.93 and abs(mean) < 0.5 and rms > 0.5, "one standard error is 1.2 percent"
