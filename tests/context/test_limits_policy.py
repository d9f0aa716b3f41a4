"""The limit: worked cases of the specification and of the compaction-limits document."""

from __future__ import annotations

from dataclasses import replace

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
from agent_tui.context.accounting.usage import calculate_context_usage
from agent_tui.models.usage import Limits, TokenUsage
from tests.support.contexts import Conversation
from tests.support.every import every

pytestmark = pytest.mark.quick

DEFAULT = CompactionSettings()


@every(
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


def test_output_asked_for_takes_all_that_is_left_beside_a_measured_input() -> None:
    conversation = full_conversation(151_000)
    usage = conversation.usage()
    assert max_output_for(usage, Limits(200_000, None, 64_000)) == 200_000 - 151_000
    assert max_output_for(usage, Limits(200_000, None, 8_192)) == 8_192
    unknown = conversation.usage(limits=Limits())
    assert max_output_for(unknown, Limits(max_output=4_096)) == 4_096
    assert max_output_for(unknown, Limits()) is None
    full = conversation.usage(limits=Limits(100_000, None, 64_000))
    assert max_output_for(full, Limits(100_000, None, 64_000)) == 0 and not fits_to_send(full)


def test_twice_the_spread_of_what_is_estimated_is_kept_free() -> None:
    usage = full_conversation(151_000, estimated=40_000).usage()
    assert (usage.total, usage.estimated_tokens) == (151_000, 40_000) and usage.margin == 2 * usage.spread > 0
    assert max_output_for(usage, Limits(200_000, None, 64_000)) == 200_000 - 151_000 - usage.margin


def test_errors_without_anything_measured_are_no_errors_of_differences() -> None:
    conversation = full_conversation(100_000)
    conversation.steps[0].estimated_input, conversation.steps[0].actual_input = 70_000, 99_000
    assert conversation.usage().accuracy.p95_error_tokens is None


def test_the_upper_end_compacts_where_it_would_leave_no_room_for_an_answer() -> None:
    """Below the limit and with room for an answer as far as is known: only the interval says that it may be refused."""
    limits = Limits(100_000, None, 1_500)
    sure, unsure = full_conversation(98_400), full_conversation(98_400, estimated=30_000)
    assert not sure.usage(limits=limits).would_compact
    usage = unsure.usage(limits=limits)
    assert usage.limit is not None and usage.total <= usage.limit and fits_to_send(usage)
    assert usage.would_compact and f"its upper end, {usage.high:,}, leaves no room for an answer" in usage.why
    held = calculate_context_usage(replace(unsure.inputs(limits=limits), settings=CompactionSettings(paused=True)))
    assert not held.would_compact and "paused after an undo" in held.why, "it may well fit"
    assert "paused" in held.held
    most = Limits(400_000, usage.high - 1, 1_500)
    over = full_conversation(98_400, estimated=30_000).usage(limits=most)
    assert over.would_compact and f"over the model's input limit of {most.max_input:,}" in over.why


def test_what_would_hold_a_compaction_back_is_not_named_where_it_does_not() -> None:
    limits = Limits(100_000, None, 1_500)
    inputs = full_conversation(99_900).inputs(limits=limits)
    full = calculate_context_usage(replace(inputs, settings=CompactionSettings(paused=True)))
    assert full.would_compact and not full.held and "although it is paused after an undo" in full.why
    off = calculate_context_usage(replace(inputs, settings=CompactionSettings(auto_compact=False)))
    assert not off.would_compact and "compaction is off" in off.held


def test_a_model_with_a_limit_on_input_has_no_room_above_it() -> None:
    usage = full_conversation(280_000).usage(limits=Limits(400_000, 272_000, 128_000))
    assert room_for_answer(usage) == -8_000 and not fits_to_send(usage)


@given(st.integers(4_096, 2_000_000), st.data())
def test_what_fits_with_the_least_answer_can_be_sent_whatever_is_estimated(window: int, data: st.DataObject) -> None:
    total = data.draw(st.integers(0, window))
    margin = send_margin(window, total, data.draw(st.integers(0, window)))
    assert margin >= 0
    if window - total >= min_output(window):
        assert window - total - margin >= min_output(window) >= 256
