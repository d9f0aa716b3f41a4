"""Which files the model has read in this session, and whether they are still what it read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

from agent_tui.errors import ToolError
from agent_tui.tools.base import ToolContext
from agent_tui.tools.files.paths import shown

Version = tuple[int, int, int]  # modification time in ns, size in bytes, inode


def version(info: os.stat_result) -> Version:
    return (info.st_mtime_ns, info.st_size, info.st_ino)


def remember(context: ToolContext, path: Path, info: os.stat_result) -> None:
    """Notes that the model knows the file as it is in ``info``."""
    _files(context)[str(path)] = version(info)


def was_read(context: ToolContext, path: Path) -> bool:
    return str(path) in _files(context)


def require_unchanged(context: ToolContext, path: Path, info: os.stat_result) -> None:
    """Raises ToolError when the file was read in this session and has changed since."""
    known = _files(context).get(str(path))
    if known is not None and known != version(info):
        raise ToolError(f"{shown(path, context)} has changed since it was read. Read it again, then change it.")


def _files(context: ToolContext) -> dict[str, Version]:
    return cast(dict[str, Version], context.state.setdefault("files", {}))
