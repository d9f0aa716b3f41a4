"""The limit: worked cases of the specification and of the compaction-limits document."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.context.inputs import CompactPolicy
from agent_tui.context.policy import budget, max_output_for, output_room, reserve_problem
from agent_tui.models.usage import Limits, TokenUsage
from tests.support.contexts import Conversation

DEFAULT = CompactPolicy()


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
    assert budget(limits, CompactPolicy(compact_at=0.8)).limit == 160_000
    assert budget(limits, CompactPolicy(compact_at=1.0)).limit == 191_808
    assert budget(limits, CompactPolicy(compact_at=50_000)).limit == 50_000
    assert budget(limits, CompactPolicy(compact_at=0.8), compact_at=0.5).limit == 100_000


def test_a_reserve_above_a_quarter_is_refused_with_one_line() -> None:
    limits = Limits(100_000, None, 64_000)
    policy = CompactPolicy(max_output_reserve=30_000)
    assert budget(limits, policy).limit == 75_000
    assert (
        reserve_problem(limits, policy)
        == "max_output_reserve 30,000 is above 25 % of the window of 100,000; using 25,000."
    )
    assert reserve_problem(Limits(8_192, None, 8_192), DEFAULT) is None
    assert reserve_problem(limits, CompactPolicy(max_output_reserve=20_000)) is None


@given(
    st.integers(1, 2_000_000),
    st.none() | st.integers(1, 10**6),
    st.none() | st.integers(1, 10**6),
    st.integers(0, 10**6),
)
def test_limit_and_reserve_fill_the_window(
    window: int, max_input: int | None, max_output: int | None, cap: int
) -> None:
    room = budget(Limits(window, max_input, max_output), CompactPolicy(max_output_reserve=cap))
    assert room.limit is not None and room.reserve is not None
    assert room.limit + room.reserve == window and 0 < room.limit <= window


def test_output_asked_for_leaves_one_percent() -> None:
    conversation = Conversation()
    conversation.say()
    conversation.answer(TokenUsage(150_000, 1_000))
    usage = conversation.usage()
    assert max_output_for(usage, Limits(200_000, None, 64_000)) == 200_000 - 151_000 - 2_000
    assert max_output_for(usage, Limits(200_000, None, 8_192)) == 8_192
    assert output_room(200_000, 199_000) == -1_000
    unknown = conversation.usage(limits=Limits())
    assert max_output_for(unknown, Limits(max_output=4_096)) == 4_096
    assert max_output_for(unknown, Limits()) is None
    full = conversation.usage(limits=Limits(100_000, None, 64_000))
    assert max_output_for(full, Limits(100_000, None, 64_000)) == 0
