"""What is reused between calculations never changes an answer: it is what the formula gives from nothing."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from operator import mul
from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from agent_tui.context.accounting.inputs import ground_of
from agent_tui.context.accounting.usage import calculate_context_usage
from agent_tui.context.anchor import runs_of
from agent_tui.context.incremental import Incremental
from agent_tui.context.tokens import FAMILIES
from agent_tui.models.calibration import MESSAGES, USUAL, raw_total, text_content
from agent_tui.models.messages import Message, ReasoningPart
from agent_tui.models.requests import Effort, Target
from agent_tui.models.steps import Step
from agent_tui.models.usage import TokenUsage
from agent_tui.providers.reasoning import plan_replay
from tests.context.context_operations import OPERATIONS, TARGETS, apply
from tests.support.contexts import BOUND, Conversation, calibrated, fixed_part
from tests.support.forms import examples

pytestmark = pytest.mark.quick

RATIOS = [0.7, 0.83, 0.98, 1.0, 1.01, 1.02, 1.2, 1.337]
GROWING = ["say", "turn", "loop", "loop", "parallel"]
HAPPENING = [*OPERATIONS, "begin", "end", "estimated", *GROWING, *GROWING, *GROWING]
"""What adds to a conversation comes more often than what takes away, so that there is something to be kept."""


class Session:
    """A conversation whose steps store what was sent of old reasoning, as the engine's do, and may still be running
    while something else happens."""

    def __init__(self, target: Target) -> None:
        self.conversation = Conversation(
            target=target,
            fixed=[
                fixed_part(raw=2_000),
                fixed_part("tools", 600, "read", "builtin"),
                fixed_part("memory", None, "m", "m"),
            ],
        )
        self.effort: Effort = "medium"
        self.running: list[tuple[Step, Message]] = []
        self.size = 3_000

    def happen(self, name: str, usage: TokenUsage, size: int, grows: bool) -> None:
        conversation, known = self.conversation, len(self.conversation.steps)
        if grows:
            # As a provider reports: each request is longer than the one before it.
            self.size += 200 + usage.output + size
            usage = replace(usage, input=self.size, cache_read=min(usage.cache_read or 0, self.size))
        view, rule = conversation.view(), ground_of(conversation.inputs(effort=self.effort)).rule
        if name == "begin":
            step = conversation.answer(
                None, reasoning=ReasoningPart("hm " * size, {"signature": "s"}), status="running"
            )
            self.running.append((step, conversation.path.pop()))
        elif name == "end":
            self._end(usage, size)
        elif name == "estimated" and conversation.steps:
            conversation.steps[-1].estimated_messages = size
        else:
            apply(conversation, name, usage, size)
        plan = plan_replay(view, conversation.target, conversation.fixed_fingerprint, None, rule)
        for step in conversation.steps[known:]:
            if size % 4:
                step.sent_reasoning = runs_of(view, plan, conversation.target.family)

    def _end(self, usage: TokenUsage, size: int) -> None:
        for step, message in self.running:
            step.status = message.status = "complete" if size % 2 else "stopped"
            step.usage = usage if size % 3 else None
            self.conversation.path.append(message)
        self.running.clear()


@pytest.mark.slow
@settings(max_examples=examples(20, 300), deadline=None, phases=[Phase.explicit, Phase.generate])
@given(st.integers(0, 2**32 - 1))
def test_reuse_changes_nothing(seed: int) -> None:
    """A whole history is drawn from one number: it takes long ones for something to be kept, lost and found again."""
    random, accounts = Random(seed), Incremental()
    session = Session(random.choice([*TARGETS, BOUND]))
    learned = calibrated(1.0, session.conversation.target)
    grows, learns = random.random() < 0.8, random.choice(["nothing", "anew", "more", "more"])
    for _ in range(40):
        session.happen(random.choice(HAPPENING), any_usage(random), random.randint(0, 4_000), grows)
        if learns == "anew" and random.random() < 0.3:
            learned = calibrated(random.choice(RATIOS), session.conversation.target)
        elif learns == "more" and random.random() < 0.5:
            reported = text_content(None, random.randint(1, 3_000))
            learned = learned.learned(reported, learned.tokens(reported) * random.choice([1, 1, 1, 1.001, 1.01, 1.3]))
        if random.random() < 0.05:
            session.effort = "medium" if session.effort == "off" else "off"
        inputs = session.conversation.inputs(calibration=learned, effort=session.effort)
        if random.random() < 0.2:
            # What is to be sent may be asked before the numbers are, or without them.
            assert accounts.rule(inputs) == ground_of(inputs).rule
        if random.random() < 0.85:
            assert accounts.usage(inputs) == calculate_context_usage(inputs)


def test_counts_that_come_in_after_an_answer_count_for_what_it_measured() -> None:
    prompt, accounts = fixed_part(raw=None), Incremental()
    conversation = Conversation(fixed=[prompt])
    conversation.say()
    step = conversation.answer(TokenUsage(150, 5))
    step.estimated_messages = 6
    assert accounts.usage(conversation.inputs()) == calculate_context_usage(conversation.inputs())
    counted = replace(prompt, raw_tokens=120)
    conversation.fixed, step.fixed = [counted], (counted,)
    usage = accounts.usage(conversation.inputs())
    assert usage == calculate_context_usage(conversation.inputs())
    assert usage.rows[0].tokens > 120, "it is measured"


@pytest.mark.parametrize("name", ["unknown", "claude", "qwen"])
def test_few_reports_have_everything_calculated_anew(name: str) -> None:
    known = learned = FAMILIES[name].beginning
    random, seen = Random(1), []
    true = [factor * random.uniform(1.05, 1.3) for factor in known.factors]
    for _ in range(200):
        size = random.choice([60, 300, 1_500, 4_000])
        counts = [round(share * size * random.uniform(0.3, 2.0)) for share in USUAL]
        content = text_content(counts, raw_total(counts))
        content.terms[MESSAGES] = 1
        measured = sum(map(mul, true, content.terms)) + 4 + random.gauss(0, 0.02 * size)
        learned = learned.learned(content, max(0, round(measured)))
        seen.append(learned.coarse(known))
    changed = sum(a.factors != b.factors or a.noise != b.noise for a, b in pairwise(seen))
    assert changed < 0.2 * len(seen)
    assert seen[-1].factors != known.factors, "but what was learned is not lost"


def any_usage(random: Random) -> TokenUsage:
    return TokenUsage(
        random.randint(0, 60_000),
        random.randint(0, 5_000),
        random.choice([None, random.randint(0, 6_000)]),
        random.choice([None, random.randint(0, 60_000)]),
        source=random.choice(["provider"] * 5 + ["estimated"]),  # type: ignore[arg-type]
        reasoning_source=random.choice(["provider", "estimated"]),
    )
