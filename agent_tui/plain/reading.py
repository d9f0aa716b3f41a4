"""What is read, and when: the main thread's part. The agent's loop says what it wants; lines go back to it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Literal, NamedTuple, Protocol

from agent_tui.plain.editing import Editing

PASTE = 0.05
"""Seconds within which lines that follow each other are one text: nobody types so fast, a paste comes at once."""


AGAIN = 0.02
"""Seconds until the reading thread is called again."""


class Want(NamedTuple):
    """What the loop wants read: a message (``edit``), the answer to a question (``answer``), whatever is typed
    while the agent works (``nothing``), and no more (``end``). ``prompt`` is what an editor shows before a message."""

    kind: Literal["edit", "answer", "nothing", "end"]
    prompt: str = ""


class Listener(Protocol):
    """Who is told; its methods are called in the reading thread."""

    def line(self, text: str) -> None:
        """A line, or a paste of several."""

    def over(self) -> None:
        """Nothing more can be read, or Ctrl+D on an empty line."""

    def interrupted(self, dropped: bool) -> None:
        """Ctrl+C. ``dropped``: there was text in the line, which is gone."""

    def ended(self) -> None:
        """The program is asked to end."""


class _SteppedAside(BaseException):
    """Raised in the reading thread by a signal: something else is wanted now."""


class Reading:
    """Reads standard input. ``terminal``: people type there, also while the agent works; of anything else a line is
    read when one is wanted. ``editing`` edits lines of messages; without it the terminal's own line is read."""

    def __init__(self, descriptor: int, terminal: bool, editing: Editing | None) -> None:
        self._descriptor = descriptor
        self._terminal = terminal
        self._editing = editing
        self._want = self._serving = Want("nothing")
        self._lock = threading.Lock()
        self._waiting_in: threading.Event | None = None  # a call that a signal may end; set once it has
        self._in_editor = False
        self._main = threading.get_ident()
        self._rest = b""
        self._ahead = ""
        self._unheard = 0
        self._over = False
        self._listener: Listener | None = None
        self._work: Callable[[], None] | None = None
        self._worked = threading.Event()

    # The loop's side

    def want(self, want: Want) -> None:
        """What is wanted from now on; of what was read and not heard yet, nothing: that comes first."""
        with self._lock:
            if want == self._want or (self._unheard and want.kind in ("edit", "answer")):
                return
            self._want = want
        self._call_off()

    def heard(self) -> None:
        """A line has reached the loop."""
        with self._lock:
            self._unheard -= 1

    def step_aside(self) -> bool:
        """Takes the editor's line off the terminal, so that something can be written; what was typed is kept for when
        it is wanted again. False where there is none."""
        if threading.get_ident() == self._main:
            return False
        with self._lock:
            if not self._in_editor:
                return False
            self._want = Want("nothing")
        self._call_off()
        return True

    def keep(self, text: str) -> None:
        """Text that stands in the next line that is edited."""
        if self._editing is not None:
            self._editing.kept = text

    def typed_ahead(self) -> str:
        """Takes what was typed before a question is put, which cannot be its answer: whole lines are returned, the
        beginning of one is kept for the next message."""
        self._ahead = ""
        if self._terminal:
            self.lend(self._take_ahead)
        return self._ahead

    def lend(self, work: Callable[[], None]) -> None:
        """Has ``work`` done where lines are read otherwise, and waits for its end. Nothing is read meanwhile."""
        self._worked.clear()
        self._work = work
        self._call_off()
        self._worked.wait()

    def _call_off(self) -> None:
        """Ends the call that the reading thread waits in now, if it does: a signal that comes right before the call
        does not end it, so it is sent until it does."""
        waiting = self._waiting_in
        while waiting is not None and not waiting.is_set():
            signal.pthread_kill(self._main, signal.SIGUSR1)
            waiting.wait(AGAIN)

    # The main thread's side

    def serve(self, listener: Listener) -> None:
        """Reads until ``end`` is wanted."""
        self._listener = listener
        with self._signals():
            while True:
                if self._work is not None:
                    work, self._work = self._work, None
                    try:
                        work()
                    finally:
                        self._worked.set()
                want = self._serving = self._want
                if want.kind == "end":
                    return
                with contextlib.suppress(_SteppedAside):
                    self._read(want, listener)

    def _read(self, want: Want, listener: Listener) -> None:
        if want.kind == "edit" and self._editing is not None:
            self._edit(want, listener, self._editing)
        elif self._over or (want.kind == "nothing" and not self._terminal):
            self._until([])
        else:
            text = self._line()
            if text is None:
                self._over = not self._terminal
                self._done(want)
                listener.over()
            else:
                self._done(want)
                listener.line(text)

    def _edit(self, want: Want, listener: Listener, editing: Editing) -> None:
        with self._waiting(editor=True):
            text = editing.line(want.prompt, self._more)
        self._done(want)
        if text is None:
            listener.over()
        else:
            listener.line(text)

    def _done(self, want: Want) -> None:
        """What was wanted came: the loop says what is next."""
        with self._lock:
            self._unheard += 1
            if self._want == want:
                self._want = Want("nothing")

    def _more(self) -> bool:
        """Whether more comes at once: a paste goes on."""
        return bool(select.select([self._descriptor], [], [], PASTE)[0])

    def _line(self) -> str | None:
        """The next line, or what was pasted; None at the end."""
        lines = [self._one()]
        if lines[0] is None:
            return None
        while self._terminal and (b"\n" in self._rest or self._more()):
            line = self._one()
            if line is None:
                break
            lines.append(line)
        return "\n".join(line for line in lines if line is not None)

    def _one(self) -> str | None:
        while b"\n" not in self._rest:
            self._until([self._descriptor])
            try:
                data = os.read(self._descriptor, 1 << 16)
            except OSError:  # the terminal is gone
                data = b""
            if not data:
                rest, self._rest = self._rest, b""
                return rest.decode("utf-8", "replace") if rest else None
            self._rest += data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode("utf-8", "replace")

    def _take_ahead(self) -> None:
        from agent_tui.plain.editing import unfinished

        data = self._rest + unfinished(self._descriptor)
        self._rest = b""
        self._ahead, _, begun = data.replace(b"\r", b"\n").decode("utf-8", "replace").rpartition("\n")
        if self._editing is not None:
            self._editing.kept += begun

    def _until(self, descriptors: list[int]) -> None:
        with self._waiting():
            select.select(descriptors, [], [])

    @contextlib.contextmanager
    def _waiting(self, editor: bool = False) -> Iterator[None]:
        over = threading.Event()
        self._in_editor, self._waiting_in = editor, over
        try:
            if self._want != self._serving or self._work is not None:
                raise _SteppedAside
            yield
        finally:
            self._waiting_in, self._in_editor = None, False
            over.set()

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        handlers = {signal.SIGUSR1: self._on_call, signal.SIGINT: self._on_interrupt}
        handlers |= dict.fromkeys((signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT), self._on_end)
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def _on_call(self, number: int, frame: FrameType | None) -> None:
        if self._waiting_in is not None:
            if self._in_editor and self._editing is not None:
                self._editing.put_aside()
            self._waiting_in = None
            raise _SteppedAside

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        edits = self._editing if self._in_editor else None
        dropped = edits is not None and edits.drop()
        if edits is not None:
            # First of all: the loop must not find an editor that could step aside and keep the line.
            self._want, self._waiting_in, self._in_editor = Want("nothing"), None, False
        if self._listener is not None:
            self._listener.interrupted(dropped)
        if edits is not None:
            raise _SteppedAside

    def _on_end(self, number: int, frame: FrameType | None) -> None:
        if self._listener is not None:
            self._listener.ended()
