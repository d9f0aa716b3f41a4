"""The rows of the breakdown of the context: one record each, which all that show them read.

A new row is a line here (and its id in ``RowId``), and the block or part that the engine sends under that id. Screen,
command line, JSON and exports follow; a theme may name a colour ``context-<id>`` for it, or leave it to the record.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

RowId = Literal["system", "environment", "memory", "skills", "servers", "tools", "documents"]
"""Rows of the ephemeral parts of a request."""


class RowKind(NamedTuple):
    """``pattern`` fills the row's part of the bar where there are no colours. ``color`` is the theme's own that stands
    in where a theme has no ``context-<id>``. ``counted``: the user adds and takes away its parts, so that its label
    says how many there are. ``sent`` is its place on the wire: providers put the tools before the system prompt,
    whatever the order of the request's fields. ``always``: it is shown without any part too."""

    id: str
    label: str
    pattern: str
    color: str
    counted: bool = False
    sent: int = 0
    always: bool = True


FIXED_ROWS: dict[RowId, RowKind] = {
    "system": RowKind("system", "System prompt", "█", "primary", sent=1),
    "environment": RowKind("environment", "Environment", "▓", "secondary", sent=2),
    "memory": RowKind("memory", "Memory", "▒", "accent", counted=True, sent=3),
    "skills": RowKind("skills", "Skills", "▚", "error", sent=4),
    "servers": RowKind("servers", "MCP instructions", "▛", "foreground", counted=True, sent=5, always=False),
    "tools": RowKind("tools", "Tools", "▞", "warning", counted=True, sent=0),
    "documents": RowKind("documents", "Documents", "▤", "success", counted=True, sent=6),
}
"""In the order in which they are shown."""

MESSAGES = RowKind("messages", "Messages", "▦", "primary")
CONTEXT_ROWS: tuple[RowKind, ...] = (*FIXED_ROWS.values(), MESSAGES)

FREE = RowKind("free", "Free", "·", "line")
RESERVE = RowKind("reserve", "Reserve", "╱", "faint")
"""What is left of the window beside the rows."""
