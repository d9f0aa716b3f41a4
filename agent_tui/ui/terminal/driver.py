"""A terminal that may vanish: the window is closed, the connection drops. Then the program ends instead of hanging.

Textual writes from a thread through a bounded queue. When the terminal is gone the thread dies of the error, the queue
fills up and the next frame waits for ever, so that not even a signal handler runs.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from agent_tui.terminal_input import TerminalInput, TerminalReader, typed_so_far
from agent_tui.text.clean import one_line
from agent_tui.ui.first_frame import ENTER, FirstFrame
from agent_tui.ui.textual_private.terminal import teach_keys, wrap_output

if TYPE_CHECKING:
    from textual.driver import Driver


SILENT = ("linux", "dumb")
"""Terminals that would write a question about their colours on the screen."""
ASK_FOR_KEYS, LEAVE_KEYS = "\x1b[>4;1m", "\x1b[>4m"
"""xterm's own way to tell Shift+Enter from Enter. tmux knows no other; others are asked in kitty's way by Textual."""


ASK_FOR_LATIN_KEYS = "\x1b[=4;2u"
"""Has kitty's protocol say where a key is on a Latin keyboard, beside what Textual asks it for, and as long."""
CALM = 0.1
"""Seconds after which the reader looks whether it is to end."""
READ = 1 << 16
"""Bytes that are read at once."""


BEGIN_FRAME, END_FRAME = "\x1b[?2026h", "\x1b[?2026l"
"""Between these two a terminal shows nothing new."""


class WholeFrames:
    """Makes one piece of what Textual writes in three."""

    def __init__(self) -> None:
        self._begun = ""

    def take(self, data: str) -> str:
        """Takes ``data`` and returns what is to be written now."""
        if data != BEGIN_FRAME and not self._begun:
            return data
        self._begun += data
        if data != END_FRAME:
            return ""
        whole, self._begun = self._begun, ""
        return whole if len(whole) > len(BEGIN_FRAME + END_FRAME) else ""


class Patient:
    """A text file whose writes never fail: after the first error they go nowhere, and ``lost`` is called once."""

    def __init__(self, file: TextIO, lost: Callable[[], None]) -> None:
        self._file = file
        self._lost: Callable[[], None] | None = lost

    def write(self, text: str) -> int:
        if self._lost is not None:
            try:
                return self._file.write(text)
            except (OSError, ValueError):
                self._fail()
        return len(text)

    def flush(self) -> None:
        if self._lost is not None:
            try:
                self._file.flush()
            except (OSError, ValueError):
                self._fail()

    def fileno(self) -> int:
        return self._file.fileno()

    def isatty(self) -> bool:
        return self._file.isatty()

    def _fail(self) -> None:
        lost, self._lost = self._lost, None
        if lost is not None:
            lost()


def driver_class(
    leave: Callable[[], object],
    failed: Callable[[Exception], object],
    background: Callable[[bool], object] | None = None,
    frame: FirstFrame | None = None,
) -> type[Driver] | None:
    """The driver for a terminal that may vanish; ``leave`` is then called on the event loop, ``failed`` where reading
    keys fails. ``background`` is called there with whether the terminal's background is light, once it says so; without
    it, it is not asked. What ``frame`` shows stays until Textual has drawn. None where Textual's own driver is to be
    used."""
    if sys.__stderr__ is None:
        return None
    from textual.drivers.linux_driver import LinuxDriver

    from agent_tui.ui.textual_private.keys import HearsReport, TerminalMessages

    class TerminalDriver(LinuxDriver):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            _reading.append(self.exit_event)
            self._events = asyncio.get_running_loop()
            self._frames = WholeFrames()
            self._entered = False
            self._typed_early = b""
            self.reader = TerminalReader()
            self.listeners: list[HearsReport] = []
            self._asks = background is not None
            self._asks_for_keys = "TMUX" in os.environ or "XTERM_VERSION" in os.environ
            teach_keys()
            wrap_output(self, lambda file: Patient(file, self._gone))

        def write(self, data: str) -> None:
            if self._entered and data == ENTER:
                self._entered = False  # entering once more would show an empty screen
            elif whole := self._frames.take(data):
                super().write(whole)

        def _heard(self, background: Callable[[bool], object], light: bool) -> None:
            self._events.call_soon_threadsafe(partial(background, light))

        def _gone(self) -> None:
            self._events.call_soon_threadsafe(leave)

        def ask(self, question: str, listener: HearsReport | None) -> None:
            """Asks the terminal, where there is one that answers; ``listener`` hears what it says from now on."""
            if self.input_tty:
                if listener is not None:
                    self.listeners.append(listener)
                self.write(question)
                self.flush()

        def start_application_mode(self) -> None:
            if background is not None and not self.listeners:
                from agent_tui.ui.terminal.answers import hears_background

                self.listeners.append(hears_background(partial(self._heard, background)))
            handed = frame.hand_over() if frame is not None else None
            self._entered = handed is not None
            early = handed[0] if handed is not None else typed_ahead(self.fileno)
            # Until now the terminal made line feeds of Enter, which would be Ctrl+J.
            self._typed_early = early.replace(b"\n", b"\r")
            super().start_application_mode()  # type: ignore[no-untyped-call]
            if handed is not None:
                self.attrs_before = handed[1]
            if self._asks and self.input_tty and os.environ.get("TERM") not in SILENT:
                from agent_tui.ui.terminal.answers import QUERY

                self._asks = False  # not again after a suspension: meanwhile a theme may have been chosen
                self.write(QUERY)
                self.flush()
            self.write(ASK_FOR_LATIN_KEYS)
            if self._asks_for_keys:
                self.write(ASK_FOR_KEYS)

        def stop_application_mode(self) -> None:
            if self._asks_for_keys:
                self.write(LEAVE_KEYS)
            super().stop_application_mode()

        def run_input_thread(self) -> None:
            """Reads keys until the terminal is somebody else's, or gone."""
            known, early = TerminalMessages(self.listeners), self._typed_early
            self._typed_early = b""
            self._tell(known, partial(self.reader.feed, early))
            while not self.exit_event.is_set():
                data = self._next_bytes(CALM if self.reader.wait is None else min(CALM, self.reader.wait))
                if data == b"":
                    self._gone()
                    break
                self._tell(known, self.reader.tick if data is None else partial(self.reader.feed, data))
            self._tell(known, self.reader.flush)

        def _next_bytes(self, seconds: float) -> bytes | None:
            """What comes within some seconds, if anything; empty where the terminal is gone."""
            try:
                return os.read(self.fileno, READ) if select.select([self.fileno], [], [], seconds)[0] else None
            except OSError:
                return b""

        def _tell(self, known: TerminalMessages, read: Callable[[], Sequence[TerminalInput]]) -> None:
            """Tells what was read. A fault costs what it is about, and is shown; reading goes on."""
            try:
                inputs = read()
            except Exception as error:
                inputs, self.reader = [], TerminalReader()
                self._events.call_soon_threadsafe(partial(failed, error))
            for one in inputs:
                try:
                    for message in known.of(one):
                        self.process_message(message)
                except Exception as error:
                    self._events.call_soon_threadsafe(partial(failed, error))

    return TerminalDriver


_reading: list[threading.Event] = []


def end_reading() -> None:
    """Ends the threads that read keys. Textual does so on the way out, unless something fails there first: such a
    thread kept the process, reading the end of a terminal that was gone, for ever."""
    for ends in _reading:
        ends.set()


def typed_ahead(terminal: int) -> bytes:
    """What was typed before the terminal sends keys; empty where it is none."""
    import termios

    try:
        return typed_so_far(terminal) if os.isatty(terminal) else b""
    except (OSError, termios.error):
        return b""


class ReachesTerminal(Protocol):
    def write_to_terminal(self, sequence: str) -> None:
        """Sends a control sequence of ours; nothing happens without a terminal."""

    def write_outside(self, sequence: str) -> None:
        """The same for the terminal around tmux or GNU screen."""

    def bell(self) -> None: ...


class Window:
    """The window that the terminal is shown in."""

    def __init__(self, terminal: ReachesTerminal) -> None:
        self._terminal = terminal

    def push_title(self) -> None:
        """Keeps the title so that ``pop_title`` can put it back."""
        self._terminal.write_to_terminal("\x1b[22;2t")

    def pop_title(self) -> None:
        self._terminal.write_to_terminal("\x1b[23;2t")

    def set_title(self, text: str) -> None:
        self._terminal.write_to_terminal(f"\x1b]2;{one_line(text, 120)}\x07")

    def notify(self, text: str) -> None:
        """A bell and, where the terminal knows OSC 9, a desktop notification."""
        self._terminal.write_outside(f"\x1b]9;{one_line(text, 200)}\x07")
        self._terminal.bell()


def on_termination(leave: Callable[[], object]) -> None:
    """Calls ``leave`` on the running loop when the process is to end; without effect where the platform has no way."""
    loop = asyncio.get_running_loop()
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None:
            try:
                loop.add_signal_handler(number, leave)
            except (NotImplementedError, RuntimeError, ValueError):
                return
