"""The one formula: worked example, anchors, and what makes the numbers move."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent_tui.context.accounting.given.accuracy import after_step, before_step, verification_line, verified_growth
from agent_tui.context.accounting.given.inputs import CompactionSettings
from agent_tui.context.incremental.usage import Incremental
from agent_tui.models.messages import AttachmentPart, ReasoningPart, SummaryPart
from agent_tui.models.requests import Target
from agent_tui.models.steps import CompactionRecord
from agent_tui.models.usage import Limits, TokenUsage
from tests.support.contexts import BOUND, CLAUDE, TARGET, Conversation, assert_identities, fixed_part, leaves, row


def weather() -> Conversation:
    """The worked example of the context document: 5 000 in, 100 out, a tool result of 20."""
    conversation = Conversation(fixed=[fixed_part(raw=3_000)])
    conversation.say("What's the weather in NYC?", raw=8)
    conversation.answer(TokenUsage(5_000, 100), calls=("c1",))
    conversation.result("c1", "NYC: 72°F, sunny", raw=13)
    return conversation


def test_the_worked_example() -> None:
    conversation = weather()
    usage = conversation.usage()
    assert usage.total == 5_120
    assert usage.calculation.new_messages == 20
    step = conversation.answer(TokenUsage(5_115, 50))
    before_step(step, usage)
    assert after_step(step) == "Context estimate: estimated=5120, actual=5115, error=+5 (+0.1%)"
    after = conversation.usage()
    assert after.total == 5_115 + 50
    assert after.accuracy.last_error_tokens == 5
    assert after.accuracy.calls == 1
    assert after.accuracy.median_error_percent == pytest.approx(100 * 5 / 5_115)


def test_verification_line_of_an_underestimate() -> None:
    assert verification_line(90, 100) == "Context estimate: estimated=90, actual=100, error=-10 (-10.0%)"


def test_without_a_call_everything_is_estimated() -> None:
    conversation = Conversation(fixed=[fixed_part(raw=3_000)])
    conversation.say(raw=10)
    usage = conversation.usage()
    assert usage.calculation.last_input is None and usage.calculation.last_output is None
    assert usage.basis == "estimated" and usage.total == usage.calculation.new_messages == usage.estimated_tokens
    assert usage.total == 3_000 + 10 + 7
    assert "no model call yet" in usage.why
    assert_identities(usage)


def test_the_ratio_applies_to_all_estimated_text_and_to_nothing_measured() -> None:
    conversation = Conversation(fixed=[fixed_part(raw=1_000)])
    conversation.say(raw=93)
    assert conversation.usage(ratio=1.2).total == 1_320
    conversation.answer(TokenUsage(1_111, 9))
    assert conversation.usage(ratio=1.2).total == 1_120
    conversation.say(raw=193)
    usage = conversation.usage(ratio=1.2)
    assert usage.total == 1_120 + 240 and usage.calculation.new_messages == 240
    assert (usage.calculation.new_text, usage.calculation.new_text_corrected) == (200, 240)
    assert_identities(usage)


def test_the_ratio_says_nothing_of_images() -> None:
    conversation = Conversation()
    conversation.say()
    conversation.answer(TokenUsage(1_000, 9))
    conversation.append("user", [AttachmentPart("a.png", "image/png", data="AAAA")], 0)
    plain, corrected = conversation.usage().total, conversation.usage(ratio=1.5).total
    assert 0 <= corrected - plain <= 4, "only what wraps the message is text"
    assert conversation.usage().calculation.new_given > 50


def test_what_is_learned_of_a_step_is_its_new_text_before_any_correction() -> None:
    conversation = Conversation()
    conversation.say()
    conversation.answer(TokenUsage(1_000, 10))
    conversation.say(raw=193)
    step = conversation.answer(TokenUsage(1_250, 10))
    conversation.steps.remove(step)
    conversation.path.pop()
    before_step(step, conversation.usage(ratio=1.2))
    after_step(step)
    assert (step.estimated_input, step.actual_input) == (1_250, 1_250)
    assert verified_growth(step) == (240, 200)


def test_a_step_with_other_estimates_in_it_is_not_learned_from() -> None:
    conversation = Conversation(fixed=[fixed_part(raw=1_000)])
    conversation.say()
    conversation.answer(TokenUsage(2_000, 10))
    conversation.say(raw=193)
    conversation.fixed = [fixed_part(raw=1_500, name="other")]
    step = conversation.answer(TokenUsage(2_700, 10))
    conversation.steps.remove(step)
    conversation.path.pop()
    before_step(step, conversation.usage())
    after_step(step)
    assert step.estimated_growth == 200 and verified_growth(step) is None


@pytest.mark.parametrize("status", ["stopped", "failed", "running"])
def test_unfinished_steps_do_not_anchor(status: str) -> None:
    conversation = weather()
    conversation.answer(TokenUsage(9_999, 50), status=status)
    usage = conversation.usage()
    assert usage.anchor_step == "s0"
    assert_identities(usage)


@pytest.mark.parametrize(
    "reported",
    [
        None,
        TokenUsage(0, 0),
        TokenUsage(-5, 3),
        TokenUsage(7_000, 50, source="estimated"),
        TokenUsage(7_000, 50, context=False),
        TokenUsage(400_001, 50),
    ],
    ids=["missing", "zero", "negative", "invented", "summed over hidden calls", "absurd"],
)
def test_usage_that_is_no_context_size_does_not_anchor(reported: TokenUsage | None) -> None:
    conversation = weather()
    conversation.answer(reported, raw=30)
    usage = conversation.usage()
    assert usage.anchor_step == "s0"
    assert usage.total > 5_120
    assert_identities(usage)


def test_cache_reads_are_part_of_the_input() -> None:
    conversation = Conversation()
    conversation.say()
    conversation.answer(TokenUsage(5_000, 100, cache_read=4_800, cache_write=100))
    assert conversation.usage().total == 5_100


def test_another_model_does_not_anchor_and_switching_back_does() -> None:
    conversation = weather()
    conversation.target = CLAUDE
    usage = conversation.usage()
    assert usage.anchor_step is None and usage.basis == "estimated"
    assert "another model" in usage.why
    conversation.target = TARGET
    assert conversation.usage().anchor_step == "s0"


def test_switching_a_tool_on_moves_the_number_at_once() -> None:
    conversation = weather()
    before = conversation.usage()
    conversation.fixed.append(fixed_part("tools", 800, "search", "mcp:web"))
    usage = conversation.usage()
    assert usage.total == before.total + 800
    assert usage.calculation.fixed_delta == 800
    assert row(usage, "tools", "mcp:web").tokens == 800
    assert_identities(usage)
    conversation.fixed.pop()
    assert conversation.usage().total == before.total


def test_a_part_counted_since_the_anchor_is_not_a_change() -> None:
    conversation = Conversation(fixed=[replace(fixed_part(raw=3_000), raw_tokens=None)])
    conversation.say()
    conversation.answer(TokenUsage(5_000, 100))
    conversation.fixed = [replace(conversation.fixed[0], raw_tokens=3_000)]
    assert conversation.usage().calculation.fixed_delta == 0


def test_deferred_tools_cost_nothing_and_are_listed() -> None:
    conversation = Conversation(fixed=[replace(fixed_part("tools", 0, "big", "mcp:x"), deferred_tokens=9_000)])
    conversation.say()
    tools = row(conversation.usage(), "tools", "mcp:x")
    assert tools.tokens == 0 and tools.deferred_tokens == 9_000


def test_claude_tools_cost_their_preamble_once() -> None:
    conversation = Conversation(target=CLAUDE)
    conversation.say(raw=0)
    base = conversation.usage().total
    conversation.fixed = [fixed_part("tools", 100, "a", "builtin"), fixed_part("tools", 100, "b", "builtin")]
    assert conversation.usage().total == base + 490 + 2 * 122


def test_rewind_falls_back_to_an_older_anchor() -> None:
    conversation = weather()
    conversation.answer(TokenUsage(5_115, 50))
    conversation.say()
    conversation.answer(TokenUsage(5_200, 60))
    del conversation.path[3:]
    usage = conversation.usage()
    assert usage.anchor_step == "s0" and usage.total == 5_120


def test_summary_invalidates_and_undo_restores_exactly() -> None:
    conversation = weather()
    conversation.answer(TokenUsage(5_115, 50))
    conversation.say("next", raw=3)
    before = conversation.usage()
    ids = [m.id for m in conversation.path[:3]]
    summary = conversation.append("user", [SummaryPart("so far", "r1")], 40)
    conversation.path.pop()
    conversation.summaries[summary.id] = summary
    record = CompactionRecord("r1", "op1", "summary", ids, summary_id=summary.id)
    conversation.records.append(record)
    compacted = conversation.usage()
    assert compacted.anchor_step is None and compacted.basis == "estimated"
    assert row(compacted, "messages", "summary").tokens > 0
    assert_identities(compacted)
    record.active = False
    assert replace(conversation.usage(), session=before.session) == before
    conversation.records.clear()
    assert conversation.usage() == before


def test_clearing_a_measured_result_takes_away_what_it_cost() -> None:
    conversation = weather()
    conversation.answer(TokenUsage(5_300, 50))
    conversation.say("next", raw=3)
    before = conversation.usage()
    measured = row(before, "messages", "tool_results").children[0]
    assert measured.tokens == 200 and measured.basis == "derived"
    conversation.records.append(CompactionRecord("p1", "op1", "prune", [conversation.path[2].id]))
    usage = conversation.usage()
    placeholder = 7 + 7
    assert usage.calculation.removed == 200 - placeholder
    assert usage.total == before.total - 200 + placeholder
    assert row(usage, "messages", "tool_results").tokens == placeholder
    assert_identities(usage)
    conversation.answer(TokenUsage(usage.total - 3, 10))
    assert conversation.usage().calculation.removed == 0
    conversation.records[0].active = False
    undone = conversation.usage()
    assert undone.calculation.removed == placeholder - 200
    assert_identities(undone)


def test_clipping_is_counted_by_what_is_left() -> None:
    conversation = Conversation()
    conversation.say()
    conversation.answer(TokenUsage(1_000, 20), calls=("c",))
    big = conversation.result("c", "x" * 4_000, raw=1_000)
    whole = conversation.usage()
    conversation.records.append(CompactionRecord("p", "op", "prune", [big.id], clips={big.id: 400}))
    clipped = conversation.usage()
    assert whole.total - 1_000 < clipped.total < whole.total - 800
    assert clipped.calculation.removed == 0
    assert_identities(clipped)


def test_an_exact_count_anchors_with_output_0() -> None:
    conversation = weather()
    conversation.answer(TokenUsage(5_117, 0), kind="count")
    usage = conversation.usage()
    assert usage.total == 5_117 and usage.basis == "measured" and usage.estimated_tokens == 0
    assert usage.calculation.last_output == 0
    conversation.answer(TokenUsage(5_118, 40))
    assert conversation.usage().total == 5_158


def test_compaction_and_subagent_steps_do_not_anchor_but_cost() -> None:
    conversation = weather()
    conversation.answer(TokenUsage(90_000, 900), kind="compaction").cost_usd = 0.5
    conversation.answer(TokenUsage(7_000, 70), kind="subagent").cost_usd = 0.25
    usage = conversation.usage()
    assert usage.anchor_step == "s0"
    assert usage.session.input_tokens == 102_000 and usage.session.cost.known == 0.75
    assert usage.session.cache_read_tokens is None


def thinking(conversation: Conversation, text: str = "hm") -> ReasoningPart:
    return ReasoningPart(text, {"signature": "s"}, "now")


def test_reasoning_that_openai_chat_drops_is_taken_off() -> None:
    conversation = Conversation()
    conversation.say()
    conversation.answer(TokenUsage(1_000, 150, reasoning=128), calls=("c",))
    conversation.result("c", raw=10)
    usage = conversation.usage()
    assert usage.calculation.dropped_reasoning == 128
    assert usage.total == 1_000 + 150 - 128 + 10 + 7
    assert usage.estimated_tokens == 17


def test_claude_keeps_reasoning_inside_a_loop_and_older_models_drop_it_after_the_turn() -> None:
    older = Target("anthropic", "chat", "claude-sonnet-4-5", "claude")
    conversation = Conversation(target=older)
    conversation.say()
    conversation.answer(TokenUsage(1_000, 150, 100), calls=("c",), reasoning=thinking(conversation))
    conversation.result("c")
    assert conversation.usage().calculation.dropped_reasoning == 0
    conversation.answer(TokenUsage(1_180, 60, 40), reasoning=thinking(conversation))
    assert conversation.usage().calculation.dropped_reasoning == 140, "what comes next can only be a new turn"
    conversation.say()
    usage = conversation.usage()
    assert usage.calculation.dropped_reasoning == 140
    reasoning = row(usage, "messages", "reasoning")
    assert reasoning.tokens == 0 and all(r.replay and "dropped" in r.replay for r in reasoning.children)
    assert_identities(usage)


def test_a_prompt_change_drops_reasoning_bound_to_the_prefix() -> None:
    conversation = Conversation(target=BOUND, fixed=[fixed_part()])
    conversation.say()
    conversation.answer(TokenUsage(2_000, 150, 100), reasoning=thinking(conversation))
    conversation.say()
    conversation.answer(TokenUsage(2_160, 90, 50), reasoning=thinking(conversation))
    assert conversation.usage().calculation.dropped_reasoning == 0
    conversation.fixed_fingerprint = "other"
    usage = conversation.usage()
    assert usage.calculation.dropped_reasoning == 150
    assert usage.total == 2_160 + 90 - 150
    assert_identities(usage)


def test_clearing_drops_reasoning_bound_to_the_prefix() -> None:
    conversation = Conversation(target=BOUND)
    conversation.say()
    conversation.answer(TokenUsage(2_000, 150, 100), calls=("c",), reasoning=thinking(conversation))
    result = conversation.result("c", raw=500)
    conversation.answer(TokenUsage(2_800, 90, 50), reasoning=thinking(conversation))
    conversation.say()
    before = conversation.usage()
    assert before.calculation.dropped_reasoning == 0
    conversation.records.append(CompactionRecord("p", "op", "prune", [result.id]))
    usage = conversation.usage()
    assert usage.calculation.dropped_reasoning == 50
    assert usage.calculation.removed == 650 - (9 + 12)
    assert_identities(usage)


def test_a_message_added_alone_is_derived_and_keeps_its_value() -> None:
    conversation = weather()
    conversation.answer(TokenUsage(5_115, 50))
    conversation.say("more", raw=2)
    conversation.answer(TokenUsage(5_180, 10))
    usage = conversation.usage()
    result = row(usage, "messages", "tool_results")
    assert [(c.tokens, c.basis) for c in result.children] == [(15, "derived")]
    assert (result.tokens, result.basis, result.estimated_tokens) == (15, "derived", 0)
    user = row(usage, "messages", "user").children[-1]
    assert (user.tokens, user.basis) == (15, "derived")
    answers = row(usage, "messages", "assistant").children
    assert (answers[-1].tokens, answers[-1].basis) == (10, "measured")


def test_a_group_is_derived_and_its_split_estimated() -> None:
    conversation = Conversation()
    conversation.say()
    conversation.answer(TokenUsage(1_000, 40), calls=("a", "b"))
    conversation.result("a", raw=30)
    conversation.result("b", raw=10)
    conversation.answer(TokenUsage(1_100, 5))
    results = row(conversation.usage(), "messages", "tool_results")
    assert (results.tokens, results.basis, results.estimated_tokens) == (60, "derived", 0)
    assert [c.basis for c in results.children] == ["estimated", "estimated"]
    assert sum(c.tokens for c in results.children) == 60


def test_fixed_rows_that_are_too_large_are_scaled() -> None:
    conversation = Conversation(fixed=[fixed_part(raw=50_000), fixed_part("tools", 50_000, "t", "builtin")])
    conversation.say()
    conversation.answer(TokenUsage(900, 100))
    usage = conversation.usage()
    assert usage.total == 1_000
    assert row(usage, "system").tokens == row(usage, "tools").tokens == 450
    assert row(usage, "messages").tokens == 100
    assert any("rows disagree by" in w for w in usage.warnings)
    assert_identities(usage)


def test_ephemeral_rows_a_little_too_large_give_way_to_the_first_message() -> None:
    conversation = Conversation(fixed=[fixed_part(raw=700), fixed_part("tools", 300, "t", "builtin")])
    conversation.say()
    conversation.answer(TokenUsage(990, 100))
    accounts = Incremental()
    usage = conversation.usage(accounts)
    assert conversation.usage(accounts) == conversation.usage() == usage
    assert row(usage, "messages", "user").tokens == 2 + 7
    assert (row(usage, "system").tokens, row(usage, "tools").tokens) == (687, 294)
    assert usage.total == 1_090 and not usage.warnings
    assert_identities(usage)


def test_unknown_window_gives_nulls_and_never_compacts() -> None:
    usage = weather().usage(limits=Limits())
    assert usage.window is usage.limit is usage.reserve is usage.free is usage.over is usage.percent is None
    assert not usage.would_compact and "unknown window" in usage.why
    assert usage.turns_left is None


def test_over_the_window_is_a_warning() -> None:
    conversation = Conversation()
    conversation.say()
    conversation.answer(TokenUsage(10_500, 100))
    usage = conversation.usage(limits=Limits(10_000, None, 1_000))
    assert usage.would_compact and usage.over == 1_600 and usage.free == 0
    assert any("over the window" in w for w in usage.warnings)
    assert_identities(usage)
    # What holds a compaction back counts only while the next input can be sent.
    for policy, word in (
        (CompactionSettings(auto_compact=False), "off by setting"),
        (CompactionSettings(paused=True), "paused"),
        (CompactionSettings(off=True), "failed three times"),
    ):
        full = conversation.usage(limits=Limits(10_000, None, 1_000), policy=policy)
        assert full.would_compact == policy.auto_compact and word in full.why
        held = conversation.usage(limits=Limits(20_000, None, 10_000), policy=replace(policy, compact_at=9_000))
        assert held.over and not held.would_compact and word in held.why


def test_pending_while_something_that_matters_is_not_counted() -> None:
    conversation = weather()
    assert not conversation.usage().pending
    message = conversation.say("not counted yet", raw=None)
    usage = conversation.usage()
    assert usage.pending
    assert any(leaf.approximate and leaf.message_id == message.id for leaf in leaves(usage.rows))
    message.raw_tokens = 3
    assert not conversation.usage().pending


def test_negative_counts_raise() -> None:
    conversation = Conversation()
    conversation.say(raw=-1)
    with pytest.raises(ValueError, match="Invalid token count"):
        conversation.usage()


def test_cached_messages_are_those_the_newest_step_read() -> None:
    conversation = weather()
    conversation.answer(TokenUsage(5_115, 50, cache_read=5_000, cache_write=110))
    conversation.say()
    usage = conversation.usage()
    cached = {leaf.label: leaf.cached for leaf in leaves(row(usage, "messages").children)}
    assert cached["What's the weather in NYC?"] is True
    assert cached["hello"] is False
    conversation.answer(TokenUsage(5_200, 5))
    assert all(leaf.cached is None for leaf in leaves(conversation.usage().rows))


def test_turns_left_from_the_growth_of_recent_turns() -> None:
    conversation = Conversation()
    size = 1_000
    for turn in range(4):
        conversation.say()
        conversation.answer(TokenUsage(size, 100))
        usage = conversation.usage(limits=Limits(20_000, None, 1_000))
        assert (usage.turns_left is None) == (turn < 2)
        size += 1_000
    assert usage.limit == 19_000
    assert usage.turns_left == (19_000 - 4_100) // 1_000


def test_what_is_kept_finds_the_anchor_again_after_an_undo() -> None:
    conversation, accounts = weather(), Incremental()
    conversation.answer(TokenUsage(5_115, 50))
    before = conversation.usage(accounts)
    summary = conversation.append("user", [SummaryPart("so far", "r1")], 40)
    conversation.path.pop()
    conversation.summaries[summary.id] = summary
    ids = [m.id for m in conversation.path]
    conversation.records.append(CompactionRecord("r1", "op1", "summary", ids, summary_id=summary.id))
    assert conversation.usage(accounts).anchor_step is None
    conversation.records.clear()
    assert conversation.usage(accounts) == before


def test_what_is_kept_reopens_a_turn_after_a_rewind() -> None:
    conversation, accounts = (
        Conversation(target=Target("anthropic", "chat", "claude-sonnet-4-5", "claude")),
        Incremental(),
    )
    conversation.say()
    conversation.answer(TokenUsage(1_000, 150, 100), reasoning=thinking(conversation))
    before = conversation.usage(accounts)
    conversation.say()
    assert conversation.usage(accounts).calculation.dropped_reasoning == 100
    conversation.path.pop()
    assert conversation.usage(accounts) == before


def test_a_count_that_comes_late_does_not_take_the_place_of_a_measured_turn() -> None:
    conversation = weather()
    late = replace(conversation.steps[0], id="late", kind="count", message_id=None, usage=TokenUsage(4_900, 0))
    conversation.steps.append(late)
    for accounts in (None, Incremental()):
        usage = conversation.usage(accounts)
        assert usage.anchor_step == "s0" and usage.total == weather().usage().total
    conversation.answer(TokenUsage(5_300, 0), kind="count")
    assert conversation.usage().total == 5_300, "a count of more than the turn sent anchors"


def test_a_count_made_while_a_step_runs_anchors_until_the_step_is_measured() -> None:
    conversation, accounts = Conversation(), Incremental()
    conversation.say(raw=9_000)
    view = len(conversation.view())
    conversation.answer(None, status="running")
    draft = conversation.path.pop()
    running = conversation.steps[0]
    assert conversation.usage(accounts).anchor_step is None
    conversation.answer(TokenUsage(9_500, 0), kind="count")
    assert conversation.steps[1].sent_count == view
    counted = conversation.usage(accounts)
    assert counted.total == 9_500 and counted == conversation.usage()
    conversation.path.append(draft)
    draft.status = "complete"
    running.status, running.usage = "complete", TokenUsage(9_510, 40)
    ended = conversation.usage(accounts)
    assert ended.anchor_step == running.id and ended == conversation.usage()
