"""The state machine: it takes keys and says what text, cursor and mode become. What is typed in insert mode it is told.
It was compared with vim itself on thousands of made-up cases; see its tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from agent_tui.records import dataclass
from agent_tui.ui.vim import commands, operators
from agent_tui.ui.vim.commands import OPENERS, OPERATORS, Incomplete, InsertSession, Unknown, VimCommand, read
from agent_tui.ui.vim.motions import FINDS, MOTIONS, MotionRequest, Move
from agent_tui.ui.vim.objects import Span, span_of
from agent_tui.ui.vim.operators import AS_LINES, CLIPBOARD, Done, Extent, Registers
from agent_tui.ui.vim.text import Place, TextBuffer, Undo

Mode = Literal["insert", "normal", "visual", "visual line"]
Ask = tuple[Literal["escape", "older", "newer", "copy", "paste", "find"], str]
"""What lies outside the text: Esc with nothing to leave, the history beyond the first and the last line, the clipboard
(with what is copied), a search."""


@dataclass(slots=True, frozen=True)
class Repeatable:
    command: VimCommand
    extent: Extent | None = None
    typed: commands.TypedChange | None = None


class Vim:
    """``text``, ``cursor``, ``mode`` and, while something is selected, ``anchor`` are what the screen shows."""

    def __init__(self) -> None:
        self.text = TextBuffer(("",))
        self.cursor: Place = (0, 0)
        self.anchor: Place = (0, 0)
        self.mode: Mode = "insert"
        self.asks: list[Ask] = []
        self._keys: list[str] = []
        self._wanted = 0
        self.registers = Registers()
        self._undo = Undo()
        self._found: tuple[str, str] | None = None
        self._last: Repeatable | None = None
        self._repeated: Repeatable | None = None
        self._selected_last: tuple[Mode, Place, Place] | None = None
        self._session = InsertSession(self.text, self.text, (0, 0), (0, 0))

    @property
    def pending(self) -> str:
        return "".join(self._keys)

    @property
    def selecting(self) -> bool:
        return self.mode in ("visual", "visual line")

    @property
    def selection(self) -> Span:
        return operators.selected(self.text, self.anchor, self.cursor, self.mode == "visual line")

    def begin(self, text: str = "", cursor: Place = (0, 0)) -> None:
        """A new prompt, in insert mode; nothing can be undone. Registers and what ``.`` repeats stay."""
        self.text, self.cursor, self.mode = TextBuffer.of(text), cursor, "insert"
        self._keys.clear()
        self._undo.forget()
        self._session = InsertSession(self.text, self.text, cursor, cursor)

    def sync(self, text: str, cursor: Place) -> None:
        """Text and cursor as they are now: typed, pasted, clicked, put there from the history."""
        if text != str(self.text):
            if self.mode != "insert":
                self._undo.changed(self.text, self.cursor)
                self.mode = "normal"
                self._keys.clear()
            self.text = TextBuffer.of(text)
        if cursor != self.cursor:
            self.cursor = self.text.within(cursor, past_end=self.mode != "normal")
            self._wanted = self.cursor[1]

    def select(self, anchor: Place, cursor: Place) -> None:
        self.mode, self.anchor, self.cursor = "visual", self.text.within(anchor), self.text.within(cursor)

    def press(self, key: str) -> None:
        """A key: one character, or a name such as ``escape``, ``left``, ``ctrl+r``."""
        self.asks = []
        if key == "escape":
            self._escape()
        elif self.mode != "insert":
            self._command_key(key)

    def _command_key(self, key: str) -> None:
        self._keys.append(key)
        try:
            command = read(self._keys, self.selecting)
        except Incomplete:
            return
        except Unknown:
            command = None
        self._keys.clear()
        if command is not None:
            self._run(command)

    def cancel(self) -> None:
        """Forgets what was typed of a command."""
        self._keys.clear()

    def amend(self, text: str, cursor: Place) -> None:
        """The last change was more than was asked for: it left this."""
        self.text, self.cursor = TextBuffer.of(text), cursor
        if self.mode == "insert":
            self._session = replace(self._session, opened=self.text, at=cursor)
        else:
            self.cursor = self.text.within(cursor)

    def undo(self) -> None:
        self._travel(1, forth=False)

    def redo(self) -> None:
        self._travel(1, forth=True)

    # Commands

    def _escape(self) -> None:
        if self.mode == "insert":
            self._leave_insert()
        elif self._keys:
            self._keys.clear()
        elif self.selecting:
            self._stop_selecting()
        else:
            self.asks.append(("escape", ""))

    def _run(self, command: VimCommand) -> None:
        text, cursor, count = self.text, self.cursor, command.count or 1
        match command.key:
            case key if key in MOTIONS:
                self._move(command)
            case _ if self.selecting:
                self._run_selected(command)
            case key if key in OPERATORS:
                if (span := self._span(command)) is not None:
                    self._do(operators.operate(key, text, span), command)
            case key if key in OPENERS:
                self._insert(commands.opened(key, text, cursor), Repeatable(command))
            case "u" | "ctrl+r":
                self._travel(count, forth=command.key == "ctrl+r")
            case ".":
                self._repeat(command.count)
            case "v" | "V":
                self.mode, self.anchor = "visual" if command.key == "v" else "visual line", cursor
            case "gv" if self._selected_last is not None:
                self.mode, anchor, cursor = self._selected_last
                self.anchor, self.cursor = text.within(anchor), text.within(cursor, past_end=True)
            case "p" | "P":
                if command.register in CLIPBOARD:
                    self.asks.append(("paste", command.key))
                elif (kept := self.registers.get(command.register)) is not None:
                    self._do(operators.put(text, cursor, kept, command.key == "p", count), command)
            case "J" | "gJ":
                self._do(operators.join(text, cursor[0], count, command.key == "J"), command)
            case "r":
                self._do(operators.overwrite(text, cursor, command.argument, count), command)
            case "~":
                self._do(operators.toggle(text, cursor, count), command)

    def _move(self, command: VimCommand) -> None:
        found = self._moved(command.key, command)
        if found is None:
            row = self.cursor[0]
            if command.key in "jk" and command.count is None and not self.selecting:
                self.asks.append(("older" if command.key == "k" and row == 0 else "newer", ""))
            return
        self.cursor = found.to if self.selecting else self.text.within(found.to)
        self._wanted = found.to[1] if found.wanted is None else found.wanted

    def _moved(self, key: str, command: VimCommand, operator: str = "") -> Move | None:
        if key in FINDS:
            self._found = (key, command.argument)
        given = command.count, command.argument, self._wanted, operator, self.selecting, self._found
        return MOTIONS[key](MotionRequest(key, self.text, self.cursor, *given))

    def _span(self, command: VimCommand) -> Span | None:
        row, count = self.cursor[0], command.count or 1
        if command.motion == "lines":
            if count > 1 and row == self.text.last:
                return None
            begin = self.cursor
            if count == 1 and command.key != "y":
                begin = min(begin, self.text.first_word(row))
            return Span(begin, (min(row + count - 1, self.text.last), 0), lines=True)
        if command.motion[0] in "ia" and len(command.motion) == 2:
            span = span_of(command.motion[1], command.motion[0] == "a", self.text, self.cursor, count)
            if span is None:
                return None
            return operators.for_operator(self.text, operators.span_of_lines(self.text, span), command.key)
        found = self._moved(command.motion, command, command.key)
        return operators.span_by_motion(self.text, self.cursor, found, command.key) if found is not None else None

    def _do(self, done: Done | None, command: VimCommand, extent: Extent | None = None) -> None:
        """Takes over what a command did; None did nothing. ``extent``: what was selected for it."""
        if done is None:
            return
        register, yanked, repeatable = command.register, command.key in ("y", "Y"), Repeatable(command, extent)
        if done.kept is not None:
            self.registers.keep(done.kept, register, yanked)
            if register in CLIPBOARD:
                self.asks.append(("copy", str(done.kept)))
        before, self.text, self.cursor = self.text, done.text, done.cursor
        self._wanted = self.cursor[1]
        if yanked:
            return
        if done.inserting:
            self._insert(InsertSession(before, done.text, done.cursor, done.before, began=True), repeatable)
            return
        self._did(repeatable)
        if before != done.text:
            self._undo.changed(before, done.before)

    def _travel(self, count: int, forth: bool) -> None:
        self._stop_selecting()
        for _ in range(count):
            found = self._undo.step(self.text, forth)
            if found is None:
                return
            self.text, self.cursor = found
            self._wanted = self.cursor[1]

    # Selecting

    def _stop_selecting(self, place: Place | None = None) -> None:
        """Back to normal mode. ``place``: where what was selected is worked on, and the cursor goes."""
        if self.selecting:
            self._selected_last = (self.mode, self.anchor, self.cursor)
            self.mode = "normal"
            self.cursor = self.text.within(place or self.cursor)

    def _run_selected(self, command: VimCommand) -> None:
        key, whole = command.key, self.mode == "visual line"
        if key[0] in "ia" and len(key) == 2:
            found = operators.object_selected(self.text, self.anchor, self.cursor, whole, key, command.count or 1)
            if found is not None:
                self.anchor, self.cursor, lines = found
                self.mode, self._wanted = "visual line" if lines else "visual", self.cursor[1]
        elif key in ("o", "O"):
            self.anchor, self.cursor = self.cursor, self.anchor
            self._wanted = self.cursor[1]
        elif key in ("v", "V"):
            if (key == "V") == whole:
                self._stop_selecting()
            else:
                self.mode = "visual" if whole else "visual line"
        else:
            whole = whole or key in AS_LINES
            extent = operators.extent_of(self.text, self.anchor, self.cursor, whole)
            self._on_selected(command, operators.selected(self.text, self.anchor, self.cursor, whole), extent)

    def _on_selected(self, command: VimCommand, span: Span, extent: Extent) -> None:
        """A command on what is selected, or on as much as was when it is repeated."""
        text = self.text
        self._stop_selecting(span.start)
        self._do(operators.on_selected(text, span, command, self.registers.get(command.register)), command, extent)

    # Inserting

    def _insert(self, session: InsertSession, repeatable: Repeatable) -> None:
        self.text, self.cursor, self.mode = session.opened, session.at, "insert"
        lines = repeatable.command.key in "oO"
        times = (repeatable.command.count or 1) if repeatable.command.key in OPENERS else 1
        self._session = replace(session, times=times, new_lines=lines)
        self._did(repeatable)
        if self._repeated is not None and self._repeated.typed is not None:
            self.text, self.cursor = self._repeated.typed.onto(self.text, self.cursor)
            self._leave_insert()

    def _leave_insert(self) -> None:
        session = self._session
        typed = session.typed(self.text)
        self.text, self.cursor = session.multiplied(self.text, self.cursor, typed)
        if session.began:
            self._was_typed(typed)
        if self.text != session.before:
            self._undo.changed(session.before, session.undo_at)
        # The cursor of normal mode stands on what was typed last.
        self.mode = "normal"
        row, column = self.cursor
        self.cursor = self.text.within((row, column - 1 if column else 0))
        self._wanted = self.cursor[1]
        self._session = InsertSession(self.text, self.text, self.cursor, self.cursor)

    # Repeating

    def _did(self, repeatable: Repeatable) -> None:
        """This changed something, or what is typed now will; while the last change is done again, it stays the last."""
        if self._repeated is None:
            self._last = repeatable

    def _was_typed(self, typed: commands.TypedChange) -> None:
        if self._repeated is None and self._last is not None:
            self._last = replace(self._last, typed=typed)

    def _repeat(self, count: int | None) -> None:
        """Does the last change again; with this count from now on, where nothing was selected for it."""
        last = self._last
        if last is None:
            return
        if count is not None and last.extent is None:
            last = self._last = replace(last, command=replace(last.command, count=count))
        self._repeated = last
        if last.extent is None:
            self._run(last.command)
        else:
            self._on_selected(last.command, operators.span_again(self.text, self.cursor, last.extent), last.extent)
        self._repeated = None
