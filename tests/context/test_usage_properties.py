"""Identities that hold for any conversation, and that a kept cache never changes an answer."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_tui.context.accounting.inputs import CompactionSettings
from agent_tui.context.accounting.next_input import fits_to_send, may_be_refused
from agent_tui.context.accounting.usage import Calculator, window_shares
from agent_tui.models.usage import Limits, TokenUsage
from agent_tui.text.numbers import largest_remainder
from tests.context.context_operations import apply, operations
from tests.support.contexts import Conversation, assert_identities, calibrated, fixed_part
from tests.support.forms import examples

limits = st.builds(
    Limits,
    window=st.none() | st.integers(0, 300_000),
    max_input=st.none() | st.integers(1, 300_000),
    max_output=st.none() | st.integers(1, 200_000),
)
policies = st.builds(
    CompactionSettings,
    auto_compact=st.booleans(),
    compact_at=st.none() | st.floats(0.01, 1.0) | st.integers(2, 200_000).map(float),
    max_output_reserve=st.integers(0, 100_000),
    paused=st.booleans(),
    off=st.booleans(),
)


@settings(max_examples=examples(50, 400), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(operations, limits, policies, st.integers(0, 20_000), st.floats(0.7, 1.5))
def test_identities_hold_and_the_cache_changes_nothing(
    steps: list[tuple[str, TokenUsage, int]], window: Limits, policy: CompactionSettings, fixed: int, ratio: float
) -> None:
    conversation = Conversation(fixed=[fixed_part(raw=fixed), fixed_part("memory", None, "AGENTS.md", "AGENTS.md")])
    accounts = Calculator()
    for name, usage, size in steps:
        apply(conversation, name, usage, size)
        options = {"limits": window, "policy": policy, "calibration": calibrated(ratio)}
        fresh = conversation.usage(None, **options)
        assert_identities(fresh)
        assert conversation.usage(accounts, **options) == fresh
        assert fresh.would_compact == (
            fresh.limit is not None
            and (fresh.total > fresh.limit or may_be_refused(fresh))
            and policy.auto_compact
            and not policy.paused
        ) or (policy.auto_compact and not fits_to_send(fresh))
        shown = window_shares(fresh)
        if shown is not None:
            assert shown.total + shown.free + shown.reserve - shown.over == 1_000
            assert sum(shown.rows) == shown.total


@given(st.integers(0, 10_000), st.lists(st.integers(0, 10**6), min_size=1, max_size=12))
def test_parts_sum_to_their_whole(parent: int, children: list[int]) -> None:
    assert sum(largest_remainder(parent, children)) == parent
