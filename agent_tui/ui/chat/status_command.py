"""The line below the status line that the user's own command writes: it runs beside everything else, one at a time."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.ansi import AnsiDecoder
from rich.style import Style

from agent_tui.models.events import ContextChanged, Event, JobsChanged, SessionChanged, TurnEnded
from agent_tui.text.cells import shorten
from agent_tui.text.clean import colour_runs, newlines, plain_line
from agent_tui.ui.theme import Paint, Piece, width_of
from agent_tui.ui.widgets.drawn_lines import Lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_tui.engine.agent import Agent


log = logging.getLogger(__name__)

PAUSE = 0.3
"""Seconds from a change to the command: what changes meanwhile is told with it."""

PATIENCE = 5.0
"""Seconds the command may take."""


class StatusCommand:
    """``command`` reads what ``agent-tui context --json`` would print; its first line is given to ``show``. That it
    failed is told once."""

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
        if self._told:
            return
        self._told = True
        log.warning("The status command failed", exc_info=error)
        self._say(
            "warning", f"ui.status_command: {plain_line(str(error), 300)}. It will run again after the next change."
        )

    async def _line(self) -> str:
        """Its first line. Raises ValueError for a command that failed, or may not be started."""
        ran = await self._agent.run_beside(self._command, await self._context(), self._patience)
        if ran.problem:
            raise ValueError(ran.problem)
        if ran.code != 0:
            said = ran.errors.strip().splitlines()
            raise ValueError(f"exit code {ran.code}" + (f", {said[0]}" if said else ""))
        return newlines(ran.output).strip("\n").partition("\n")[0]

    async def _context(self) -> bytes:
        from agent_tui.commands.report import ContextReport
        from agent_tui.commands.report_json import context_json

        report = ContextReport(self._agent.context.usage(), steps=list(self._agent.conversation.steps))
        # In a thread: of a long session the rows alone are some thousand.
        return await asyncio.to_thread(lambda: json.dumps(context_json(report)).encode() + b"\n")


class OwnLine(Lines):
    """The line that shows what the command said last; without a word it takes no room."""

    DEFAULT_CSS = """
    OwnLine { padding: 0 1; background: $background; }
    """

    def __init__(self) -> None:
        super().__init__(id="own-line")
        self.text = ""

    def show(self, text: str) -> None:
        if text != self.text:
            self.text = text
            self.set_height(1 if any(said.strip() for _, said in colour_runs(text)) else 0)
            self.refresh()

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        pieces: list[Piece] = []
        for said, style in styled(self.text):
            if (room := width - width_of(pieces)) > 0:
                pieces.append((shorten(said, room), paint("muted") + style))
        return pieces


def styled(text: str) -> Iterator[Piece]:
    """The pieces of a line of a program's output in the styles it gave them; none that blinks or hides."""
    decoder = AnsiDecoder()
    for codes, said in colour_runs(text):
        if codes:
            decoder.decode_line(f"\x1b[{';'.join(map(str, codes))}m")
        style = decoder.style
        front, back = (None if color is None or color.is_default else color for color in (style.color, style.bgcolor))
        shown = Style(color=front, bgcolor=back, blink=False, blink2=False, conceal=False)
        yield said, style.without_color + shown
