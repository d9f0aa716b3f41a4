"""Rough token costs of images and files, by each provider's documented rule."""

from __future__ import annotations

import base64
import binascii
import math
import re
from functools import lru_cache

from agent_tui.models.image_header import base64_size
from agent_tui.models.messages import AttachmentPart
from agent_tui.providers.catalog import family_record

DEFAULT_SIDE = 1_024
"""Side in pixels assumed for an image whose header cannot be read."""

_PAGE = re.compile(rb"/Type\s*/Page(?![s\w])")


def attachment_tokens(part: AttachmentPart, family: str) -> int:
    """Tokens of an attachment sent as data. Rough by nature: providers rescale before they count."""
    data = part.data or ""
    if part.media_type.startswith("image/"):
        width, height = image_size(data)
        return image_tokens(width, height, family)
    if part.media_type == "application/pdf":
        return pdf_pages(data) * family_record(family).pdf_page
    return math.ceil(len(data) * 3 / 4 / 4)


def image_tokens(width: int, height: int, family: str) -> int:
    """Tokens of an image of this many pixels.

    Claude: width × height / 750 after fitting into 1 568 px a side (at most about 1 600). Gemini: 258 up to 384 px a
    side, else 258 for each tile of 768 px. Others as OpenAI's high detail: fit into 2 048 px, then the shorter side
    to 768 px, 85 + 170 for each tile of 512 px.
    """
    width, height = max(1, width), max(1, height)
    rule = family_record(family).images
    if rule == "area":
        scale = min(1.0, 1_568 / max(width, height))
        return max(1, min(1_600, math.ceil(width * scale * height * scale / 750)))
    if rule == "tiles of 768":
        if max(width, height) <= 384:
            return 258
        return 258 * math.ceil(width / 768) * math.ceil(height / 768)
    scale = min(1.0, 2_048 / max(width, height))
    scale *= min(1.0, 768 / (min(width, height) * scale))
    return 85 + 170 * math.ceil(width * scale / 512) * math.ceil(height * scale / 512)


def image_size(data: str) -> tuple[int, int]:
    """Width and height in pixels from the header of a base64 PNG, GIF, WebP or JPEG."""
    return base64_size(data) or (DEFAULT_SIDE, DEFAULT_SIDE)


@lru_cache(maxsize=64)
def pdf_pages(data: str) -> int:
    """Pages of a base64 PDF, counted by its page objects; at least 1 (compressed object tables hide them)."""
    return max(1, len(_PAGE.findall(_decode(data))))


def _decode(data: str) -> bytes:
    try:
        return base64.b64decode(data[: len(data) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""
