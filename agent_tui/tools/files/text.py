"""Reading whole text files to change them, and writing them back without losing anything."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.tools.base import ToolContext
from agent_tui.tools.files import seen
from agent_tui.tools.files.beneath import Place, at, info_of
from agent_tui.tools.files.opening import open_regular
from agent_tui.tools.files.replace import replace

EDIT_BYTES = 20_000_000

SHOWN_BYTES = 2_000_000
"""Up to this size a file is read on the event loop, to show what an edit would change: a few milliseconds."""


BOM = "\ufeff"


@dataclass(slots=True, frozen=True)
class Style:
    """How a text file is written beside its text: Windows line ends throughout, a mark of its encoding in front."""

    windows: bool = False
    mark: bool = False

    def __str__(self) -> str:
        return " and ".join(["CRLF line ends"] * self.windows + ["byte order mark"] * self.mark)

    def applied(self, text: str) -> str:
        """``text``, whose lines end with a newline, written so. Line ends and a mark that are there stay."""
        if self.windows and "\r\n" not in text:
            text = text.replace("\n", "\r\n")
        return BOM + text if self.mark and not text.startswith(BOM) else text


def style_of(text: str) -> Style:
    return Style("\r\n" in text and text.count("\r\n") == text.count("\n"), text.startswith(BOM))


def load(path: Path, name: str) -> tuple[str, os.stat_result]:
    """A text file's content, bytes that are not UTF-8 kept as surrogates, and its state. Raises ToolError for what
    is not a text file, or too large to edit."""
    with open_regular(path, name) as file:
        info = os.fstat(file.fileno())
        try:
            data = file.read(EDIT_BYTES + 1)
        except OSError as error:
            raise ToolError(f"{name} cannot be read: {error.strerror}.") from None
    if len(data) > EDIT_BYTES:
        raise ToolError(f"{name} is larger than {EDIT_BYTES:,} bytes; change it with bash.")
    if b"\0" in data:
        raise ToolError(f"{name} is a binary file; it cannot be edited as text.")
    return data.decode("utf-8", "surrogateescape"), info


def is_large(path: Path) -> bool:
    """Whether a file is too large to be read on the event loop."""
    info = info_of(path)
    return info is not None and info.st_size > SHOWN_BYTES


def save(
    context: ToolContext, path: Path, text: str, name: str, info: os.stat_result | None, mode: int | None = None
) -> None:
    """Writes ``text``, after telling ``before_change``; whole or not at all. ``info`` is the state of the file that
    ``text`` was made from, None where there was none; its permission bits are kept, and a new file gets those of
    ``mode``. Folders are created. Raises ToolError, also when the file is no longer in that state."""
    data = text.encode("utf-8", "surrogateescape")
    try:
        with at(path, make=True, change=True) as place:
            _require_state(place, name, info)
            context.before_change(path)
            seen.remember(context, path, replace(place, data, mode if info is None else None))
    except OSError as error:
        raise ToolError(f"{name} cannot be written: {error.strerror or error}.") from None
    context.after_change(path)


def remove(context: ToolContext, path: Path, name: str, info: os.stat_result) -> None:
    """Removes the file whose state is ``info``, after telling ``before_change``. Raises ToolError, also when the file
    is no longer in that state."""
    try:
        with at(path, change=True) as place:
            _require_state(place, name, info)
            context.before_change(path)
            place.unlink()
    except OSError as error:
        raise ToolError(f"{name} cannot be removed: {error.strerror or error}.") from None
    context.memory.files.pop(str(path), None)
    context.after_change(path)


def _require_state(place: Place, name: str, info: os.stat_result | None) -> None:
    try:
        now: os.stat_result | None = place.info()
    except FileNotFoundError:
        now = None
    if (now and seen.version(now)) != (info and seen.version(info)):
        raise ToolError(f"{name} has changed just now. Read it again, then change it.")
