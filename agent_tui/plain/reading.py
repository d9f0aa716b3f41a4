"""Reads lines when the chat wants them: the chat says what it wants, and is told of what was typed.

Lines that somebody else edits (a script, a pipe, a terminal whose output goes elsewhere, an editor's shell) are read
here; those of a terminal in ``typed``."""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeVar

from agent_tui.terminal_input import pasted_text, typed_so_far

T = TypeVar("T")

PASTE = 0.05
"""Seconds within which lines that follow each other are one text: nobody types so fast, a paste comes at once."""


class Want(NamedTuple):
    """The input that the chat wants read: a message (``edit``), the answer to a question (``answer``), whatever is
    typed while the agent works (``nothing``), and no more (``end``). ``prompt`` stands before it."""

    kind: Literal["edit", "answer", "nothing", "end"]
    prompt: str = ""


def what_is_there(descriptor: int) -> bytes | None:
    """Returns the bytes that can be read now: None where there is nothing after all, empty at the end and where the
    terminal is gone."""
    try:
        return os.read(descriptor, 1 << 16)
    except (BlockingIOError, InterruptedError):
        return None
    except OSError:
        return b""


class Listener(NamedTuple):
    """Who is told what was read."""

    line: Callable[[str], None]
    """A line, or several that were pasted and then sent."""
    lines: Callable[[str], None]
    """Several lines that came at once: a message, whatever stands in them."""
    over: Callable[[], None]
    """Nothing more can be read, or Ctrl+D on an empty line."""
    interrupted: Callable[[], None]
    """Ctrl+C."""
    ended: Callable[[], None]
    """The program is asked to end."""


class Reads(ABC):
    """A source of lines. Everything happens on the running loop: nothing waits in a call that a signal would have to
    end."""

    drawn = False
    """Whether it shows prompts and what is typed; else whoever wants a line writes the prompt."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._listener: Listener | None = None
        self._want = Want("nothing")
        self.lent = False
        """True when the terminal is somebody else's now."""

    @property
    def holds(self) -> bool:
        """True when what is to be written has to wait."""
        return False

    @abstractmethod
    def open(self, listener: Listener) -> None:
        """Begins to listen."""

    @abstractmethod
    def want(self, want: Want) -> None:
        """Sets what is wanted from now on."""

    @abstractmethod
    def keep(self, text: str) -> None:
        """Text that stands in the next message that is typed."""

    @abstractmethod
    def bring_back(self, draft: str) -> None:
        """A draft of an earlier run stands in the line, unless something is typed before it can be seen."""

    @abstractmethod
    def drop(self) -> bool:
        """Drops what stands in the line, which is not wanted; returns False where nothing does."""

    @abstractmethod
    def typed_ahead(self) -> str:
        """Takes what was typed before a question is put, which cannot be its answer: whole lines are returned, the
        beginning of one is kept for the next message."""

    @abstractmethod
    def step_aside(self) -> None:
        """Something is about to be written."""

    @abstractmethod
    async def lend(self, work: Callable[[], T]) -> T:
        """Lets ``work``, which may block, have the terminal."""

    @abstractmethod
    def close(self) -> str:
        """Listens no more and leaves everything as it was; returns what stood in the line."""


class LineSource(Reads):
    """Reads lines that somebody else edits. ``live``: people type there, also while the agent works; of anything else a
    line is read when one is wanted."""

    def __init__(self, descriptor: int, live: bool) -> None:
        super().__init__(descriptor)
        self._live = live
        self._rest = b""
        self._whole: list[str] = []
        self._begun = ""
        self._over = False
        self._heard = False
        self._paste: asyncio.TimerHandle | None = None

    def open(self, listener: Listener) -> None:
        self._listener = listener
        self._serve()

    def want(self, want: Want) -> None:
        self._want = want
        self._serve()

    def keep(self, text: str) -> None:
        self._begun = text

    def bring_back(self, draft: str) -> None:
        """Nobody could change it here."""

    def step_aside(self) -> None:
        """Nothing of ours stands there."""

    def drop(self) -> bool:
        dropped = bool(self._whole)
        self._whole.clear()
        return dropped

    def close(self) -> str:
        self.want(Want("end"))
        self._listener = None
        if self._paste is not None:
            self._paste.cancel()
        return ""

    def typed_ahead(self) -> str:
        if not self._live:
            return ""
        data = self._rest + typed_so_far(self._descriptor)
        self._rest = b""
        ahead, newline, begun = data.replace(b"\r", b"\n").decode("utf-8", "replace").rpartition("\n")
        whole, self._whole = [*self._whole, *([ahead] if newline else [])], []
        self._begun += begun
        return "\n".join(whole)

    async def lend(self, work: Callable[[], T]) -> T:
        self.lent = True
        self._serve()
        try:
            return await asyncio.to_thread(work)
        finally:
            self.lent = False
            self._serve()

    # Reading

    @property
    def _wanted(self) -> bool:
        if self._want.kind == "end" or self._over or self.lent or self._listener is None:
            return False
        return self._live or self._want.kind in ("edit", "answer")

    def _serve(self) -> None:
        """Listens where something is wanted, and only then: what is not ours yet stays where it is."""
        if not self._live and self._wanted and b"\n" in self._rest:
            self._loop.call_soon(self._next)
        elif self._wanted and not self._heard:
            try:
                self._loop.add_reader(self._descriptor, self._read)
                self._heard = True
            except PermissionError:  # a file: it can always be read
                self._loop.call_soon(self._read)
        elif self._heard and not self._wanted:
            self._heard = False
            self._loop.remove_reader(self._descriptor)

    def _read(self) -> None:
        if not self._wanted:
            return
        data = what_is_there(self._descriptor)
        if data is None:
            return
        if not data:
            self._end()
            return
        self._rest += data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if self._live:
            *whole, self._rest = self._rest.split(b"\n")
            self._whole += [line.decode("utf-8", "replace") for line in whole]
            if self._paste is not None:
                self._paste.cancel()
            self._paste = self._loop.call_later(PASTE, self._pasted)
        else:
            self._next()

    def _pasted(self) -> None:
        self._paste = None
        whole, self._whole = self._whole, []
        if whole:
            self._tell("\n".join(map(pasted_text, whole)), several=len(whole) > 1)

    def _next(self) -> None:
        if self._wanted and b"\n" in self._rest:
            line, _, self._rest = self._rest.partition(b"\n")
            self._give(line)
        elif self._wanted:
            self._serve()

    def _give(self, line: bytes) -> None:
        """Tells the line that was wanted."""
        self._want = Want("nothing")
        self._serve()
        self._tell(line.decode("utf-8", "replace"))

    def _end(self) -> None:
        rest, self._rest = self._rest, b""
        if rest and not self._live:
            self._give(rest)
            return
        self._pasted()
        self._over = True
        self._serve()
        if self._listener is not None:
            self._listener.over()

    def _tell(self, text: str, *, several: bool = False) -> None:
        if self._want.kind != "answer":
            text, self._begun = self._begun + text, ""
        if self._listener is not None:
            (self._listener.lines if several else self._listener.line)(text)
