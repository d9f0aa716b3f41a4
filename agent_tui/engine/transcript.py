"""The transcript that hooks are told the path of: the conversation as lines of JSON, in the form of Claude Code."""

from __future__ import annotations

import datetime
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_tui import __version__
from agent_tui.errors import ToolError
from agent_tui.models.messages import AttachmentPart, Message, Metadata, summary_text
from agent_tui.paths import private_dir
from agent_tui.tools.arguments import parse_arguments
from agent_tui.tools.hooks import told_call, tool_names

NAME = "transcript.jsonl"


class HookTranscript:
    """Keeps the file of a session up to date: written when its first hook runs, from then on messages are appended.
    What a rewind leaves stays in it, as a branch: each line names the one it follows."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._path: Path | None = None
        self._written: set[str] = set()

    def update(
        self, folder: Path, session: str, cwd: Path, messages: Sequence[Message], masked: Callable[[str], str]
    ) -> Path:
        """The file with these messages of a session in it, in its ``folder``; what looks like a key is ``masked``.
        Raises OSError."""
        path = folder / NAME
        with self._lock:
            if path != self._path or not path.exists():
                self._path, self._written = path, set()
            fresh = [message for message in messages if message.id not in self._written]
            if self._written and not fresh:
                return path
            text = "".join(json.dumps(_masked(line, masked)) + "\n" for m in fresh for line in _lines(m, session, cwd))
            private_dir(folder)
            how = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | (os.O_APPEND if self._written else os.O_TRUNC)
            with os.fdopen(os.open(path, how, 0o600), "w", encoding="utf-8", errors="replace") as file:
                file.write(text)
            self._written |= {message.id for message in fresh}
        return path


def call_blocks(message: Message, cwd: Path) -> list[Metadata]:
    """What an answer says, thinks and calls, as blocks of Anthropic's messages with the names that scripts know."""
    content: list[Metadata] = []
    if message.reasoning:
        content.append({"type": "thinking", "thinking": message.reasoning, "signature": ""})
    if message.text:
        content.append({"type": "text", "text": message.text})
    for call in message.tool_calls:
        name, told = called_as(call.name, call.arguments, cwd)
        content.append({"type": "tool_use", "id": call.call_id, "name": name, "input": told})
    return content


def called_as(tool: str, arguments: str | Metadata, cwd: Path) -> tuple[str, Metadata]:
    """The name and the input of a call, as scripts for Claude Code know them."""
    try:
        made = parse_arguments(arguments) if isinstance(arguments, str) else arguments
    except ToolError:
        return tool_names(tool)[0], {"arguments": arguments}
    names, told = told_call(tool, made, cwd)
    return names[0], told


def _lines(message: Message, session: str, cwd: Path) -> Iterator[Metadata]:
    when = datetime.datetime.fromtimestamp(message.created, datetime.UTC)
    entry: Metadata = {
        "parentUuid": message.parent_id,
        "isSidechain": False,
        "userType": "external",
        "cwd": str(cwd),
        "sessionId": session,
        "version": __version__,
        "gitBranch": "",
        "uuid": message.id,
        "timestamp": when.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
    if message.role == "assistant":
        model = message.origin.model if message.origin is not None else ""
        said: Metadata = {"id": message.id, "type": "message", "role": "assistant", "model": model}
        said["content"] = call_blocks(message, cwd)
        yield {**entry, "type": "assistant", "message": {**said, "stop_reason": None, "usage": None}}
        return
    blocks = [_attached(part) for part in message.parts if isinstance(part, AttachmentPart)]
    if (result := message.tool_result) is not None:
        answer = {"type": "tool_result", "tool_use_id": result.call_id, "content": result.text}
        blocks.insert(0, {**answer, "is_error": result.is_error})
    elif text := message.text or summary_text(message):
        blocks.insert(0, {"type": "text", "text": text})
    content = blocks[0]["text"] if [block["type"] for block in blocks] == ["text"] else blocks
    yield {**entry, "type": "user", "message": {"role": "user", "content": content}}


def _attached(part: AttachmentPart) -> Metadata:
    """A file as text; of a picture only its name: it would make every line that follows wait for megabytes."""
    return {"type": "text", "text": part.text if part.text is not None else f"[{part.name}: {part.media_type}]"}


def _masked(value: Any, masked: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, Mapping):
        return {key: _masked(entry, masked) for key, entry in value.items()}
    return [_masked(entry, masked) for entry in value] if isinstance(value, list) else value
