"""What Anthropic's Messages API checks of a conversation, in its words."""

from __future__ import annotations

import re
from typing import Any

from tests.support.true_provider.wire import Refused, only

EXTRA = "{name}: Extra inputs are not permitted"
_BLOCKS = {
    "text": ("type", "text", "cache_control", "citations"),
    "thinking": ("type", "thinking", "signature"),
    "redacted_thinking": ("type", "data"),
    "tool_use": ("type", "id", "name", "input", "cache_control", "caller"),
    "tool_result": ("type", "tool_use_id", "content", "is_error", "cache_control"),
}
_ASSISTANT = ("text", "thinking", "redacted_thinking", "tool_use")
_USER = ("text", "tool_result")
_MOST_MARKS = 4
_ID = re.compile(r"^[a-zA-Z0-9_-]+$")


def check_messages(messages: list[Any], tools: bool, prefill: bool) -> None:
    """Refuses what the API refuses of a conversation. Contents given as text become blocks."""
    if not messages:
        raise Refused("messages: at least one message is required")
    if messages[0]["role"] != "user":
        raise Refused('messages: first message must use the "user" role')
    seen: set[str] = set()
    for n, message in enumerate(messages):
        where = f"messages.{n}."
        only(message, ("role", "content"), where, EXTRA)
        if isinstance(message["content"], str):
            message["content"] = [{"type": "text", "text": message["content"]}]
        if not message["content"]:
            raise Refused(f"messages.{n}: all messages must have non-empty content")
        for i, block in enumerate(message["content"]):
            _check_block(block, f"{where}content.{i}", message["role"])
        _check_pairs(messages, n, seen)
    if messages[-1]["role"] == "assistant" and not prefill:
        raise Refused("This model does not support assistant message prefill.")
    if seen and not tools:
        raise Refused("Requests which include `tool_use` or `tool_result` blocks must define tools")


def check_marks(fixed: list[Any], messages: list[Any]) -> None:
    """Refuses more cache markers than the API takes, wherever they stand: on tools, in the system prompt, in messages
    and inside of results."""
    marks = sum("cache_control" in block for block in fixed)
    for message in messages:
        for block in message["content"]:
            inner = block.get("content")
            marks += "cache_control" in block
            marks += sum("cache_control" in one for one in inner) if isinstance(inner, list) else 0
    if marks > _MOST_MARKS:
        raise Refused(f"A maximum of {_MOST_MARKS} blocks with cache_control may be provided. Found {marks}.")


def _check_block(block: dict[str, Any], where: str, role: str) -> None:
    kind = str(block.get("type"))
    if kind not in (_USER if role == "user" else _ASSISTANT):
        raise Refused(f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected tags")
    only(block, _BLOCKS[kind], f"{where}.{kind}.", EXTRA)
    if kind == "text" and not block["text"]:
        raise Refused(f"{where}: text content blocks must be non-empty")
    if kind == "text" and not block["text"].strip():
        raise Refused(f"{where}: text content blocks must contain non-whitespace text")
    if kind == "tool_use" and not (isinstance(block.get("input"), dict) and _ID.match(block.get("id", ""))):
        raise Refused(f"{where}.tool_use.input: Input should be a valid dictionary")


def _check_pairs(messages: list[Any], n: int, seen: set[str]) -> None:
    message = messages[n]
    calls = [b["id"] for b in message["content"] if b["type"] == "tool_use"]
    for call in calls:
        if call in seen:
            raise Refused(f"messages.{n}: `tool_use` ids must be unique")
        seen.add(call)
    following = messages[n + 1]["content"] if n + 1 < len(messages) else []
    answered = [b["tool_use_id"] for b in following if isinstance(b, dict) and b.get("type") == "tool_result"]
    if missing := [c for c in calls if c not in answered]:
        raise Refused(
            f"messages.{n}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
            "next message."
        )
    own = [b["tool_use_id"] for b in message["content"] if b["type"] == "tool_result"]
    before = [b["id"] for b in messages[n - 1]["content"] if b["type"] == "tool_use"] if n else []
    for i, call in enumerate(own):
        if call not in before:
            raise Refused(
                f"messages.{n}.content.{i}: unexpected `tool_use_id` found in `tool_result` blocks: {call}. Each "
                "`tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
    kinds = [b["type"] for b in message["content"]]
    if own and kinds[: len(own)] != ["tool_result"] * len(own):
        raise Refused(f"messages.{n}: `tool_result` blocks must come first in the content")
