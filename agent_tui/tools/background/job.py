"""One command in the background, from its start to its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import Awaitable, Callable

from agent_tui.models.jobs import JobInfo, JobState, Reach
from agent_tui.text.clean import pictured
from agent_tui.text.numbers import duration
from agent_tui.tools.background.output import Cleaned, JobOutput
from agent_tui.tools.base import StoppedBy
from agent_tui.tools.children.process import ProcessGroup
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.policy import Domain, Network

log = logging.getLogger(__name__)

_DRAIN_SECONDS = 1.0
_MUCH = 1 << 15
_PAUSE = 0.01
"""Seconds between two pieces of ``_MUCH`` bytes and more: what talks without end waits for us, not we for it."""


class Job:
    """Reads what ``group`` writes and waits for its end; ``at_end`` then says what else there is to tell, and
    ``changed`` is called.

    Like any command it ends with what it left behind.
    """

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
        changed: Callable[[Job], None],
    ) -> None:
        self.id, self.command = id, command
        self._group, self._output, self._cleaned = group, output, cleaned
        self._domain, self._network, self._jail = domain, network, jail
        self._at_end, self._changed = at_end, changed
        self._started = time.time()
        self._finished: float | None = None
        self._code: int | None = None
        self._stopped_by: StoppedBy | None = None
        self._notes: list[str] = []
        self._kept = False
        self._told = False
        self._over = asyncio.Event()
        self._reading = asyncio.create_task(self._read(), name=f"{id} output")
        self._living = asyncio.create_task(self._live(timeout), name=id)

    @property
    def running(self) -> bool:
        return self._finished is None

    @property
    def kept(self) -> bool:
        return self._kept

    @property
    def told(self) -> bool:
        """Whether the model knows that it has ended."""
        return self._told

    def tell(self) -> None:
        """The model is told of its end."""
        self._told = True

    @property
    def info(self) -> JobInfo:
        state: JobState = "running" if self.running else "stopped" if self._stopped_by is not None else "ended"
        return JobInfo(
            self.id,
            self.command,
            state,
            self._started,
            self._group.pid,
            str(self._output.path),
            self._output.last_line,
            self._code,
            self._finished,
            self._kept,
            self.reach,
        )

    @property
    def reach(self) -> Reach:
        """Who reaches the ports it opens."""
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

    @property
    def line(self) -> str:
        """The command on one line."""
        text = " ".join(pictured(self.command).split())
        return text if len(text) <= 100 else text[:99] + "…"

    def state_line(self) -> str:
        """How it is, in one line."""
        lasted = duration(self.info.seconds(time.time()))
        if self.running:
            return f"{self.id} has been running for {lasted}"
        if self._stopped_by is not None:
            by = "" if self._stopped_by == "a call" else f" by {self._stopped_by}"
            return f"{self.id} was stopped after {lasted}{by}"
        return f"{self.id} ended after {lasted}: {ending(self._code or 0)}"

    def look(self) -> str:
        """For the model: what is new, and how it is."""
        new = self._output.take() + self._cleaned.open_line
        notes = [] if self.running else self._notes
        if not self.running:
            self._told = True
        return "\n".join([new.rstrip("\n") or "[no new output]", *notes, f"[{self.state_line()}]"])

    @property
    def failed(self) -> bool:
        return not self.running and self._stopped_by is None and self._code != 0

    async def ended(self, seconds: float) -> bool:
        """Waits for its end; False when it runs on after ``seconds``."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._over.wait()
        return not self.running

    async def stop(self, by: StoppedBy) -> None:
        """Ends it, with all it started: asked first, killed after a second."""
        if self.running and self._stopped_by is None:
            self._stopped_by = by
        await self._group.end()
        await self._over.wait()

    def keep(self, going_on: bool) -> None:
        """Whether it goes on when the program ends, however that happens."""
        if self.running:
            self._kept = going_on
            self._group.keep(going_on)
            if self._jail is not None:
                self._jail.hold(self._group.pid, going_on)

    async def leave(self) -> bool:
        """Lets one that is kept go its own way: its output goes to its log. False when it ended meanwhile."""
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
        if self._jail is not None and self._kept:
            self._jail.hold(self._group.pid, False)
        self._code, self._finished, self._kept = code, time.time(), False
        self._notes += undone(self._group.kept)
        if self.failed:
            shares = self._jail is not None and self._jail.shares(self._network)
            self._notes += refused(self._output.tail, self._domain, self._network, shares)
        self._over.set()
        self._changed(self)


def ending(code: int) -> str:
    """An exit code in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"
