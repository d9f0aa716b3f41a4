"""The kind and size of pictures, as their first bytes say."""

from __future__ import annotations

import base64
import binascii
import struct

_MAGIC = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
_HEADS = (64, 8_192, 262_144)
"""Bytes that are looked through for the size, one after the other: every format but JPEG says it at once, and cameras
put previews before it."""


def image_type(start: bytes) -> str | None:
    """The media type of an image that models take, told by its first bytes; None for anything else."""
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), None)


def base64_type(data: str) -> str | None:
    """The same of a base64 image."""
    return image_type(decoded(data[:32]))


def base64_size(data: str) -> tuple[int, int] | None:
    """Width and height in pixels of a base64 image, as its header says; None where that cannot be read."""
    for length in _HEADS:
        head = decoded(data[: length // 3 * 4])
        if (size := pixel_size(head)) is not None or head[:2] != b"\xff\xd8" or len(head) < length // 3 * 3:
            return size
    return None


def pixel_size(head: bytes) -> tuple[int, int] | None:
    """Width and height in pixels from the beginning of a PNG, GIF, WebP or JPEG; None where that cannot be read."""
    size: tuple[int, int] | None = None
    if head[:8] == b"\x89PNG\r\n\x1a\n":
        size = struct.unpack(">II", head[16:24]) if len(head) >= 24 else None
    elif head[:6] in (b"GIF87a", b"GIF89a"):
        size = struct.unpack("<HH", head[6:10]) if len(head) >= 10 else None
    elif head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        size = _webp(head)
    elif head[:2] == b"\xff\xd8":
        size = _jpeg(head)
    return size if size is not None and min(size) > 0 else None


def _webp(head: bytes) -> tuple[int, int] | None:
    if head[12:16] == b"VP8X" and len(head) >= 30:
        return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    if head[12:16] == b"VP8 " and len(head) >= 30:
        width, height = struct.unpack("<HH", head[26:30])
        return width & 0x3FFF, height & 0x3FFF
    if head[12:16] == b"VP8L" and len(head) >= 25:
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return None


def _jpeg(head: bytes) -> tuple[int, int] | None:
    position = 2
    while position + 9 < len(head) and head[position] == 0xFF:
        marker, length = head[position + 1], int.from_bytes(head[position + 2 : position + 4], "big")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", head[position + 5 : position + 9])
            return width, height
        position += 2 + length
    return None


def decoded(data: str) -> bytes:
    """The bytes of base64 text, whose end may be cut off; empty where it is none."""
    try:
        return base64.b64decode(data[: len(data) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""
