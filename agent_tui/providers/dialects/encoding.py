"""Parts that the encoders share: which images are sent, calls with their results, what of old reasoning goes back, how
much thinking is asked for."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType

from agent_tui.models.messages import (
    INTERRUPTED_RESULT,
    AttachmentPart,
    Message,
    Metadata,
    Part,
    SummaryPart,
    TextPart,
    ToolCallPart,
    base64_size,
)
from agent_tui.models.requests import Effort, SentMessage
from agent_tui.providers.dialects.record import CallIds, Fields, ImageLimits
from agent_tui.records import dataclass
from agent_tui.text.clean import encodable
from agent_tui.text.numbers import plural

NOT_SENT = "text/x-not-sent"
"""Media type of the words that stand for an image which is not sent."""


_NOT_OF_A_BODY = frozenset(
    {"model", "messages", "tools", "stream", "stream_options", "drop_params", "max_retries", "num_retries"}
    | {"extra_body", "extra_headers", "api_key", "api_base", "base_url", "timeout", "api_version"}
    | {"custom_llm_provider"}
)
"""Arguments of a call that are not fields of its body, or have a place of their own."""


def fields_of(kwargs: Metadata) -> Fields:
    """Returns the arguments of a call, sorted."""
    headers = kwargs.get("extra_headers") or {}
    return Fields(
        list(kwargs.get("messages") or ()),
        list(kwargs.get("tools") or ()),
        {name: value for name, value in kwargs.items() if name not in _NOT_OF_A_BODY},
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


def not_taken(items: Sequence[SentMessage], limits: ImageLimits) -> int:
    """Returns how many images of a conversation would not be sent, but told in a line of text."""
    sent = sendable(items, limits)
    return sum(part.media_type == NOT_SENT for item in sent for part in item.message.parts if part.type == "attachment")


def sendable(items: Sequence[SentMessage], limits: ImageLimits) -> list[SentMessage]:
    """The conversation with a line of text in the place of each image that the model does not take.

    Where there are too many the oldest go first, a tenth of what is allowed at a time, so that the request does not
    begin differently with every image that is added. Pure: equal conversations give equal ones, and no stored message
    is changed.
    """
    lines: dict[tuple[int, int], str] = {}
    kept: list[tuple[int, int]] = []
    sizes: list[int] = []
    total = 0
    for index, number, part in _images(items):
        data = part.data or ""
        if (problem := limits.problem(data, part.media_type)) is not None:
            lines[index, number] = problem
            continue
        kept.append((index, number))
        sizes.append(len(data))
        total += len(data)
        if not _over(limits, len(kept), total, 1.0):
            continue
        why = _too_many(limits, len(kept))
        while len(kept) > 1 and _over(limits, len(kept), total, 0.9):
            lines[kept.pop(0)] = why
            total -= sizes.pop(0)
    if limits.many is not None and limits.many_side is not None and len(kept) > limits.many:
        for index, number in kept:
            image = items[index].message.parts[number]
            found = base64_size(image.data or "") if isinstance(image, AttachmentPart) else None
            if found is not None and max(found) > limits.many_side:
                lines[index, number] = (
                    f"{found[0]:,}×{found[1]:,} pixels are more than this model takes of an image among "
                    f"more than {limits.many}"
                )
    if not lines:
        return list(items)
    changed = {index for index, _ in lines}
    return [_replaced(item, n, lines) if n in changed else item for n, item in enumerate(items)]


def _images(items: Sequence[SentMessage]) -> list[tuple[int, int, AttachmentPart]]:
    return [
        (index, number, part)
        for index, item in enumerate(items)
        for number, part in enumerate(item.message.parts)
        if isinstance(part, AttachmentPart) and part.is_image
    ]


def _over(limits: ImageLimits, count: int, total: int, share: float) -> bool:
    """Returns whether so many images, of so many bytes, are more than a share of what is taken."""
    if limits.count is not None and count > limits.count - int(limits.count * (1 - share)):
        return True
    return limits.total is not None and total > limits.total * share


def _too_many(limits: ImageLimits, count: int) -> str:
    if limits.count is not None and count > limits.count:
        return f"this model takes at most {plural(limits.count, 'image')} at once, and newer ones are there"
    return "together with the newer ones it is more than this model takes"


def _replaced(item: SentMessage, index: int, lines: dict[tuple[int, int], str]) -> SentMessage:
    parts: list[Part] = []
    for number, part in enumerate(item.message.parts):
        why = lines.get((index, number))
        if why is not None and isinstance(part, AttachmentPart):
            part = AttachmentPart(part.name, NOT_SENT, text=f"[image {part.name}: {why}; not sent]")
        parts.append(part)
    return replace(item, message=replace(item.message, parts=parts))


@dataclass(slots=True, frozen=True)
class ReplayStatus:
    """``resent``: goes into the next request. ``counted``: share of it (0–1) in the next input. ``reason``: display."""

    resent: bool
    counted: float
    reason: str


@dataclass(slots=True)
class ReplayPlan:
    """The rule applied to one conversation. ``thinking_off`` is the note for the user when this step has to run
    without thinking, because its open tool loop lost the blocks that the provider insists on."""

    thinking_off: str | None = None
    parts: dict[str, dict[int, ReplayStatus]] = field(default_factory=dict)
    messages: dict[str, ReplayStatus] = field(default_factory=dict)
    foreign: set[str] = field(default_factory=set)

    def status(self, message_id: str, part_index: int) -> ReplayStatus | None:
        """Of one reasoning part; None where there is none or the message is not in the view."""
        return self.parts.get(message_id, {}).get(part_index)

    def message_status(self, message_id: str) -> ReplayStatus | None:
        """Of all reasoning of an answer, also when it has tokens but no part. None for what is not in the view."""
        return self.messages.get(message_id)

    def counted(self, message_id: str) -> float:
        """Share of the reasoning tokens of that answer's step that the next input contains."""
        status = self.messages.get(message_id)
        return status.counted if status else 0.0

    def same_origin(self, message_id: str) -> bool:
        """Returns whether provider metadata of that answer may be sent: it came from the same provider, API and
        model."""
        return message_id in self.messages and message_id not in self.foreign

    def resent(self, message_id: str, part_index: int) -> bool:
        status = self.status(message_id, part_index)
        return status is not None and status.resent

    def treatment(self, message_id: str) -> tuple[bool, tuple[int, ...]]:
        """Returns what of an answer goes out: whether the provider's metadata do, and which reasoning parts. Equal
        answers that are treated alike are the same on the wire."""
        parts = self.parts.get(message_id)
        kept = tuple(n for n, status in parts.items() if status.resent) if parts else ()
        return message_id not in self.foreign, kept


def is_spoken(part: Part) -> bool:
    """Returns whether a part goes out as an item that reasoning may stand before. A text without a character does not:
    the reasoning before it would stand alone."""
    return bool(part.text) if isinstance(part, TextPart) else isinstance(part, ToolCallPart)


# Tokens of thinking that are asked for where a provider wants a number.
BUDGETS: dict[Effort, int] = {"off": 0, "low": 2_048, "medium": 8_192, "high": 24_576}
# The smallest budget that is accepted.
MIN_BUDGET = 1_024
_LADDER = (MIN_BUDGET, 2_048, 4_096, 8_192, 16_384, 24_576)
LEAST_KEPT, MOST_KEPT = 512, 4_096
"""Tokens of the output that thinking leaves for the answer: a quarter of it within these bounds."""

_RESERVE_SHARE, _RESERVE_MOST = 0.25, 32_000
"""The reserve for the answer: what is asked for as output when the window is nearly full, less a margin."""


@dataclass(slots=True, frozen=True)
class Thinking:
    """Arguments for LiteLLM, whether thinking is off, and what the user should be told."""

    kwargs: Metadata = field(default_factory=dict)
    off: bool = False
    notes: tuple[str, ...] = ()


def budget_below(effort: Effort, max_output: int | None, window: int | None = None) -> int:
    """Thinking tokens for ``effort`` that leave at least a quarter of the output, or ``MOST_KEPT``, for the answer; 0
    when there is no room.

    One of ``_LADDER``, and chosen by the output that is still asked for when the ``window`` is nearly full, not by
    what is free now: the messages are lost from the cache whenever the budget is another one.
    """
    want = BUDGETS[effort]
    if max_output is None:
        return want
    full = max_output
    if window:
        reserve = min(int(window * _RESERVE_SHARE), _RESERVE_MOST)
        full = min(max_output, reserve - max(reserve // 16, window // 200))
    budget = _step_below(min(want, _room(full)))
    if budget:
        return budget
    return MIN_BUDGET if _room(max_output) >= MIN_BUDGET else 0


def _room(output: int) -> int:
    return output - max(LEAST_KEPT, min(output // 4, MOST_KEPT))


def _step_below(tokens: int) -> int:
    return max((step for step in _LADDER if step <= tokens), default=0)


NO_ROOM = "thinking off for one step: no room for it below the maximum output"
