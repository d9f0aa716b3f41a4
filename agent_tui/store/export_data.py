"""A session as data for other programs: the fixed JSON schema, and the rows of ``sessions --json``.

Lone surrogates in texts leave as JSON escapes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agent_tui.models.codec import to_dict
from agent_tui.models.messages import Message, Metadata
from agent_tui.models.session import SessionHit, SessionInfo
from agent_tui.models.steps import CompactionRecord, Step, inherited
from agent_tui.models.usage import NO_COST, Cost, cost_fields, usage_json
from agent_tui.store.content import SessionContent

SCHEMA_VERSION = 1


def export_session(info: SessionInfo, content: SessionContent) -> Metadata:
    """The complete session as a JSON-able dict. ``messages`` holds the tree in the order it was written, then the
    summaries; ``on_path`` marks the present conversation, ``in_tree`` is False for summaries."""
    path = _path_ids(content.messages, info.head_id)
    return {
        "v": SCHEMA_VERSION,
        "session": to_dict(info),
        **cost_fields(session_cost(info, content.steps)),
        "messages": [
            *({**to_dict(m), "in_tree": True, "on_path": m.id in path} for m in content.messages.values()),
            *({**to_dict(m), "in_tree": False, "on_path": False} for m in content.summaries.values()),
        ],
        "steps": [step_row(step) for step in content.steps],
        "compactions": [_record_row(record) for record in content.records],
    }


def _record_row(record: CompactionRecord) -> Metadata:
    cost = dict.fromkeys(cost_fields(NO_COST)) if record.cost is None else cost_fields(record.cost)
    return {name: value for name, value in to_dict(record).items() if name != "cost"} | cost


def session_cost(info: SessionInfo, steps: Sequence[Step]) -> Cost:
    """Returns the cost of all model calls of a session; what a copy has of another one was paid there."""
    return sum((step.cost for step in own_steps(info, steps)), NO_COST)


def own_steps(info: SessionInfo, steps: Sequence[Step]) -> Sequence[Step]:
    """Returns the steps that were begun in this session."""
    return steps[inherited(steps, info.created) :] if info.copied else steps


def hit_row(hit: SessionHit) -> Metadata:
    """One row of ``sessions --search --json``: that of the session, and what was found in it. ``hit`` has the message
    and one line of it, with the ranges of characters that the words take in it; its ``message_id`` is None where they
    are in what the session is called."""
    found = {
        "message_id": hit.message_id,
        "role": hit.role,
        "created": hit.created if hit.message_id is not None else None,
        "line": hit.line,
        "spans": [list(span) for span in hit.spans],
        "left_behind": hit.left_behind,
    }
    return {**session_row(hit.session), "hit": found}


def session_row(info: SessionInfo) -> Metadata:
    """One row of ``sessions --json``; times are seconds since the epoch."""
    return {
        "id": info.id,
        "title": info.title,
        "project": info.project,
        "model": info.model,
        "created": info.created,
        "updated": info.updated,
        "messages": info.messages,
    }


def step_row(step: Step) -> Metadata:
    """A step with all its fields, those of the fixed interface under its names."""
    row: Metadata = {**to_dict(step), **cost_fields(step.cost)}
    row["usage"], row["believed"] = usage_json(step.usage), usage_json(step.believed)
    row["estimated_input_tokens"] = row.pop("estimated_input")
    row["estimated_spread_tokens"] = row.pop("estimated_spread")
    row["actual_input_tokens"] = row.pop("actual_input")
    return row


def to_json(value: Any) -> str:
    """Indented ASCII JSON, safe for any terminal and any text."""
    return json.dumps(value, ensure_ascii=True, indent=2)


def _path_ids(messages: Mapping[str, Message], head_id: str | None) -> set[str]:
    path: set[str] = set()
    while head_id is not None and head_id in messages and head_id not in path:
        path.add(head_id)
        head_id = messages[head_id].parent_id
    return path
