"""The clipboard, both ways: what is copied on the screen, what is pasted into the prompt."""

from __future__ import annotations

import asyncio
import base64
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_tui.models.messages import AttachmentPart
    from agent_tui.ui.chat.host import TerminalClipboard
    from agent_tui.ui.chat.needs import Copies, StartsTasks, TakesPaste, Tells
    from agent_tui.ui.prompt.widget import Prompt


class Copying:
    """Into the clipboard: through the terminal, and the platform's own where there is one."""

    def __init__(self, terminal: TerminalClipboard, tells: Tells, tasks: StartsTasks) -> None:
        self._terminal = terminal
        self._tells = tells
        self._tasks = tasks

    def copy(self, text: str, what: str) -> None:
        self._terminal.copy_to_clipboard(text)
        self._tells.hint(f"Copied {what}")
        if not self._terminal.is_headless:
            self._tasks.begin(partial(self._natively, text))

    @staticmethod
    async def _natively(text: str) -> None:
        from agent_tui.commands.clipboard import copy_text

        await asyncio.to_thread(copy_text, text)


class Pasting:
    """Into the prompt: an image as itself, long text behind a placeholder."""

    def __init__(self, terminal: TerminalClipboard, prompt: Prompt) -> None:
        self._terminal = terminal
        self._prompt = prompt

    def pasted(self, text: str) -> None:
        """Text from the terminal's paste: an image's path becomes the image, long text a placeholder."""
        prompt = self._prompt
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        image = _image_file(text)
        prompt.insert_text(prompt.placeholders.image(image) if image else prompt.placeholders.collapse(text))
        prompt.focus()

    async def paste(self) -> None:
        """Ctrl+V: an image from the platform's clipboard, else its text, else what was copied here."""
        if not self._terminal.is_headless:
            from agent_tui.commands.clipboard import read_image, read_text

            image = await asyncio.to_thread(read_image)
            if image is not None:
                from agent_tui.models.messages import AttachmentPart

                part = AttachmentPart("clipboard.png", "image/png", data=base64.b64encode(image).decode())
                self._prompt.insert_text(self._prompt.placeholders.image(part))
                return
            text = await asyncio.to_thread(read_text)
            if text:
                self.pasted(text)
                return
        if self._terminal.clipboard:
            self.pasted(self._terminal.clipboard)


def _image_file(text: str) -> AttachmentPart | None:
    from agent_tui.commands.mentions import IMAGE_TYPES, attachment

    name = text.strip().strip("'\"").removeprefix("file://").replace("\\ ", " ")
    if "\n" in name or len(name) > 4096 or Path(name).suffix.lower() not in IMAGE_TYPES:
        return None
    path = Path(name).expanduser()
    try:
        return attachment(path, path.parent) if path.is_absolute() and path.is_file() else None
    except (OSError, ValueError):
        return None


_COPIES: type[Copies] = Copying
_PASTES: type[TakesPaste] = Pasting
