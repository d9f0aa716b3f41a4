"""What a command says: text without what acts on a terminal and without the user's keys, of bounded size."""

from __future__ import annotations

import codecs
import logging
from collections import deque
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.providers.secrets import Redactor
from agent_tui.text.clean import one_line, program_output
from agent_tui.tools.output import Capped, Collector

log = logging.getLogger(__name__)

TAIL = 100_000
"""Characters of the newest output that people can look at."""

_LINE = 200
_NEAR = 4_000  # how far back a last line is looked for
_OPEN_LINE = 100_000


class CommandOutput:
    """Takes a command's bytes. ``limit`` is how many characters of what is new ``take`` answers with; memory is bounded
    by it and by ``TAIL``, the file in ``folder``, where the whole of a long output is, by ``LOG_BYTES``."""

    def __init__(self, folder: Path, limit: int, secrets: Redactor) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._secrets, self._masked = secrets, secrets.stream()
        self._held = ""  # its meaning depends on what follows: an open escape sequence or line
        self._collector = Collector(limit, folder, "command")
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self.problem = ""
        """Why not all of it is in the file."""

    @property
    def path(self) -> Path:
        return self._collector.path

    def open(self) -> None:
        """Writes all of it to the file. Raises ToolError where that cannot be."""
        self._collector.open()
        if self.problem:
            raise ToolError(self.problem)

    def feed(self, data: bytes, last: bool = False) -> str:
        """Returns the text that is certain now; all of it with the ``last`` piece."""
        text = self._held + self._decode(data, last)
        cut = len(text) if last or len(text) > _OPEN_LINE else text.rfind("\n") + 1
        ready, self._held = self._masked.feed(program_output(text[:cut])), text[cut:]
        ready += self._masked.flush() if last else ""
        if ready:
            self._tail.append(ready)
            self._tail_size += len(ready)
            while self._tail_size - len(self._tail[0]) >= TAIL:
                self._tail_size -= len(self._tail.popleft())
        try:
            self._collector.feed(ready)
        except ToolError as error:
            self._failed(error)
        return ready

    def take(self) -> Capped:
        """Returns the output that is new since the last time, as far as it is certain."""
        return self._collector.take()

    @property
    def open_line(self) -> str:
        """The line that is not finished, as it is now."""
        return self._secrets.mask(program_output(self._held)) if self._held else ""

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

    def close(self) -> None:
        """Writes nothing more to the file."""
        try:
            self._collector.close()
        except ToolError as error:
            self._failed(error)

    def _failed(self, error: ToolError) -> None:
        log.warning("The output of a command is not saved any more: %s", error)
        self.problem = self.problem or str(error)
