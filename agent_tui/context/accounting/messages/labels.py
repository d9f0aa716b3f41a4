"""Short names of messages for their rows."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agent_tui.models.messages import AttachmentPart, Message, SummaryPart, ToolCallPart
from agent_tui.models.requests import SentMessage
from agent_tui.models.rows import MessageRowId
from agent_tui.text.clean import printable_line

LABEL_CHARS = 60


def message_label(view: Sequence[SentMessage], index: int, message: Message, kind: MessageRowId) -> str:
    """The name of the row of a kind of a message, which stands at ``index`` of the view; a tool result is named after
    the call that it answers."""
    if kind == "tool_calls":
        calls = message.tool_calls
        return call_label(calls[0]) + (f" +{len(calls) - 1}" if len(calls) > 1 else "")
    result = message.tool_result
    if result is not None:
        call = _call_of(view, index, result.call_id)
        return (call_label(call) if call is not None else "") or result.name or "tool result"
    if kind == "attachments":
        return printable_line(", ".join(p.name for p in message.parts if isinstance(p, AttachmentPart)), LABEL_CHARS)
    if kind == "reasoning":
        return printable_line(message.reasoning, LABEL_CHARS) or "reasoning"
    if kind == "summary":
        return printable_line("".join(p.text for p in message.parts if isinstance(p, SummaryPart)), LABEL_CHARS)
    return printable_line(message.text, LABEL_CHARS) or "(empty)"


def _call_of(view: Sequence[SentMessage], index: int, call_id: str) -> ToolCallPart | None:
    """The call that the result at ``index`` answers: results stand directly after the message that made the calls."""
    while index and view[index].message.role == "tool":
        index -= 1
    return next((c for c in view[index].message.tool_calls if c.call_id == call_id), None)


def call_label(call: ToolCallPart) -> str:
    """``read app.py``: the tool and the first text among its arguments."""
    try:
        arguments = json.loads(call.arguments) if len(call.arguments) < 4_096 else None
    except (ValueError, RecursionError):
        arguments = None
    values = arguments.values() if isinstance(arguments, dict) else ()
    first = next((v for v in values if isinstance(v, str) and v), "")
    return printable_line(f"{call.name} {first}", LABEL_CHARS)
