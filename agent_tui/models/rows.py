"""The rows of the breakdown of the context: one record each, which all that show them read.

A new row is a line here (and its id in ``RowId``), and the block or part that the engine sends under that id. Screen,
command line, JSON and exports follow; a theme may name a colour ``context-<id>`` for it, or leave it to the record.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

RowId = Literal["system", "environment", "memory", "skills", "servers", "tools", "documents"]
"""Rows of the prefix parts of a request."""

MessageRowId = Literal[
    "user", "assistant", "tool_calls", "tool_results", "reasoning", "summary", "pinned", "hooks", "attachments"
]
"""Rows below the messages: of what kind their parts are."""


class RowKind(NamedTuple):
    """``pattern`` fills the row's part of the bar where there are no colours. ``color`` is the theme's own that stands
    in where a theme has no ``context-<id>``. ``counted``: the user adds and takes away its parts, so that its label
    says how many there are. ``sent`` is its place on the wire: providers put the tools before the system prompt,
    whatever the order of the request's fields. ``always``: it is shown without any part too. ``subject`` begins a
    sentence about it, with the verb. ``drawn``: it has the colour and the pattern of that row, and no own."""

    id: str
    label: str
    pattern: str
    color: str
    counted: bool = False
    sent: int = 0
    always: bool = True
    subject: str = ""
    drawn: str = ""

    @property
    def variable(self) -> str:
        """The theme's variable for its colour."""
        return f"context-{(self.drawn or self.id).replace('_', '-')}"


FIXED_ROWS: dict[RowId, RowKind] = {
    "system": RowKind("system", "System prompt", "█", "primary", sent=1, subject="The system prompt is"),
    "environment": RowKind("environment", "Environment", "▙", "secondary", sent=2, subject="The environment is"),
    "memory": RowKind("memory", "Memory", "▜", "accent", counted=True, sent=3, subject="Memory files are"),
    "skills": RowKind("skills", "Skills", "▚", "error", sent=4, subject="Skills are"),
    "servers": RowKind(
        "servers",
        "MCP instructions",
        "▛",
        "foreground",
        counted=True,
        sent=5,
        always=False,
        subject="MCP instructions are",
    ),
    "tools": RowKind("tools", "Tools", "▞", "warning", counted=True, sent=0, subject="Tools are"),
    "documents": RowKind("documents", "Documents", "▌", "success", counted=True, sent=6, subject="Documents are"),
}
"""In the order in which they are shown."""

MESSAGES = RowKind("messages", "Messages", "▓", "primary", subject="Messages are")
CONTEXT_ROWS: tuple[RowKind, ...] = (*FIXED_ROWS.values(), MESSAGES)

_DRAWN = MESSAGES.id
MESSAGE_ROWS: dict[MessageRowId, RowKind] = {
    "user": RowKind("user", "user messages", "▟", "success", subject="Your messages are"),
    "assistant": RowKind("assistant", "answers", "▓", "primary", subject="Answers are", drawn=_DRAWN),
    "tool_calls": RowKind("tool_calls", "tool calls", "▓", "primary", subject="Tool calls are", drawn=_DRAWN),
    "tool_results": RowKind("tool_results", "tool results", "▒", "secondary", subject="Tool results are"),
    "reasoning": RowKind("reasoning", "reasoning", "░", "accent", subject="Reasoning is"),
    "summary": RowKind("summary", "summary", "◆", "accent", subject="The summary is"),
    "pinned": RowKind("pinned", "pinned words", "▓", "primary", subject="Pinned words are", drawn=_DRAWN),
    "hooks": RowKind("hooks", "hooks", "▓", "primary", subject="Words of hooks are", drawn=_DRAWN),
    "attachments": RowKind("attachments", "attachments", "▓", "primary", subject="Attachments are", drawn=_DRAWN),
}
"""In the order in which they are shown."""

NOTES = RowKind("attachments", "notes", "▓", "primary", subject="Notes are", drawn=_DRAWN)
"""What the row of attachments is called where all of it is what the program itself tells the model."""

FREE = RowKind("free", "Free", "·", "line")
RESERVE = RowKind("reserve", "Reserve", "╱", "faint")
"""What is left of the window beside the rows."""

DRAWN_ROWS: tuple[RowKind, ...] = (
    *CONTEXT_ROWS,
    *(kind for kind in MESSAGE_ROWS.values() if not kind.drawn),
    FREE,
    RESERVE,
)
"""All that have a colour and a pattern of their own."""

STACKED: tuple[str, ...] = (*FIXED_ROWS, "summary", "user", MESSAGES.id, "reasoning", "tool_results")
"""Those that a column of the timeline is made of, from the bottom: what stays below, what comes and goes above."""

ROW_KINDS: dict[str, RowKind] = {kind.id: kind for kind in (*DRAWN_ROWS, *MESSAGE_ROWS.values())}
"""By id; other ids are of parts and messages."""
