"""Costs are facts: what is stored with the steps is what their reports give, made again from nothing."""

from __future__ import annotations

import json
import sys
from dataclasses import field, replace
from random import Random
from types import FrameType

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from agent_tui.context.accounting.believed import Verdict
from agent_tui.context.accounting.usage import Calculator
from agent_tui.context.costs import SentItems, costs_of, is_of, read_costs
from agent_tui.context.view import ViewBuilder
from agent_tui.models.calibration import SCHEMAS
from agent_tui.models.codec import dumps, from_dict
from agent_tui.models.measuring import steps_measuring
from agent_tui.models.messages import Message, Part, ReasoningPart
from agent_tui.models.requests import SentMessage, Target
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.models.usage import TokenUsage, UsageSource
from agent_tui.records import dataclass
from tests.context.context_operations import OPERATIONS, TARGETS, apply
from tests.support.contexts import (
    BOUND,
    CLAUDE,
    Conversation,
    assert_identities,
    calibrated,
    fixed_part,
    leaves,
    weather,
)
from tests.support.forms import examples

pytestmark = pytest.mark.quick

GROWING = ["say", "turn", "loop", "loop", "parallel"]


@dataclass
class CountedLate(Conversation):
    """``counts_late``: messages are counted some time after they were said."""

    counts_late: bool = False
    uncounted: list[tuple[Message, int | None]] = field(default_factory=list)

    def append(self, role: str, parts: list[Part], raw: int | None = None) -> Message:
        message = super().append(role, parts, None if self.counts_late else raw)
        self.uncounted.append((message, raw))
        return message

    def count(self) -> None:
        for message, raw in self.uncounted:
            message.raw_tokens = raw
        self.uncounted.clear()


@settings(max_examples=examples(10, 300), deadline=None, phases=[Phase.explicit, Phase.generate])
@given(st.integers(0, 2**32 - 1))
def test_stored_costs_are_those_of_the_reports(seed: int) -> None:
    """A whole history is drawn from one number: turns, parallel calls, clears, summaries, folds, drops, undo, rewind,
    other models, tools that come and go, reasoning that is kept or dropped, reports that are read otherwise later,
    copies of the conversation, counts that come late, and sessions that are opened again."""
    random = Random(seed)
    conversation = CountedLate(
        target=random.choice([*TARGETS, BOUND]),
        fixed=[fixed_part(raw=2_000), fixed_part("tools", 600, "read", "builtin")],
    )
    size, kept = 3_000, conversation.calculator
    for _ in range(40):
        name, added = random.choice([*OPERATIONS, *GROWING, *GROWING]), random.randint(0, 2_000)
        size += 200 + added
        usage = TokenUsage(
            random.choice([size, random.randint(0, 9_000)]), random.randint(0, 900), source=_source(random)
        )
        apply(conversation, name, usage, added)
        if random.random() < 0.1 and conversation.steps:
            _read_otherwise(conversation, random)
        if random.random() < 0.05:
            conversation.fixed = conversation.fixed[:2]
        if random.random() < 0.06:
            _copy(conversation, random)
            kept = conversation.calculator
        if random.random() < 0.06:
            _open_again(conversation)
            kept = conversation.calculator
        _check_kept(conversation, kept)
        if random.random() < 0.7:
            conversation.count()
        conversation.counts_late = random.random() < 0.3
        _check(conversation)
        _check_kept(conversation, kept)


def _check_kept(conversation: Conversation, kept: Calculator) -> None:
    inputs = conversation.inputs()
    assert kept.usage(inputs) == Calculator().usage(inputs), "what is kept changes nothing"


def _source(random: Random) -> UsageSource:
    return "estimated" if random.random() < 0.15 else "provider"


def _read_otherwise(conversation: Conversation, random: Random) -> None:
    """Something else is believed of an earlier report."""
    step = random.choice(conversation.steps[-6:])
    if step.usage is None or step.settlement is None:
        return
    step.believed = replace(step.usage, input=max(1, step.usage.input + random.randint(-900, 900)))
    newest = next(s for s in reversed(conversation.steps) if s.settlement is not None)
    conversation.settle(newest, verdict=Verdict(None, {step.id: step.believed.input}))


def _open_again(conversation: Conversation) -> None:
    """The program was killed: what it knows is what is stored."""
    conversation.steps = [from_dict(Step, json.loads(dumps(step))) for step in conversation.steps]
    conversation.calculator = Calculator()


def _copy(conversation: Conversation, random: Random) -> None:
    """A session that holds the conversation up to a message, with the steps that the store copies."""
    del conversation.path[random.randint(1, len(conversation.path) + 1) :]
    path = {message.id for message in conversation.path}
    before = {target: read_costs(conversation.steps, target).tokens for target in (*TARGETS, BOUND)}
    own = {step.id for step in conversation.steps if step.message_id in path}
    copied = steps_measuring(conversation.steps, own)
    conversation.steps = [step for step in conversation.steps if step.id in copied]
    conversation.records = [record for record in conversation.records if path.issuperset(record.message_ids)]
    conversation.calculator = Calculator()
    for target, costs in before.items():
        sent = [key for step in conversation.steps if step.id in own and is_of(step, target) for key in _keys(step)]
        known = read_costs(conversation.steps, target).tokens
        assert all(known.get(key) == costs.get(key) for key in sent), "a copy knows what the session knew"


def _keys(step: Step) -> list[str]:
    return step.sent_keys.keys if step.sent_keys is not None else []


def _check(conversation: Conversation) -> None:
    for target in {conversation.target, *TARGETS, BOUND}:
        made, stored = costs_of(conversation.steps, target), read_costs(conversation.steps, target)
        assert made.tokens == stored.tokens
        assert [step.id for step in made.settled] == [step.id for step in stored.settled]
    usage = conversation.usage()
    assert_identities(usage)
    lists = SentItems()
    for step in conversation.steps:
        if (
            step.settlement is not None
            and step.settlement.settled
            and step is read_costs(conversation.steps, step_target(step)).last
        ):
            sent = lists.sent(step, conversation.steps)
            assert sent is not None and step.counted is not None
            assert read_costs(conversation.steps, step_target(step)).sum(sent.all()) == step.counted.input


def step_target(step: Step) -> Target:
    return replace(CLAUDE, provider=step.provider, api=step.api, model=step.model)


def test_a_message_that_comes_back_costs_what_it_cost() -> None:
    conversation = weather()
    conversation.answer(TokenUsage(5_140, 30))
    before = conversation.usage()
    record = CompactionRecord("p", "op", "prune", [conversation.path[2].id])
    conversation.records.append(record)
    conversation.say(raw=10)
    conversation.answer(TokenUsage(conversation.usage().total, 20))
    record.active = False
    tokens = {leaf.message_id: leaf.tokens for leaf in leaves(conversation.usage().rows)}
    then = {leaf.message_id: leaf.tokens for leaf in leaves(before.rows)}
    assert tokens[record.message_ids[0]] == then[record.message_ids[0]]


def test_a_server_that_counts_less_than_expected_adds_nothing() -> None:
    conversation = weather()
    step = conversation.answer(TokenUsage(900, 30))
    conversation.settle(step, verdict=Verdict(None, {conversation.steps[0].id: None}, always=-2_900))
    conversation.say(raw=10)
    assert_identities(conversation.usage())
    assert read_costs(conversation.steps, conversation.target).tokens["server"] >= 0


def test_what_the_first_report_settled_is_shared_out_again_and_takes_as_much() -> None:
    """Prose took twice what was known of it, and the first report gave most of that to the tools."""
    conversation = Conversation(fixed=[fixed_part(raw=1_000), fixed_part("tools", 1_000, "read", "builtin")])
    conversation.say(raw=1_000)
    first = conversation.answer(TokenUsage(5_000, 30))
    assert first.settlement is not None
    guessed = dict(first.settlement.costs)
    double = calibrated(2.0)
    factors = [1.0 if place == SCHEMAS else factor for place, factor in enumerate(double.factors)]
    known = replace(double, factors=tuple(factors), reports=4)
    conversation.say(raw=10)
    step = conversation.answer(TokenUsage(5_060, 30), settles=False)
    conversation.settle(step, known)
    costs = read_costs(conversation.steps, conversation.target).tokens
    assert sum(costs[key] for key in guessed) == sum(guessed.values())
    tools = next(key for key in guessed if key.startswith("tools:tools"))
    assert costs[tools] < guessed[tools] - 200


def test_reasoning_that_nobody_counted_takes_what_a_report_is_off_by() -> None:
    conversation = Conversation(target=CLAUDE, fixed=[fixed_part(raw=2_000)])
    conversation.say(raw=5)
    thought = ReasoningPart("so", {"type": "thinking", "signature": "s"}, "now")
    conversation.answer(TokenUsage(3_000, 900), reasoning=thought, raw=400)
    expected = conversation.usage()
    assert expected.total == 3_900
    assert_identities(expected)


@dataclass
class KeptView(Conversation):
    """Keeps the messages that are sent, as a session does."""

    builder: ViewBuilder = field(default_factory=ViewBuilder)

    def view(self) -> list[SentMessage]:
        return self.builder.build(self.path, self.records, self.summaries)


class CalledFunctions:
    """Counts the functions that are called inside, a generator's items among them."""

    count = 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        self.count += event in ("call", "c_call")

    def __enter__(self) -> CalledFunctions:
        sys.setprofile(self)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)


def _functions_of_a_step(messages: int) -> int:
    """How many functions a step behind so many messages calls: its numbers, what it sends, and its report."""
    conversation, size = KeptView(fixed=[fixed_part(raw=2_000)]), 3_000
    conversation.say(raw=10)
    while len(conversation.path) < messages:
        conversation.answer(TokenUsage(size, 90), calls=(f"c{size}",), raw=40)
        conversation.result(f"c{size}", raw=200)
        conversation.answer(TokenUsage(size + 300, 90), raw=40)
        conversation.say(raw=10)
        size += 600
    step = conversation.answer(TokenUsage(size, 90), raw=40, settles=False)
    conversation.say(raw=10)
    inputs, calculator = conversation.inputs(), conversation.calculator
    step.finished = float(len(conversation.steps))
    with CalledFunctions() as called:
        calculator.settle(step, conversation.path[-2], inputs)
        calculator.usage(inputs)
        calculator.record(replace(step, id="next"), inputs)
    return called.count


def test_a_step_works_on_what_is_new_alone() -> None:
    few, many = _functions_of_a_step(60), _functions_of_a_step(360)
    assert many < few + 30, f"{few} functions behind 60 messages, {many} behind 360"
