"""Pictures of the conversation: in it where the terminal can hold them, else each on a screen of its own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agent_tui.ui.chat.view import Part

if TYPE_CHECKING:
    from agent_tui.config import Images
    from agent_tui.engine.terminal import Graphics, Replies
    from agent_tui.ui.chat.view import MainView
    from agent_tui.ui.screens.picture import Canvas, PictureScreen


class Pictures(Part):
    """Finds out how to show them, after the first frame and beside it."""

    def __init__(self, view: MainView) -> None:
        super().__init__(view)
        self._setting: Images = view.settings.images
        self._in_page = False
        self._found: Graphics | None = None
        self._replies: Replies | None = None
        self._tmux = ""
        self._screen: PictureScreen | None = None
        self._canvas: Canvas | None = None
        """What the screen draws with."""

    def begin(self, in_page: bool) -> None:
        """Asks tmux and the terminal, where there is a reason to. ``in_page``: a page of the browser stands for it."""
        self._in_page = in_page
        self._view.begin(self._find, group="pictures")

    async def _find(self) -> None:
        import asyncio

        from agent_tui.engine.terminal import IN_A_PAGE, graphics, told_by_tmux

        if os.environ.get("TMUX") and self._setting != "off":
            self._tmux = await asyncio.to_thread(told_by_tmux)
        found = graphics(self._setting, os.environ, lambda: self._tmux)
        if self._in_page and found.way != "line":  # what the server was started from is another terminal
            found = IN_A_PAGE
        self.use(found)
        if found.question:
            from agent_tui.ui.terminal.pictures import hears_pictures

            # They are heard in the thread that reads keys.
            loop = asyncio.get_running_loop()
            heard = hears_pictures(lambda replies: loop.call_soon_threadsafe(self._heard, replies))
            self.app.ask_terminal(found.question, heard)

    def _heard(self, replies: Replies) -> None:
        """The terminal has answered all that it will."""
        if not self._view.furnished:
            return
        from agent_tui.engine.terminal import graphics

        self._replies = replies
        found = graphics(self._setting, os.environ, lambda: self._tmux, replies)
        if self._found is None or found.detail != self._found.detail:
            self.use(found)
        if found.question:
            self.app.ask_terminal(found.question, None)
        elif self._screen is not None and self._screen.is_current and self._canvas != self.canvas():
            self._screen.again()

    def use(self, found: Graphics) -> None:
        """From now on they are shown like this."""
        if found.way in ("blocks", "inline") and self.app.console.color_system not in ("256", "truecolor"):
            from agent_tui.engine.terminal import TOO_FEW_COLORS

            found = TOO_FEW_COLORS
        self._found = found
        self.tell()
        if found.way == "inline":
            self._hold(found)
        elif found.way != "line":
            self._view.transcript.open_pictures(
                "click or /picture shows it" if self._view.settings.mouse else "/picture shows it"
            )

    def tell(self) -> None:
        """The agent's own checks can say what was found out here."""
        if self._found is not None and self._agent is not None:
            self._agent.project.tell_pictures(self._found.detail)

    def _hold(self, found: Graphics) -> None:
        from rich.color import ColorSystem

        from agent_tui.ui.terminal.pictures import cell_size
        from agent_tui.ui.transcript.album import Album

        transcript = self._view.transcript
        few = found.few_colors or self.app.console.color_system == "256"
        system = ColorSystem.EIGHT_BIT if few else ColorSystem.TRUECOLOR
        begin, changed = self._view.begin, transcript.changed
        album = Album(self.app, cell_size(), system, found.wrapped, begin, changed)
        transcript.use_pictures(album)

    def open(self, which: str) -> None:
        """Shows one on a screen of its own: the newest whose name has ``which`` in it, or the one with that key."""
        from agent_tui.text.clean import one_line
        from agent_tui.ui.screens.picture import PictureScreen
        from agent_tui.ui.terminal.pictures import Overlay
        from agent_tui.ui.transcript.album import key_of

        found = self._found
        if found is not None and found.way == "line":
            self._view.say("info", f"Pictures are {found.detail}.")
            return
        parts = self._view.transcript.images()
        wanted = which.lower()
        numbers = [n for n, part in enumerate(parts) if key_of(part) == which]
        numbers = numbers or [n for n, part in enumerate(parts) if wanted in part.name.lower()]
        if not numbers:
            named = f"No picture named {one_line(which, 60)}" if parts and which else "No pictures"
            self._view.say("warning", f"{named} in this conversation.")
            return
        if self._screen is not None and self._screen.is_attached:
            return
        overlay = Overlay(self.app, self.app.drawing.buffer, found is not None and found.wrapped)
        why = found.detail.rpartition(": ")[2] if found is not None and found.way == "blocks" else ""
        root = self._view.transcript.root
        self._screen = PictureScreen(overlay, self._sized, parts, numbers[-1], root, why)
        self.app.push_screen(self._screen)

    def _sized(self, anew: bool) -> Canvas:
        """Keeps and returns what the screen draws with. ``anew``: the size is another one, and with it xterm's
        limit."""
        from agent_tui.engine.terminal import LIMITS

        if anew and self._replies is not None and self._replies.largest is not None:
            self.app.ask_terminal(LIMITS, None)
        self._canvas = self.canvas()
        return self._canvas

    def canvas(self) -> Canvas:
        from agent_tui.ui.screens.picture import COLORS, SIXELS, Canvas
        from agent_tui.ui.terminal.pictures import USUAL, cell_size

        found, replies = self._found, self._replies
        if found is None or replies is None:
            cell, colors, largest = cell_size(), COLORS, SIXELS
        else:
            cell = cell_size(replies.cell or USUAL)
            colors, largest = replies.colors or COLORS, replies.largest or SIXELS
        way = found.way if found is not None else "blocks"
        few = found is not None and found.few_colors
        return Canvas(way, cell, found is not None and found.wrapped, colors, largest, few)

    def lost(self) -> None:
        """Something else had the terminal."""
        if self._view.furnished:
            self._view.transcript.forget_pictures()

    def drawn_again(self) -> None:
        """Every cell was written: what was drawn over them is gone."""
        if self._screen is not None and self._screen.is_current:
            self._screen.again()

    def end(self) -> None:
        """The terminal is given back without any."""
        if self._screen is not None:
            self._screen.wipe()
        if self._view.furnished:
            self._view.transcript.drop_pictures()
