"""Child processes that can be ended with everything they started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent_tui.errors import ToolError

_POLITE_SECONDS = 1.0
_GONE_SECONDS = 2.0  # a killed process takes a moment to disappear
_LOOK_SECONDS = 0.01
_CHUNK = 1 << 16


class ProcessGroup:
    """A child in a session of its own: no terminal, no stdin, output and errors in one stream."""

    def __init__(self, process: asyncio.subprocess.Process, output: asyncio.StreamReader, pipe: asyncio.BaseTransport):
        self._process, self._output, self._pipe = process, output, pipe
        self._ending: asyncio.Future[None] | None = None

    @classmethod
    async def start(cls, argv: Sequence[str], cwd: Path, env: Mapping[str, str], errors: bool = True) -> ProcessGroup:
        """Starts ``argv``. ``errors``: stderr joins stdout, else it is thrown away. Raises ToolError when the program
        or the folder is missing."""
        # An own pipe, so that waiting for the child does not wait for whoever inherited its output.
        read_end, write_end = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                cwd=cwd,
                env=dict(env),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=write_end,
                stderr=write_end if errors else asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            os.close(read_end)
            raise ToolError(f"{argv[0]} cannot be started in {cwd}: {error}") from None
        except BaseException:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
        reader = asyncio.StreamReader(limit=_CHUNK)
        pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_end, "rb", buffering=0)
        )
        return cls(process, reader, pipe)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def read(self) -> bytes:
        """The next output, at most 64 KiB; empty at its end."""
        data = await self._output.read(_CHUNK)
        await asyncio.sleep(0)  # a full buffer is returned without waiting: let others run
        return data

    async def wait(self) -> int:
        """The exit code of the child itself; negative when a signal ended it."""
        return await self._process.wait()

    def alive(self) -> bool:
        """True while anything in the group runs."""
        table = _table()
        if table:
            return any(group == self.pid and state not in "ZX" for _, group, state in table.values())
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    async def settled(self, seconds: float) -> bool:
        """Waits until nothing in the group runs; False when something still does after ``seconds``."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while self.alive():
            if loop.time() >= deadline:
                return False
            await asyncio.sleep(_LOOK_SECONDS)  # the system tells nobody but the parent
        return True

    async def end(self) -> None:
        """Ends the child and all it started: asked first, killed after a second. Safe to call again, also after a
        call that was cancelled: the work goes on, and when this returns nothing of the group runs."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        family = descendants(self.pid)
        self._signal(signal.SIGTERM, family)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_POLITE_SECONDS):
                await self._process.wait()
        self._signal(signal.SIGKILL, family | descendants(self.pid))
        await self._process.wait()
        await self.settled(_GONE_SECONDS)

    def close(self) -> None:
        """Stops taking output."""
        self._pipe.close()

    def _signal(self, number: signal.Signals, family: set[int]) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)
        for pid in family:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


def descendants(pid: int) -> set[int]:
    """The processes started by ``pid``, directly or not, that left its group but still have a parent in the family.
    Empty where the system has no /proc."""
    children: dict[int, list[int]] = {}
    for child, (parent, _, _) in _table().items():
        children.setdefault(parent, []).append(child)
    found: set[int] = set()
    todo = [pid]
    while todo:
        for child in children.get(todo.pop(), []):
            if child not in found:
                found.add(child)
                todo.append(child)
    return found


def _table() -> dict[int, tuple[int, int, str]]:
    """All processes as pid → (parent, group, state); empty where the system has no /proc."""
    table: dict[int, tuple[int, int, str]] = {}
    try:
        names = [entry.name for entry in os.scandir("/proc") if entry.name.isdigit()]
    except OSError:
        return table
    for name in names:
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The command name is in parentheses and may hold anything; what follows the last one is fixed.
            fields = Path("/proc", name, "stat").read_text(errors="replace").rpartition(")")[2].split()
            table[int(name)] = (int(fields[1]), int(fields[2]), fields[0])
    return table
