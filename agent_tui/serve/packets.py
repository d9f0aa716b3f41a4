"""What passes between the served chat and the server: Textual's packets for a screen that is elsewhere.

A packet is a letter, four bytes of length (big-endian) and so much payload: ``D`` is what a terminal would get or send,
``M`` a JSON object with a ``type``.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

BEGIN = b"__GANGLION__\n"
"""The line after which packets come; what stands before it is no packet."""

MOST = 1 << 25
"""Bytes of a packet: a frame of the largest screen is far below it."""


def data(payload: bytes) -> bytes:
    """What was typed."""
    return b"D%s%s" % (len(payload).to_bytes(4, "big"), payload)


def meta(kind: str, **facts: Any) -> bytes:
    """Something said about the screen."""
    payload = json.dumps({"type": kind, **facts}).encode()
    return b"M%s%s" % (len(payload).to_bytes(4, "big"), payload)


async def packet(stream: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """The next packet: letter and payload. Raises IncompleteReadError at the end, ValueError for what is none."""
    head = await stream.readexactly(5)
    size = int.from_bytes(head[1:], "big")
    if head[:1] not in b"DMP" or size > MOST:
        raise ValueError(f"no packet: {head!r}")
    return head[:1], await stream.readexactly(size)


def facts_of(payload: bytes) -> dict[str, Any]:
    """The object of an ``M`` packet; empty for what is none."""
    try:
        found = json.loads(payload)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
