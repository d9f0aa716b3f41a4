"""Which files the model has read in this session, and whether they are still what it read."""

from __future__ import annotations

import os
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.models.messages import AttachmentPart, Message, Metadata
from agent_tui.tools.base import FileVersion, ToolContext, ToolMemory
from agent_tui.tools.files.paths import shown

_VERSION = "file_version"


def version(info: os.stat_result) -> FileVersion:
    return (info.st_mtime_ns, info.st_size, info.st_ino)


def remember(context: ToolContext, path: Path, info: os.stat_result) -> None:
    """Notes that the model knows the file as it is in ``info``."""
    context.memory.files[str(path)] = version(info)


def as_read(info: os.stat_result) -> Metadata:
    """For the metadata of an attached file: the model has read it as it is in ``info``."""
    return {_VERSION: list(version(info))}


def remember_attached(memory: ToolMemory, message: Message) -> None:
    """Notes that the model knows the files attached to a message, as they were when they were read."""
    for part in message.parts:
        if isinstance(part, AttachmentPart) and part.path and part.text is not None:
            match (part.provider_metadata or {}).get(_VERSION):
                case [int(modified), int(size), int(inode)]:
                    memory.files[part.path] = (modified, size, inode)


def was_read(context: ToolContext, path: Path) -> bool:
    return str(path) in context.memory.files


def require_unchanged(context: ToolContext, path: Path, info: os.stat_result) -> None:
    """Raises ToolError when the file was read in this session and has changed since."""
    known = context.memory.files.get(str(path))
    if known is not None and known != version(info):
        raise ToolError(f"{shown(path, context)} has changed since it was read. Read it again, then change it.")
