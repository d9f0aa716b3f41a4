"""Which files the model has read in this session, and whether they are still what it read."""

from __future__ import annotations

import os
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.tools.base import FileVersion, ToolContext
from agent_tui.tools.files.paths import shown


def version(info: os.stat_result) -> FileVersion:
    return (info.st_mtime_ns, info.st_size, info.st_ino)


def remember(context: ToolContext, path: Path, info: os.stat_result) -> None:
    """Notes that the model knows the file as it is in ``info``."""
    context.memory.files[str(path)] = version(info)


def was_read(context: ToolContext, path: Path) -> bool:
    return str(path) in context.memory.files


def require_unchanged(context: ToolContext, path: Path, info: os.stat_result) -> None:
    """Raises ToolError when the file was read in this session and has changed since."""
    known = context.memory.files.get(str(path))
    if known is not None and known != version(info):
        raise ToolError(f"{shown(path, context)} has changed since it was read. Read it again, then change it.")
