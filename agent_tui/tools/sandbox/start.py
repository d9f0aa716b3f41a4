"""Runs our own small starters, each in an isolated interpreter that loads one file and nothing of the program; hands
bytes to one in a file without a name.
"""

from __future__ import annotations

import marshal
import os
import sys
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

from agent_tui.pipes.programs import find_program
from agent_tui.tools.sandbox.spec import Confinement, Sharing, Supervision

FOLDER = Path(__file__).resolve().parent


MAX_ARGUMENT = 100_000
"""Bytes up to which something is one argument of a process: the kernel takes 128 KiB."""


def starter(module: str, spec: Confinement | Supervision | Sharing, command: Sequence[str]) -> list[str]:
    """The command line that runs ``main`` of ``module``, a file beside this one, with ``spec`` and then ``command``.

    Appended to the path, the folder cannot supply what the standard library has.
    """
    return _started(module, packed(spec), command)


def large_starter(
    module: str, spec: Confinement | Supervision | Sharing, command: Sequence[str]
) -> tuple[list[str], int | None]:
    """The same for a specification of any size, and a descriptor that the process has to be given for it, which the
    caller closes."""
    text = packed(spec)
    if len(text) <= MAX_ARGUMENT:
        return _started(module, text, command), None
    fd = as_file(text.encode())
    return _started(module, f"@{fd}", command), fd


def _started(module: str, packed: str, command: Sequence[str]) -> list[str]:
    code = f"import sys;sys.path.append(sys.argv.pop(1));import {module};{module}.main()"
    return [sys.executable, "-I", "-S", "-c", code, str(FOLDER), packed, *command]


def packed(spec: Confinement | Supervision | Sharing) -> str:
    """A specification as ``confine.unpacked`` reads it."""
    return zlib.compress(marshal.dumps(dict(spec)), 1).hex()


def shell(command: str) -> tuple[list[str], int | None]:
    """The process that runs a command line of any size, and a descriptor that it has to be given for it, which the
    caller closes."""
    program, data = shell_program(), os.fsencode(command)
    if len(data) <= MAX_ARGUMENT:
        return [program, "-c", command], None
    fd = as_file(data)
    return [program, "-c", f'eval "$(cat /dev/fd/{fd})"'], fd


def shell_program() -> str:
    """The shell that runs lines of commands."""
    return find_program("bash") or "/bin/sh"


def confined(spec: Confinement, command: Sequence[str]) -> list[str]:
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
