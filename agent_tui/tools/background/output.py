"""The output of a command that nobody waits for: cleaned, in a file of bounded size, and what is new of it at hand."""

from __future__ import annotations

import codecs
import logging
import os
from collections import deque
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.models.messages import new_id
from agent_tui.models.saved_output import saved_note
from agent_tui.paths import private_dir
from agent_tui.providers.secrets import Redactor
from agent_tui.text.clean import one_line, program_output
from agent_tui.tools.sandbox.keep import FULL

log = logging.getLogger(__name__)

LOG_BYTES = 20_000_000
"""Size of a log file. A server that talks for days must not fill the disk; its newest words are kept in memory."""

TAIL = 100_000
"""Characters of the newest output that people can look at."""

_LINE = 200
_NEAR = 4_000  # how far back a last line is looked for
_OPEN_LINE = 100_000


class Cleaned:
    """What a program writes for a terminal, as text: without what acts on one, and without the user's keys."""

    def __init__(self, secrets: Redactor) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._secrets, self._masked = secrets, secrets.stream()
        self._held = ""  # its meaning depends on what follows: an open escape sequence or line

    def feed(self, data: bytes, last: bool = False) -> str:
        """What is certain now; all of it with the ``last`` piece."""
        text = self._held + self._decode(data, last)
        cut = len(text) if last or len(text) > _OPEN_LINE else text.rfind("\n") + 1
        ready, self._held = self._masked.feed(program_output(text[:cut])), text[cut:]
        return ready + self._masked.flush() if last else ready

    @property
    def open_line(self) -> str:
        """The line that is not finished, as it is now."""
        return self._secrets.mask(program_output(self._held)) if self._held else ""


class JobOutput:
    """Takes output in pieces. ``limit`` is how many characters of what is new ``take`` answers with; memory is bounded
    by it and by ``TAIL``, the file by ``LOG_BYTES``. Raises ToolError when the file cannot be made."""

    def __init__(self, folder: Path, name: str, limit: int) -> None:
        self._limit = max(limit, 200)
        self._head = self._rest = ""
        self._new = 0
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._size = 0
        try:
            self.path = private_dir(folder) / f"{new_id(name)}.txt"
            self._file: int | None = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ToolError(f"The output cannot be kept: {error}") from None

    def feed(self, text: str) -> None:
        if not text:
            return
        self._write(text)
        self._tail.append(text)
        self._tail_size += len(text)
        while self._tail_size - len(self._tail[0]) >= TAIL:
            self._tail_size -= len(self._tail.popleft())
        self._new += len(text)
        room = max(0, self._limit // 2 - len(self._head)) if not self._rest else 0
        self._head += text[:room]
        self._rest = (self._rest + text[room:])[-(self._limit - self._limit // 2) :]

    def take(self) -> str:
        """What is new since the last time."""
        left = self._new - len(self._head) - len(self._rest)
        text = f"{self._head}\n{saved_note(left, self.path)}\n{self._rest}" if left else self._head + self._rest
        self._head, self._rest, self._new = "", "", 0
        return text

    @property
    def tail(self) -> str:
        """The newest output, at most ``TAIL`` characters."""
        return "".join(self._tail)[-TAIL:]

    @property
    def last_line(self) -> str:
        """The last line that says something, short enough for a list."""
        newest = ""
        for text in reversed(self._tail):
            newest = text[-_NEAR:] + newest
            if len(newest) >= _NEAR:
                break
        line = next((line for line in reversed(newest.split("\n")) if line.strip()), "")
        return one_line(line, _LINE)

    def _write(self, text: str) -> None:
        if self._file is None or self._size >= LOG_BYTES:
            return
        data = text.encode("utf-8", "replace")
        room = LOG_BYTES - self._size
        self._size += len(data)
        try:
            os.write(self._file, data[:room] + (FULL if self._size >= LOG_BYTES else b""))
        except OSError as error:
            log.warning("The output of a background command is not saved any more: %s", error)
            self.close()

    def close(self) -> None:
        """Writes nothing more to the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
