from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.context.compaction.notices import failed_text
from agent_tui.context.compaction.situation import CompactionReason
from agent_tui.engine.compaction.auto import AutoCompaction, CompactNow, Proceed, Stop, switch_check
from agent_tui.engine.compaction.compactor import CompactionResult, Outcome
from agent_tui.models.context import Accuracy, Calculation, ContextUsage, SessionTotals
from agent_tui.models.session import SessionState
from tests.support.every import every

pytestmark = pytest.mark.quick

SAID = "The conversation is larger than m accepts (HTTP 400)."


def usage(total: int, window: int | None = 200_000, limit: int | None = 168_000) -> ContextUsage:
    known = window is not None and limit is not None
    return ContextUsage(
        "test",
        window,
        window - limit if window is not None and limit is not None else None,
        limit,
        total,
        max(0, (limit or 0) - total) if known else None,
        max(0, total - (limit or 0)) if known else None,
        "derived",
        0,
        False,
        None,
        Calculation(None, None, 0, 0, 0, total),
        [],
        Accuracy(),
        SessionTotals(),
    )


def result(outcome: Outcome, reason: CompactionReason = "auto", why: str = "the reason") -> CompactionResult:
    return CompactionResult(outcome, reason, "text", why, 171_200, 24_100 if outcome == "done" else None)


def test_below_the_limit_nothing_happens_and_over_it_one_compaction() -> None:
    policy = AutoCompaction()
    assert policy.before_step(usage(168_000)) == Proceed()
    assert policy.before_step(usage(168_001)) == CompactNow("auto")


def test_an_unknown_window_never_compacts() -> None:
    assert AutoCompaction().before_step(usage(10_000_000, None, None)) == Proceed()


@every("outcome", ["done", "not_worth_it", "failed", "cancelled", "nothing"])
def test_no_second_compaction_before_a_reply(outcome: Outcome) -> None:
    policy = AutoCompaction()
    policy.compacted(result(outcome))
    decision = policy.before_step(usage(170_000))
    assert isinstance(decision, Proceed)
    assert decision.notice is not None
    assert "168k" in decision.notice.text
    assert "nothing to:" not in decision.notice.text
    assert policy.before_step(usage(170_000)) == Proceed(), "the same thing is not told twice"
    policy.model_replied()
    policy.turn_started()
    assert policy.before_step(usage(170_000)) == CompactNow("auto")


def test_needed_but_did_not_happen_sends_while_1024_tokens_are_left() -> None:
    policy = AutoCompaction(auto_compact=False)
    assert isinstance(policy.before_step(usage(200_000 - 1_024)), Proceed)
    decision = policy.before_step(usage(200_000 - 1_023))
    assert isinstance(decision, Stop)
    for words in ("198,977", "200,000", "1,023", "1,024", "auto_compact is false", "/compact", "/model", "/clear"):
        assert words in decision.text


def test_auto_compact_false_is_honoured_on_overflow_too() -> None:
    decision = AutoCompaction(auto_compact=False).on_overflow(usage(150_000), SAID)
    assert isinstance(decision, Stop)
    assert decision.text.startswith(SAID) and "auto_compact is false" in decision.text


def test_overflow_recovery_is_once_a_step_even_after_an_automatic_compaction() -> None:
    policy = AutoCompaction()
    policy.step_started()
    assert policy.before_step(usage(170_000)) == CompactNow("auto")
    policy.compacted(result("done"))
    assert policy.on_overflow(usage(30_000), SAID) == CompactNow("overflow")
    policy.compacted(result("done", "overflow"))
    assert isinstance(policy.on_overflow(usage(30_000), SAID), Stop)
    policy.step_started()
    assert policy.on_overflow(usage(30_000), SAID) == CompactNow("overflow")


def test_three_failures_in_a_row_switch_it_off_visibly_and_a_manual_success_on_again() -> None:
    policy = AutoCompaction()
    assert policy.compacted(result("failed")) == []
    assert policy.compacted(result("failed")) == []
    (notice,) = policy.compacted(result("failed", why="the summary was empty"))
    assert notice.code == "compaction_off"
    assert "the summary was empty" in notice.text
    policy.model_replied()
    policy.turn_started()
    assert policy.off
    assert policy.before_step(usage(170_000)) == CompactNow("auto", True), "room is made without a call"
    policy.compacted(result("not_worth_it", why="there is nothing to clear"))
    told = policy.before_step(usage(170_000))
    assert isinstance(told, Proceed) and told.notice is not None and "nothing to clear" in told.notice.text
    assert policy.before_step(usage(199_000)) == CompactNow("auto", True), "and more of it where nothing fits any more"
    assert policy.on_overflow(usage(170_000), SAID) == CompactNow("overflow", True)
    policy.turn_started()
    assert policy.compacted(result("failed", "manual")) == []
    (notice,) = policy.compacted(result("done", "manual"))
    assert notice.code == "compaction_on"
    policy.model_replied()
    assert policy.before_step(usage(170_000)) == CompactNow("auto")


def test_a_success_in_between_starts_the_count_again() -> None:
    policy = AutoCompaction()
    for outcome in ("failed", "failed", "done", "failed", "failed"):
        assert policy.compacted(result(outcome)) == []
    assert not policy.off


def test_not_worth_it_and_cancelled_are_no_failures() -> None:
    policy = AutoCompaction()
    for _ in range(5):
        policy.compacted(result("not_worth_it"))
        policy.compacted(result("cancelled"))
    assert policy.failures == 0
    assert not policy.off


def test_undo_pauses_until_compact_or_below_the_limit() -> None:
    policy = AutoCompaction()
    told = policy.undone(usage(170_000))
    assert told is not None and told.code == "compaction_paused" and "is paused until you run /compact" in told.text
    assert isinstance(policy.before_step(usage(170_000)), Proceed)
    overflow = policy.on_overflow(usage(170_000), SAID)
    assert isinstance(overflow, CompactNow)
    assert overflow.notice is not None, "a pause ends no session"
    full = policy.before_step(usage(199_000))
    assert isinstance(full, CompactNow)
    assert full.notice is not None
    assert "paused after the undo" in full.notice.text
    policy.before_step(usage(168_000))
    assert not policy.paused
    assert policy.before_step(usage(170_000)) == CompactNow("auto")
    policy.undone(usage(170_000))
    policy.compacted(result("not_worth_it", "manual"))
    assert not policy.paused


@every("total", [20_000, 168_000, 168_001, 199_000])
@every("auto", [True, False])
@every("off", [True, False])
def test_what_is_told_of_an_undo_is_what_happens_then(total: int, auto: bool, off: bool) -> None:
    policy = AutoCompaction(auto_compact=auto, off=off)
    told = policy.undone(usage(total))
    before = replace(policy)
    then = policy.before_step(usage(total))
    if total <= 168_000:
        assert told is None and then == Proceed() and not policy.paused
    elif not auto:
        assert told is None, "it is not the undo that keeps it from compacting"
        assert before.held_back() == ("off" if auto else "setting")
    elif total == 199_000:
        assert told is not None and "compacts it again" in told.text and isinstance(then, CompactNow)
    else:
        assert told is not None and "is paused until" in told.text
        assert isinstance(then, Proceed) and then.notice is not None and "paused after the undo" in then.notice.text


def test_cancelled_by_the_user_waits_for_the_next_turn_while_there_is_room() -> None:
    policy = AutoCompaction()
    policy.compacted(result("cancelled"))
    policy.model_replied()
    assert isinstance(policy.before_step(usage(170_000)), Proceed)
    assert policy.before_step(usage(199_000)) == CompactNow("auto"), "better than stopping"
    policy.turn_started()
    assert policy.before_step(usage(170_000)) == CompactNow("auto")


def test_the_warning_at_80_percent_comes_once_until_it_was_below() -> None:
    policy = AutoCompaction()
    assert policy.warning(usage(134_399)) is None
    notice = policy.warning(usage(134_400))
    assert notice is not None
    assert notice.code == "context_80"
    assert "134.4k of 168k" in notice.text
    assert "80 %" in notice.text
    assert policy.warning(usage(150_000)) is None
    assert policy.warning(usage(20_000)) is None
    assert policy.warning(usage(140_000)) is not None
    assert policy.warning(usage(140_000, None, None)) is None


def test_the_state_survives_a_restart() -> None:
    policy = AutoCompaction()
    for _ in range(3):
        policy.compacted(result("failed"))
    policy.undone(usage(170_000))
    before = SessionState(pinned=("/p/notes.md",), thinking="high")
    kept = policy.kept_in(before)
    assert (kept.pinned, kept.thinking) == (before.pinned, before.thinking)
    again = AutoCompaction.from_state(kept, auto_compact=True)
    assert (again.failures, again.off, again.paused) == (3, True, True)
    fresh = AutoCompaction.from_state(SessionState(), auto_compact=False)
    assert (fresh.auto_compact, fresh.failures, fresh.off, fresh.paused) == (False, 0, False, False)


def test_switching_to_a_smaller_model() -> None:
    assert switch_check(usage(6_000, 8_192, 6_144)) is None
    text = switch_check(usage(20_000, 8_192, 6_144))
    assert text is not None
    assert "20k" in text
    assert "6.1k" in text
    assert switch_check(usage(20_000, None, None)) is None
    assert AutoCompaction().switch_held_back(usage(20_000, 8_192, 6_144)) is None
    held = AutoCompaction(auto_compact=False).switch_held_back(usage(20_000, 8_192, 6_144))
    assert held is not None
    assert "auto_compact is false" in held


def test_a_compaction_before_a_switch_is_the_users_doing_and_holds_nothing_back() -> None:
    policy = AutoCompaction()
    policy.compacted(result("done", "switch"))
    assert policy.before_step(usage(170_000)) == CompactNow("auto")


@every("outcome", ["done", "not_worth_it", "failed", "cancelled", "nothing"])
def test_what_was_tried_does_not_outlive_its_turn(outcome: Outcome) -> None:
    policy = AutoCompaction()
    policy.compacted(result(outcome))
    policy.turn_started()
    assert policy.before_step(usage(199_000)) == CompactNow("auto")
    assert policy.before_step(usage(170_000)) == CompactNow("auto")


def test_what_still_does_not_fit_is_made_to_fit_without_a_call_before_the_turn_stops() -> None:
    policy = AutoCompaction()
    assert policy.before_step(usage(199_000)) == CompactNow("auto")
    policy.compacted(result("failed"))
    assert policy.before_step(usage(199_000)) == CompactNow("auto", without_model=True)
    policy.compacted(result("failed"))
    assert isinstance(policy.before_step(usage(199_000)), Stop)
    policy.turn_started()
    assert policy.before_step(usage(199_000)) == CompactNow("auto")


def test_a_message_that_is_too_large_itself_is_told_so() -> None:
    policy = AutoCompaction()
    stuck = result("not_worth_it", why="your newest message is too large: 210,000 tokens")
    stuck.stuck = True
    policy.compacted(stuck)
    decision = policy.before_step(usage(212_000))
    assert isinstance(decision, Stop)
    for words in ("212,000", "200,000", "210,000", "smaller parts", "/model", "/clear"):
        assert words in decision.text


@given(
    st.lists(
        st.tuples(
            st.integers(0, 230_000),
            st.sampled_from(["done", "not_worth_it", "failed", "cancelled", "nothing"]),
            st.sampled_from(["", "reply", "turn", "undo", "overflow"]),
        ),
        max_size=40,
    )
)
def test_it_never_loops(events: list[tuple[int, Outcome, str]]) -> None:
    """Whatever happens, a step is preceded by at most one automatic compaction with a call, one without, and one for an
    overflow."""
    policy = AutoCompaction()
    for total, outcome, then in events:
        policy.step_started()
        made = 0
        while isinstance(decision := policy.before_step(usage(total)), CompactNow):
            made += 1
            assert made <= 1 + decision.without_model
            policy.compacted(result(outcome, decision.reason))
        for _ in range(3 if then == "overflow" else 0):
            recovery = policy.on_overflow(usage(total), SAID)
            if isinstance(recovery, CompactNow):
                made += 1
                policy.compacted(result(outcome, recovery.reason))
        assert made <= 3
        if then == "reply":
            policy.model_replied()
        elif then == "turn":
            policy.turn_started()
        elif then == "undo":
            policy.undone(usage(total))


@pytest.mark.parametrize("reason", ["manual", "switch"])
def test_a_compaction_that_was_asked_for_does_not_say_what_failed_in_a_turn_before(reason: CompactionReason) -> None:
    policy = AutoCompaction()
    assert policy.before_step(full := usage(199_999)) == CompactNow("auto")
    stuck = result("not_worth_it")
    stuck.stuck = True
    policy.compacted(stuck)
    assert isinstance(policy.before_step(full), Stop)
    assert policy.compacted(result("done", reason)) == []


def test_after_room_was_made_nothing_says_that_nothing_was_changed() -> None:
    policy = AutoCompaction()
    assert policy.before_step(full := usage(199_999)) == CompactNow("auto")
    failed = result("failed")
    failed.text = failed_text("no answer")
    policy.compacted(failed)
    assert policy.before_step(full) == CompactNow("auto", True)
    assert [notice.text for notice in policy.compacted(result("done"))] == ["Compaction failed: no answer."]


@pytest.mark.parametrize(
    ("total", "says"), [(199_999, "leaves too little room for an answer"), (210_000, "does not fit")]
)
def test_after_an_undo_it_says_whether_the_conversation_or_only_its_answer_does_not_fit(total: int, says: str) -> None:
    notice = AutoCompaction().undone(usage(total))
    assert notice is not None and says in notice.text and "your next message compacts it again" in notice.text
