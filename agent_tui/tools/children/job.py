"""What runs beside the turns, from its start to its end: a command in the background, or (the engine's) a subagent."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import logging
import os
import signal
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import ClassVar, Literal

from agent_tui.errors import ToolError
from agent_tui.models.events import JobInfo, JobState, PortReach
from agent_tui.models.messages import new_id, saved_note
from agent_tui.paths import private_dir
from agent_tui.providers.secrets import Redactor
from agent_tui.text.clean import one_line, pictured, program_output
from agent_tui.text.numbers import duration
from agent_tui.tools.children.process import ProcessGroup
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.keep import FULL
from agent_tui.tools.sandbox.policy import Domain, Network

log = logging.getLogger(__name__)

StoppedBy = Literal["a call", "the user", "its time limit", "the end of the session"]
"""Who ended a command in the background; ``a call`` is the model's own."""

LOG_BYTES = 20_000_000
"""Size of a log file. A server that talks for days must not fill the disk; its newest words are kept in memory."""

TAIL = 100_000
"""Characters of the newest output that people can look at."""

_LINE = 200
_NEAR = 4_000  # how far back a last line is looked for
_OPEN_LINE = 100_000


class Cleaned:
    """Turns what a program writes for a terminal into text: without what acts on one, and without the user's keys."""

    def __init__(self, secrets: Redactor) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._secrets, self._masked = secrets, secrets.stream()
        self._held = ""  # its meaning depends on what follows: an open escape sequence or line

    def feed(self, data: bytes, last: bool = False) -> str:
        """Returns the text that is certain now; all of it with the ``last`` piece."""
        text = self._held + self._decode(data, last)
        cut = len(text) if last or len(text) > _OPEN_LINE else text.rfind("\n") + 1
        ready, self._held = self._masked.feed(program_output(text[:cut])), text[cut:]
        return ready + self._masked.flush() if last else ready

    @property
    def open_line(self) -> str:
        """The line that is not finished, as it is now."""
        return self._secrets.mask(program_output(self._held)) if self._held else ""


class JobOutput:
    """Takes output in pieces. ``limit`` is how many characters of what is new ``take`` answers with; memory is bounded
    by it and by ``TAIL``, the file by ``LOG_BYTES``. Raises ToolError when the file cannot be made."""

    def __init__(self, folder: Path, name: str, limit: int) -> None:
        self._limit = max(limit, 200)
        self._head = self._rest = ""
        self._new = 0
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._size = 0
        try:
            self.path = private_dir(folder) / f"{new_id(name)}.txt"
            self._file: int | None = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ToolError(f"The output cannot be kept: {error}") from None

    def feed(self, text: str) -> None:
        if not text:
            return
        self._write(text)
        self._tail.append(text)
        self._tail_size += len(text)
        while self._tail_size - len(self._tail[0]) >= TAIL:
            self._tail_size -= len(self._tail.popleft())
        self._new += len(text)
        room = max(0, self._limit // 2 - len(self._head)) if not self._rest else 0
        self._head += text[:room]
        self._rest = (self._rest + text[room:])[-(self._limit - self._limit // 2) :]

    def take(self) -> str:
        """Returns the output that is new since the last time."""
        left = self._new - len(self._head) - len(self._rest)
        text = f"{self._head}\n{saved_note(left, self.path)}\n{self._rest}" if left else self._head + self._rest
        self._head, self._rest, self._new = "", "", 0
        return text

    @property
    def tail(self) -> str:
        """The newest output, at most ``TAIL`` characters."""
        return "".join(self._tail)[-TAIL:]

    @property
    def last_line(self) -> str:
        """The last line that says something, short enough for a list."""
        newest = ""
        for text in reversed(self._tail):
            newest = text[-_NEAR:] + newest
            if len(newest) >= _NEAR:
                break
        line = next((line for line in reversed(newest.split("\n")) if line.strip()), "")
        return one_line(line, _LINE)

    def _write(self, text: str) -> None:
        if self._file is None or self._size >= LOG_BYTES:
            return
        data = text.encode("utf-8", "replace")
        room = LOG_BYTES - self._size
        self._size += len(data)
        try:
            os.write(self._file, data[:room] + (FULL if self._size >= LOG_BYTES else b""))
        except OSError as error:
            log.warning("The output of a background command is not saved any more: %s", error)
            self.close()

    def close(self) -> None:
        """Writes nothing more to the file."""
        file, self._file = self._file, None
        if file is not None:
            try:
                os.close(file)
            except OSError as error:  # some disks say only here that they are full
                log.warning("The end of a background command's output is not saved: %s", error)


_DRAIN_SECONDS = 1.0
_MUCH = 1 << 15
_PAUSE = 0.01
"""Seconds between two pieces of ``_MUCH`` bytes and more: what talks without end waits for us, not we for it."""


class Work(ABC):
    """A piece of work in the background; ``changed`` is called at its end. ``kind`` is what it is to people, and
    ``command`` what it does."""

    kind: ClassVar[str]
    letter: ClassVar[str]
    """Its ids begin with it."""

    def __init__(self, id: str, command: str, changed: Callable[[Work], None]) -> None:
        self.id, self.command = id, command
        self._changed = changed
        self._started = time.time()
        self._finished: float | None = None
        self._stopped_by: StoppedBy | None = None
        self.kept = False
        self.owner = ""
        """The session that started it: this one, or that of a subagent."""
        self.told = False
        """True when the model knows that it has ended."""
        self._over = asyncio.Event()

    @property
    @abstractmethod
    def info(self) -> JobInfo: ...

    @property
    @abstractmethod
    def shown(self) -> str:
        """What it has said, for people."""

    @property
    @abstractmethod
    def failed(self) -> bool: ...

    @abstractmethod
    def look(self) -> str:
        """For the model: what is new, and how it is."""

    @abstractmethod
    async def stop(self, by: StoppedBy) -> None:
        """Ends it."""

    @abstractmethod
    def keep(self, going_on: bool) -> None:
        """Sets whether it goes on when the program ends. Raises ToolError where it cannot."""

    @abstractmethod
    async def leave(self) -> bool:
        """Lets one that is kept go its own way; False when it ended meanwhile."""

    @abstractmethod
    def ending(self) -> str:
        """How it ended by itself, in a few words."""

    @property
    def news(self) -> str:
        """What the model is told of it unasked."""
        return f"background {self.kind} {self.state_line()} · {self.line}"

    @property
    def running(self) -> bool:
        return self._finished is None

    @property
    def state(self) -> JobState:
        return "running" if self.running else "stopped" if self._stopped_by is not None else "ended"

    @property
    def line(self) -> str:
        """What it does, on one line."""
        text = " ".join(pictured(self.command).split())
        return text if len(text) <= 100 else text[:99] + "…"

    def state_line(self, to_user: bool = False) -> str:
        """Returns its state, in one line, for the model or for the user."""
        lasted = duration((self._finished or time.time()) - self._started)
        if self.running:
            return f"{self.id} has been running for {lasted}"
        if self._stopped_by is not None:
            if to_user and self._stopped_by == "the user":
                return f"You stopped {self.id} after {lasted}"
            by = "" if self._stopped_by == "a call" else f" by {self._stopped_by}"
            return f"{self.id} was stopped after {lasted}{by}"
        return f"{self.id} ended after {lasted}: {self.ending()}"

    def tell(self) -> None:
        """The model is told of its end."""
        self.told = True

    async def ended(self, seconds: float) -> bool:
        """Waits for its end; False when it runs on after ``seconds``."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._over.wait()
        return not self.running

    def _end(self) -> None:
        """It has come to its end."""
        self._finished, self.kept = time.time(), False
        self._over.set()
        self._changed(self)


class Job(Work):
    """Reads what ``group`` writes and waits for its end; ``at_end`` then says what else there is to tell, and
    ``changed`` is called. ``can_stay``: it can be kept when the program ends.

    Like any command it ends with what it left behind.
    """

    kind, letter = "command", "b"

    def __init__(
        self,
        id: str,
        command: str,
        group: ProcessGroup,
        output: JobOutput,
        cleaned: Cleaned,
        *,
        domain: Domain = "free",
        network: Network | None = None,
        jail: Jail | None = None,
        timeout: float | None = None,
        at_end: Callable[[], Awaitable[list[str]]] | None = None,
        changed: Callable[[Work], None],
        can_stay: bool = True,
    ) -> None:
        super().__init__(id, command, changed)
        self._can_stay = can_stay
        self._group, self._output, self._cleaned = group, output, cleaned
        self._domain, self._network, self._jail = domain, network, jail
        self._at_end = at_end
        self._code: int | None = None
        self._notes: list[str] = []
        self._reading = asyncio.create_task(self._read(), name=f"{id} output")
        self._living = asyncio.create_task(self._live(timeout), name=id)

    @property
    def info(self) -> JobInfo:
        return JobInfo(
            self.id,
            self.command,
            self.state,
            self._started,
            self._group.pid,
            str(self._output.path),
            self._output.last_line,
            self._code,
            self._finished,
            self.kept,
            self.reach,
            can_stay=self._can_stay,
        )

    @property
    def reach(self) -> PortReach:
        """The programs that reach the ports it opens."""
        jail, domain = self._jail, self._domain
        if jail is None or domain == "free" or not jail.holds(domain):
            return "all"
        network = jail.policy(self._network).network if domain == "work" else "deny"
        if network == "allow":
            return "all"
        return "sandbox" if domain == "work" and jail.shares(network) else "itself"

    @property
    def shown(self) -> str:
        """The newest output, for people."""
        return self._output.tail + self._cleaned.open_line

    def ending(self) -> str:
        return ending(self._code or 0)

    def look(self) -> str:
        new = self._output.take() + self._cleaned.open_line
        notes = [] if self.running else self._notes
        if not self.running:
            self.told = True
        return "\n".join([new.rstrip("\n") or "[no new output]", *notes, f"[{self.state_line()}]"])

    @property
    def failed(self) -> bool:
        return not self.running and self._stopped_by is None and self._code != 0

    async def stop(self, by: StoppedBy) -> None:
        """Ends it, with all it started: asked first, killed after a second."""
        if self.running and self._stopped_by is None:
            self._stopped_by = by
        await self._group.end()
        await self._over.wait()

    def keep(self, going_on: bool) -> None:
        """Sets whether it goes on when the program ends, however that happens."""
        if not self._can_stay:
            raise ToolError(f"{self.id} was moved to the background while it ran: it ends with the session.")
        if self.running:
            self.kept = going_on
            self._group.keep(going_on)
            if self._jail is not None:
                self._jail.hold(self._group.pid, going_on)

    async def leave(self) -> bool:
        """Its output goes to its log from then on."""
        if self._group.exited:
            await self._over.wait()
            return False
        self._living.cancel()
        self._group.stop_reading()
        await asyncio.wait({self._reading, self._living})
        self._output.close()
        self._group.let_go()
        return True

    async def _read(self) -> None:
        while data := await self._group.read():
            self._output.feed(self._cleaned.feed(data))
            if len(data) >= _MUCH:
                await asyncio.sleep(_PAUSE)
        self._output.feed(self._cleaned.feed(b"", last=True))

    async def _live(self, timeout: float | None) -> None:
        group = self._group
        waiting = asyncio.ensure_future(group.wait())
        try:
            await asyncio.wait({waiting}, timeout=timeout)
            if not waiting.done():
                self._stopped_by = "its time limit"
            else:
                # What writes through a pipe of its own may need a moment more.
                await asyncio.wait({self._reading}, timeout=_DRAIN_SECONDS)
                if not await group.settled(_DRAIN_SECONDS if self._reading.done() else 0.0) and not self._stopped_by:
                    self._notes.append("[processes left in the background were ended]")
        finally:
            waiting.cancel()
        await group.end()
        await asyncio.wait({self._reading}, timeout=_DRAIN_SECONDS)
        try:
            if self._at_end is not None:
                self._notes += await self._at_end()
        finally:
            self._finish(await group.wait())

    def _finish(self, code: int) -> None:
        from agent_tui.tools.sandbox.words import refused, undone

        self._reading.cancel()
        self._group.close()
        self._output.close()
        if self._jail is not None and self.kept:
            self._jail.hold(self._group.pid, False)
        self._code, self._finished = code, time.time()
        try:
            self._notes += undone(self._group.kept)
            if self.failed:
                shares = self._jail is not None and self._jail.shares(self._network)
                self._notes += refused(self._output.tail, self._domain, self._network, shares)
        finally:  # whoever stops it waits for this
            self._end()


def ending(code: int) -> str:
    """An exit code in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"
