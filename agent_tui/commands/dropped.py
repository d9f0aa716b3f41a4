"""Files that were dropped on a terminal: it types their paths, each terminal in a quoting of its own."""

from __future__ import annotations

import os
import re
import shlex
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote_to_bytes

from agent_tui.paths import with_home

LONGEST = 64 * 1024
"""Characters of a text that may be paths."""
MOST = 100
"""Files that are dropped at once."""
_URI = re.compile(r"file://([^/\s]*)(/.*)", re.DOTALL)
_NEXT = re.compile(r"(?<=\S)[ \t]+(?=[/~]|file://)")
"""Where another path may begin behind one that is not quoted at all, whose blanks are its own."""


def dropped_files(text: str) -> list[Path]:
    """Returns the files that a text names, if it is nothing but the absolute paths of files that are there: quoted for
    a shell, as ``file://`` addresses or as they are, one beside or below the other. Asks the file system."""
    if not text.strip() or len(text) > LONGEST:
        return []
    found: list[Path] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        files = next((files for read in (_as_one, _as_words, _unquoted) if (files := _files(read, line))), [])
        if not files or len(found) + len(files) > MOST:
            return []
        found += files
    return found


def _as_one(line: str) -> Sequence[str]:
    return [line]


def _as_words(line: str) -> Sequence[str]:
    """As a shell reads it. Raises ValueError where it would wait for another quote."""
    return shlex.split(line)


def _unquoted(line: str) -> Sequence[str]:
    return _NEXT.split(line)


def _files(read: Callable[[str], Sequence[str]], line: str) -> list[Path]:
    """The files of a line that is read in one way; none where that is not the way it is written."""
    try:
        paths = [_path(word) for word in read(line)]
        return [path for path in paths if path is not None] if all(p is not None and p.is_file() for p in paths) else []
    except (OSError, ValueError):
        return []


def _path(word: str) -> Path | None:
    """The path that a word is; None where it is none from the root."""
    if (address := _URI.fullmatch(word)) is not None:
        if address[1] not in ("", "localhost", socket.gethostname()):
            return None
        word = os.fsdecode(unquote_to_bytes(address[2]))
    path = with_home(word) if word.startswith(("/", "~/")) else None
    return path if path is not None and path.is_absolute() else None
