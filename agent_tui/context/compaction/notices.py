"""The lines that tell the user about compaction: one each, with the numbers, and the preview."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_tui.context.accounting.lost import LostReasoning, lost_text, lost_words
from agent_tui.context.accounting.next_input import min_output, over_limit, room_for_answer
from agent_tui.context.accounting.usage import calculate_context_usage
from agent_tui.context.compaction.plan import (
    UNDO,
    UNDO_EDIT,
    CompactionFigures,
    CompactionPlan,
    records_of,
    stays_whole,
)
from agent_tui.context.compaction.situation import CompactionReason
from agent_tui.context.compaction.summary import sizes_text
from agent_tui.context.compaction.summary_plan import expected_message
from agent_tui.context.tokens import char_tokens, round_up
from agent_tui.models.context import ContextUsage
from agent_tui.models.messages import new_id
from agent_tui.models.steps import CompactionRecord
from agent_tui.models.usage import Cost
from agent_tui.text.numbers import duration, interval, money, percent, plural, tokens, whole_percent

if TYPE_CHECKING:
    from agent_tui.context.compaction.price import PlanPrice

WARNING_SHARE = 0.8
"""Of the limit; from here on the user is told once."""

UNCHANGED = "Nothing changed."

EXACT_OFF = "Exact counting is off (context.exact_counting)."
EXACT_ASKED = "Asking the provider for an exact count…"


def exact_text(count: int | None) -> str:
    """Returns the line on what came of asking the provider for an exact count."""
    if count is None:
        return "No exact count: the provider does not offer one, or did not answer."
    return f"Exact count from the provider: {plural(count, 'token')}."


def done_text(
    record: CompactionRecord,
    *,
    kept: int | None = None,
    cleared: int = 0,
    clipped: int = 0,
    left_out: int = 0,
    lost: LostReasoning | None = None,
    problem: str | None = None,
    seconds: float | None = None,
    cost: Cost | None = None,
    read: tuple[int | None, int | None] = (None, None),
) -> str:
    """``171.2k → 24.1k ± 0.9k · kept 6 messages · 8 s · $0.02 · /compact undo``; what does not apply
    is left out."""
    fold, agent = record.reason == "edit", record.by == "agent"
    who, count = "The agent folded" if agent else "Folded", plural(len(record.message_ids), "message")
    parts = [f"{who} {count}"] if fold else ["The agent compacted"] if agent else []
    parts.append(sizes_text(record))
    if problem is not None:
        parts.append(f"{problem}; summarised without the model")
    if left_out:
        parts.append(f"left out {plural(left_out, 'old message')}")
    if kept is not None:
        parts.append(f"kept {plural(kept, 'message')}")
    if cleared:
        parts.append(f"cleared {plural(cleared, 'old tool result')}")
    if clipped:
        parts.append(f"clipped {plural(clipped, 'large tool result')}")
    if lost is not None:
        parts.append(f"without {lost_words(lost)}")
    if seconds is not None:
        parts.append(duration(seconds))
    if cost is not None:
        parts.append(money(cost))
    whole, cached = read
    if whole and cached:
        parts.append(f"read {whole_percent(cached, whole)} from the cache")
    parts.append(UNDO_EDIT if fold or agent else UNDO)
    return " · ".join(parts)


def failed_text(reason: str, why: CompactionReason = "auto") -> str:
    return f"{'Fold' if why == 'edit' else 'Compaction'} failed: {reason}. {UNCHANGED}"


def not_worth_it_text(reason: str) -> str:
    return f"Compaction not worth it: {reason}. {UNCHANGED}"


def stuck_text(reason: str) -> str:
    """Nothing that may be taken away would make the next input fit."""
    return f"No compaction can make room: {reason}. {UNCHANGED}"


def stuck_why(usage: ContextUsage, fixed: int, newest: int, pinned: str) -> str:
    """Why nothing helps: half a sentence with the numbers. ``fixed`` are the tokens of system prompt and tools,
    ``newest`` those of the user's newest message; ``pinned`` the words that every compaction carries."""
    window = usage.window or 0
    prompt = f"the system prompt and the tools take {_about(fixed)} tokens"
    if pinned:
        prompt += f", what you pinned {_about(round_up(char_tokens(pinned)))} (run /pins to unpin)"
    if window and fixed + min_output(window) >= window:
        return f"{prompt} of a window of {_known(window)} on their own"
    if not newest:
        return f"{prompt} of a window of {_known(window)}" if window else prompt
    size = f" of a window of {_known(window)}" if window else ""
    return f"your newest message is too large: {_about(newest)} tokens, and {prompt}{size}"


def too_little_why(usage: ContextUsage, gain: int, limit: int | None) -> str:
    """Why freeing ``gain`` tokens is not worth it: half a sentence. ``limit`` is what they are measured against, the
    conversation without one."""
    of = f"the limit ({tokens(limit, False)})" if limit is not None else "the conversation"
    freed = f"only {tokens(gain, True)} of {tokens(usage.total, usage.approximate)}"
    return f"it would free {freed}, less than 5 % of {of}" if gain > 0 else "it would free nothing"


def nothing_text(reason: str) -> str:
    return f"Nothing to compact: {reason}."


def undone_text(before: ContextUsage, after: ContextUsage) -> str:
    return f"Compaction undone: {_whole(before)} → {_whole(after)} tokens."


def _total(usage: ContextUsage) -> str:
    return interval(usage.total, usage.spread, usage.approximate)


def _whole(usage: ContextUsage) -> str:
    return interval(usage.total, usage.spread, usage.approximate, full=True)


def _known(count: int) -> str:
    return tokens(count, False, full=True)


def _about(count: int) -> str:
    return tokens(count, True, full=True)


def cancelled_text(before: int, estimated: bool, why: CompactionReason = "auto") -> str:
    if why == "edit":
        return f"Fold cancelled. {UNCHANGED}"
    return f"Compaction of {tokens(before, estimated)} cancelled. {UNCHANGED}"


def warning_text(usage: ContextUsage, held_back: str | None) -> str:
    """The line at 80 % of the limit; ``held_back`` says why nothing will happen by itself at the limit."""
    limit = usage.limit or 0
    share = 100 * usage.total / limit if limit else 0.0
    end = f"compacts at {tokens(limit, False)}."
    if over_limit(usage):
        end = "it compacts before the next request."
    if held_back:
        end = f"{held_back}; run /compact to make room."
    return f"Context at {percent(share, 0)} of the limit: {_total(usage)} of {tokens(limit, False)}; {end}"


def stop_text(usage: ContextUsage, why: str, stuck: bool = False) -> str:
    """Why the turn cannot go on, with the numbers and the three ways on. ``stuck``: compacting is not one of them."""
    window = usage.window or 0
    room = tokens(max(0, room_for_answer(usage) or 0), usage.approximate, full=True)
    first = "Send it in smaller parts or name a file to read" if stuck else "Run /compact to make room"
    return (
        f"The context is full: the next input is {_whole(usage)} tokens of a window of {_known(window)}, leaving "
        f"{room} for an answer (at least {_known(min_output(window))} are needed). Not compacted: {why}. "
        f"{first}, use /model for a larger window, or /clear to start over."
    )


def unsummarised_text(usage: ContextUsage, why: str) -> str:
    """Why a message is not sent: without a summary, which failed or was ended, it does not fit."""
    return (
        f"Not sent, and nothing was left out: with {_whole(usage)} tokens of a window of {_known(usage.window or 0)} "
        f"the conversation needs a summary first, and {why}. Send a message to try again, run /compact, or use /model "
        "for a larger window."
    )


def overflow_stop_text(usage: ContextUsage, why: str, said: str) -> str:
    """The provider refused the request as too long and nothing more will be tried. ``said`` is the sentence with its
    own words."""
    window = f" of a window of {_known(usage.window)}" if usage.window else ""
    return (
        f"{said} The next input is {_whole(usage)} tokens{window}. "
        f"Not compacted: {why}. "
        "Run /compact to make room, use /model for a larger window, or /clear to start over."
    )


def send_anyway_text(usage: ContextUsage, why: str) -> str:
    """Over the limit, or maybe too long, but there is room: the step is sent, and the user knows."""
    room = max(0, room_for_answer(usage) or 0)
    over = f"{_total(usage)} is over the limit of {tokens(usage.limit or 0, False)}"
    if usage.total <= (usage.limit or 0):
        over = f"{_total(usage)} may be too long for a window of {tokens(usage.window or 0, False)}"
    return f"{over} but was not compacted: {why}. Continuing, {tokens(room, usage.approximate)} left for the answer."


def make_room_text(usage: ContextUsage, why: str) -> str:
    """Told before a compaction that would be held back, were anything to be sent without it."""
    return f"{why[:1].upper()}{why[1:]}, but {_total(usage)} {_no_room(usage)}: compacting anyway."


def again_at_once_text(usage: ContextUsage) -> str:
    """Told after an undo where nothing can be sent as it is then."""
    return f"The conversation {_no_room(usage)}: your next message compacts it again."


def _no_room(usage: ContextUsage) -> str:
    """Why the next request cannot be sent: it does not fit, or the answer does not."""
    window = usage.window or 0
    if usage.total > (usage.max_input or window):
        return f"does not fit a window of {tokens(window, False)}"
    return f"leaves too little room for an answer in a window of {tokens(window, False)}"


def switch_text(usage: ContextUsage, model: str) -> str:
    """Told before a conversation is compacted to fit the smaller model ``model``."""
    return f"{_does_not_fit(usage, model)}: compacting with the current model first."


def switch_held_back_text(usage: ContextUsage, model: str, why: str) -> str:
    """Told instead when nothing may compact by itself."""
    return f"{_does_not_fit(usage, model)} and was not compacted: {why}. Run /compact to make room."


def _does_not_fit(usage: ContextUsage, model: str) -> str:
    limit, window = tokens(usage.limit or 0, False), tokens(usage.window or 0, False)
    return f"The conversation ({_total(usage)}) does not fit {model} (limit {limit} of {window})"


def fold_text(plan: CompactionPlan, after: int, price: PlanPrice, lost: LostReasoning | None) -> str:
    """The line before a fold: what it takes away, what it leaves, and its price."""
    count = plural(len(plan.summary.message_ids) if plan.summary is not None else 0, "message")
    freed = f"{tokens(plan.before - after, True)} tokens less per request"
    parts = [f"Folds {count} ({tokens(plan.folded_tokens, True)}) into a summary: {freed}"]
    parts += [said] if (said := price.line()) else []
    return f"{' · '.join(parts)}. {lost_text(lost, would=True)}".rstrip()


def preview_of(plan: CompactionPlan, usage: ContextUsage, price: PlanPrice | None = None) -> CompactionFigures:
    """Returns what a plan would do: what goes, what stays, and the expected numbers; for ``/compact preview``."""
    if plan.action in ("nothing", "not_worth_it") or plan.expected_after is None:
        head = "Nothing to compact" if plan.action == "nothing" else "Not worth it"
        if plan.stuck:
            head = "No compaction can make room"
        return CompactionFigures(f"{head}: {plan.why}.")
    limit = f" (limit {tokens(plan.limit, False)})" if plan.limit is not None else ""
    now, afterwards = tokens(plan.before, plan.before_estimated), tokens(plan.expected_after, True)
    lines = [f"Now {now}, expected {afterwards} after{limit}."]
    if price is not None and (said := price.line()):
        lines.append(f"Cost: {said}.")
    if plan.pruning.cleared:
        lines.append(f"Clears {plural(len(plan.pruning.cleared), 'old tool result')}; a placeholder is sent.")
    if plan.pruning.clips:
        lines.append(f"Cuts the middle of {plural(len(plan.pruning.clips), 'large tool result')}.")
    summary, record_id = plan.summary, new_id("rec")
    message = expected_message(summary, record_id) if summary is not None else None
    records = records_of(plan, 0.0, "", record_id, message)
    then = plan.now.inputs_after(records, message)
    whole = stays_whole(then.view)
    if summary is not None:
        earlier = " and the previous summary" if summary.previous is not None else ""
        if summary.left_out:
            lines.append(f"Removes {plural(summary.left_out, 'old message')}; a line says so.")
        else:
            lines.append(f"Replaces {plural(len(summary.fresh), 'message')}{earlier} with one summary.")
        lines.append(f"Keeps {'' if summary.fold else 'the newest '}{plural(whole, 'message')} word for word.")
        if summary.user_messages:
            own = len(summary.user_messages)
            more = bool(summary.user_cut) + summary.user_left_out
            kept = f"{own} of your {plural(own + more, 'message')}" if more else f"all {own} of your messages"
            lines.append(f"Keeps {'your message' if not more and own == 1 else kept} word for word in the summary.")
        if summary.user_cut:
            lines.append("Keeps the beginning and end of a longer message of yours in the summary.")
        if summary.pinned:
            lines.append(f"Keeps what you pinned word for word (~{round_up(char_tokens(summary.pinned)):,} tokens).")
        if summary.approved:
            lines.append(f"Keeps the plan you approved ({plural(len(summary.approved), 'line')}) in the summary.")
        if summary.todo:
            lines.append(f"Keeps the todo list ({plural(len(summary.todo), 'item')}) in the summary.")
        if summary.files:
            names = ", ".join(list(summary.files)[-5:])
            lines.append(f"Lists {plural(len(summary.files), 'file')} in the summary ({names}).")
        if rules := sum(fact.kind == "rule" for fact in summary.facts):
            said = "your rule" if rules == 1 else f"your {rules:,} rules"
            lines.append(f"Keeps {said} word for word, whatever the model writes.")
    if summary is None or summary.left_out:
        lines.append("No model call needed.")
    if summary is None:
        lines.append(f"Keeps every message and tool call, {plural(whole, 'message')} word for word.")
    lost = lost_text(plan.lost(records, message), would=True)
    if lost:
        lines.append(lost)
    lines.append(f"Nothing is deleted; {UNDO} undoes it.")
    after = calculate_context_usage(then).stack()
    return CompactionFigures("\n".join(lines), usage.stack(), after, plan.limit, plan.before_estimated)
