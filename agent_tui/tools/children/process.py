"""Child processes that are ended with everything they started, also when this process is killed."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from agent_tui.errors import ToolError
from agent_tui.pipes.start import spawn
from agent_tui.tools.output import LOG_BYTES
from agent_tui.tools.sandbox.policy import Launch
from agent_tui.tools.sandbox.processes import descendants
from agent_tui.tools.sandbox.spec import Supervision
from agent_tui.tools.sandbox.start import large_starter

_POLITE_SECONDS = 1.0
_GONE_SECONDS = 6.0  # the supervisor gives killed processes five to disappear
_CHUNK = 1 << 16
_HUNTS = 20
_LOST = -int(signal.SIGKILL)
_MARK = "UNDER_AGENT_TUI"
"""Environment variable by which the processes of an unsandboxed command are found that kills all who stand over it."""


class _Status(asyncio.Protocol):
    """The messages of the supervisor. ``mark``: what is in the environment of all of the command; empty for one that
    the supervisor cannot be killed by."""

    def __init__(self, mark: str = "") -> None:
        self._mark = mark
        loop = asyncio.get_running_loop()
        self.started: asyncio.Future[int] = loop.create_future()
        self.exited: asyncio.Future[int] = loop.create_future()
        self.alone, self.over = asyncio.Event(), asyncio.Event()
        self.kept: list[tuple[str, Path]] = []
        self.refused = ""
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            word, _, rest = line.decode("ascii", "replace").partition(" ")
            if word == "started":
                self._settle(self.started, int(rest))
            elif word == "failed":
                self._settle(self.started, -int(rest))
            elif word == "refused":
                self.refused = os.fsdecode(bytes.fromhex(rest))
            elif word == "exit":
                self._settle(self.exited, int(rest))
            elif word == "alone":
                self.alone.set()
            elif word == "bye":
                self.left_to_itself()
            elif word in ("kept", "held", "changed"):
                self.kept.append((word, Path(os.fsdecode(bytes.fromhex(rest)))))

    def connection_lost(self, exc: Exception | None) -> None:
        """The supervisor is gone; if it said nothing before, so is the command, by the same signal."""
        if self._mark:
            _end_marked(self._mark)
        self._settle(self.started, 0)
        self._settle(self.exited, _LOST)
        self.alone.set()
        self.over.set()

    def left_to_itself(self) -> None:
        """Nothing of the command is to be looked for."""
        self._mark = ""

    @staticmethod
    def _settle(future: asyncio.Future[int], value: int) -> None:
        if not future.done():
            future.set_result(value)


class ProcessGroup:
    """A command under a supervisor: no terminal, no stdin, output and errors in one stream."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        status: _Status,
        control: int,
        transports: list[asyncio.BaseTransport],
    ) -> None:
        self._process, self._status, self._control, self._transports = process, status, control, transports
        self._output = asyncio.StreamReader(limit=_CHUNK)
        self._ending: asyncio.Future[None] | None = None

    @classmethod
    async def start(
        cls,
        launch: Launch,
        cwd: Path,
        held: Path | None = None,
        log: Path | None = None,
        streams: tuple[int, int] | None = None,
    ) -> ProcessGroup:
        """Starts ``launch`` in ``cwd`` and closes it. ``streams`` are what it reads and writes instead of nothing and
        the output, which then is its errors alone. ``held`` is the folder that takes what the command made and may not
        make. With ``log``, the file that takes its output then, it can be left running. Raises ToolError when the
        program or the folder is missing."""
        # Own pipes, so that waiting for the command does not wait for whoever inherited its output.
        output, status, control = os.pipe(), os.pipe(), os.pipe()
        spec: Supervision = {"status": status[1], "control": control[0], "carrier": launch.carrier}
        spec["fds"] = launch.pass_fds
        if launch.confine is not None:
            spec["confine"] = launch.confine
        if launch.watch and held is not None:
            spec["watch"], spec["held"] = [(watch.folder, watch.names) for watch in launch.watch], str(held)
        mark = f"{_MARK}={os.urandom(8).hex()}" if launch.domain == "free" else ""
        passed = [status[1], control[0], *launch.pass_fds]
        if log is not None:
            spec["keep"] = {"output": output[0], "log": str(log), "limit": LOG_BYTES}
            passed.append(output[0])
        argv, large = large_starter("supervise", spec, launch.command)
        passed += [] if large is None else [large]
        try:
            # Not asyncio's, which would kill what is left running when the loop is closed.
            process = spawn(
                argv,
                launch.env | ({_MARK: mark.partition("=")[2]} if mark else {}),
                cwd=cwd,
                stdin=streams[0] if streams else subprocess.DEVNULL,
                stdout=streams[1] if streams else output[1],
                stderr=output[1],
                start_new_session=True,
                pass_fds=passed,
            )
        except (OSError, ValueError) as error:
            _close(output[0], status[0], control[1])
            why = _too_large(launch.env) if isinstance(error, OSError) and error.errno == errno.E2BIG else str(error)
            raise ToolError(f"{launch.command[0]} cannot be started in {cwd}: {why}") from None
        except BaseException:
            _close(output[0], status[0], control[1])
            raise
        finally:
            launch.close()
            _close(output[1], status[1], control[0], *([] if large is None else [large]))
        words = _Status(mark)
        group = cls(process, words, control[1], [])
        loop = asyncio.get_running_loop()
        left = [(words, status[0]), (asyncio.StreamReaderProtocol(group._output), output[0])]
        # The command runs already: whoever is cancelled from here on ends it.
        try:
            while left:
                protocol, end = left.pop(0)
                transport, _ = await loop.connect_read_pipe(
                    lambda protocol=protocol: protocol,  # type: ignore[misc]
                    os.fdopen(end, "rb", buffering=0),
                )
                group._transports.append(transport)
            pid = await asyncio.shield(words.started)
        except BaseException:
            _close(*(end for _, end in left))
            await group.end()
            group.close()
            raise
        if pid <= 0:
            await group.end()
            group.close()
            if words.refused:
                raise ToolError(
                    f"Not run: with {words.refused} protected folders hold more than can be put back after a command "
                    "(20,000 files, 64 MB). Move some of it away, or install bubblewrap."
                )
            why = os.strerror(-pid) if pid else "the supervisor ended"
            raise ToolError(f"{launch.command[0]} cannot be started in {cwd}: {why}")
        return group

    @property
    def pid(self) -> int:
        """The supervisor's process id: all of the command is below it."""
        return self._process.pid

    @property
    def kept(self) -> list[tuple[str, Path]]:
        """The changes of the command that the supervisor undid, once it has ended: ("kept", a path that is as it was
        before), ("held", a path that was not there and was taken away) or ("changed", one that could not be undone)."""
        return self._status.kept

    async def read(self) -> bytes:
        """The next output, at most 64 KiB; empty at its end. A call that is cancelled takes nothing."""
        await asyncio.sleep(0)  # a full buffer is returned without waiting: let others run
        return await self._output.read(_CHUNK)

    async def wait(self) -> int:
        """The exit code of the command itself; negative when a signal ended it."""
        return await asyncio.shield(self._status.exited)

    @property
    def exited(self) -> bool:
        """True when the command itself has ended."""
        return self._status.exited.done()

    def alive(self) -> bool:
        """True while anything of the command runs, wherever it went."""
        return not self._status.alone.is_set()

    async def settled(self, seconds: float) -> bool:
        """Waits until nothing of the command runs; False when something still does after ``seconds``."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._status.alone.wait()
        return not self.alive()

    async def end(self) -> None:
        """Ends the command and all it started: asked first, killed after a second. Safe to call again, also after a
        call that was cancelled: the work goes on, and when this returns nothing of the command runs."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        if self.alive():
            with contextlib.suppress(OSError):
                os.write(self._control, b"t")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_POLITE_SECONDS):
                    await self.wait()
        _close(self._control)  # its end is the order to kill
        try:
            async with asyncio.timeout(_GONE_SECONDS):
                await self._status.over.wait()
        except TimeoutError:
            self._kill()
        await asyncio.to_thread(self._process.wait)

    def keep(self, going_on: bool) -> None:
        """Sets whether the command goes on when this process ends, in whatever way; only where it has a log."""
        with contextlib.suppress(OSError):
            os.write(self._control, b"k" if going_on else b"u")

    def stop_reading(self) -> None:
        """``read`` returns what has come by now, and then the end."""
        self._transports[-1].close()

    def let_go(self) -> None:
        """Leaves a command that is kept to its supervisor, which takes its output from now on."""
        self._status.left_to_itself()
        self._ending = asyncio.get_running_loop().create_future()
        self._ending.set_result(None)
        self._process.returncode = 0  # nobody waits for it any more
        _close(self._control)
        self.close()

    def _kill(self) -> None:
        """A supervisor that does not do its work."""
        for pid in (self.pid, *descendants(self.pid)):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """Stops taking output."""
        for transport in self._transports:
            transport.close()


def _too_large(env: Mapping[str, str]) -> str:
    """Describes an environment that is too large for a process to be started."""
    sizes = {name: len(os.fsencode(f"{name}={value}")) for name, value in env.items()}
    largest = sorted(sizes, key=lambda name: -sizes[name])[:3]
    named = ", ".join(f"{name[:60]} ({sizes[name] // 1024:,} KiB)" for name in largest)
    return (
        f"the environment is too large ({sum(sizes.values()) // 1024:,} KiB, most of it {named}; one variable may have "
        "128 KiB). Unset what is not needed and start agent-tui again"
    )


def _close(*fds: int) -> None:
    for fd in fds:
        os.close(fd)


def _end_marked(mark: str) -> None:
    """Kills every process that was started with ``mark`` in its environment, and what they start meanwhile."""
    for _ in range(_HUNTS):
        found = [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/environ") if _has(path, mark.encode())]
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return


def _has(environ: Path, mark: bytes) -> bool:
    try:
        return mark in environ.read_bytes().split(b"\0")
    except OSError:
        return False


T = TypeVar("T")
Stop = threading.Event


async def in_thread(work: Callable[[Stop], T]) -> T:
    """Runs ``work`` in a daemon thread. When the caller is cancelled the event given to it is set; the work looks at
    it and ends. A daemon thread, so that a name lookup that hangs cannot hold up the end of the program."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    stop = Stop()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def body() -> None:
        result: T | None = None
        error: BaseException | None = None
        try:
            result = work(stop)
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is gone: nobody waits any more
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=body, name="tool", daemon=True).start()
    try:
        return await future
    finally:
        stop.set()
