"""A running command, from its start to its end. In the foreground is one that somebody waits for; in the background it
is once nobody does."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from agent_tui.errors import ToolError
from agent_tui.models.events import JobInfo, PortReach
from agent_tui.providers.secrets import Redactor
from agent_tui.records import dataclass
from agent_tui.tools.children.command_output import CommandOutput
from agent_tui.tools.children.process import ProcessGroup
from agent_tui.tools.children.work import StoppedBy, Work
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.policy import Launch, Network

MAX_BYTES = 100_000_000
"""Of the output of a command that is waited for: one that says more is ended."""
_DRAIN_SECONDS = 1.0
_LIVE_SECONDS = 0.05
_LIVE_CHARACTERS = 8_000
_MUCH = 1 << 15
_PAUSE = 0.01
"""Seconds between two pieces of ``_MUCH`` bytes and more that nobody waits for: what talks without end waits for us."""


@dataclass(slots=True, frozen=True)
class CommandOrder:
    """A command that is to run: ``launch`` in ``cwd``, which is ``line`` to people. ``folder`` takes what of its output
    is too long for ``limit``; ``at_end`` is told of its end and answers what else there is to tell. ``can_stay``: it
    can be kept when the program ends."""

    line: str
    launch: Launch
    cwd: Path
    folder: Path
    limit: int
    secrets: Redactor
    at_end: Callable[[], Awaitable[list[str]]]
    jail: Jail | None = None
    network: Network | None = None
    can_stay: bool = True


class RunningCommand(Work):
    """Reads what ``group`` writes and waits for its end; it ends with what it left behind. In the background its time
    limit is ``seconds``, in the foreground that of who waits."""

    kind, letter = "command", "b"

    def __init__(
        self, order: CommandOrder, group: ProcessGroup, output: CommandOutput, seconds: float | None = None
    ) -> None:
        super().__init__(order.line)
        self.output = output
        self.code: int | None = None
        self.left_behind = False
        """Processes were left in the background when it had ended, and were ended then."""
        self.end_notes: list[str] = []
        """What there is to tell of its end, beside how it ended."""
        self._order, self._group, self._domain = order, group, order.launch.domain
        self._emit: Callable[[str], None] | None = None
        self._live_text = ""
        self._flush_later: asyncio.TimerHandle | None = None
        self._bytes = 0
        self._reading = asyncio.create_task(self._read(), name=f"output of {self.line}")
        self._living = asyncio.create_task(self._live(seconds), name=self.line)

    @classmethod
    async def start(
        cls, order: CommandOrder, *, background: bool = False, seconds: float | None = None
    ) -> RunningCommand:
        """Starts it, and closes its launch; in the ``background`` all of its output goes to its file. Raises
        ToolError."""
        output = CommandOutput(order.folder, order.limit, order.secrets)
        try:
            if background:
                output.open()
            held = order.jail.held if order.jail is not None else None
            group = await ProcessGroup.start(order.launch, order.cwd, held=held, log=output.path)
        except BaseException:
            order.launch.close()
            output.close()
            raise
        return cls(order, group, output, seconds)

    # ------------------------------------------------------------------------------------------------ waited for

    async def wait(self, seconds: float, moved: Coroutine[Any, Any, None] | None, emit: Callable[[str], None]) -> bool:
        """Waits for its end, which comes after ``seconds`` at the latest; False where ``moved`` ends before, and it
        runs on. What it says meanwhile goes to ``emit``."""
        self._emit = emit
        moving = asyncio.ensure_future(moved if moved is not None else asyncio.Event().wait())
        try:
            await asyncio.wait({self._living, moving}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if moving.done() and not self._group.exited:
                return False
            if not self._group.exited:
                await self.stop("its time limit")
            await asyncio.shield(self._living)
            return True
        finally:
            moving.cancel()
            self._emit = None
            if self._flush_later is not None:
                self._flush_later.cancel()
            await asyncio.gather(moving, return_exceptions=True)

    def output_so_far(self) -> str:
        """Its output until now, of which nothing more is taken; what is left of it is being ended."""
        self.output.feed(b"", last=True)
        return "\n".join(filter(None, [self.output.take().text.rstrip("\n"), self.output.problem]))

    def _flush(self) -> None:
        self._flush_later = None
        live, self._live_text = self._live_text, ""
        if self._emit is not None:
            self._emit(live)

    # ------------------------------------------------------------------------------------------------ for lists

    @property
    def info(self) -> JobInfo:
        return JobInfo(
            self.id,
            self.command,
            self.state,
            self.started,
            self._group.pid,
            str(self.output.path),
            self.output.last_line,
            self.code,
            self._finished,
            self.kept,
            self.reach,
            can_stay=self._order.can_stay,
        )

    @property
    def reach(self) -> PortReach:
        """The programs that reach the ports it opens."""
        jail, domain, network = self._order.jail, self._domain, self._order.network
        if jail is None or domain == "free" or not jail.holds(domain):
            return "all"
        network = jail.policy(network).network if domain == "work" else "deny"
        if network == "allow":
            return "all"
        return "sandbox" if domain == "work" and jail.shares(network) else "itself"

    @property
    def shown(self) -> str:
        """The newest output, for people."""
        return self.output.tail + self.output.open_line

    def ending(self) -> str:
        return exit_words(self.code or 0)

    def look(self) -> str:
        from agent_tui.tools.sandbox.words import refused

        lines = [(self.output.take().text + self.output.open_line).rstrip("\n") or "[no new output]"]
        if not self.running:
            self.told = True
            lines += [LEFT_BEHIND] * self.left_behind + self.undone_notes + self.end_notes
            if self.failed:
                jail, network = self._order.jail, self._order.network
                shares = jail is not None and jail.shares(network)
                lines += refused(self.output.tail, self._domain, network, shares)
        return "\n".join([*lines, f"[{self.state_line()}]"])

    @property
    def undone_notes(self) -> list[str]:
        """What it changed and may not, and is as it was again: a line for the model."""
        from agent_tui.tools.sandbox.words import undone

        return undone(self._group.kept)

    @property
    def failed(self) -> bool:
        return not self.running and self.stopped_by is None and self.code != 0

    # ------------------------------------------------------------------------------------------------ ended, kept

    async def stop(self, by: StoppedBy) -> None:
        """Ends it, with all it started: asked first, killed after a second."""
        if self.running and self.stopped_by is None:
            self.stopped_by = by
        await self._group.end()
        await self._over.wait()

    def keep(self, going_on: bool) -> None:
        """Sets whether it goes on when the program ends, however that happens."""
        if not self._order.can_stay:
            raise ToolError(f"{self.id} may only look, and was moved to the background: it ends with the session.")
        if self.running:
            self.kept = going_on
            self._group.keep(going_on)
            if self._order.jail is not None:
                self._order.jail.hold(self._group.pid, going_on)

    async def leave(self) -> bool:
        """Its output goes to its log from then on."""
        if self._group.exited:
            await self._over.wait()
            return False
        self._living.cancel()
        self._group.stop_reading()
        await asyncio.wait({self._reading, self._living})
        self.output.close()
        self._group.let_go()
        return True

    async def _read(self) -> None:
        while data := await self._group.read():
            self._bytes += len(data)
            self._take(data)
            if self._emit is not None and self._bytes > MAX_BYTES:
                self.stopped_by = self.stopped_by or "too much output"
                await self._group.end()
                return
            if self._emit is None and len(data) >= _MUCH:
                await asyncio.sleep(_PAUSE)
        self._take(b"", last=True)

    def _take(self, data: bytes, last: bool = False) -> None:
        ready = self.output.feed(data, last)
        if ready and self._emit is not None:
            self._live_text = (self._live_text + ready)[-_LIVE_CHARACTERS:]
            if self._flush_later is None:
                self._flush_later = asyncio.get_running_loop().call_later(_LIVE_SECONDS, self._flush)

    async def _live(self, seconds: float | None) -> None:
        group = self._group
        waiting = asyncio.ensure_future(group.wait())
        try:
            await asyncio.wait({waiting}, timeout=seconds)
            if not waiting.done():
                self.stopped_by = self.stopped_by or "its time limit"
            else:
                # What writes through a pipe of its own (`> >(tee log)`) may need a moment more.
                await asyncio.wait({self._reading}, timeout=_DRAIN_SECONDS)
                # Its output has ended; the process itself may be a moment behind.
                settled = await group.settled(_DRAIN_SECONDS if self._reading.done() else 0.0)
                self.left_behind = not settled and self.stopped_by is None
        finally:
            waiting.cancel()
        await group.end()
        await asyncio.wait({self._reading}, timeout=_DRAIN_SECONDS)
        try:
            self.end_notes = await self._order.at_end()
        finally:
            self._finish(await group.wait())

    def _finish(self, code: int) -> None:
        self._reading.cancel()
        self.output.feed(b"", last=True)
        self._group.close()
        self.output.close()
        if self._order.jail is not None and self.kept:
            self._order.jail.hold(self._group.pid, False)
        self.code = code
        self._end()


LEFT_BEHIND = "[processes left in the background were ended]"


def exit_words(code: int) -> str:
    """An exit code in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"
