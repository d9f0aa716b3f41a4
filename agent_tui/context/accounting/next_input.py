"""The limit that the next input is held against, and why it would compact or would not."""

from __future__ import annotations

from dataclasses import replace

from agent_tui.context.accounting.inputs import DEFAULT_RESERVE, CompactionSettings, ContextInputs
from agent_tui.context.costs import why_no_report
from agent_tui.models.context import Accuracy, ContextUsage, Draft
from agent_tui.models.requests import ModelInfo
from agent_tui.models.usage import Limits
from agent_tui.records import dataclass
from agent_tui.text.numbers import interval, plural, tokens, total_text

RESERVE_SHARE = 0.25
"""The reserve for the answer never takes more than this share of the window, so a small window stays usable."""

MIN_OUTPUT = 1_024
"""Output tokens a request must still have room for; below it the turn stops instead of being cut off. Windows under
16 384 need less, see ``min_output``."""

MIN_OUTPUT_SHARE = 16
"""A small window keeps one part in so many for the answer: 512 tokens of 8 192, 256 of 4 096."""

MARGIN_SPREADS = 2
"""What is kept free beside the next input, in spreads of it: one of 20 inputs is outside of one, hardly any of two."""

SURE_SHARE = 0.005
"""As much of its spread counts where a request is held not to fit, as a share of the window: for what may well fit no
turn is stopped, and nothing is left out."""

ROUGH_SPREAD = 0.05
"""The spread of a count by characters, as a share of it."""


@dataclass(slots=True, frozen=True)
class Budget:
    """Window, limit and reserve in tokens; all None when the window is unknown. ``limit + reserve == window``."""

    window: int | None
    limit: int | None
    reserve: int | None


UNKNOWN_BUDGET = Budget(None, None, None)


def budget(limits: Limits, settings: CompactionSettings, compact_at: float | None = None) -> Budget:
    """The limit: ``min(window - min(max output or cap, cap, 25 % of window), max input, compact_at)``.

    ``compact_at`` is the model's own setting and wins over it. An unknown or zero window has no limit.
    """
    window = limits.window
    if not window or window < 0:
        return UNKNOWN_BUDGET
    cap = max(0, settings.max_output_reserve)
    answer = min(limits.max_output or cap, cap, int(window * RESERVE_SHARE))
    limit = window - answer
    if limits.max_input:
        limit = min(limit, limits.max_input)
    at = settings.compact_at if compact_at is None else compact_at
    if at is not None and at > 0:
        limit = min(limit, int(window * at) if at <= 1.0 else int(min(at, window)))
    return Budget(window, limit, window - limit)


def reserve_problem(limits: Limits, settings: CompactionSettings) -> str | None:
    """One line when the configured reserve is refused because it would take over a quarter of the window."""
    window, reserve = limits.window, settings.max_output_reserve
    if not window or reserve == DEFAULT_RESERVE or reserve <= int(window * RESERVE_SHARE):
        return None
    return (
        f"max_output_reserve {reserve:,} is above 25 % of the window of {window:,}; "
        f"using {int(window * RESERVE_SHARE):,}."
    )


def min_output(window: int) -> int:
    """Output tokens without which a request is not made: ``MIN_OUTPUT``, in small windows a sixteenth of the window."""
    return max(1, min(MIN_OUTPUT, window // MIN_OUTPUT_SHARE))


def send_margin(window: int, total: int, spread: int) -> int:
    """Tokens to keep free beside the next input of ``total`` tokens: twice its spread. It gives way where the least
    answer would not fit beside it: less output is asked for then, but what fits can be sent."""
    return max(0, min(MARGIN_SPREADS * spread, window - total - min_output(window)))


def with_draft(usage: ContextUsage, draft: Draft) -> ContextUsage:
    """The next request once what is written is sent with it, as far as the limit and the window are concerned."""
    return replace(usage, total=usage.total + draft.tokens, spread=usage.spread + draft.spread)


def draft_warning(usage: ContextUsage, draft: Draft | None) -> str:
    """What is to be known of a draft before it is sent: that it does not fit, or compacts the conversation first. Empty
    where nothing of that is."""
    if draft is None or not usage.window:
        return ""
    messages = sum(row.tokens for row in usage.rows if row.id == "messages")
    after, alone = with_draft(usage, draft), replace(usage, total=usage.total - messages + draft.tokens)
    if fits_to_send(after) and not (over_limit(after) and messages):
        return ""
    # A window that is written down or learned may be the most of input and not all there is.
    most = min(usage.window - min_output(usage.window), usage.max_input or usage.window)
    rough = draft.approximate or usage.approximate
    size, limit = tokens(draft.tokens, rough), tokens(usage.limit or 0, False)
    if not fits_to_send(alone):
        return f"Too large to send: {size}, at most {tokens(max(0, most - usage.total + messages), False)} fit"
    if not messages or (usage.held and (usage.held != PAUSED or fits_to_send(after))):
        what = f"{size} on top of {total_text(usage)}"
        if fits_to_send(after):
            return f"Over the limit of {limit}: {what}; run /compact to make room"
        fits = tokens(max(0, most - usage.total), False)
        return f"Does not fit: {what}, at most {fits}; run /compact to make room"
    return f"Sending this compacts first: {tokens(after.total, rough)} is over the limit of {limit}"


def room_for_answer(usage: ContextUsage) -> int | None:
    """Output tokens that fit beside the next input and its margin; may be negative. None for an unknown window."""
    return _room(usage, usage.margin)


def _room(usage: ContextUsage, margin: int) -> int | None:
    if not usage.window:
        return None
    if usage.max_input and usage.total > usage.max_input:
        return usage.max_input - usage.total
    return usage.window - usage.total - margin


def fits_to_send(usage: ContextUsage) -> bool:
    """Returns whether the next request has room for the least answer, as far as that is known well enough to lose or
    stop anything for it; an unknown window is not held against it."""
    room = _room(usage, min(usage.spread, int((usage.window or 0) * SURE_SHARE)))
    return room is None or room >= min_output(usage.window or 0)


def may_be_refused(usage: ContextUsage) -> bool:
    """Returns whether the next request would have no room for the least answer if it were as long as it may be: the
    upper end of its interval. Room is made before that; where none can be made it is sent, as it may well fit."""
    if not usage.window:
        return False
    over = bool(usage.max_input) and usage.high > (usage.max_input or 0)
    return over or usage.high + min_output(usage.window) > usage.window


def over_limit(usage: ContextUsage) -> bool:
    """Returns whether room is to be made before the next request, were nothing holding that back."""
    return usage.limit is not None and (usage.total > usage.limit or may_be_refused(usage))


def output_room(window: int, next_input: int) -> int:
    """The same as ``room_for_answer`` of a request that is only counted by characters. May be negative."""
    return window - next_input - send_margin(window, next_input, int(next_input * ROUGH_SPREAD))


def max_output_for(usage: ContextUsage, limits: Limits) -> int | None:
    """The output tokens to ask for: ``min(model max output, room for the answer)``, never below 0.

    None when neither the window nor the model's maximum is known. Where the room is below ``min_output`` the request
    should not be made (``fits_to_send``).
    """
    known = [limits.max_output] if limits.max_output else []
    room = room_for_answer(usage)
    if room is not None:
        known.append(room)
    return max(0, min(known)) if known else None


def compact_at_of(model: ModelInfo, settings: CompactionSettings) -> float | None:
    """The ``compact_at`` in force for a model."""
    return settings.compact_at if model.spec.compact_at is None else model.spec.compact_at


PAUSED = "automatic compaction is paused after an undo"
"""That holds only as long as what is to be sent fits."""


def held_text(settings: CompactionSettings) -> str:
    """Why nothing is compacted automatically at the limit, in words; empty where it is."""
    if not settings.auto_compact:
        return "automatic compaction is off"
    return PAUSED if settings.paused else ""


def why_text(usage: ContextUsage, inputs: ContextInputs) -> str:
    """The answer to "why did it compact, why not", for the screen and for notices."""
    return f"{_decision(usage, inputs.settings)} {_origin(usage, inputs)}"


def _decision(usage: ContextUsage, settings: CompactionSettings) -> str:
    if usage.limit is None:
        return "No automatic compaction: unknown window."
    total, limit = total_text(usage, full=True), tokens(usage.limit, False, full=True)
    how = " without a summary, because summaries failed three times in a row" if settings.off else ""
    if not fits_to_send(usage):
        window = tokens(usage.window or 0, False, full=True)
        full = f"the next input of {total} leaves no room for an answer in a window of {window}"
        if not settings.auto_compact:
            return f"Does not compact although {full}: automatic compaction is off."
        return f"Compacts{how}{', although it is paused after an undo' if settings.paused else ''}: {full}."
    if not over_limit(usage):
        below = tokens(usage.limit - usage.total, usage.approximate, full=True)
        return f"Does not compact: the next input of {total} is {below} below the limit of {limit}."
    above = f"the next input is {total}: its upper end, {usage.high:,}, {_refusal(usage)}"
    if usage.total > usage.limit:
        away = tokens(usage.total - usage.limit, usage.approximate, full=True)
        above = f"the next input of {total} is {away} above the limit of {limit}"
    if not settings.auto_compact:
        return f"Does not compact although {above}: automatic compaction is off."
    if settings.paused:
        return f"Does not compact although {above}: it is paused after an undo."
    if usage.pending:
        return f"Compacts{how} once everything is counted: {above}."
    return f"Compacts{how}: {above}."


def _origin(usage: ContextUsage, inputs: ContextInputs) -> str:
    if usage.anchor_step is None:
        reason = why_no_report(inputs.steps, inputs.model.target)
        return f"All of it is estimated: {reason}.{_held_so_far(usage.accuracy)}"
    formula = calculation_text(usage)
    return f"{formula[:1].upper()}{formula[1:]}.{_held_so_far(usage.accuracy)}"


def calculation_text(usage: ContextUsage) -> str:
    """The formula with its numbers, as it was calculated; what is estimated of it has its spread."""
    c, by = usage.calculation, usage.calculation.spreads
    if c.last_input is None:
        total = total_text(usage, full=True)
        return f"nothing is measured yet: system prompt, tools and messages are estimated at {total}"
    return (
        f"last input {c.last_input:,} + last output {_term(c.last_output or 0, by.last_output)}"
        f" − dropped reasoning {_term(c.dropped_reasoning, by.dropped_reasoning)}"
        f" − removed {_term(c.removed, by.removed)}"
        f" {'−' if c.fixed_delta < 0 else '+'} changed {_term(abs(c.fixed_delta), by.fixed_delta)}"
        f" + new {_term(c.new_messages, by.new_messages)} = {total_text(usage, full=True)}"
    )


def _term(count: int, spread: int) -> str:
    return interval(count, spread, False, full=True)


def _refusal(usage: ContextUsage) -> str:
    if usage.max_input and usage.high > usage.max_input:
        return f"is over the model's input limit of {usage.max_input:,}"
    return f"leaves no room for an answer in a window of {usage.window:,}"


def _held_so_far(accuracy: Accuracy) -> str:
    """How many of the newest intervals held, as a sentence; empty before there are any."""
    count = accuracy.last_intervals
    last = "the last " if accuracy.intervals > count else ""
    return f" The ± held in {accuracy.last_inside} of {last}{plural(count, 'call')}." if count else ""
