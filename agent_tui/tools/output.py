"""Tool output for the model: capped, and the rest saved where ``read`` reaches it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TextIO

from agent_tui.errors import ToolError
from agent_tui.models.messages import new_id, saved_note
from agent_tui.paths import private_dir
from agent_tui.records import dataclass
from agent_tui.text.numbers import lines_in

SPILL_LIMIT = 50_000_000  # characters of one output kept on disk


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
    """Takes output in pieces, keeps its beginning and end, and writes everything to a file once it is too long.

    ``limit`` is in characters. Memory stays bounded by it; the file is private to the user. Whatever touches the file
    raises ToolError where the disk says no, and the file is closed then.
    """

    def __init__(self, limit: int, spill_dir: Path, name: str) -> None:
        self._limit = max(limit, 200)
        self._head_size = self._limit // 2
        self._spill_dir, self._name = spill_dir, name
        self._head = ""
        self._tail = ""
        self._file: TextIO | None = None
        self._path: Path | None = None
        self.characters = 0
        self._newlines = 0
        self._open_line = False

    def feed(self, text: str) -> None:
        if not text:
            return
        self.characters += len(text)
        self._newlines += text.count("\n")
        self._open_line = not text.endswith("\n")
        if self._path is None and len(self._head) + len(text) <= self._limit:
            self._head += text
            return
        if self._path is None:
            self._open()
            everything, self._head = self._head + text, ""
            self._write(everything)
            self._head, self._tail = everything[: self._head_size], everything[self._head_size :]
        else:
            self._write(text)
            self._tail += text
        keep = self._limit - self._head_size
        if len(self._tail) > keep:
            self._tail = self._tail[-keep:]

    def finish(self) -> Capped:
        """Returns the output as the model gets it; closes the file."""
        lines = self._newlines + self._open_line
        if self._path is None:
            return Capped(self._head, None, self.characters, lines, lines)
        self.close()
        left = self.characters - len(self._head) - len(self._tail)
        text = f"{self._head}\n{saved_note(left, self._path)}\n{self._tail}"
        return Capped(text, self._path, self.characters, lines, lines_in(self._head) + lines_in(self._tail))

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                raise _unsaved(error) from None

    def _open(self) -> None:
        try:
            self._path = private_dir(self._spill_dir) / f"{new_id(self._name)}.txt"
            self._file = self._path.open("x", encoding="utf-8", errors="replace", newline="\n")
            self._path.chmod(0o600)
        except OSError as error:
            raise _unsaved(error) from None

    def _write(self, text: str) -> None:
        if self._file is not None and self.characters <= SPILL_LIMIT:
            try:
                self._file.write(text)
            except OSError as error:
                with contextlib.suppress(ToolError):
                    self.close()
                raise _unsaved(error) from None


def _unsaved(error: OSError) -> ToolError:
    return ToolError(f"The output is too long to send and could not be saved: {error}")


def cap(text: str, limit: int, spill_dir: Path, name: str) -> Capped:
    """``text`` cut to ``limit`` characters, beginning and end kept; the whole goes to a file in ``spill_dir``.
    Raises ToolError when that cannot be written."""
    collector = Collector(limit, spill_dir, name)
    collector.feed(text)
    return collector.finish()
