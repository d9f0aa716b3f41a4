"""``/compact preview``: a plan in words."""

from __future__ import annotations

from agent_tui.context.accounting.lost import lost_text
from agent_tui.context.compaction.plan import UNDO, CompactionPlan, records_of
from agent_tui.models.messages import new_id
from agent_tui.text.numbers import plural, tokens


def preview_text(plan: CompactionPlan) -> str:
    """What goes, what stays, and the expected numbers; for ``/compact preview``."""
    if plan.action in ("nothing", "not_worth_it") or plan.expected_after is None:
        head = "Nothing to compact" if plan.action == "nothing" else "Not worth it"
        if plan.stuck:
            head = "No compaction can make room"
        return f"{head}: {plan.why}."
    limit = f" (limit {tokens(plan.limit, False)})" if plan.limit is not None else ""
    now, afterwards = tokens(plan.before, plan.before_estimated), tokens(plan.expected_after, True)
    lines = [f"Now {now}, afterwards expected {afterwards}{limit}."]
    if plan.pruning.cleared:
        lines.append(f"Goes: {plural(len(plan.pruning.cleared), 'old tool result')}, sent as a placeholder.")
    if plan.pruning.clips:
        lines.append(f"Goes: the middle of {plural(len(plan.pruning.clips), 'large tool result')}, cut to size.")
    summary = plan.summary
    if summary is not None:
        earlier = " and the previous summary" if summary.previous is not None else ""
        if summary.left_out:
            lines.append(f"Goes: {plural(summary.left_out, 'old message')}, left out behind a line that says so.")
        else:
            lines.append(f"Goes: {plural(len(summary.fresh), 'message')}{earlier}, replaced by one summary.")
        lines.append(f"Stays word for word: the newest {plural(len(summary.kept_ids), 'message')}.")
        if summary.user_messages:
            own = len(summary.user_messages)
            total = plural(own + summary.user_left_out, "message")
            lines.append(f"Stays word for word in the summary: {own} of {total} of yours.")
        if summary.approved:
            lines.append(f"Stays in the summary: the plan you approved ({plural(len(summary.approved), 'line')}).")
        if summary.todo:
            lines.append(f"Stays in the summary: the todo list ({plural(len(summary.todo), 'item')}).")
        if summary.files:
            names = ", ".join(list(summary.files)[-5:])
            lines.append(f"Listed in the summary: {plural(len(summary.files), 'file')} ({names}).")
    if summary is None or summary.left_out:
        lines.append("No model call is needed.")
    if summary is None:
        lines.append("Stays: every message and every tool call.")
    lost = _lost(plan)
    if lost:
        lines.append(lost)
    lines.append(f"Nothing is deleted; {UNDO} takes it back.")
    return "\n".join(lines)


def _lost(plan: CompactionPlan) -> str:
    """The reasoning that would go, in words."""
    record_id = new_id("rec")
    message = plan.summary.message({}, record_id, 0.0) if plan.summary is not None else None
    return lost_text(plan.lost(records_of(plan, 0.0, "", record_id, message), message), would=True)
