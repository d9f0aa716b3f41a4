"""Small text files the user or a project provides, read with care: regular files, of bounded size, inside a folder."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

LIMIT = 40_000
"""Characters of one file that are used."""


class BadFile(ValueError):
    """The file cannot be used; the text says why."""


@dataclass(slots=True, frozen=True)
class Stamp:
    """Tells whether a file is still the one that was read."""

    modified: int
    size: int
    inode: int


def stamp(path: Path) -> Stamp | None:
    """None where there is no file."""
    try:
        info = path.stat()
    except (OSError, ValueError):
        return None
    return Stamp(info.st_mtime_ns, info.st_size, info.st_ino)


def read_text(path: Path, within: Path | None = None, limit: int = LIMIT) -> str:
    """The file's text; what is over ``limit`` characters is cut, visibly. With ``within`` a link may not lead out of
    that folder: a project must not have other files of the user sent. Raises BadFile."""
    try:
        if within is not None and not path.resolve().is_relative_to(within.resolve()):
            raise BadFile("is a link that leads out of the project")
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise BadFile("is not a regular file")
            data = file.read(limit * 4 + 1)
    except (OSError, RuntimeError) as error:
        raise BadFile(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if b"\0" in data:
        raise BadFile("is a binary file")
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[… cut here: only the first {limit:,} characters are used …]"
