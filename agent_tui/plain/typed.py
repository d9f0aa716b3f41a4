"""Lines that are typed at a terminal and edited here, with history, search and completion; the terminal's modes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import termios
from collections.abc import Callable, Sequence
from typing import NamedTuple

from agent_tui.plain.line import Completes, InputRow, LineEditor, meaning_of, propose, width_of
from agent_tui.plain.line_writer import LineWriter
from agent_tui.plain.reading import Listener, Reads, T, Want, what_is_there
from agent_tui.records import dataclass
from agent_tui.terminal_input import KeyPress, PastedText, TerminalInput, TerminalReader, TypedText
from agent_tui.text.numbers import plural


@dataclass(eq=False)
class Modes:
    """Has a terminal hand over every key as it is pressed, and be afterwards what it was before."""

    _descriptor: int
    _before: list[int | list[bytes | int]] | None = None

    def enter(self) -> None:
        """Every key comes at once, Ctrl+C among them: in the order in which they are pressed, none of them lost.
        Nothing is changed while the program is in the background, nor where the terminal is gone."""
        with contextlib.suppress(termios.error, OSError):
            if os.tcgetpgrp(self._descriptor) != os.getpgrp():
                return
            before = termios.tcgetattr(self._descriptor)
            if self._before is None:
                self._before = before
            incoming, outgoing, control, local, *speeds = before
            incoming &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR)
            if incoming & termios.IXON:
                incoming |= termios.IXANY  # else nothing but Ctrl+Q would help after Ctrl+S
            local &= ~(termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
            characters = [*before[6]]
            characters[termios.VMIN], characters[termios.VTIME] = 1, 0
            raw = [incoming, outgoing, control, local, *speeds[:2], characters]
            termios.tcsetattr(self._descriptor, termios.TCSANOW, raw)

    def restore(self) -> None:
        """Brings back the modes from before. Waits for nothing."""
        if self._before is not None:
            with contextlib.suppress(termios.error, OSError):
                termios.tcsetattr(self._descriptor, termios.TCSANOW, self._before)
            self._before = None


class PlainWindow:
    """Handles what happens to the terminal around the program: it goes to the background and comes back (``back``), the
    window gets another size (``resized``). ``step_aside`` is called before it goes."""

    def __init__(
        self, modes: Modes, step_aside: Callable[[], None], back: Callable[[], None], resized: Callable[[], None]
    ) -> None:
        self._modes = modes
        self._step_aside = step_aside
        self._loop = asyncio.get_running_loop()
        self._handlers = {signal.SIGTSTP: self.suspend, signal.SIGCONT: back, signal.SIGWINCH: resized}
        self._back = back

    def open(self) -> None:
        for number, handler in self._handlers.items():
            self._loop.add_signal_handler(number, handler)

    def close(self) -> None:
        for number in self._handlers:
            self._loop.remove_signal_handler(number)

    def suspend(self) -> None:
        """Ctrl+Z. Where nobody could wake it up again the system does not stop it."""
        self._step_aside()
        self._modes.restore()
        self._loop.remove_signal_handler(signal.SIGTSTP)
        os.kill(os.getpid(), signal.SIGTSTP)
        self._loop.add_signal_handler(signal.SIGTSTP, self.suspend)
        self._back()


def edits_itself(descriptor: int) -> bool:
    """Returns whether a terminal is one at which letters are typed. Where it does not show them, a program types (the
    shell of an editor), which has its own line and its own history."""
    try:
        local = termios.tcgetattr(descriptor)[3]
    except (termios.error, OSError):
        return False
    return bool(local & termios.ECHO and local & termios.ICANON)


HOLD = 1.5
"""Seconds after a key in which what is to be written waits: a line is not torn while it is typed."""
UNSEEN = 0.4
"""Seconds after which a line can have been seen: people need longer to read and decide."""
YIELDED = "Note: You typed before your draft was loaded: Up brings the draft back."


class LineDraft(NamedTuple):
    """The text that stood in the line when the program was left here, and until when nobody can have seen it."""

    text: str
    unseen_until: float


class TypedLine(Reads):
    """The line of a terminal, edited here; ``past`` are earlier ones. What is written waits for it, and it for that."""

    drawn = True

    def __init__(self, descriptor: int, writer: LineWriter, past: Sequence[str], completes: Completes) -> None:
        super().__init__(descriptor)
        self._writer = writer
        self._modes = Modes(descriptor)
        self._window = PlainWindow(self._modes, self.step_aside, self._back, self._resized)
        self._reader = TerminalReader()
        self._line = LineEditor(past)
        self._row = InputRow(writer.out, lambda: width_of(writer.out))
        self._completes = completes
        self._above: list[str] = []  # of what was pasted, the lines but the last
        self._kept = ""
        self._sent_ahead: list[str] | None = None
        self._waiting: asyncio.TimerHandle | None = None
        self._typing: asyncio.TimerHandle | None = None
        self._proposing: asyncio.Task[None] | None = None
        self._draft: LineDraft | None = None

    # What the chat asks for

    def open(self, listener: Listener) -> None:
        self._listener = listener
        self._listen()
        self._window.open()
        if select.select([self._descriptor], [], [], 0)[0] and (ahead := what_is_there(self._descriptor)):
            # Ctrl+D is a zero in what was typed before keys came as they are.
            self._loop.call_soon(lambda: self._hear(self._reader.feed(ahead.replace(b"\0", b"\x04"))))

    def close(self) -> str:
        for timer in (self._waiting, self._typing):
            if timer is not None:
                timer.cancel()
        if self._proposing is not None:
            self._proposing.cancel()
        ahead = self._flush()
        if self._listener is not None:
            self._listener = None
            self._silent()
            self._window.close()
        self._leave_row()
        self._waiting = self._typing = None
        self._writer.flush()
        return _joined(self._kept, "\n".join([*ahead, *self._above, self._line.text]))

    def want(self, want: Want) -> None:
        before, self._want = self._want, want
        if want.kind != "answer" and self._kept:
            self._line.put(_joined(self._kept, self._line.text))
            self._kept = ""
        if self._row.shown and want.prompt != before.prompt:
            self.step_aside()
        if self._row.shown or want.kind in ("edit", "answer"):  # else with the next key: not after every sentence
            self._show()

    def keep(self, text: str) -> None:
        self._kept = _joined(text, self._kept)

    def bring_back(self, draft: str) -> None:
        if self._line.text or self._above:
            self._yield(draft)
        else:
            self._line.put(draft)
            self._draft = LineDraft(draft, self._loop.time() + UNSEEN)

    def _yield(self, draft: str) -> None:
        self._line.remember(draft)
        self._writer.quote(YIELDED)

    def drop(self) -> bool:
        dropped = bool(self._line.text or self._above)
        self._clear()
        return dropped

    def typed_ahead(self) -> str:
        sent = self._flush()
        begun = "\n".join([*self._above, self._line.text])
        self._leave_row()
        self._clear()
        if begun:
            self._kept = _joined(self._kept, begun)
        return "\n".join(sent)

    def _flush(self) -> list[str]:
        """Takes what was held back; returns the lines that were finished in it, which are told to nobody."""
        sent = self._sent_ahead = []
        self._take(self._reader.flush())
        self._sent_ahead = None
        return sent

    def step_aside(self) -> None:
        self._guarded(self._row.make_room)

    @property
    def holds(self) -> bool:
        return self.lent or (self._typing is not None and bool(self._line.text))

    async def lend(self, work: Callable[[], T]) -> T:
        self.step_aside()
        self.lent = True
        self._silent()
        try:
            return await asyncio.to_thread(work)
        finally:
            self.lent = False
            if self._listener is not None:
                self._listen()
            self._writer.flush()
            self._show()

    # Keys

    def _listen(self) -> None:
        self._modes.enter()
        self._loop.add_reader(self._descriptor, self._read)

    def _silent(self) -> None:
        self._loop.remove_reader(self._descriptor)
        self._modes.restore()

    def _read(self) -> None:
        data = what_is_there(self._descriptor)
        if data is None:
            return
        if not data:
            self._loop.remove_reader(self._descriptor)
            if self._listener is not None:
                self._listener.over()
            return
        if (draft := self._draft) is not None:
            self._draft = None
            if self._loop.time() < draft.unseen_until and self._line.text == draft.text:
                self._line.clear()
                self._yield(draft.text)
        self._hear(self._reader.feed(data))

    def _hear(self, inputs: Sequence[TerminalInput]) -> None:
        """Does what was typed, and hears later of what waits for more."""
        self._take(inputs)
        if self._listener is None:
            return
        # A line leads to another prompt, which the chat says as soon as all that goes on now is over.
        self._loop.call_soon(self._show_and_hold)
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        if (wait := self._reader.wait) is not None:
            self._waiting = self._loop.call_later(wait, lambda: self._hear(self._reader.tick()))

    def _take(self, inputs: Sequence[TerminalInput]) -> None:
        for at, one in enumerate(inputs):
            if self._listener is None:
                return
            if isinstance(one, TypedText):
                self._line.insert(one.text)
            elif isinstance(one, PastedText):
                self._insert_pasted(one.text)
            elif isinstance(one, KeyPress):
                text, name = meaning_of(one.sequence)
                if name == "tab" and isinstance([*inputs, None][at + 1], TypedText):
                    text, name = "\t", ""  # it came with more, as nobody types
                self._line.insert(text)
                if name:
                    self._press(name)

    def _insert_pasted(self, text: str) -> None:
        """What is pasted stands in the line, and in rows above it, until Enter is pressed."""
        line = self._line
        if line.searched is not None:
            line.press("enter")
        first, *more = text.split("\n")
        after = line.text[line.at :]
        line.put(line.text[: line.at] + first)
        for each in more:
            self._break_line()
            line.put(each)
        line.put(line.text + after, len(line.text))
        if more:
            self._release()
            lines = plural(len(self._above) + bool(line.text), "line")
            self._writer.remark(f"{lines} pasted; Enter sends them.", "Note")

    def _press(self, key: str) -> None:
        line = self._line
        if line.searched is not None and key == "interrupt":
            line.press(key)
        elif key in ("interrupt", "quit") or (key == "leave" and not line.text and not self._above):
            self._leave(key)
        elif key == "leave":
            line.press("delete")
        elif key == "enter":
            line.press(key)  # what was looked for is found
            self._enter()
        elif key == "suspend":
            self._window.suspend()
        elif key == "again":
            self.step_aside()
        elif key == "tab" and line.searched is None:
            self._complete()
        else:
            line.press(key)

    def _break_line(self) -> None:
        """The row stays as it is, and the next one begins."""
        self._show()
        self._leave_row()
        self._above.append(self._line.text)
        self._line.clear()

    def _enter(self) -> None:
        """The line is whole, with what was pasted above it."""
        if self._line.text or not self._above:
            self._break_line()
        text = "\n".join(self._above)
        self._above.clear()
        self._line.remember(text)
        if self._sent_ahead is not None:
            self._sent_ahead.append(text)
        elif self._listener is not None:
            self._listener.line(text)

    def _leave(self, key: str) -> None:
        """A key that ends something."""
        self._leave_row()
        self._release()
        if self._listener is None:
            return
        if key == "interrupt":
            self._listener.interrupted()
        elif key == "leave":
            self._listener.over()
        else:
            self._listener.ended()

    def _clear(self) -> None:
        self._above.clear()
        self._line.clear()
        self._release()

    # Showing

    @property
    def _prompt(self) -> str:
        if self._line.searched is not None:
            return f"Search {self._line.searched}: "
        return "" if self._above else self._want.prompt

    def _show(self) -> None:
        if self._want.kind == "end" or self.lent or self._listener is None:
            return
        busy = self._want.kind == "nothing" or bool(self._above)
        if busy and not self._row.shown and not self._line.text and self._line.searched is None:
            return
        if not self._row.shown:
            self._writer.make_room()
        self._guarded(lambda: self._row.show(self._prompt, self._line.text, self._line.at))

    def _leave_row(self) -> None:
        self._guarded(lambda: self._row.leave(self._prompt, self._line.text))

    def _guarded(self, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:
            self._row.shown = False
            self._writer.reach_nobody(error)

    def _show_and_hold(self) -> None:
        """Shows the line in a row of its own, which an answer that is coming leaves first; then that waits."""
        if self._listener is not None:
            self._show()
            self._hold()

    def _hold(self) -> None:
        if self._typing is not None:
            self._typing.cancel()
            self._typing = None
        if self._line.text:
            self._typing = self._loop.call_later(HOLD, self._release)
        else:
            self._writer.flush()

    def _release(self) -> None:
        if self._typing is not None:
            self._typing.cancel()
            self._typing = None
        if not self.lent:
            self._writer.flush()

    def _complete(self) -> None:
        if self._proposing is None or self._proposing.done():
            self._proposing = asyncio.create_task(self._propose(), name="proposals")

    async def _propose(self) -> None:
        said = await propose(self._line, self._completes)
        if said:
            self._release()
            self._writer.quote(said)
        self._show()

    def _back(self) -> None:
        """The terminal is ours again."""
        if self._listener is not None and not self.lent:
            self._modes.enter()
            self._show()

    def _resized(self) -> None:
        if self._row.shown:
            self._show()


def _joined(first: str, second: str) -> str:
    """Two beginnings of a message as one."""
    between = "\n" if "\n" in first + second else " "
    return between.join(part for part in (first, second) if part)
