"""What a call's body starts from: the arguments that ``wire.request.build_call`` made, sorted by where they go."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from agent_tui.models.messages import INTERRUPTED_RESULT, AttachmentPart, Message, Metadata, SummaryPart, ToolCallPart
from agent_tui.models.requests import SentMessage
from agent_tui.providers.dialects.image_limits import NOT_SENT
from agent_tui.providers.dialects.record import CallIds
from agent_tui.text.clean import encodable

_OURS = frozenset(
    {"model", "messages", "tools", "stream", "stream_options", "drop_params", "max_retries", "num_retries"}
    | {
        "extra_body",
        "extra_headers",
        "api_key",
        "api_base",
        "base_url",
        "timeout",
        "api_version",
        "custom_llm_provider",
    }
)
"""Arguments of a call that are not fields of its body, or have a place of their own."""


@dataclass(slots=True)
class Fields:
    """``rest`` are the body's other fields, what the user configured in ``extra`` among them; ``extra_body`` wins over
    everything, as in LiteLLM."""

    messages: list[Metadata]
    tools: list[Metadata]
    rest: Metadata
    extra_body: Metadata
    extra_headers: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def of(kwargs: Metadata) -> Fields:
        headers = kwargs.get("extra_headers") or {}
        return Fields(
            list(kwargs.get("messages") or ()),
            list(kwargs.get("tools") or ()),
            {name: value for name, value in kwargs.items() if name not in _OURS},
            dict(kwargs.get("extra_body") or {}),
            {str(name): str(value) for name, value in headers.items()},
        )


def split_data_url(url: str) -> tuple[str, str]:
    """Media type and base64 data of ``data:TYPE;base64,DATA``. Raises ValueError for any other URL."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        raise ValueError("an attachment is no data URL")
    return head.removeprefix("data:").removesuffix(";base64"), data


EMPTY_USER = "(empty message)"
EMPTY_RESULT = "(no output)"
_ID_FORMS: Mapping[CallIds, re.Pattern[str]] = MappingProxyType(
    {"plain": re.compile(r"[a-zA-Z0-9_-]{1,64}"), "short": re.compile(r"[a-zA-Z0-9]{9}")}
)


def object_arguments(raw: str) -> str:
    """Arguments as the text of a JSON object, byte for byte where they are one. Several providers parse them and
    refuse the whole conversation over a call that a model once wrote wrongly."""
    raw = encodable(raw)
    if not raw.strip():
        return "{}"
    try:
        value = json.loads(raw)
    except ValueError:
        value = None
    if isinstance(value, dict):
        return raw
    return json.dumps({"invalid_arguments": raw})


@dataclass(slots=True, frozen=True)
class Call:
    """A tool call with the id it has on the wire."""

    part: ToolCallPart
    id: str


@dataclass(slots=True, frozen=True)
class Result:
    """A tool result with its call's wire id; ``message`` None for a call that was never answered."""

    call: Call
    message: Message | None

    @property
    def text(self) -> str:
        part = self.message.tool_result if self.message is not None else None
        text = encodable(part.text) if part is not None else INTERRUPTED_RESULT
        return text if text.strip() else EMPTY_RESULT

    @property
    def attachments(self) -> list[AttachmentPart]:
        parts = self.message.parts if self.message is not None else []
        return [part for part in parts if isinstance(part, AttachmentPart)]


@dataclass(slots=True, frozen=True)
class Answer:
    """An assistant message with the wire ids of its calls, by part index."""

    message: Message
    calls: dict[int, Call]


Entry = Message | Answer | Result


def entries(items: Sequence[SentMessage], *, ids: CallIds = "any") -> Iterator[Entry]:
    """The conversation with every call directly followed by its results, in the order of the calls: answers that are
    missing are made up, results nobody asked for are left out. Ids are unique and in a form the provider takes."""
    used: set[str] = set()
    index = 0
    while index < len(items):
        message = items[index].message
        index += 1
        if message.role == "user":
            yield message
        if message.role != "assistant":
            continue
        calls = {
            n: Call(part, _wire_id(part.call_id, ids, used))
            for n, part in enumerate(message.parts)
            if isinstance(part, ToolCallPart)
        }
        yield Answer(message, calls)
        results: list[Message] = []
        while index < len(items) and items[index].message.role == "tool":
            results.append(items[index].message)
            index += 1
        for call in calls.values():
            found = next((m for m in results if (r := m.tool_result) and r.call_id == call.part.call_id), None)
            if found is not None:
                results.remove(found)
            yield Result(call, found)


def _wire_id(call_id: str, ids: CallIds, used: set[str]) -> str:
    pattern = _ID_FORMS.get(ids)
    wire = encodable(call_id)
    if not wire or (pattern is not None and pattern.fullmatch(wire) is None) or wire in used:
        salt = 0
        while True:
            digest = hashlib.blake2b(f"{call_id}\n{salt}".encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
            wire = digest[:9] if ids == "short" else f"call_{digest}"
            if wire not in used:
                break
            salt += 1
    used.add(wire)
    return wire


def is_summary(message: Message) -> bool:
    return any(isinstance(part, SummaryPart) for part in message.parts)


def attachment_block(part: AttachmentPart, images: bool | None) -> Metadata:
    """A content block of the chat format: text files as text, images and PDF files as data, others as a line."""
    if part.media_type == NOT_SENT:
        return {"type": "text", "text": encodable(part.text or "")}
    if part.text is not None:
        return {"type": "text", "text": f'<file name="{encodable(part.name)}">\n{encodable(part.text)}\n</file>'}
    data = f"data:{part.media_type};base64,{part.data or ''}"
    if part.media_type.startswith("image/") and images is not False and part.data:
        return {"type": "image_url", "image_url": {"url": data}}
    if part.media_type == "application/pdf" and images is not False and part.data:
        return {"type": "file", "file": {"filename": encodable(part.name), "file_data": data}}
    return {"type": "text", "text": f"[{encodable(part.name)} ({part.media_type}) cannot be read by this model]"}
