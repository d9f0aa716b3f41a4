"""Bodies of Cohere's chat API, version 2 (docs.cohere.com/reference/chat-stream)."""

from __future__ import annotations

from agent_tui.models.messages import Metadata
from agent_tui.providers.dialects.encoding import Fields

_FIELDS = frozenset({"role", "content", "tool_calls", "tool_plan", "tool_call_id"})


def cohere_body(fields: Fields, model: str) -> Metadata:
    """A body of ``/v2/chat``."""
    body: Metadata = {"model": model, "messages": [_message(m) for m in fields.messages], "stream": True}
    if fields.tools:
        body["tools"] = fields.tools
    return {**body, **fields.rest, **fields.extra_body}


def _message(message: Metadata) -> Metadata:
    made = {name: value for name, value in message.items() if name in _FIELDS}
    if made.get("content") is None:
        made.pop("content", None)
    return made
