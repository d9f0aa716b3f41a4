"""The one formula: worked example, what an estimate is corrected by, and what makes the numbers move."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent_tui.context.accounting.inputs import CompactionSettings
from agent_tui.context.accounting.reports import after_step, before_step, verification_line, verified_growth
from agent_tui.models.calibration import MESSAGES, text_content
from agent_tui.models.messages import AttachmentPart
from agent_tui.models.usage import Limits, TokenUsage
from tests.support.contexts import (
    Conversation,
    assert_identities,
    calibrated,
    fixed_part,
    leaves,
    row,
    weather,
)

pytestmark = pytest.mark.quick


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


def test_what_was_learned_applies_to_all_estimated_text_and_to_nothing_measured() -> None:
    conversation = Conversation(fixed=[fixed_part(raw=1_000)])
    conversation.say(raw=93)
    learned = calibrated(1.2)
    assert conversation.usage(calibration=learned).total == 1_200 + 119, "what wraps a message is no text"
    conversation.answer(TokenUsage(1_111, 9))
    assert conversation.usage(calibration=learned).total == 1_120
    conversation.say(raw=193)
    usage = conversation.usage(calibration=learned)
    assert usage.total == 1_120 + 239 and usage.calculation.new_messages == 239
    assert usage.calculation.new_estimated == 200
    assert_identities(usage)


def test_what_was_learned_says_nothing_of_images() -> None:
    conversation = Conversation()
    conversation.say()
    conversation.answer(TokenUsage(1_000, 9))
    conversation.append("user", [AttachmentPart("a.png", "image/png", data="AAAA")], 0)
    plain, corrected = conversation.usage().total, conversation.usage(calibration=calibrated(1.5)).total
    assert 0 <= corrected - plain <= 4, "only what wraps the message is text"


def test_what_is_learned_of_a_step_is_what_its_new_messages_consist_of() -> None:
    conversation = Conversation()
    conversation.say()
    conversation.answer(TokenUsage(1_000, 10))
    conversation.say(raw=193)
    step = conversation.answer(TokenUsage(1_250, 10))
    conversation.steps.remove(step)
    conversation.path.pop()
    before_step(step, conversation.usage(calibration=calibrated(1.2)))
    after_step(step)
    assert (step.estimated_input, step.actual_input) == (1_249, 1_250)
    learned = verified_growth(step)
    content = text_content(None, 193)
    content.terms[MESSAGES] = 1
    assert learned is not None and learned[1] == 240 and learned[0].terms == pytest.approx(content.terms)


def test_a_step_with_other_estimates_in_it_teaches_what_all_of_them_consist_of() -> None:
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
    learned = verified_growth(step)
    assert step.estimated_growth == 200 and learned is not None
    assert learned[0].terms[0] == pytest.approx(sum(text_content(None, n).terms[0] for n in (193, 1_500, -1_000)))
    assert learned[0].squares > 1_500**2, "as unsure as its largest part"


def test_cache_reads_are_part_of_the_input() -> None:
    conversation = Conversation()
    conversation.say()
    conversation.answer(TokenUsage(5_000, 100, cache_read=4_800, cache_write=100))
    assert conversation.usage().total == 5_100


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
        (CompactionSettings(auto_compact=False), "compaction is off"),
        (CompactionSettings(paused=True), "paused"),
        (CompactionSettings(off=True), "failed three times"),
    ):
        full = conversation.usage(limits=Limits(10_000, None, 1_000), policy=policy)
        assert full.would_compact == policy.auto_compact and word in full.why
        held = conversation.usage(limits=Limits(20_000, None, 10_000), policy=replace(policy, compact_at=9_000))
        # After three failures room is still made, without a model.
        assert held.over and held.would_compact == policy.off and word in held.why


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
