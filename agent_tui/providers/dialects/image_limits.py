"""What providers take of images, and which images of a conversation are sent to a model that takes less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent_tui.models.image_header import base64_size
from agent_tui.models.messages import AttachmentPart, Part
from agent_tui.models.requests import SentMessage
from agent_tui.text.numbers import plural, size

NOT_SENT = "text/x-not-sent"
"""Media type of the words that stand for an image which is not sent."""

ALL_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_MEBI = 1024 * 1024


@dataclass(slots=True, frozen=True)
class ImageLimits:
    """What one provider takes; None: it says no limit.

    ``size``: bytes of one image after base64. ``side``: pixels of its longer side, ``pixels`` of the whole image.
    ``count``: images in one request; with more than ``many`` of them the longer side may have ``many_side`` pixels.
    ``total``: bytes of all images of a request after base64; where the limit is of the whole request, about a tenth
    of it is left for the rest. ``types``: media types it reads.
    """

    size: int | None = 5 * _MEBI
    side: int | None = 8_000
    pixels: int | None = None
    count: int | None = 100
    many: int | None = None
    many_side: int | None = None
    total: int | None = 18_000_000
    types: frozenset[str] = ALL_TYPES

    @property
    def best_side(self) -> int | None:
        """The longest side that fits whatever is added later."""
        return _least(self.side, self.many_side)

    def problem(self, data: str, media_type: str) -> str | None:
        """Why one base64 image is not taken, as a part of a sentence; None when it is."""
        if media_type not in self.types:
            return f"{media_type} is not read by this model"
        if self.size is not None and len(data) > self.size:
            return f"{size(len(data) * 3 // 4)} is more than this model takes"
        found = base64_size(data) if self.side is not None or self.pixels is not None else None
        if found is not None and not self.holds(*found):
            return f"{found[0]:,}×{found[1]:,} pixels are more than this model takes"
        return None

    def holds(self, width: int, height: int) -> bool:
        """Whether an image of this many pixels is taken among few."""
        if self.side is not None and max(width, height) > self.side:
            return False
        return self.pixels is None or width * height <= self.pixels

    def with_(self, other: ImageLimits) -> ImageLimits:
        """The stricter of both in everything."""
        return ImageLimits(
            _least(self.size, other.size),
            _least(self.side, other.side),
            _least(self.pixels, other.pixels),
            _least(self.count, other.count),
            _least(self.many, other.many),
            _least(self.many_side, other.many_side),
            _least(self.total, other.total),
            self.types & other.types,
        )


USUAL = ImageLimits()
"""For providers that say nothing: what all of the large ones take."""

NONE = ImageLimits(20_000_000, None, None, None, None, None, None)
"""Programs on the user's own machine, which scale for themselves and name no limits: only what would be a burden to
store and send with every step is kept smaller."""

# docs.claude.com/en/docs/build-with-claude/vision: 5 MB an image (the refusal counts the base64 text against
# 5 242 880), 8 000 px, 100 images, above 20 images 2 000 px; 32 MB a request.
CLAUDE = ImageLimits(5 * _MEBI, 8_000, count=100, many=20, many_side=2_000, total=28_000_000)
# platform.openai.com/docs/guides/images-vision: 20 MB an image, 500 images, 50 MB of images a request.
OPENAI = ImageLimits(20_000_000, None, count=500, total=45_000_000)
# learn.microsoft.com/azure/ai-services/openai/quotas-limits: 50 images in the messages.
AZURE = replace(OPENAI, count=50)
# ai.google.dev/gemini-api/docs/image-understanding: 20 MB a request with inline data, 3 600 images.
GEMINI = ImageLimits(18_000_000, None, count=3_600, total=18_000_000)
# cloud.google.com/vertex-ai/generative-ai/docs/multimodal/image-understanding: 7 MB an inline file.
VERTEX = ImageLimits(7_000_000, None, count=3_000, total=18_000_000)
# docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html: 20 images, 3.75 MB before base64, 8 000 px.
BEDROCK = ImageLimits(5_000_000, 8_000, count=20)
# console.groq.com/docs/vision: 4 MB a request with base64 images, 33 177 600 pixels, 5 images.
GROQ = ImageLimits(3_600_000, None, 33_177_600, 5, total=3_600_000)
# docs.mistral.ai/capabilities/vision: 10 MB an image, 8 images.
MISTRAL = ImageLimits(10_000_000, None, count=8, total=45_000_000)
# docs.x.ai/docs/guides/image-understanding: 20 MiB, no limit of their number, JPEG and PNG only.
XAI = ImageLimits(20 * _MEBI, None, count=None, total=45_000_000, types=frozenset({"image/png", "image/jpeg"}))
# docs.cohere.com/docs/image-inputs: 20 images, 20 MB together.
COHERE = ImageLimits(18_000_000, None, count=20)


def not_taken(items: Sequence[SentMessage], limits: ImageLimits) -> int:
    """How many images of a conversation would be told in a line."""
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
    """Whether so many images, of so many bytes, are more than a share of what is taken."""
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


def _least(one: int | None, other: int | None) -> int | None:
    return min((n for n in (one, other) if n is not None), default=None)
