"""Opening a file that a tool was given: a regular one, or an error that says what it is instead."""

from __future__ import annotations

import os
import stat
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from agent_tui.errors import ToolError
from agent_tui.text.clean import pictured
from agent_tui.tools.files.beneath import Place, at, names_in


def open_regular(path: Path, name: str) -> BinaryIO:
    """The file at a resolved path, opened for reading. Raises ToolError for what is missing, unreadable, a folder, a
    device or a pipe, and where a link was put in its way."""
    try:
        with at(path) as place:
            try:
                descriptor = place.open(os.O_RDONLY)
            except FileNotFoundError:
                raise ToolError(f"{name} does not exist.{_similar(place)}") from None
    except FileNotFoundError:
        raise ToolError(f"{name} does not exist.") from None
    except OSError as error:
        raise ToolError(f"{name} cannot be read: {error.strerror}.") from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        what = "a folder; use list" if stat.S_ISDIR(mode) else "not a regular file"
        raise ToolError(f"{name} is {what}.")
    return os.fdopen(descriptor, "rb")


def _similar(place: Place) -> str:
    import difflib

    try:
        names = [entry.name for entry in islice(names_in(place.folder), 2000)]
    except OSError:
        return ""
    near = difflib.get_close_matches(place.name, names, n=3, cutoff=0.7)
    return f" In the same folder: {', '.join(pictured(n) for n in near)}." if near else ""
