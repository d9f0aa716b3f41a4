"""Which reports are believed, and how long an answer thought where nobody says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent_tui.context.accounting.reports import Surplus, judge_usage
from agent_tui.models.messages import AttachmentPart, ReasoningPart
from agent_tui.models.requests import Target
from agent_tui.models.usage import TokenUsage
from tests.support.contexts import Conversation, assert_identities, row

OLD_CLAUDE = Target("anthropic", "chat", "claude-sonnet-4-5", "claude")
SIGNED = {"type": "thinking", "signature": "s"}


def expected(total: int = 20_000) -> Conversation:
    conversation = Conversation()
    conversation.say()
    conversation.answer(TokenUsage(total - 10, 10))
    return conversation


@pytest.mark.parametrize(
    "reported", [6_000, 70_000, 450_000], ids=["cached part left out", "summed up", "over windows"]
)
def test_a_report_several_times_off_is_not_believed(reported: int) -> None:
    judged = judge_usage(TokenUsage(reported, 50, 10), expected().usage(), 60)
    assert judged.problem is not None and f"{reported:,}" in judged.problem and "20,000" in judged.problem
    assert (judged.usage.input, judged.usage.output, judged.usage.source) == (20_000, 60, "estimated")
    assert not judged.usage.anchors


@pytest.mark.parametrize("reported", [7_000, 20_300, 59_000])
def test_a_report_within_what_estimates_may_be_off_is_the_truth(reported: int) -> None:
    usage = TokenUsage(reported, 50, 10)
    assert judge_usage(usage, expected().usage(), 60).usage is usage


def test_small_numbers_are_never_several_times_off() -> None:
    usage = TokenUsage(1_900, 5)
    assert judge_usage(usage, expected(100).usage(), 5).usage is usage


def test_images_are_estimated_too_roughly_to_judge_by() -> None:
    conversation = expected(100)
    images = [AttachmentPart("a.pdf", "application/pdf", data="A" * 400_000)] * 5
    conversation.append("user", [*images], 0)
    usage = TokenUsage(300, 5)
    assert conversation.usage().total > 10_000
    assert judge_usage(usage, conversation.usage(), 5).usage is usage


@pytest.mark.parametrize(("said", "answer"), [(0, 40), (1, 4_000)])
def test_an_output_of_nothing_beside_a_full_answer_is_ours(said: int, answer: int) -> None:
    judged = judge_usage(TokenUsage(20_000, said), expected().usage(), answer)
    assert judged.usage == replace(TokenUsage(20_000, answer), output_source="estimated")
    assert judged.usage.anchors and judged.problem is not None


def test_an_empty_answer_may_cost_nothing() -> None:
    usage = TokenUsage(20_000, 0)
    assert judge_usage(usage, expected().usage(), 0).usage is usage


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
    answer = 100 * 1.22 + 4
    assert after.calculation.dropped_reasoning == round(900 - answer), "not the 4 tokens of its summary"
    assert after.estimated_tokens >= after.calculation.dropped_reasoning
    assert row(after, "messages", "reasoning").tokens == 0
    assert_identities(after)


def test_thinking_is_never_nothing() -> None:
    conversation = Conversation(OLD_CLAUDE)
    conversation.say()
    conversation.answer(TokenUsage(1_000, 50), reasoning=ReasoningPart("", SIGNED), raw=100)
    assert conversation.usage().calculation.dropped_reasoning == 1


def reports(added: int, factor: float, sizes: list[int]) -> list[bool]:
    """Which reports of a server are believed that counts ``factor`` times what is sent, and ``added`` more."""
    surplus, believed = None, []
    for size in sizes:
        conversation = Conversation()
        conversation.say(raw=size)
        usage = conversation.usage()
        judged = judge_usage(TokenUsage(round(factor * usage.total) + added, 50), usage, 50, surplus)
        surplus = judged.surplus
        believed.append(judged.problem is None)
    return believed


@pytest.mark.parametrize("factor", [0.8, 1.0, 1.4])
def test_a_prompt_that_a_gateway_adds_is_believed_once_it_is_always_there(factor: float) -> None:
    believed = reports(30_000, factor, [1_000, 1_050, 1_400, 2_000, 900])
    assert believed == [False, False, True, True, True]


def test_a_server_that_adds_up_its_calls_is_never_believed() -> None:
    assert not any(reports(0, 4.0, [2_000, 2_500, 4_000, 4_010, 9_000, 3_000]))


def test_what_is_always_there_is_not_believed_when_it_is_another_the_next_time() -> None:
    conversation = Conversation()
    conversation.say(raw=1_000)
    usage = conversation.usage()
    known = Surplus(30_000 + usage.total, usage.total, known=True)
    assert judge_usage(TokenUsage(usage.total + 31_000, 50), usage, 50, known).problem is None
    assert judge_usage(TokenUsage(usage.total + 60_000, 50), usage, 50, known).problem is not None


def test_more_than_two_windows_are_never_believed() -> None:
    conversation = Conversation()
    conversation.say(raw=1_000)
    usage = conversation.usage()
    known = Surplus(450_000, usage.total, known=True)
    assert judge_usage(TokenUsage(450_000, 50), usage, 50, known).problem is not None
