"""Images that a model does not take: each is sent as a line of text that says why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent_tui.models.image_headers import base64_size
from agent_tui.models.messages import AttachmentPart
from agent_tui.models.requests import Media, SentMessage
from agent_tui.providers.dialects.conversation import NOT_SENT
from agent_tui.providers.dialects.record import ImageLimits
from agent_tui.text.numbers import plural


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
    kept: list[tuple[int, int, str]] = []
    total = 0
    for index, item in enumerate(items):
        for number, part in enumerate(item.message.parts):
            if not isinstance(part, AttachmentPart) or not part.is_image:
                continue
            data = part.data or ""
            if (problem := limits.problem(data, part.media_type)) is not None:
                lines[index, number] = problem
                continue
            kept.append((index, number, data))
            total += len(data)
            if _over(limits, len(kept), total, 1.0):
                why = _too_many(limits, len(kept))
                while len(kept) > 1 and _over(limits, len(kept), total, 0.9):
                    oldest, place, gone = kept.pop(0)
                    lines[oldest, place] = why
                    total -= len(gone)
    if limits.many is not None and limits.many_side is not None and len(kept) > limits.many:
        for index, number, data in kept:
            found = base64_size(data)
            if found is not None and max(found) > limits.many_side:
                lines[index, number] = (
                    f"{found[0]:,}×{found[1]:,} pixels are too many for this model in a request with "
                    f"more than {limits.many} images"
                )
    return [_replaced(item, n, lines) for n, item in enumerate(items)] if lines else list(items)


def within_bytes(items: Sequence[SentMessage], most: int) -> list[SentMessage]:
    """The conversation with a line of text in the place of pictures and files that are too many bytes for a server: all
    that are larger than ``most`` alone, then the oldest until the others are no more than that. Pure."""
    shown = [
        (index, number, len(part.data))
        for index, item in enumerate(items)
        for number, part in enumerate(item.message.parts)
        if isinstance(part, AttachmentPart) and part.data
    ]
    lines: dict[tuple[int, int], str] = {}
    left = most
    for index, number, length in reversed(shown):
        if length > left:
            why = "larger than this server takes" if length > most else "too large for this server with the newer ones"
            lines[index, number] = why
        if length <= most:
            left -= length
    return [_replaced(item, n, lines) for n, item in enumerate(items)] if lines else list(items)


def media_parts(items: Sequence[SentMessage], media: Media) -> list[AttachmentPart]:
    """The pictures and files of a conversation that go out as they are, the oldest first."""
    parts = (part for item in items for part in item.message.parts)
    return [part for part in parts if isinstance(part, AttachmentPart) and media.takes(part)]


def media_bytes(items: Sequence[SentMessage], media: Media) -> int:
    """The bytes of these, in base64."""
    return sum(len(part.data or "") for part in media_parts(items, media))


def _over(limits: ImageLimits, count: int, total: int, share: float) -> bool:
    """Returns whether so many images, of so many bytes, are more than a share of what is taken."""
    if limits.count is not None and count > limits.count - int(limits.count * (1 - share)):
        return True
    return limits.total is not None and total > limits.total * share


def _too_many(limits: ImageLimits, count: int) -> str:
    if limits.count is not None and count > limits.count:
        return f"this model takes at most {plural(limits.count, 'image')} per request, and there are newer ones"
    return "too large for this model together with the newer images"


def _replaced(item: SentMessage, index: int, lines: dict[tuple[int, int], str]) -> SentMessage:
    parts = list(item.message.parts)
    for number, part in enumerate(parts):
        if isinstance(part, AttachmentPart) and (why := lines.get((index, number))) is not None:
            what = "image" if part.is_image else "file"
            parts[number] = AttachmentPart(part.name, NOT_SENT, text=f"[{what} {part.name}: {why}; not sent]")
    return item if parts == item.message.parts else replace(item, message=replace(item.message, parts=parts))
