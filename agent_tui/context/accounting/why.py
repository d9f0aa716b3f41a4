"""Why it would compact or not, in one line with the numbers."""

from __future__ import annotations

from agent_tui.context.accounting.budget import fits_to_send
from agent_tui.context.accounting.given.ground import Ground
from agent_tui.context.accounting.given.inputs import CompactionSettings
from agent_tui.context.sent.anchor import why_no_anchor
from agent_tui.models.context import ContextUsage
from agent_tui.text.numbers import tokens


def held_text(settings: CompactionSettings) -> str:
    """Why nothing is compacted automatically at the limit, in words; empty where it is."""
    if not settings.auto_compact:
        return "automatic compaction is off by setting"
    if settings.off:
        return "automatic compaction is off: it failed three times in a row"
    return "automatic compaction is paused since an undo" if settings.paused else ""


def why_text(usage: ContextUsage, ground: Ground) -> str:
    """The answer to "why did it compact, why not", for the screen and for notices."""
    return f"{_decision(usage, ground.inputs.settings)} {_origin(usage, ground)}"


def _decision(usage: ContextUsage, settings: CompactionSettings) -> str:
    if usage.limit is None:
        return "Never compacts by itself: unknown window."
    total, limit = _whole(usage.total, usage), tokens(usage.limit, False, full=True)
    if not fits_to_send(usage):
        window = tokens(usage.window or 0, False, full=True)
        full = f"the next input of {total} leaves no room for an answer in a window of {window}"
        if not settings.auto_compact:
            return f"Does not compact although {full}: automatic compaction is off by setting."
        how = " without a summary, because that failed three times in a row" if settings.off else ""
        return f"Compacts{how}{', although it is paused since an undo' if settings.paused else ''}: {full}."
    if usage.total <= usage.limit:
        below = _whole(usage.limit - usage.total, usage)
        return f"Does not compact: the next input of {total} is {below} below the limit of {limit}."
    above = f"the next input of {total} is {_whole(usage.total - usage.limit, usage)} above the limit of {limit}"
    if not settings.auto_compact:
        return f"Does not compact although {above}: automatic compaction is off by setting."
    if settings.off:
        return f"Does not compact although {above}: it failed three times in a row and is off for this session."
    if settings.paused:
        return f"Does not compact although {above}: it is paused since an undo."
    if usage.pending:
        return f"Compacts once everything is counted: {above}."
    return f"Compacts: {above}."


def _origin(usage: ContextUsage, ground: Ground) -> str:
    if usage.anchor_step is None:
        window = ground.inputs.model.limits.window
        reason = why_no_anchor(ground.inputs.steps, ground.prefixes, ground.target, window)
        return f"All of it is estimated: {reason}."
    formula = calculation_text(usage)
    return f"{formula[:1].upper()}{formula[1:]}."


def calculation_text(usage: ContextUsage) -> str:
    """The formula with its numbers, as it was calculated."""
    c = usage.calculation
    if c.last_input is None:
        return f"nothing is measured yet: system prompt, tools and messages are estimated at ~{usage.total:,}"
    output = f"~{c.last_output or 0:,} (estimated)" if c.output_estimated else f"{c.last_output or 0:,}"
    changed = f"{'−' if c.fixed_delta < 0 else '+'} changed {abs(c.fixed_delta):,}"
    new = f"new ~{c.new_messages:,} (estimated)" if c.new_messages else "new 0"
    return (
        f"last input {c.last_input:,} + last output {output}"
        f" − dropped reasoning {c.dropped_reasoning:,} − removed {c.removed:,} {changed} + {new} = {usage.total:,}"
    )


def _whole(count: int, usage: ContextUsage) -> str:
    return tokens(count, usage.approximate, full=True)
