"""The calculator's answer as JSON: the schema that ``agent-tui context --json`` and the screen's export share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from agent_tui.commands.cache_words import cache_json, forecast_json
from agent_tui.context.accounting.usage import row_shares, window_shares
from agent_tui.models.context import ContextRow, ContextUsage, KindTotals, SessionTotals
from agent_tui.models.steps import Step, StepKind
from agent_tui.models.usage import cost_fields, counts_json


def context_json(usage: ContextUsage, steps: Sequence[Step] = ()) -> dict[str, Any]:
    """A JSON-able dict of a ContextUsage, with what the session's steps read from the cache. Absent numbers are None,
    never 0. A ``share`` is in percent of the window, to one digit, as it is shown elsewhere: those of one level add up
    to the one above."""
    shares = window_shares(usage)
    calculation, accuracy, session = usage.calculation, usage.accuracy, usage.session
    return {
        "model": usage.model,
        "window": usage.window,
        "window_origin": usage.window_origin or None,
        "reserve": usage.reserve,
        "limit": usage.limit,
        "total": usage.total,
        "free": usage.free,
        "over": usage.over,
        "percent": usage.percent,
        "basis": usage.basis,
        "estimated_tokens": usage.estimated_tokens,
        "margin": usage.margin,
        "p95_error_tokens": accuracy.p95_error_tokens,
        "last_output_estimated": calculation.output_estimated,
        "would_compact": usage.would_compact,
        "why": usage.why,
        "turns_left": usage.turns_left,
        "pending": usage.pending,
        "expected_cache_read_tokens": usage.expected_read,
        "forecast": forecast_json(usage.forecast),
        "misfit_tokens": usage.misfit,
        "warnings": list(usage.warnings),
        "calculation": {
            "last_input_tokens": calculation.last_input,
            "last_output_tokens": calculation.last_output,
            "dropped_reasoning_tokens": calculation.dropped_reasoning,
            "removed_tokens": calculation.removed,
            "fixed_delta_tokens": calculation.fixed_delta,
            "new_messages_tokens": calculation.new_messages,
        },
        "shares": None if shares is None else {name: getattr(shares, name) / 10 for name in _SHARES},
        "rows": [_row(row, None if shares is None else shares.rows[i]) for i, row in enumerate(usage.rows)],
        "accuracy": {
            "last_error_tokens": accuracy.last_error_tokens,
            "last_error_percent": accuracy.last_error_percent,
            "median_error_percent": accuracy.median_error_percent,
            "calls": accuracy.calls,
            "ratio": accuracy.ratio,
        },
        "cache": cache_json(steps),
        "session": {
            **counts_json(session.usage),
            "doubted_reports": session.doubted,
            **cost_fields(session.cost),
            "compactions": session.compactions,
            "steps": session.steps,
            "usage_by_kind": by_kind_json(session),
        },
    }


def by_kind_json(totals: SessionTotals) -> dict[str, Any]:
    """Returns the use and cost of the calls of each kind; of a kind that there was none of, all is 0 or null."""
    return {kind: _kind(totals.by_kind.get(kind, KindTotals())) for kind in get_args(StepKind)}


def _kind(totals: KindTotals) -> dict[str, Any]:
    return {
        "calls": totals.calls,
        **counts_json(totals.usage),
        "doubted_reports": totals.doubted,
        **cost_fields(totals.cost),
    }


_SHARES = ("total", "free", "reserve", "over")


def _row(row: ContextRow, tenths: int | None) -> dict[str, Any]:
    data: dict[str, Any] = {
        "id": row.id,
        "label": row.label,
        "tokens": row.tokens,
        "share": None if tenths is None else tenths / 10,
        "basis": row.basis,
        "estimated_tokens": row.estimated_tokens,
        "approximate": row.approximate,
    }
    for name in ("deferred_tokens", "message_id", "path", "cached", "cached_tokens", "replay"):
        value = getattr(row, name)
        if value is not None:
            data[name] = value
    if row.detail:
        data["detail"] = row.detail
    parts = [None] * len(row.children) if tenths is None else row_shares(tenths, row.children)
    data["children"] = [_row(child, part) for child, part in zip(row.children, parts, strict=True)]
    return data
