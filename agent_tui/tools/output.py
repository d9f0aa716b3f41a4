"""Tool output for the model: capped, and the rest saved where ``read`` reaches it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import BinaryIO

from agent_tui.errors import ToolError
from agent_tui.models.messages import new_id, saved_note
from agent_tui.paths import private_dir
from agent_tui.records import dataclass
from agent_tui.text.numbers import lines_in
from agent_tui.tools.sandbox.keep import FULL

LOG_BYTES = 20_000_000
"""Size of a file with output. A server that talks for days must not fill the disk."""


@dataclass(slots=True, frozen=True)
class Capped:
    """``text`` is at most about ``limit`` characters; ``path`` holds everything when something was left out. ``lines``
    are those of everything, ``sent`` those that are in ``text``, parts of lines too."""

    text: str
    path: Path | None
    characters: int
    lines: int = 0
    sent: int = 0

    def counted(self) -> dict[str, int]:
        """For a tool's display, where the transcript looks for the true number of lines."""
        return {"lines": self.lines, "sent": self.sent} if self.path is not None else {}


class Collector:
    """Takes output in pieces, keeps of what is new the beginning and the end, and writes everything to the file
    ``path`` once it is too long, or once that is opened.

    ``limit`` is in characters. Memory stays bounded by it; the file is private to the user and has at most
    ``LOG_BYTES``. Whatever touches it raises ToolError where the disk says no, and it is closed then.
    """

    def __init__(self, limit: int, folder: Path, name: str) -> None:
        self._limit = max(limit, 200)
        self._half = self._limit // 2
        self.path = folder / f"{new_id(name)}.txt"
        self._file: BinaryIO | None = None
        self._opened = False
        self._size = 0
        self._begin()

    def _begin(self) -> None:
        self._head = self._tail = ""
        self._new = self._newlines = 0
        self._open_line = False

    def feed(self, text: str) -> None:
        if not text:
            return
        self._new += len(text)
        self._newlines += text.count("\n")
        self._open_line = not text.endswith("\n")
        try:
            if self._new > self._limit:
                self.open()
            self._write(text)
        finally:
            room = 0 if self._tail else self._half - len(self._head)
            self._head += text[:room]
            self._tail = (self._tail + text[room:])[self._half - self._limit :]

    def take(self) -> Capped:
        """Returns what is new since the last time."""
        lines, left = self._newlines + self._open_line, self._new - len(self._head) - len(self._tail)
        if left:
            text = f"{self._head}\n{saved_note(left, self.path)}\n{self._tail}"
            capped = Capped(text, self.path, self._new, lines, lines_in(self._head) + lines_in(self._tail))
        else:
            capped = Capped(self._head + self._tail, None, self._new, lines, lines)
        self._begin()
        return capped

    def open(self) -> None:
        """Writes the output to its file from now on, with what came before; before anything of it was taken."""
        if self._opened:
            return
        self._opened = True
        try:
            private_dir(self.path.parent)
            self._file = self.path.open("xb")
            self.path.chmod(0o600)
        except OSError as error:
            raise _unsaved(error) from None
        self._write(self._head + self._tail)

    def _write(self, text: str) -> None:
        if self._file is None or self._size >= LOG_BYTES:
            return
        data = text.encode("utf-8", "replace")
        room = LOG_BYTES - self._size
        self._size += len(data)
        try:
            self._file.write(data[:room] + (FULL if self._size >= LOG_BYTES else b""))
            self._file.flush()
        except OSError as error:
            with contextlib.suppress(ToolError):
                self.close()
            raise _unsaved(error) from None

    def close(self) -> None:
        """Writes nothing more to the file."""
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:  # some disks say only here that they are full
                raise _unsaved(error) from None


def _unsaved(error: OSError) -> ToolError:
    return ToolError(f"The output is too long to send and could not be saved: {error}")


def cap(text: str, limit: int, spill_dir: Path, name: str) -> Capped:
    """``text`` cut to ``limit`` characters, beginning and end kept; the whole goes to a file in ``spill_dir``.
    Raises ToolError when that cannot be written."""
    collector = Collector(limit, spill_dir, name)
    collector.feed(text)
    collector.close()
    return collector.take()
