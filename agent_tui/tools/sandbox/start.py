"""Runs our own small starters, each in an isolated interpreter that loads one file and nothing of the program; hands
bytes to one in a file without a name.
"""

from __future__ import annotations

import marshal
import os
import sys
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def starter(module: str, spec: Mapping[str, object], command: Sequence[str]) -> list[str]:
    """The command line that runs ``main`` of ``module``, a file beside this one, with ``spec`` and then ``command``.

    Appended to the path, the folder cannot supply what the standard library has.
    """
    code = f"import sys;sys.path.append(sys.argv.pop(1));import {module};{module}.main()"
    # One argument may have 128 KiB.
    packed = zlib.compress(marshal.dumps(dict(spec)), 1).hex()
    return [sys.executable, "-I", "-S", "-c", code, str(FOLDER), packed, *command]


def confined(spec: Mapping[str, object], command: Sequence[str]) -> list[str]:
    """``command`` under the restrictions of ``spec``."""
    return starter("confine", spec, command)


def as_file(data: bytes) -> int:
    """A descriptor that reads ``data`` from its beginning. The caller closes it."""
    if sys.platform == "linux":
        fd = os.memfd_create("agent-tui")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
