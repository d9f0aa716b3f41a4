"""Pictures of the conversation: in it where the terminal can hold them, else each on a screen of its own."""

from __future__ import annotations

import asyncio
import base64
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from agent_tui.text.clean import one_line
from agent_tui.ui.chat.view import ChatPart

if TYPE_CHECKING:
    from agent_tui.config import Images
    from agent_tui.engine.graphics import Graphics, Replies
    from agent_tui.models.messages import AttachmentPart
    from agent_tui.ui.chat.view import MainView
    from agent_tui.ui.screens.picture import Canvas, PictureScreen

NO_VIEWER = "No viewer to be had: xdg-open is not installed, or there is no display."


class Pictures(ChatPart):
    """Finds out how to show them, after the first frame and beside it."""

    def __init__(self, view: MainView) -> None:
        super().__init__(view)
        self._setting: Images = view.settings.images
        self._in_page = False
        self._found: Graphics | None = None
        self._tmux = ""
        self._screen: PictureScreen | None = None
        self._files: TemporaryDirectory[str] | None = None
        """Of pictures that a viewer shows."""

    def begin(self, in_page: bool) -> None:
        """Asks tmux and the terminal, where there is a reason to. ``in_page``: a page of the browser stands for it."""
        self._in_page = in_page
        self._view.begin(self._find, group="pictures")

    async def _find(self) -> None:
        from agent_tui.engine.graphics import IN_A_PAGE, described_by_tmux, graphics

        if os.environ.get("TMUX") and self._setting != "off":
            self._tmux = await asyncio.to_thread(described_by_tmux)
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
        if self._view.furnished:
            from agent_tui.engine.graphics import graphics

            self.use(graphics(self._setting, os.environ, lambda: self._tmux, replies))
            self._draw_again()

    def use(self, found: Graphics) -> None:
        """From now on they are shown like this."""
        if found.way in ("blocks", "inline") and self.app.console.color_system not in ("256", "truecolor"):
            from agent_tui.engine.graphics import TOO_FEW_COLORS

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
        system = ColorSystem.EIGHT_BIT if self._has_few_colors(found) else ColorSystem.TRUECOLOR
        begin, changed = self._view.begin, transcript.changed
        album = Album(self.app, cell_size(), system, found.wrapped, begin, changed)
        transcript.use_pictures(album)

    def _has_few_colors(self, found: Graphics) -> bool:
        return found.few_colors or self.app.console.color_system == "256"

    def open(self, which: str) -> None:
        """Shows one on a screen of its own: the newest whose name has ``which`` in it, or the one with that key."""
        from agent_tui.ui.screens.picture import PictureScreen
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
        why = found.detail.rpartition(": ")[2] if found is not None and found.way == "blocks" else ""
        viewer = None if self._in_page else self._open_in_viewer
        root = self._view.transcript.root
        self._screen = PictureScreen(self.app, self.canvas, parts, numbers[-1], root, why, viewer)
        self.app.push_screen(self._screen)

    def canvas(self) -> Canvas:
        """What the screen draws with."""
        from agent_tui.ui.screens.picture import Canvas
        from agent_tui.ui.terminal.pictures import cell_size

        found = self._found
        if found is None or found.way != "inline":
            return Canvas(False, cell_size())
        return Canvas(True, cell_size(), found.wrapped, self._has_few_colors(found))

    async def _open_in_viewer(self, part: AttachmentPart) -> str:
        """Has the user's viewer show one; what is wrong where it does not."""
        from agent_tui.commands.desktop import open_picture
        from agent_tui.models.image_headers import base64_type

        # The image as it is stored, in a folder of the user's: what lies at its path may be another by now.
        kind = base64_type(part.data or "")
        if kind is None:
            return "It is damaged or not an image."
        self._files = self._files or TemporaryDirectory(prefix="agent-tui-")
        path = Path(self._files.name, f"{id(part):x}.{kind.partition('/')[2]}")
        try:
            await asyncio.to_thread(path.write_bytes, base64.b64decode(part.data or ""))
            shown = await asyncio.to_thread(open_picture, path)
        except (OSError, ValueError) as error:
            return f"It cannot be opened: {one_line(str(error), 80)}"
        return "" if shown else NO_VIEWER

    def lost(self) -> None:
        """Something else had the terminal, or every cell is written again."""
        if self._view.furnished:
            self._view.transcript.forget_pictures()
        self._draw_again()

    def _draw_again(self) -> None:
        if self._screen is not None and self._screen.is_current:
            self._screen.again()

    def end(self) -> None:
        """The terminal is given back without any."""
        if self._screen is not None:
            self._screen.drop()
        if self._view.furnished:
            self._view.transcript.drop_pictures()
        if self._files is not None:
            self._files.cleanup()
