"""The session as it was before each step: what is made again is what was shown then, for any history."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.context.accounting.usage import Calculator, calculate_context_usage
from agent_tui.context.past import NO_HEAD, OTHER_VIEW, SessionPast, StoredSession, given_of
from agent_tui.context.row_pairs import pairs
from agent_tui.models.calibration import usable
from agent_tui.models.codec import dumps
from agent_tui.models.context import ContextUsage
from agent_tui.models.messages import AttachmentPart, Message, TextPart
from agent_tui.models.requests import Effort
from agent_tui.models.usage import TokenUsage
from tests.context.context_operations import apply, operations
from tests.support.contexts import WINDOW, Conversation, calibrated, fixed_part, row
from tests.support.forms import examples

pytestmark = pytest.mark.quick

STEPS = ("turn", "stop", "fail", "missing", "loop", "parallel")


@dataclass
class Lived:
    """A session as the engine stores it, and what was shown before each of its steps."""

    conversation: Conversation = field(default_factory=lambda: Conversation(fixed=[fixed_part()]))
    messages: dict[str, Message] = field(default_factory=dict)
    shown: list[ContextUsage] = field(default_factory=list)
    time: float = 0.0

    def do(self, name: str, usage: TokenUsage, size: int) -> None:
        conversation = self.conversation
        self.time += 1
        active = {r.id: r.active for r in conversation.records}
        count = len(conversation.steps)
        effort: Effort = "off" if size % 3 == 0 else "low"
        head = conversation.path[-1].id if conversation.path else None
        inputs = replace(
            conversation.inputs(
                calibration=usable(calibrated(0.8 + size % 5 / 10, conversation.target)), effort=effort
            ),
            steps=list(conversation.steps),
            records=[replace(r) for r in conversation.records],
            fixed=tuple(conversation.fixed),
        )
        if name in STEPS:
            self.shown.append(calculate_context_usage(inputs))
        apply(conversation, name, usage, size)
        for step in conversation.steps[count:]:
            step.created, step.window, step.given = self.time, WINDOW.window, given_of(inputs, head)
            if step.kind == "turn":
                step.estimated_input = self.shown[-1].total
        for record in conversation.records:
            if record.id not in active:
                record.created = self.time
            elif record.active != active[record.id]:
                record.switched = [*record.switched, self.time]
        self.messages.update((m.id, m) for m in conversation.path)

    def history(self) -> SessionPast:
        c = self.conversation
        return SessionPast(StoredSession(self.messages, c.steps, c.records, c.summaries))


@pytest.mark.slow
@settings(max_examples=examples(120, 1_500), deadline=None)
@given(operations, st.randoms(use_true_random=False))
def test_each_moment_is_what_was_shown_then_in_whatever_order_it_is_visited(
    done: list[tuple[str, TokenUsage, int]], order: random.Random
) -> None:
    lived = Lived()
    for name, usage, size in done:
        lived.do(name, usage, size)
    history = lived.history()
    assert history.count == len(lived.shown)
    numbers = list(range(1, history.count + 1)) * 2
    order.shuffle(numbers)
    for number in numbers:
        moment = history.moment(number)
        assert moment.problem == ""
        assert moment.usage == lived.shown[number - 1]
        assert moment.differs == 0
    for number in range(2, history.count + 1):
        before, now = history.moment(number - 1), history.moment(number)
        assert before.usage is not None and now.usage is not None
        changed = sum(pair.change for pair in pairs(now.usage.rows, before.usage.rows))
        assert changed == now.usage.total - before.usage.total


def talked(turns: int) -> Lived:
    lived, size = Lived(), 3_000
    for _ in range(turns):
        lived.do("say", TokenUsage(0, 0), 40)
        lived.do("loop", TokenUsage(size, 50, cache_read=0), 200)
        lived.do("turn", TokenUsage(size + 300, 60, cache_read=size), 30)
        size += 400
    return lived


def test_an_undone_compaction_holds_until_it_was_undone() -> None:
    lived = talked(2)
    lived.do("summary", TokenUsage(0, 0), 3)
    lived.do("say", TokenUsage(0, 0), 10)
    lived.do("turn", TokenUsage(1_500, 60), 30)
    lived.do("undo", TokenUsage(0, 0), 0)
    lived.do("turn", TokenUsage(4_500, 60), 30)
    history = lived.history()
    assert [m.usage for m in map(history.moment, (5, 6))] == lived.shown[4:6]


def test_a_moment_that_cannot_be_proved_is_none() -> None:
    lived = talked(2)
    steps = lived.conversation.steps
    steps[1].sent_count += 1
    steps[2].given, steps[2].message_id = None, None
    steps[3].given = (
        replace(steps[3].given, calibrated=calibrated(1.4).packed()) if steps[3].given is not None else None
    )
    steps[3].estimated_input = 1
    history = lived.history()
    assert [(m.usage, m.problem) for m in map(history.moment, (2, 3))] == [(None, OTHER_VIEW), (None, NO_HEAD)]
    assert history.moment(4).differs


def test_a_picture_that_the_model_does_not_take_costs_the_line_that_is_sent_also_later() -> None:
    conversation, accounts = Conversation(fixed=[fixed_part()]), Calculator()
    picture = AttachmentPart("shot.png", "image/png", data="eA==")
    conversation.append("user", [TextPart("look"), picture], raw=1)
    shown = conversation.inputs()
    told = replace(shown, model=replace(shown.model, images=False))
    before, after = accounts.usage(shown), accounts.usage(told)
    assert after == calculate_context_usage(told) and before.total - after.total > 700
    assert 0 < row(after, "messages", "attachments").tokens < 30
    step = conversation.answer(TokenUsage(900, 5))
    step.given, step.estimated_input = given_of(told, conversation.path[0].id), after.total
    messages = {message.id: message for message in conversation.path}
    moment = SessionPast(StoredSession(messages, conversation.steps, [], {})).moment(1)
    assert (moment.problem, moment.differs) == ("", 0)


def test_a_calibration_is_stored_exactly_and_short_and_only_its_own_form_is_read() -> None:
    learned = usable(calibrated(1.4))
    assert learned is not None
    made = given_of(Conversation().inputs(calibration=learned), None)
    assert made.calibration == learned
    assert made.calibrated is not None and len(made.calibrated) < 2_100
    for other in (made.calibrated[:-8], made.calibrated[:-3], dumps(learned), ""):
        assert replace(made, calibrated=other).calibration is None
    assert len(replace(learned, rival=None).packed()) < 1_050


def test_a_step_that_was_rewound_is_on_another_branch() -> None:
    lived = talked(2)
    lived.do("tool", TokenUsage(0, 0), 500)
    lived.do("model", TokenUsage(0, 0), 4)
    lived.do("rewind", TokenUsage(0, 0), 4)
    lived.do("say", TokenUsage(0, 0), 10)
    lived.do("turn", TokenUsage(4_500, 60), 30)
    history = lived.history()
    on_path = {m.id for m in lived.conversation.path}
    assert [history.moment(n).left(on_path) for n in range(1, 6)] == [False, False, True, True, False]
