"""The report of the context as JSON: the schema that ``agent-tui context --json`` and the screen's export share."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Any, get_args

from agent_tui.commands.report import ContextReport, ReportRow
from agent_tui.commands.subagents import subagents_json
from agent_tui.context.cache_forecast import whole
from agent_tui.context.row_pairs import pairs
from agent_tui.context.timeline import Timeline, timeline_json
from agent_tui.models.codec import to_dict
from agent_tui.models.context import ContextRow, KindTotals, SessionTotals
from agent_tui.models.steps import CacheEntry, CacheForecast, CompactionRecord, MissSum, StepKind
from agent_tui.models.usage import cost_fields, counts_json

if TYPE_CHECKING:
    from agent_tui.engine.edits import Dropped


def context_json(report: ContextReport, path: Container[str] | None = None) -> dict[str, Any]:
    """A JSON-able dict of a report, with what the session's steps read from the cache. Absent numbers are None, never
    0. ``percent`` and each ``share`` are in percent of ``share_of``, to one digit, as elsewhere: those of one level add
    up to the one above. ``path`` are the ids of the conversation's messages as it is now: with them there is its
    timeline."""
    usage, shares = report.usage, report.shares
    calculation, accuracy, session = usage.calculation, usage.accuracy, usage.session
    return {
        "model": usage.model,
        "window": usage.window,
        "window_origin": usage.window_origin or None,
        "reserve": usage.reserve,
        "limit": usage.limit,
        "total": usage.total,
        "low": usage.low,
        "high": usage.high,
        "free": usage.free,
        "over": usage.over,
        "percent": usage.percent,
        "share_of": "window",
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
        "warnings": list(usage.warnings),
        "calculation": {
            "last_input_tokens": calculation.last_input,
            "last_output_tokens": calculation.last_output,
            "dropped_reasoning_tokens": calculation.dropped_reasoning,
            "removed_tokens": calculation.removed,
            "fixed_delta_tokens": calculation.fixed_delta,
            "new_messages_tokens": calculation.new_messages,
        },
        "calculation_spreads": {f"{name}_tokens": value for name, value in to_dict(calculation.spreads).items()},
        "shares": None if shares is None else {name: getattr(shares, name) / 10 for name in _SHARES},
        "rows": _rows(report),
        "dropped": [_dropped(each) for each in report.dropped],
        "accuracy": {
            "last_error_tokens": accuracy.last_error_tokens,
            "last_error_percent": accuracy.last_error_percent,
            "median_error_percent": accuracy.median_error_percent,
            "calls": accuracy.calls,
            "ratio": accuracy.ratio,
            "intervals": accuracy.intervals,
            "inside": accuracy.inside,
        },
        "timeline": None if path is None else timeline_json(Timeline(report.steps, report.records), usage, path),
        "cache": cache_json(report),
        "session": {
            **counts_json(session.usage),
            "doubted_reports": session.doubted,
            **cost_fields(session.cost),
            "compactions": session.compactions,
            "compactions_taken_back": session.taken_back,
            "compactions_made": [compaction_json(r) for r in report.records if r.compacts],
            "edits": [edit_json(record) for record in report.records if record.reason == "edit"],
            "summaries_not_used": session.unused,
            "summaries_not_used_usd": session.unused_cost.whole,
            "steps": session.steps,
            "usage_by_kind": by_kind_json(session),
            "subagents": subagents_json(report.steps),
        },
    }


def edit_json(record: CompactionRecord) -> dict[str, Any]:
    """One change that the user made by hand: the messages that were dropped, restored or folded."""
    return {
        "operation": record.operation_id,
        "kind": "fold" if record.kind == "summary" else record.kind,
        "messages": record.message_ids,
        "attachments": record.attachments,
        "in_force": record.active,
        "created": record.created,
        **_between("before", record.before_tokens, record.before_spread),
        **_between("after", record.after_tokens, record.after_spread),
    }


def compaction_json(record: CompactionRecord) -> dict[str, Any]:
    """One compaction: what it saves of each request, what it cost, and the messages that are sent otherwise."""
    known = record.before_tokens is not None and record.after_tokens is not None
    return {
        "operation": record.operation_id,
        "kind": record.kind,
        "reason": record.reason,
        "by": record.by or None,
        "in_force": record.active,
        **_between("before", record.before_tokens, record.before_spread),
        **_between("after", record.after_tokens, record.after_spread),
        "saved_tokens": (record.before_tokens or 0) - (record.after_tokens or 0) if known else None,
        "warm": record.warm,
        "input_tokens": record.input_tokens,
        "cache_read_tokens": record.cache_read,
        "cost_usd": None if record.cost is None else record.cost.whole,
        "messages": record.message_ids,
    }


def _between(name: str, count: int | None, spread: int | None) -> dict[str, int | None]:
    """A number of tokens, and what it is at least and at most; null where a version did not store that."""
    low, high = (None, None) if count is None or spread is None else (max(0, count - spread), count + spread)
    return {f"{name}_tokens": count, f"{name}_low_tokens": low, f"{name}_high_tokens": high}


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


def _add_deltas(data: list[dict[str, Any]], now: Sequence[ContextRow], before: Sequence[ContextRow]) -> None:
    """Adds to each row its ``delta``, by how much it changed. What went has no row here, so the deltas of the children
    may add up to more than that of their parent."""
    for entry, pair in zip(data, (p for p in pairs(now, before) if p.now is not None), strict=True):
        entry["delta"] = pair.change
        if pair.now is not None:
            _add_deltas(entry["children"], pair.now.children, pair.before.children if pair.before is not None else ())


_SHARES = ("total", "free", "reserve", "over")


def _dropped(each: Dropped) -> dict[str, Any]:
    """A message that the user dropped, or the attachment of one with that number; ``waiting``: it is still sent, and
    goes once the cache is cold."""
    message = each.message
    return {
        "message_id": message.id,
        "attachment": each.attachment,
        "role": message.role,
        "tokens": each.tokens,
        "waiting": each.waiting,
    }


def _rows(report: ContextReport) -> list[dict[str, Any]]:
    data = [_row(row) for row in report.rows()]
    if report.before is not None:
        _add_deltas(data, report.usage.rows, report.before.rows)
    return data


def _row(part: ReportRow) -> dict[str, Any]:
    row = part.row
    optional = {
        name: value
        for name in ("deferred_tokens", "message_id", "attachment", "path", "cached", "cached_tokens", "replay")
        if (value := getattr(row, name)) is not None
    }
    return {
        "id": row.id,
        "label": row.label,
        "tokens": row.tokens,
        "share": None if part.tenths is None else part.tenths / 10,
        "basis": row.basis,
        "estimated_tokens": row.estimated_tokens,
        "approximate": row.approximate,
        **optional,
        **({"detail": row.detail} if row.detail else {}),
        "children": [_row(child) for child in part.below()],
    }


def cache_json(report: ContextReport) -> dict[str, Any]:
    """The cache of a session: its calls, oldest first, and the misses by cause. What is not known is None."""
    sums = report.misses()
    return {
        "misses": {**_sum(whole(sums.values())), "by_cause": {cause: _sum(one) for cause, one in sums.items()}},
        "steps": [_step(entry) for entry in reversed(report.calls())],
    }


def forecast_json(forecast: CacheForecast | None) -> dict[str, Any] | None:
    """Returns the forecast of what the next request finds in the provider's cache; None where nothing is known of
    it."""
    if forecast is None:
        return None
    cold = forecast.cold
    return {
        "cache_read_tokens": forecast.read,
        "input_cost_usd": forecast.usd,
        "cached_until": forecast.until,
        "cached_until_at_least": forecast.at_least,
        "cold": None
        if cold is None
        else {
            "cause": cold.cause,
            "what": cold.what,
            "tokens": cold.tokens,
            "whole": cold.whole,
            "input_cost_usd": cold.usd,
            "warm_input_cost_usd": cold.warm_usd,
        },
    }


def _sum(one: MissSum) -> dict[str, Any]:
    return {"count": one.count, "tokens": one.tokens, **cost_fields(one.cost)}


def _step(entry: CacheEntry) -> dict[str, Any]:
    miss = entry.miss
    return {
        "step": entry.step_id,
        "created": entry.created,
        "model": entry.model,
        "kind": "subagent" if entry.subagent else "turn",
        "input_tokens": entry.input,
        "cache_read_tokens": entry.read,
        "cache_write_tokens": entry.written,
        "expected_read_tokens": entry.expected,
        "cache_life_seconds": entry.life,
        "provider_says": dict(entry.told),
        "miss": None
        if miss is None
        else {"cause": miss.cause, "what": miss.what, "tokens": miss.tokens, "cost_usd": miss.cost_usd},
    }
