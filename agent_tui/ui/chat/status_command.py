"""The line below the status line that the user's own command writes: it runs beside everything else, one at a time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.color import Color
from rich.style import Style

from agent_tui.models.events import ContextChanged, Event, JobsChanged, SessionChanged, TurnEnded
from agent_tui.text.cells import shorten
from agent_tui.text.clean import colour_runs, newlines, plain_line
from agent_tui.text.numbers import duration
from agent_tui.ui.theme import Paint, Piece, width_of
from agent_tui.ui.widgets.lines import Lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_tui.engine.agent import Agent


log = logging.getLogger(__name__)

PAUSE = 0.3
"""Seconds from a change to the command: what changes meanwhile is told with it."""

PATIENCE = 5.0
"""Seconds the command may take."""

MOST_BYTES = 1 << 16
"""Of its output that are read; a line is wanted."""


class StatusCommand:
    """``command`` gets on its standard input what ``agent-tui context --json`` would print; the first line that it
    writes is given to ``show``. That it failed is told once."""

    def __init__(
        self,
        command: str,
        agent: Agent,
        show: Callable[[str], None],
        say: Callable[[str, str], None],
        patience: float = PATIENCE,
    ) -> None:
        self._command = command
        self._agent = agent
        self._show = show
        self._say = say
        self._patience = patience
        self._wanted = False
        self._told = False
        self._task: asyncio.Task[None] | None = None
        self._unsubscribe = agent.subscribe(self._heard)
        self.ask()

    def _heard(self, event: Event) -> None:
        match event:
            case ContextChanged(_, 0) | SessionChanged() | TurnEnded() | JobsChanged():
                self.ask()

    def ask(self) -> None:
        """Something it may show has changed."""
        self._wanted = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work(), name="status command")

    async def close(self) -> None:
        """Ends it, also while it runs."""
        self._unsubscribe()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _work(self) -> None:
        while self._wanted:
            await asyncio.sleep(PAUSE)
            self._wanted = False
            try:
                self._show(await self._line())
            except Exception as error:
                self._failed(error)

    def _failed(self, error: Exception) -> None:
        self._show("")
        if not self._told:
            self._told = True
            log.warning("The status command failed", exc_info=error)
            self._say("warning", f"ui.status_command: {plain_line(self._why(error))}. It goes on being asked.")

    async def _line(self) -> str:
        """Its first line. Raises OSError, TimeoutError, and ValueError for a command that failed."""
        data = await self._context()
        process = await self._started()
        try:
            async with asyncio.timeout(self._patience):
                _, said, errors = await asyncio.gather(
                    _feed(process.stdin, data), _read(process.stdout), _read(process.stderr)
                )
                code = await process.wait()
        finally:
            await _end(process)
        if code != 0:
            raise ValueError(f"exit code {code}" + (f", {errors.strip().splitlines()[0]}" if errors.strip() else ""))
        return newlines(said).strip("\n").partition("\n")[0]

    async def _started(self) -> asyncio.subprocess.Process:
        """The shell. Who leaves while it starts has it ended as well, with what it has started by then: cancelled,
        asyncio would end the shell alone."""
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_shell(
                self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=self._agent.cwd,
                start_new_session=True,
            )
        )
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            with contextlib.suppress(OSError):
                await _end(await starting)
            raise

    def _why(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"it took more than {duration(self._patience)} and was ended"
        return str(getattr(error, "strerror", None) or error)

    async def _context(self) -> bytes:
        from agent_tui.commands.report import ContextReport
        from agent_tui.commands.report_json import context_json

        report = ContextReport(self._agent.context.usage(), steps=list(self._agent.conversation.steps))
        # In a thread: of a long session the rows alone are some thousand.
        return await asyncio.to_thread(lambda: json.dumps(context_json(report)).encode() + b"\n")


async def _end(process: asyncio.subprocess.Process) -> None:
    """With what it left behind; a command that has ended leaves no group unless something is in it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


async def _feed(stream: asyncio.StreamWriter | None, data: bytes) -> None:
    assert stream is not None
    # A command need not read what it is told.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        stream.write(data)
        await stream.drain()
        stream.close()
        await stream.wait_closed()


async def _read(stream: asyncio.StreamReader | None) -> str:
    """The beginning of what is written; the rest is read and forgotten."""
    assert stream is not None
    kept = bytearray()
    while data := await stream.read(MOST_BYTES):
        kept += data[: MOST_BYTES - len(kept)]
    return kept.decode("utf-8", "replace")


class OwnLine(Lines):
    """The line that shows what the command said last; without a word it takes no room."""

    DEFAULT_CSS = """
    OwnLine { padding: 0 1; background: $background; }
    """

    def __init__(self) -> None:
        super().__init__(id="own-line")
        self.text = ""

    def show(self, text: str) -> None:
        """One line of a program's output, its colours included."""
        if text != self.text:
            self.text = text
            self.set_height(1 if any(said.strip() for _, said in colour_runs(text)) else 0)
            self.refresh()

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        pieces: list[Piece] = []
        room = width
        for said, style in styled(self.text):
            if room <= 0:
                break
            piece = (shorten(said, room), paint("muted") + style)
            pieces.append(piece)
            room -= width_of([piece])
        return pieces


def styled(text: str) -> Iterator[Piece]:
    """The pieces of a line of a program's output in the styles it gave them."""
    style = Style()
    for codes, said in colour_runs(text):
        style = _after(style, codes)
        yield said, style


_ON = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike"}
_OFF = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("reverse",), 29: ("strike",)}


def _after(style: Style, codes: Sequence[int]) -> Style:
    """A style after SGR codes; those that are not known change nothing."""
    left = list(codes)
    while left:
        code = left.pop(0)
        if code == 0:
            style = Style()
        elif code in _ON:
            style += Style(**{_ON[code]: True})  # type: ignore[arg-type]
        elif code in _OFF:
            style += Style(**dict.fromkeys(_OFF[code], False))  # type: ignore[arg-type]
        elif code in (38, 48) and (color := _color(left)) is not None:
            style += Style(color=color) if code == 38 else Style(bgcolor=color)
        elif 30 <= code <= 37 or 90 <= code <= 97:
            style += Style(color=Color.from_ansi(code - 30 if code < 90 else code - 82))
        elif 40 <= code <= 47 or 100 <= code <= 107:
            style += Style(bgcolor=Color.from_ansi(code - 40 if code < 100 else code - 92))
        elif code in (39, 49):
            style = _without(style, front=code == 39)
    return style


def _color(left: list[int]) -> Color | None:
    """The colour that follows 38 or 48, taken from the codes that are left."""
    kind = left.pop(0) if left else 0
    numbers = [left.pop(0) for _ in range({5: 1, 2: 3}.get(kind, 0)) if left]
    if any(number > 255 for number in numbers):
        return None
    if kind == 5 and len(numbers) == 1:
        return Color.from_ansi(numbers[0])
    return Color.from_rgb(*numbers) if kind == 2 and len(numbers) == 3 else None


def _without(style: Style, *, front: bool) -> Style:
    kept = Style(color=None if front else style.color, bgcolor=style.bgcolor if front else None)
    return style.without_color + kept
