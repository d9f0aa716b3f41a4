"""Conversations as input items of OpenAI's Responses API, used without server-side state."""

from __future__ import annotations

from collections.abc import Sequence

from agent_tui.models.messages import (
    AttachmentPart,
    Message,
    Metadata,
    ReasoningPart,
    SummaryPart,
    TextPart,
    ToolCallPart,
)
from agent_tui.models.requests import SentMessage
from agent_tui.providers.wire.replay import ReplayPlan, is_spoken
from agent_tui.providers.wire.text import (
    EMPTY_USER,
    Answer,
    Result,
    attachment_block,
    entries,
    object_arguments,
)
from agent_tui.text.clean import encodable

_REASONING_FIELDS = ("type", "id", "summary", "encrypted_content", "content")


def response_input(items: Sequence[SentMessage], plan: ReplayPlan, images: bool | None) -> list[Metadata]:
    """All input items. A reasoning item goes back as it came; ids of the items it belongs to only together with it,
    because the API refuses either without the other."""
    found: list[Metadata] = []
    for entry in entries(items, ids="plain"):
        if isinstance(entry, Result):
            found.append(_output(entry, images))
        elif isinstance(entry, Answer):
            found.extend(_answer(entry, plan))
        else:
            found.append({"role": "user", "content": _user_content(entry, images)})
    return found


def _answer(answer: Answer, plan: ReplayPlan) -> list[Metadata]:
    message = answer.message
    thoughts = [n for n, part in enumerate(message.parts) if isinstance(part, ReasoningPart)]
    whole = plan.same_origin(message.id) and all(plan.resent(message.id, n) for n in thoughts)
    items: list[Metadata] = []
    for n, part in enumerate(message.parts):
        metadata = (part.provider_metadata or {}) if whole else {}
        if isinstance(part, ReasoningPart):
            if plan.resent(message.id, n):
                stored = part.provider_metadata or {}
                items.append({k: stored[k] for k in _REASONING_FIELDS if k in stored and (k != "content" or stored[k])})
                items[-1].setdefault("summary", [])
        elif not is_spoken(part):
            continue
        elif isinstance(part, TextPart):
            items.append(_text(part, metadata))
        elif isinstance(part, ToolCallPart):
            call: Metadata = {
                "type": "function_call",
                "call_id": answer.calls[n].id,
                "name": part.name,
                "arguments": encodable(part.arguments) or object_arguments(""),
            }
            if metadata.get("id"):
                call["id"] = metadata["id"]
            items.append(call)
    return items


def _text(part: TextPart, metadata: Metadata) -> Metadata:
    item: Metadata = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": encodable(part.text), "annotations": []}],
    }
    if metadata.get("id"):
        item["id"] = metadata["id"]
        item["status"] = metadata.get("status") or "completed"
    if metadata.get("phase"):
        item["phase"] = metadata["phase"]
    return item


def _output(result: Result, images: bool | None) -> Metadata:
    output: str | list[Metadata] = result.text
    if result.attachments:
        blocks = [_block(attachment_block(part, images)) for part in result.attachments]
        output = [{"type": "input_text", "text": result.text}, *blocks]
    return {"type": "function_call_output", "call_id": result.call.id, "output": output}


def _user_content(message: Message, images: bool | None) -> list[Metadata]:
    blocks: list[Metadata] = []
    for part in message.parts:
        if isinstance(part, AttachmentPart):
            blocks.append(_block(attachment_block(part, images)))
        elif isinstance(part, (TextPart, SummaryPart)) and part.text:
            blocks.append({"type": "input_text", "text": encodable(part.text)})
    return blocks or [{"type": "input_text", "text": EMPTY_USER}]


def _block(block: Metadata) -> Metadata:
    """The Responses form of a chat content block."""
    if block["type"] == "image_url":
        return {"type": "input_image", "image_url": block["image_url"]["url"]}
    if block["type"] == "file":
        return {"type": "input_file", **block["file"]}
    return {"type": "input_text", "text": block["text"]}
