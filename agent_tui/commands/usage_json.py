"""The calculator's answer as JSON: the schema that ``agent-tui context --json`` and the screen's export share."""

from __future__ import annotations

from typing import Any

from agent_tui.models.context import ContextRow, ContextUsage


def context_json(usage: ContextUsage) -> dict[str, Any]:
    """A JSON-able dict of a ContextUsage. Absent numbers are None, never 0."""
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
        "rows": [_row(row) for row in usage.rows],
        "accuracy": {
            "last_error_tokens": accuracy.last_error_tokens,
            "last_error_percent": accuracy.last_error_percent,
            "median_error_percent": accuracy.median_error_percent,
            "calls": accuracy.calls,
            "ratio": accuracy.ratio,
        },
        "session": {
            "input_tokens": session.input_tokens,
            "output_tokens": session.output_tokens,
            "reasoning_tokens": session.reasoning_tokens,
            "cache_read_tokens": session.cache_read_tokens,
            "cache_write_tokens": session.cache_write_tokens,
            "cost_usd": session.cost_usd,
            "compactions": session.compactions,
            "steps": session.steps,
        },
    }


def _row(row: ContextRow) -> dict[str, Any]:
    data: dict[str, Any] = {
        "id": row.id,
        "label": row.label,
        "tokens": row.tokens,
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
    data["children"] = [_row(child) for child in row.children]
    return data
