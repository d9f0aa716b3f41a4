"""A step of the past for ``agent-tui context --step``: as text, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from agent_tui.commands.past_words import (
    PastView,
    error_of,
    honesty,
    others,
    outcome,
    reason_text,
    title,
    total_change,
)
from agent_tui.commands.usage_json import context_json
from agent_tui.commands.usage_text import context_text
from agent_tui.context.past import History
from agent_tui.context.past_reasons import Leaf, pairs
from agent_tui.errors import ConfigError
from agent_tui.models.codec import to_dict
from agent_tui.models.context import ContextRow
from agent_tui.models.rows import ROW_KINDS
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import plural, signed

FIRST = "It is the first step: there is none to compare it with."
WHY = {
    "compaction": "compacted",
    "undo": "compaction undone",
    "rewind": "rewound",
    "reasoning": "sent otherwise",
}
"""Why a row came or went, where that is not plain from what it is."""
LISTED = 40
"""Rows that came or went in the plain text; the JSON has all."""


def past_view(history: History, number: int, compared: int | None, on_path: set[str]) -> PastView:
    """Step ``number`` compared with step ``compared`` (None: the one before). Raises ConfigError for a step that there
    is not."""
    count = history.count
    if not count:
        raise ConfigError("This session has no steps yet: nothing was sent to a model.")
    for wanted in (number, compared):
        if wanted is not None and not 1 <= wanted <= count:
            raise ConfigError(f"There is no step {wanted}: this session has steps 1 to {count:,}.")
    other = compared if compared is not None else number - 1
    if not 1 <= other <= count:
        return PastView(history.moment(number), None, count, on_path, (), history.earlier(number))
    first, last = min(other, number), max(other, number)
    between = history.between(first, last)
    return PastView(history.moment(number), history.moment(other), count, on_path, between, history.earlier(number))


def past_text(view: PastView) -> str:
    """All of it for reading."""
    moment = view.moment
    lines = [title(view), outcome(moment), *([said] if (said := honesty(moment)) else []), ""]
    if moment.usage is not None:
        lines += [context_text(moment.usage, moment.records, ahead=False), ""]
    if view.before is None:
        return "\n".join([*lines, FIRST])
    return "\n".join([*lines, changes_text(view)])


def changes_text(view: PastView) -> str:
    """What is different since the step it is compared with: reasons, rows, what came, what went."""
    return FIRST if view.before is None else "\n".join(_changes(view))


def _changes(view: PastView) -> Iterator[str]:
    found, before, now = view.difference, view.before, view.moment
    assert found is not None and before is not None
    change = total_change(view)
    yield f"Since step {before.number:,}{'' if change is None else f' {signed(change)} tokens'}:"
    if before.usage is None:
        yield f"  {honesty(before)}"
    for text in (*map(reason_text, found.reasons), *others(view.between)):
        yield f"  {text}"
    if not (found.reasons or view.between):
        yield "  nothing came or went"
    if before.usage is not None and now.usage is not None:
        for pair in pairs(now.usage.rows, before.usage.rows):
            row = pair.now or pair.before
            if row is not None and pair.change:
                yield f"  {signed(pair.change):>10}  {one_line(row.label, 40)}"
    yield from _listed("Came", found.entered, 1)
    yield from _listed("Went", found.left, -1)


def _listed(name: str, leaves: Sequence[Leaf], sign: int) -> Iterator[str]:
    if leaves:
        yield f"{name}:"
    for leaf in leaves[:LISTED]:
        kind = ROW_KINDS[leaf.kind or leaf.row].label.lower()
        why = f" ({WHY[leaf.why]})" if leaf.why in WHY else ""
        yield f"  {signed(sign * leaf.leaf.tokens):>10}  {kind}: {one_line(leaf.leaf.label, 40)}{why}"
    if len(leaves) > LISTED:
        yield f"  and {plural(len(leaves) - LISTED, 'more', 'more')}"


def past_json(view: PastView) -> dict[str, Any]:
    """``context_json`` of that moment, each row with its ``delta``, with the ``step``, what it is ``compared_with`` and
    what ``entered`` and ``left`` since. Without a moment that can be shown ``context`` is null."""
    moment, before, found = view.moment, view.before, view.difference
    step, usage = moment.step, moment.step.usage
    context = None if moment.usage is None else context_json(moment.usage, view.earlier)
    if context is not None and moment.usage is not None and before is not None and before.usage is not None:
        _add_deltas(context["rows"], moment.usage.rows, before.usage.rows)
    reported = usage is not None and usage.source == "provider"
    return {
        "step": {
            "number": moment.number,
            "of": view.count,
            "id": step.id,
            "created": step.created,
            "model": step.model_key,
            "status": step.status,
            "on_path": not moment.left(view.on_path),
            "estimated_input_tokens": step.estimated_input,
            "billed_input_tokens": usage.input if usage is not None and reported else None,
            "cache_read_tokens": usage.cache_read if usage is not None and reported else None,
            "error_tokens": error_of(step),
            "miss": None if step.miss is None else to_dict(step.miss),
            "differs_tokens": moment.differs,
            "note": honesty(moment) or None,
        },
        "context": context,
        "compared_with": None if before is None else before.number,
        "delta": total_change(view),
        "reasons": [{"why": r.why, "text": r.text, "tokens": r.tokens} for r in (found.reasons if found else ())],
        "between": [{"id": s.id, "kind": s.kind, "model": s.model_key} for s in view.between],
        "entered": [_leaf(leaf) for leaf in (found.entered if found else ())],
        "left": [_leaf(leaf) for leaf in (found.left if found else ())],
    }


def _leaf(leaf: Leaf) -> dict[str, Any]:
    row = leaf.leaf
    data = {"row": leaf.row, "kind": leaf.kind or None, "id": row.id, "label": row.label, "tokens": row.tokens}
    return {**data, "message_id": row.message_id, "why": leaf.why}


def _add_deltas(data: list[dict[str, Any]], now: Sequence[ContextRow], before: Sequence[ContextRow]) -> None:
    """What went has no row here, so the deltas of the children may add up to more than that of their parent."""
    for entry, pair in zip(data, (p for p in pairs(now, before) if p.now is not None), strict=True):
        entry["delta"] = pair.change
        if pair.now is not None:
            _add_deltas(entry["children"], pair.now.children, pair.before.children if pair.before is not None else ())
