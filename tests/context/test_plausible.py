"""Which reports are believed, and how long an answer thought where nobody says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent_tui.context.accounting.believed import believe
from agent_tui.context.accounting.reports import before_step
from agent_tui.models.messages import ReasoningPart
from agent_tui.models.requests import Target
from agent_tui.models.steps import Step
from agent_tui.models.usage import TokenUsage
from tests.support.contexts import TARGET, Conversation, assert_identities, row, usual

pytestmark = pytest.mark.quick

OLD_CLAUDE = Target("anthropic", "chat", "claude-sonnet-4-5", "claude")
SIGNED = {"type": "thinking", "signature": "s"}


def judged(usage: TokenUsage, answer: int) -> Step:
    """The step of a report, of an input that was expected, to an answer of about so many tokens."""
    conversation = Conversation()
    conversation.say()
    before = conversation.usage()
    step = conversation.answer(usage)
    before_step(step, before)
    step.estimated_input = 20_000
    believe(conversation.steps, TARGET, 200_000, answer)
    return step


@pytest.mark.parametrize(("said", "answer"), [(0, 40), (1, 4_000)])
def test_an_output_of_nothing_beside_a_full_answer_is_ours(said: int, answer: int) -> None:
    step = judged(TokenUsage(20_000, said), answer)
    assert step.believed == replace(TokenUsage(20_000, answer), output_source="estimated")
    assert step.believed.anchors and step.doubt is None
    assert step.usage == TokenUsage(20_000, said), "the report stays as it came"


def test_an_empty_answer_may_cost_nothing() -> None:
    assert judged(TokenUsage(20_000, 0), 0).believed is None


def test_more_than_two_windows_are_never_believed() -> None:
    step = judged(TokenUsage(450_000, 50), 50)
    assert step.doubt == "absurd" and step.believed is not None and not step.believed.anchors


@pytest.mark.parametrize(
    "usage",
    [TokenUsage(1_000, 900), TokenUsage(1_000, 900, 3, reasoning_source="estimated"), TokenUsage(1_000, 900, 0)],
    ids=["missing", "made up from the text", "zero beside a text"],
)
def test_thinking_that_nobody_counted_is_the_output_without_the_answer(usage: TokenUsage) -> None:
    conversation = Conversation(OLD_CLAUDE)
    conversation.say()
    conversation.answer(usage, reasoning=ReasoningPart("In short: yes.", SIGNED), raw=100)
    conversation.say()
    after = conversation.usage()
    answer = 100 * usual(OLD_CLAUDE) + 4
    assert after.calculation.dropped_reasoning == round(900 - answer), "not the 4 tokens of its summary"
    assert after.estimated_tokens >= after.calculation.dropped_reasoning
    assert row(after, "messages", "reasoning").tokens == 0
    assert_identities(after)


def test_thinking_is_never_nothing() -> None:
    conversation = Conversation(OLD_CLAUDE)
    conversation.say()
    conversation.answer(TokenUsage(1_000, 50), reasoning=ReasoningPart("", SIGNED), raw=100)
    assert conversation.usage().calculation.dropped_reasoning == 1
