"""Standard input as text: what is piped in, and how long it is waited for.

Schedulers, CI runners and editors hand down pipes that never bring anything and never end; a command before ours in a
pipeline may take minutes before its first byte. Who holds the other end tells the two apart: a command of the same
pipeline is in our process group and no ancestor of ours.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from agent_tui import terminal_output
from agent_tui.errors import AgentError
from agent_tui.pipes.programs import find_program
from agent_tui.pipes.start import run

PATIENCE = 0.5
"""Seconds in which an open pipe has to bring something where no command of the pipeline holds its other end. As often
it is looked at who does."""
_PS_SECONDS = 5.0
_DEAD = frozenset((b"Z", b"X", b"x"))
"""States of processes that have ended and that their parent has not asked for yet."""


def piped_in(wait: bool) -> str:
    """Standard input to its end, as text; empty where it is a terminal, or, unless it is to be ``wait``ed for, a pipe
    that nobody of this pipeline writes and that brings nothing at first: stderr then says so, and nothing is taken
    from it. Raises AgentError."""
    if sys.stdin.isatty():
        return ""
    if not wait and not _brings_something():
        terminal_output.complain(
            "standard input is an open pipe that sent nothing; to wait for it, run agent-tui -p PROMPT -"
        )
        return ""
    try:
        data = sys.stdin.buffer.read()
    except OSError as error:
        raise AgentError(f"Cannot read standard input: {error.strerror or error}.") from error
    return decoded(data).strip("\n")


def decoded(data: bytes) -> str:
    """Bytes as text. What is not UTF-8 is replaced, and stderr says so."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        terminal_output.complain(f"standard input is not UTF-8 (byte {error.start}); invalid bytes were replaced")
        return data.decode("utf-8-sig", "replace")


def _brings_something() -> bool:
    """Returns whether standard input has something to read, or ends, before nobody of the pipeline holds its other
    end any more. Where a person watches, they are told what is waited for."""
    try:
        number = sys.stdin.fileno()
        waits = 0
        while not select.select([number], [], [], PATIENCE)[0]:
            if not is_held_by_pipeline(number):
                # It may have been written, or closed, between the two looks.
                return bool(select.select([number], [], [], 0)[0])
            waits += 1
            if waits == 4 and sys.stderr.isatty():
                terminal_output.tell("Waiting for standard input …")
    except (OSError, ValueError):
        return True
    return True


class _Process(NamedTuple):
    pid: int
    parent: int
    group: int


def is_held_by_pipeline(number: int) -> bool:
    """Returns whether a command of our own pipeline may still write into the pipe that the file descriptor ``number``
    reads: a process of our group that is neither we nor an ancestor or child of ours. One whose files we may not see
    (``sudo``) counts as a writer."""
    processes = {process.pid: process for process in _processes()}
    ours, group = os.getpid(), os.getpgrp()
    above = set(_chain(processes, ours))
    members = [p.pid for p in processes.values() if p.group == group and p.pid not in above]
    members = [pid for pid in members if ours not in _chain(processes, pid)]
    if not Path("/proc/self/fd").is_dir():
        return bool(members)  # nothing says what they hold
    pipe = os.fstat(number)
    return any(_writes_to(pid, pipe) for pid in members)


def _chain(processes: dict[int, _Process], pid: int) -> Iterator[int]:
    """A process and its ancestors."""
    seen: set[int] = set()
    while pid in processes and pid not in seen:
        seen.add(pid)
        yield pid
        pid = processes[pid].parent


def _processes() -> Iterator[_Process]:
    proc = Path("/proc")
    if (proc / "self" / "stat").is_file():
        for folder in proc.iterdir():
            if folder.name.isdecimal():
                try:
                    stat = (folder / "stat").read_bytes()
                except OSError:
                    continue  # it has ended
                # Its name stands in brackets and may hold anything.
                state, parent, group = stat.rpartition(b")")[2].split()[:3]
                if state in _DEAD:
                    continue  # it holds nothing, and nobody may look at that
                yield _Process(int(folder.name), int(parent), int(group))
        return
    command = [find_program("ps") or "/bin/ps", "-A", "-o", "pid=,ppid=,pgid=,state="]
    try:
        listed = run(command, capture_output=True, timeout=_PS_SECONDS).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.TimeoutExpired):
        return
    for line in listed.splitlines():
        *numbers, now = line.split()
        if not now.startswith("Z"):
            yield _Process(*map(int, numbers))


def _writes_to(pid: int, pipe: os.stat_result) -> bool:
    try:
        files = [*Path(f"/proc/{pid}/fd").iterdir()]
    except PermissionError:
        return True
    except OSError:
        return False
    for file in files:
        try:
            # The link itself is writable where the file was opened for writing.
            if os.path.samestat(file.stat(), pipe) and file.lstat().st_mode & 0o200:
                return True
        except OSError:
            continue
    return False
