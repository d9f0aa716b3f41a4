"""Pictures in the transcript, once it is known whether the terminal can hold them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from agent_tui.config import Images
    from agent_tui.ui.chat.needs import StartsTasks
    from agent_tui.ui.chat.stage import Stage
    from agent_tui.ui.terminal.window import ReachesTerminal


class Pictures:
    """Finds out whether to show them, after the first frame and beside it."""

    def __init__(
        self, terminal: ReachesTerminal, console: Console, stage: Stage, tasks: StartsTasks, setting: Images
    ) -> None:
        self._terminal = terminal
        self._stage = stage
        self._tasks = tasks
        self._setting: Images = setting
        self._console = console

    def begin(self) -> None:
        """The transcript stands: asks tmux or the terminal, where there is a reason to."""
        if self._setting != "off" and self._console.color_system in ("256", "truecolor"):
            self._tasks.begin(self._find, group="pictures")

    async def _find(self) -> None:
        import asyncio

        from agent_tui.engine.about.pictures import graphics

        found = await asyncio.to_thread(graphics, self._setting, os.environ)
        if found.shows is True:
            self._show(found.in_tmux, found.few_colors)
        elif found.shows == "ask":
            from agent_tui.ui.terminal.kitty import QUERY

            self._terminal.write_to_terminal(QUERY)

    def told(self) -> None:
        """The terminal answers that it can."""
        if self._stage.furnished and self._setting != "off":
            self._show(False, False)

    def _show(self, in_tmux: bool, few_colors: bool) -> None:
        from rich.color import ColorSystem

        from agent_tui.ui.terminal.cells import cell_size
        from agent_tui.ui.transcript.album import Album

        transcript = self._stage.transcript
        few = few_colors or self._console.color_system == "256"
        system = ColorSystem.EIGHT_BIT if few else ColorSystem.TRUECOLOR
        begin, changed = self._tasks.begin, transcript.changed
        transcript.use_pictures(Album(self._terminal, cell_size(), system, in_tmux, begin, changed))

    def lost(self) -> None:
        """Something else had the terminal."""
        if self._stage.furnished:
            self._stage.transcript.forget_pictures()

    def end(self) -> None:
        """The terminal is given back without any."""
        if self._stage.furnished:
            self._stage.transcript.drop_pictures()
