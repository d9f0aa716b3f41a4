"""Rows of the table of sessions to ``SessionInfo`` and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, get_args

from agent_tui.models.session import SessionInfo, SessionKind, SessionState
from agent_tui.store.tables.rows import check_fields, decode, encode, require_time
from agent_tui.store.tables.session_state import dump_state, parse_state

COLUMNS = "id, project, title, model, created, updated, head_id, messages, parent_session, preview, kind, state"

_KINDS: tuple[SessionKind, ...] = get_args(SessionKind)

_SENSELESS = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)


def row_of(info: SessionInfo) -> tuple[Any, ...]:
    """The values of ``COLUMNS``."""
    return (
        info.id,
        encode(info.project),
        encode(info.title),
        encode(info.model),
        info.created,
        info.updated,
        info.head_id,
        info.messages,
        info.parent_session,
        encode(info.preview),
        info.kind,
        state_text(info.state),
    )


def state_text(state: SessionState) -> str:
    return json.dumps(dump_state(state), separators=(",", ":"))


def infos_of(rows: Sequence[Any]) -> list[SessionInfo]:
    """Sessions of rows with ``COLUMNS``. Facts that make no sense are replaced by what says nothing: a session whose
    row is damaged is listed and can be opened like any other; ``read_row`` says what it lacks."""
    try:
        return [_info(row) for row in rows]
    except _SENSELESS:
        return [read_row(row)[0] for row in rows]


def _info(row: Any) -> SessionInfo:
    info = SessionInfo(
        row[0],
        decode(row[1]),
        decode(row[2]),
        decode(row[3]),
        row[4],
        row[5],
        row[6],
        row[7],
        row[8],
        decode(row[9]),
        parse_state(row[11])[0],
        row[10],
    )
    check_fields(info)
    require_time(info.created)
    require_time(info.updated)
    return info


def read_row(row: Any) -> tuple[SessionInfo, list[str]]:
    """A session of one row as far as it can be read, and the names of the facts that cannot."""
    lost: list[str] = []

    def text(name: str, value: Any) -> str:
        if isinstance(value, str):
            return value
        try:
            return decode(value)
        except _SENSELESS:
            lost.append(name)
            return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")

    def identity(name: str, value: Any) -> str | None:
        return None if value is None else text(name, value)

    def time(name: str, value: Any) -> float:
        try:
            require_time(value)
            return float(value)
        except _SENSELESS:
            lost.append(name)
            return 0.0

    def count(name: str, value: Any) -> int:
        if isinstance(value, int) and value >= 0:
            return value
        lost.append(name)
        return 0

    def kind(value: Any) -> SessionKind:
        for name in _KINDS:
            if value == name:
                return name
        lost.append("kind")
        return "user"

    def state(value: Any) -> SessionState:
        try:
            found, unreadable = parse_state(value)
        except _SENSELESS:
            found, unreadable = SessionState(), ("state",)
        lost.extend(unreadable)
        return found

    info = SessionInfo(
        text("id", row[0]),
        text("project", row[1]),
        text("title", row[2]),
        text("model", row[3]),
        time("created", row[4]),
        time("updated", row[5]),
        identity("head_id", row[6]),
        count("messages", row[7]),
        identity("parent_session", row[8]),
        text("preview", row[9]),
        state(row[11]),
        kind(row[10]),
    )
    return info, [name.replace("_", " ") for name in lost]
