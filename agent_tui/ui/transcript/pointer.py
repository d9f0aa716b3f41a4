"""Keys and mouse in a transcript."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Offset
from textual.selection import Selection

from agent_tui.ui.flow.lines import Action
from agent_tui.ui.flow.paint import key
from agent_tui.ui.transcript.document import Slot
from agent_tui.ui.transcript.messages import CopyRequested, FindChanged, LinkClicked, PictureAsked
from agent_tui.ui.transcript.reader import Reader
from agent_tui.ui.transcript.selection import word_at


class Pointer(Reader):
    """What keys and clicks do."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "scroll_up", "Up", show=False),
        Binding("j", "scroll_down", "Down", show=False),
        Binding("g,ctrl+home", "scroll_home", "Top", show=False),
        Binding("G,ctrl+end", "scroll_end", "End", show=False),
        Binding("left_square_bracket", "jump(-1)", "Previous user message", show=False),
        Binding("right_square_bracket", "jump(1)", "Next user message", show=False),
        Binding("shift+up", "select_rows(-1)", "Select up", show=False),
        Binding("shift+down", "select_rows(1)", "Select down", show=False),
        Binding("y", "copy_selection", "Copy", show=False),
        Binding("c", "copy_code", "Copy code", show=False),
        Binding("n", "find_step(1)", "Next match", show=False),
        Binding("N", "find_step(-1)", "Previous match", show=False),
        Binding("enter,space", "open_here", "Open or close", show=False),
    ]

    def action_jump(self, direction: int) -> None:
        self.jump_user(direction)

    def action_find_step(self, direction: int) -> None:
        self.post_message(FindChanged(self._find_step(direction)))

    def action_select_rows(self, direction: int) -> None:
        """Grows or shrinks the selection by a line of the screen's logical rows."""
        slots = self.slots
        if not slots:
            return
        rows = [(key(s.cursor.entry, s.cursor.piece, s.line.row), len(s.line.text)) for s in slots]
        selection = self.text_selection
        if selection is None or self._select_from is None:
            start = rows[-1] if direction < 0 else rows[0]
            self._select_from = moving = start[0]
        else:
            low = selection.start.y if selection.start is not None else rows[0][0]
            high = selection.end.y if selection.end is not None else rows[-1][0]
            at = low if high == self._select_from else high
            later = [y for y, _ in rows if y > at]
            earlier = [y for y, _ in rows if y < at]
            if direction < 0 and not earlier:
                self.scroll_up(animate=False)
            elif direction > 0 and not later:
                self.scroll_down(animate=False)
            moving = earlier[-1] if direction < 0 and earlier else later[0] if direction > 0 and later else at
        low, high = sorted((self._select_from, moving))
        anchor = self._select_from
        self.screen.selections = {self: Selection(Offset(0, low), Offset(1 << 30, high))}
        self._select_from = anchor

    def action_open_here(self) -> None:
        """Opens or closes the last block whose head is visible, or shows the picture that comes after it."""
        for slot in reversed(self.slots):
            for _, _, action in slot.line.actions:
                if action[0] in ("fold", "picture"):
                    self._do(slot, action)
                    return

    def on_click(self, event: events.Click) -> None:
        event.prevent_default()
        slots = self.slots
        chip = not self._follow and self._new_entries and event.y == self.size.height - 1
        if chip and event.x > self.size.width - 14:
            self.follow_end()
            return
        if not 0 <= event.y < len(slots):
            return
        slot = slots[event.y]
        if event.chain == 1:
            if self.text_selection is None:
                self._act(slot, event.x)
        elif not slot.line.actions:
            self._select_at(slot, event.x, whole=event.chain > 2)

    def _act(self, slot: Slot, x: int) -> None:
        for start, end, action in slot.line.actions:
            if start <= x < end:
                self._do(slot, action)
                return
        at = 0
        for text, style in slot.line.segments:
            at += cell_len(text)
            if x < at:
                if style.link:
                    self.post_message(LinkClicked(style.link))
                return

    def _do(self, slot: Slot, action: Action) -> None:
        name, value = action
        if isinstance(value, list):
            self.post_message(CopyRequested("\n".join(value), "code"))
        elif name == "fold":
            self._fold(slot, value)
        elif name == "picture":
            self.post_message(PictureAsked(value))

    def _select_at(self, slot: Slot, x: int, whole: bool) -> None:
        line = slot.line
        y = key(slot.cursor.entry, slot.cursor.piece, line.row)
        start, end = 0, len(line.text)
        if not whole:
            at, cells = 0, 0
            for (text, _), begin in zip(line.segments, line.starts, strict=True):
                if begin >= 0 and cells <= x < cells + cell_len(text):
                    at = begin + min(len(text) - 1, x - cells)
                cells += cell_len(text)
            start, end = word_at(line.text, at)
        self.screen.selections = {self: Selection(Offset(start, y), Offset(end, y))}
