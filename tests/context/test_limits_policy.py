"""The limit: worked cases of the specification and of the compaction-limits document."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.context.accounting.inputs import CompactionSettings
from agent_tui.context.accounting.next_input import (
    budget,
    fits_to_send,
    max_output_for,
    min_output,
    reserve_problem,
    room_for_answer,
    send_margin,
)
from agent_tui.models.usage import Limits, TokenUsage
from tests.support.contexts import Conversation

DEFAULT = CompactionSettings()


@pytest.mark.parametrize(
    ("window", "max_input", "max_output", "limit"),
    [
        (200_000, None, 8_192, 191_808),
        (200_000, None, 64_000, 168_000),
        (128_000, None, 4_096, 123_904),
        (8_192, None, 8_192, 6_144),
        (400_000, 272_000, 128_000, 272_000),
        (200_000, None, None, 168_000),
    ],
)
def test_worked_cases(window: int, max_input: int | None, max_output: int | None, limit: int) -> None:
    room = budget(Limits(window, max_input, max_output), DEFAULT)
    assert (room.limit, room.reserve) == (limit, window - limit)


@pytest.mark.parametrize(("total", "max_output", "compacts"), [(191_000, 8_192, False), (171_000, 64_000, True)])
def test_the_trigger_of_the_document(total: int, max_output: int, compacts: bool) -> None:
    conversation = Conversation()
    conversation.say()
    conversation.answer(TokenUsage(total - 1_000, 1_000))
    assert conversation.usage(limits=Limits(200_000, None, max_output)).would_compact is compacts


@pytest.mark.parametrize("window", [None, 0])
def test_unknown_windows_have_no_limit(window: int | None) -> None:
    assert budget(Limits(window, 1_000, 100), DEFAULT).limit is None


def test_compact_at_as_fraction_and_as_tokens() -> None:
    limits = Limits(200_000, None, 8_192)
    assert budget(limits, CompactionSettings(compact_at=0.8)).limit == 160_000
    assert budget(limits, CompactionSettings(compact_at=1.0)).limit == 191_808
    assert budget(limits, CompactionSettings(compact_at=50_000)).limit == 50_000
    assert budget(limits, CompactionSettings(compact_at=0.8), compact_at=0.5).limit == 100_000


def test_a_reserve_above_a_quarter_is_refused_with_one_line() -> None:
    limits = Limits(100_000, None, 64_000)
    policy = CompactionSettings(max_output_reserve=30_000)
    assert budget(limits, policy).limit == 75_000
    assert (
        reserve_problem(limits, policy)
        == "max_output_reserve 30,000 is above 25 % of the window of 100,000; using 25,000."
    )
    assert reserve_problem(Limits(8_192, None, 8_192), DEFAULT) is None
    assert reserve_problem(limits, CompactionSettings(max_output_reserve=20_000)) is None


@given(
    st.integers(1, 2_000_000),
    st.none() | st.integers(1, 10**6),
    st.none() | st.integers(1, 10**6),
    st.integers(0, 10**6),
)
def test_limit_and_reserve_fill_the_window(
    window: int, max_input: int | None, max_output: int | None, cap: int
) -> None:
    room = budget(Limits(window, max_input, max_output), CompactionSettings(max_output_reserve=cap))
    assert room.limit is not None and room.reserve is not None
    assert room.limit + room.reserve == window and 0 < room.limit <= window


def full_conversation(total: int, estimated: int = 0) -> Conversation:
    """A measured conversation of ``total`` tokens, ``estimated`` of them new since it was measured."""
    conversation = Conversation()
    conversation.say()
    conversation.answer(TokenUsage(total - estimated - 1_000, 1_000))
    if estimated:
        conversation.say(raw=estimated - 7)
    return conversation


def test_output_asked_for_leaves_half_a_percent_beside_a_measured_input() -> None:
    conversation = full_conversation(151_000)
    usage = conversation.usage()
    assert max_output_for(usage, Limits(200_000, None, 64_000)) == 200_000 - 151_000 - 1_000
    assert max_output_for(usage, Limits(200_000, None, 8_192)) == 8_192
    unknown = conversation.usage(limits=Limits())
    assert max_output_for(unknown, Limits(max_output=4_096)) == 4_096
    assert max_output_for(unknown, Limits()) is None
    full = conversation.usage(limits=Limits(100_000, None, 64_000))
    assert max_output_for(full, Limits(100_000, None, 64_000)) == 0 and not fits_to_send(full)


def test_the_margin_grows_with_what_is_estimated() -> None:
    usage = full_conversation(151_000, estimated=60_000).usage()
    assert (usage.total, usage.estimated_tokens, usage.margin) == (151_000, 60_000, 6_000)
    assert max_output_for(usage, Limits(200_000, None, 64_000)) == 200_000 - 151_000 - 6_000


def test_the_margin_grows_with_the_errors_of_the_model() -> None:
    conversation = full_conversation(100_000)
    for expected, actual in ((100_000, 100_000), (110_000, 109_000)):
        conversation.say()
        step = conversation.answer(TokenUsage(actual, 10))
        step.estimated_input, step.actual_input, step.anchor_step = expected, actual, "s0"
    assert conversation.usage().margin == 3_000
    assert conversation.usage().accuracy.p95_error_tokens == 1_000
    step.actual_input = 1
    assert conversation.usage().margin == 20_000, "errors never take more than a tenth of the window"


def test_errors_without_anything_measured_are_not_held_against_later_steps() -> None:
    conversation = full_conversation(100_000)
    conversation.steps[0].estimated_input, conversation.steps[0].actual_input = 70_000, 99_000
    assert conversation.usage().accuracy.p95_error_tokens is None and conversation.usage().margin == 1_000


def test_a_model_with_a_limit_on_input_has_no_room_above_it() -> None:
    usage = full_conversation(280_000).usage(limits=Limits(400_000, 272_000, 128_000))
    assert room_for_answer(usage) == -8_000 and not fits_to_send(usage)


@given(st.integers(4_096, 2_000_000), st.data())
def test_what_fits_with_the_least_answer_can_be_sent_whatever_is_estimated(window: int, data: st.DataObject) -> None:
    total = data.draw(st.integers(0, window))
    estimated, error = data.draw(st.integers(0, total)), data.draw(st.integers(0, window))
    margin = send_margin(window, total, estimated, error)
    least = window // 200
    assert margin >= least
    if window - total >= least + min_output(window):
        assert window - total - margin >= min_output(window) >= 256
