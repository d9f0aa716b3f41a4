"""Opening a file that a tool was given: a regular one, or an error that says what it is instead."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from agent_tui.errors import ToolError
from agent_tui.text.clean import pictured

# Paths are resolved before: a link there now was put there since.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


def open_regular(path: Path, name: str) -> BinaryIO:
    """The file, opened for reading. Raises ToolError for what is missing, unreadable, a folder, a device or a pipe."""
    try:
        descriptor = os.open(path, _FLAGS)
    except FileNotFoundError:
        raise ToolError(f"{name} does not exist.{_similar(path)}") from None
    except OSError as error:
        raise ToolError(f"{name} cannot be read: {error.strerror}.") from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        what = "a folder; use list" if stat.S_ISDIR(mode) else "not a regular file"
        raise ToolError(f"{name} is {what}.")
    return os.fdopen(descriptor, "rb")


def _similar(path: Path) -> str:
    import difflib

    try:
        names = [entry.name for entry, _ in zip(os.scandir(path.parent), range(2000), strict=False)]
    except OSError:
        return ""
    near = difflib.get_close_matches(path.name, names, n=3, cutoff=0.7)
    return f" In the same folder: {', '.join(pictured(n) for n in near)}." if near else ""
