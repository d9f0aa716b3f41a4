"""``--input-format stream-json``: messages that a program sends, one JSON object a line of standard input.

``{"type": "user", "text": …}`` or ``{"type": "user", "message": {"role": "user", "content": …}}``, where the content is
a text or a list of blocks (``text``, and ``image`` with a base64 source); ``{"type": "interrupt"}`` ends the turn.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import sys
import threading
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from agent_tui.errors import ConfigError
from agent_tui.models.messages import AttachmentPart, image_type

MAX_LINE = 64 * 1024 * 1024
"""Bytes of one message: several images fit in it."""


@dataclass(slots=True, frozen=True)
class UserMessage:
    text: str
    attachments: list[AttachmentPart] = field(default_factory=list)


@dataclass(slots=True, frozen=True)
class Interrupt:
    """Ends the turn that runs; the next message begins another."""


def own_input() -> BinaryIO:
    """Standard input for a thread that may still be reading at the end of the program: Python ends itself with SIGABRT
    where another thread holds its own reader of it."""
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except (OSError, ValueError):
        return sys.stdin.buffer


async def incoming(stream: BinaryIO) -> AsyncGenerator[UserMessage | Interrupt, None]:
    """What comes in, in order, as it comes. Raises ConfigError for a line that is no message, naming it."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes | OSError] = asyncio.Queue(maxsize=64)

    def read() -> None:
        # A thread of its own, which nobody waits for: a read that blocks must not keep the program from ending.
        line: bytes | OSError = b"\n"
        while line and not isinstance(line, OSError):
            try:
                line = stream.readline(MAX_LINE + 1)
            except OSError as error:
                line = error
            try:
                asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()
            except (RuntimeError, asyncio.CancelledError):
                return

    threading.Thread(target=read, name="standard-input", daemon=True).start()
    number = 0
    while True:
        line = await lines.get()
        if isinstance(line, OSError):
            raise ConfigError(f"Standard input cannot be read: {line.strerror or line}.")
        if not line:
            return
        number += 1
        if line.strip():
            try:
                yield parse(line)
            except ValueError as error:
                raise ConfigError(f"Standard input, line {number}: {error}.") from None


def parse(line: bytes) -> UserMessage | Interrupt:
    """One line. Raises ``ValueError`` that says what is wrong with it."""
    if len(line) > MAX_LINE:
        raise ValueError(f"longer than {MAX_LINE // 1024**2} MB")
    try:
        entry = json.loads(line.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        raise ValueError("not JSON") from None
    if not isinstance(entry, dict):
        raise ValueError("not a JSON object")
    if entry.get("type") == "interrupt":
        return Interrupt()
    if entry.get("type") != "user":
        raise ValueError('its type is neither "user" nor "interrupt"')
    found = _user_message(entry)
    if not found.text.strip() and not found.attachments:
        raise ValueError("a user message says nothing")
    return found


def _user_message(entry: dict[str, Any]) -> UserMessage:
    if isinstance(text := entry.get("text"), str):
        return UserMessage(text)
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return UserMessage(content)
    if not isinstance(content, list):
        raise ValueError('a user message has a "text", or a "message" with "content"')
    texts: list[str] = []
    images: list[AttachmentPart] = []
    for block in content:
        if not isinstance(block, dict):
            raise ValueError("a block of its content is no object")
        if block.get("type") == "text" and isinstance(block.get("text"), str):
            texts.append(block["text"])
        elif block.get("type") == "image":
            images.append(_image(block.get("source"), len(images) + 1))
        else:
            raise ValueError(f"a block of its content is of type {block.get('type')!r}; text and image are known")
    return UserMessage("\n\n".join(texts), images)


def _image(source: Any, number: int) -> AttachmentPart:
    data = source.get("data") if isinstance(source, dict) and source.get("type") == "base64" else None
    if not isinstance(data, str):
        raise ValueError("an image needs a source of type base64 with data")
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("the data of an image is not base64") from None
    kind = image_type(raw[:16])
    if kind is None:
        raise ValueError("the data of an image is no PNG, JPEG, GIF or WebP")
    return AttachmentPart(f"image {number}", kind, data=data)
