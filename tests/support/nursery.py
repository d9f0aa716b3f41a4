"""Child processes that cost next to nothing to start: forked from one that has already imported what they need.

What is started is a small process that stands for the child: it hands over its streams, folder, environment and
arguments, ends with the child's exit code, and takes the child with it when it is killed. Tests of the start itself,
and of what a child is to the system, start the real one.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent_tui.pipes.start import command as command_of

ROOT = str(Path(__file__).resolve().parents[2])

WORKER = "agent_tui.providers.worker.serve"
HOST = "agent_tui.tools.mcp.host"

PROGRAM = str(Path(ROOT) / "agent_tui" / "__main__.py")
"""The script of the program itself, for ``stand_in``."""

PREPARE_PROGRAM = """
import agent_tui.bootstrap, agent_tui.cli, agent_tui.headless.run, agent_tui.plain.run, agent_tui.plain.chat
import agent_tui.commands.chat, agent_tui.commands.model, agent_tui.commands.sessions, agent_tui.commands.context
import agent_tui.engine.sent_log, agent_tui.providers.client; agent_tui.providers.net.import_httpx()
import agent_tui.tools.builtin.fetch, agent_tui.tools.builtin.edit
import agent_tui.tools.sandbox.environment, ctypes, markdown_it, pydantic.main, tomllib, zoneinfo
"""
"""What is imported here, and what it has in memory, is not made anew by each child: a tenth of a second of its time."""
FORKED_WORKER = """
from tests.support.nursery import WORKER, forked
kept = forked({{WORKER: {0!r}}})
kept.__enter__()
"""
"""Has a program's worker come from the nursery at an address, too."""
PREPARE_WORKER = f"""
import {WORKER}, agent_tui.providers.counting as c, ctypes, resource
c.use_bundled_vocabulary(); c.encoding()
"""
PREPARE_HOST = (
    f"import {HOST}, agent_tui.tools.mcp.connection, anyio._backends._asyncio, ctypes, jsonschema, resource; "
    "jsonschema.validators.validator_for({}).check_schema({})"
)

_PYTHON: str = getattr(sys, "_base_executable", sys.executable)
"""It needs nothing that is installed: an environment below TMPDIR would be looked at, whole, before it is started."""
_STAND_IN = """
import array, json, os, socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect(sys.argv[1])
data = json.dumps([os.getcwd(), dict(os.environ), sys.argv[2:]]).encode()
streams = array.array("i", [0, 1, 2])
line.sendmsg([len(data).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
line.sendall(data)
nothing = os.open(os.devnull, os.O_RDWR)
for stream in streams:
    os.dup2(nothing, stream)
code = line.recv(1)
os._exit(code[0] if code else 1)
"""
"""It keeps no end of the pipes: they close when the child closes them."""


def stand_in(address: str, *arguments: str) -> list[str]:
    """The command for a child of the nursery at ``address``: ``-m`` and a module for its ``main``, or a script with its
    arguments."""
    return [_PYTHON, "-I", "-S", "-c", _STAND_IN, address, *arguments]


@contextlib.contextmanager
def nursery(prepare: str) -> Iterator[str]:
    """A process that has run ``prepare`` and forks children; its address. They end with it."""
    # Not below TMPDIR, which may be long: an address has room for a hundred bytes.
    with tempfile.TemporaryDirectory(prefix="nursery-", dir="/tmp") as folder:
        address = str(Path(folder) / "door")
        code = (
            f"import sys; sys.path.insert(0, {ROOT!r}); from tests.support.nursery import serve; serve(*sys.argv[1:])"
        )
        command = [sys.executable, "-P", "-c", code, address, prepare]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                assert process.stdout.read(1) == b".", "the nursery did not get ready"
                yield address
            finally:
                process.stdin.close()


@contextlib.contextmanager
def forked(children: dict[str, str]) -> Iterator[None]:
    """Modules whose processes the program starts meanwhile come from the nursery at an address."""
    commands = {command_of(module): stand_in(address, "-m", module) for module, address in children.items()}

    def popen(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(commands.get(tuple(command), command), **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agent_tui.pipes.start.subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": popen}))
        yield


def serve(address: str, prepare: str) -> None:
    """Forks a keeper for each that connects, until standard input ends."""
    kept: dict[str, Any] = {}
    exec(prepare, kept)
    # A search for what nobody uses would touch, and so copy, all that children share.
    gc.collect()
    gc.freeze()
    keepers: set[int] = set()
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen(64)
        alive, ours = os.pipe()
        watched: list[Any] = [0, door]
        os.write(1, b".")
        while True:
            if 0 in select.select(watched, [], [])[0]:
                os.close(ours)
                for keeper in keepers:
                    os.waitpid(keeper, 0)
                os._exit(0)
            line, _ = door.accept()
            keeper = os.fork()
            if keeper == 0:
                try:
                    os.close(ours)
                    door.close()
                    _keep(line, alive)
                finally:
                    os._exit(1)
            line.close()
            keepers = {k for k in (*keepers, keeper) if os.waitpid(k, os.WNOHANG) == (0, 0)}


def _keep(line: socket.socket, nursery: int) -> None:
    """Has the child, until it ends or its stand-in or the nursery has gone."""
    size, streams, _, _ = socket.recv_fds(line, 4, 3)
    if len(size) < 4:
        return
    data = b""
    while len(data) < int.from_bytes(size, "big"):
        piece = line.recv(1 << 16)
        if not piece:
            return
        data += piece
    pid = os.fork()
    if pid == 0:
        line.close()
        os.close(nursery)
        _live(streams, *json.loads(data))
    for stream in (*streams, 0, 1):
        os.close(stream)
    ended = os.pidfd_open(pid)
    watched: list[Any] = [ended, line, nursery]
    if ended not in select.select(watched, [], [])[0]:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(OSError):
        line.send(bytes([code if code >= 0 else 128 - code]))


def _open_streams() -> None:
    """As Python opens them at its start: those of the nursery know whether one can seek in what was there before."""
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)


def _live(streams: Sequence[int], folder: str, variables: dict[str, str], arguments: list[str]) -> None:
    """The child itself."""
    code = 1
    try:
        os.setsid()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        if os.isatty(0):
            with contextlib.suppress(OSError):  # it may be that of others already
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        _open_streams()
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(variables)
        if arguments[0] == "-m":
            sys.argv = arguments[1:]
            sys.modules[arguments[1]].main()
        else:
            sys.argv = arguments
            runpy.run_path(arguments[0], run_name="__main__")
        code = 0
    except SystemExit as error:
        if isinstance(error.code, str):
            sys.stderr.write(error.code + "\n")
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        for file in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                file.flush()
        os._exit(code)
