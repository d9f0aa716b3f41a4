"""Reading a transcript: folding, finding, jumping, what is selected."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from time import perf_counter
from typing import Any, ClassVar

from rich.cells import cell_len
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Offset
from textual.selection import Selection

from agent_tui.ui.flow.layout import Action
from agent_tui.ui.flow.paint import key
from agent_tui.ui.transcript.document import Cursor, ScreenSlot
from agent_tui.ui.transcript.find import Finder, FindState, Match, selected_text, word_at
from agent_tui.ui.transcript.messages import CopyRequested, FindChanged, LinkClicked, Pressed, ScreenAsked
from agent_tui.ui.transcript.view import DocumentView

FIND_SLICE = 0.012
"""Seconds of searching before keys are looked at again."""
TELL_FOUND = 0.1
"""Seconds between two words on how far a search is."""
NO_FIND = FindState("", 0, 0, True)


class Reader(DocumentView):
    """A document view in which one can fold, find, jump and select."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._select_from: int | None = None
        self._told_found = 0.0

    @property
    def show_reasoning(self) -> bool:
        """True when reasoning is open by default."""
        return self.folding.reasoning

    def toggle_reasoning(self) -> bool:
        """Opens or closes all reasoning; returns the new state."""
        self.folding.reasoning = is_open = not self.folding.reasoning
        self._refold()
        return is_open

    def toggle_tools(self) -> bool:
        """Opens or closes all tool calls; returns the new state."""
        self.folding.tools = is_open = not self.folding.tools
        self._refold()
        return is_open

    def _refold(self) -> None:
        for entry in self.document.entries:
            entry.opened = None
        self.clear_selection()
        self._keep_place()
        self.document.refold()
        self.changed()

    def _fold(self, slot: ScreenSlot, name: str) -> None:
        entry = self.document.entries[slot.cursor.entry]
        block = next((b for b in entry.blocks or () if b.key == name), None)
        if block is None:
            return
        if entry.opened is None:
            entry.opened = {}
        entry.opened[name] = not entry.is_open(block, self.folding)
        self.clear_selection()
        self._keep_place()
        for touched in self.document.entries[entry.index : entry.index + 2]:  # the gap before the next one, too
            self.document.touch(touched)
        # Opening something must not push its head out of view.
        if entry.opened[name] and self._follow:
            self._set_follow(False)
        self.changed()

    def _keep_place(self) -> None:
        """Holds on to the head of a block: the lines in it may be about to vanish."""
        if self._follow or not self._slots:
            return
        entry = self.document.entries[self._top.entry]
        place = entry.place(self._top.piece) if entry.pieces is not None else None
        if place is not None:
            self._top = Cursor(self._top.entry, self._top.piece - place[1], 0)

    def find(self, query: str, words: Sequence[str] = (), begin: int | None = None) -> FindState:
        """Searches everything, whatever its case, and goes to the newest match, or to the one in entry ``begin``; where
        the view does not follow the end, to the next one from the top of what was in view when the search began.
        ``words`` are looked for each by itself, instead of the query as it is. When there is much to search it goes
        on in the background and posts ``FindChanged``."""
        since = self._looked_at() if self.finder is None else self.finder.since
        self.clear_find()
        if not query:
            return NO_FIND
        self.finder = Finder(self.document, query, words, begin, since if begin is None else None)
        if begin is not None:
            self.go_to(Cursor(begin, 0, 0), margin=self.size.height // 3)
        self._search(self.finder, False)
        self.refresh()
        return self.finder.state

    def find_next(self, direction: int = 1) -> FindState:
        """Goes to the next match, from the last one to the first, or (-1) to the one before."""
        finder = self.finder
        if finder is None:
            return NO_FIND
        if finder.matches:
            finder.position = (finder.position + direction) % len(finder.matches)
            self._show_match(finder)
        return finder.state

    def find_prev(self) -> FindState:
        """Goes to the match before."""
        return self.find_next(-1)

    def clear_find(self) -> None:
        """Ends the search; the view stays."""
        if self.finder is not None:
            self.finder = None
            self.refresh()

    def _looked_at(self) -> Match | None:
        """The place at the top of the view; None where it follows the end."""
        if self._follow or not self.slots:
            return None
        (index, piece, _), line = self.slots[0]
        block = bisect_right(self.document.entries[index].starts, piece) - 1
        return Match(index, block, piece - self.document.entries[index].starts[block], line.row, 0)

    def _search(self, finder: Finder, later: bool) -> None:
        if finder is not self.finder:
            return
        # Where it is to begin at a place, that is shown first.
        place = not later and finder.begin is not None
        end = perf_counter() + (0 if place else FIND_SLICE)
        while not finder.complete:
            finder.step()
            if perf_counter() >= end:
                break
        first = bool(finder.matches) and finder.position < 0 and (at := finder.first()) >= 0
        if first:
            finder.position = at
            if finder.begin in (None, finder.matches[finder.position].entry):
                self._show_match(finder)
            self.refresh()
        if not finder.complete:
            self.set_timer(FIND_SLICE if place else 0.001, lambda: self._search(finder, True))
        if later and (finder.complete or first or perf_counter() - self._told_found > TELL_FOUND):
            self._told_found = perf_counter()
            self.post_message(FindChanged(finder.state))

    def _show_match(self, finder: Finder) -> None:
        match = finder.current
        if match is None:
            return
        entry = self.document.entries[match.entry]
        self.document.pieces(match.entry)
        blocks = entry.blocks or []
        if match.block >= len(blocks):
            return
        block = blocks[match.block]
        if block.foldable and match.piece and not entry.is_open(block, self.folding):
            entry.opened = {**(entry.opened or {}), block.key: True}
            self.document.touch(entry)
            self.document.pieces(match.entry)
            self.changed()
        number = min(entry.starts[match.block] + match.piece, len(entry.pieces or ()) - 1)
        line = 0
        for k, candidate in enumerate(self.document.lay(match.entry, number)):
            if candidate.row > match.row:
                break
            begin = next((start for _, _, start in candidate.segments if start >= 0), 0)
            if candidate.row == match.row and begin <= match.start:
                line = k
        cursor = Cursor(match.entry, number, line)
        if not any(slot.cursor == cursor for slot in self.slots):
            self.go_to(cursor, margin=self.size.height // 3)
        self.refresh()

    def selected_text(self) -> str:
        """The selected text as it is meant, not as it is drawn; empty when nothing is selected."""
        selection = self.text_selection if self.is_attached else None
        return "" if selection is None else selected_text(self.document, selection)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selected_text(self.document, selection), "\n"

    def clear_selection(self) -> None:
        """Nothing is selected any more."""
        self._select_from = None
        if self.is_attached and self.text_selection is not None:
            self.screen.selections = {w: s for w, s in self.screen.selections.items() if w is not self}

    def jump_user(self, direction: int) -> bool:
        """Goes to the user message before (-1) or after (+1) the top of the view. False when there is none."""
        if not self.slots:
            return False
        top = self._slots[0].cursor
        here = top.entry if top.piece == 0 and top.line <= 1 else top.entry + (1 if direction < 0 else 0)
        index = self.document.question(here, direction)
        if index is not None:
            self.document.pieces(index)
            self.go_to(Cursor(index, 0, 0))
            return True
        if direction > 0:
            self.follow_end()
        return False


class Pointer(Reader):
    """The reader's answers to keys and clicks."""

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
        Binding("P", "pin", "Pin a message", show=False),
        Binding("n", "find_step(1)", "Next match", show=False),
        Binding("N", "find_step(-1)", "Previous match", show=False),
        Binding("enter,space", "open_here", "Open or close", show=False),
    ]

    def action_jump(self, direction: int) -> None:
        self.jump_user(direction)

    def action_find_step(self, direction: int) -> None:
        self.post_message(FindChanged(self.find_next(direction)))

    def action_select_rows(self, direction: int) -> None:
        """Grows or shrinks the selection by a line of the screen's logical rows."""
        slots = self.slots
        if not slots:
            return
        rows = [key(s.cursor.entry, s.cursor.piece, s.line.row) for s in slots]
        selection = self.text_selection
        anchor = self._select_from
        if selection is None or anchor is None:
            anchor = moving = rows[-1 if direction < 0 else 0]
        else:
            low = selection.start.y if selection.start is not None else rows[0]
            high = selection.end.y if selection.end is not None else rows[-1]
            at = low if high == anchor else high
            beyond = [y for y in rows if (y - at) * direction > 0]
            if not beyond:
                (self.scroll_up if direction < 0 else self.scroll_down)(animate=False)
            moving = beyond[-1 if direction < 0 else 0] if beyond else at
        low, high = sorted((anchor, moving))
        self.screen.selections = {self: Selection(Offset(0, low), Offset(1 << 30, high))}
        self._select_from = anchor

    def action_open_here(self) -> None:
        """Opens or closes the last block whose head is visible, or shows the picture or compaction after it."""
        for slot in reversed(self.slots):
            for _, _, action in slot.line.actions:
                if action[0] in ("fold", "picture", "compact"):
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

    def _act(self, slot: ScreenSlot, x: int) -> None:
        for start, end, action in slot.line.actions:
            if start <= x < end:
                self._do(slot, action)
                return
        at = 0
        for text, style, _ in slot.line.segments:
            at += cell_len(text)
            if x < at:
                if style.link:
                    self.post_message(LinkClicked(style.link))
                return

    def _do(self, slot: ScreenSlot, action: Action) -> None:
        name, value = action
        if isinstance(value, list):
            self.post_message(CopyRequested("\n".join(value), "code"))
        elif name == "fold":
            self._fold(slot, value)
        elif name == "picture":
            self.post_message(ScreenAsked("picture", value))
        elif name == "compact":
            self.post_message(ScreenAsked("compact", value))
        elif name == "press":
            self.post_message(Pressed(value))

    def _select_at(self, slot: ScreenSlot, x: int, whole: bool) -> None:
        line = slot.line
        y = key(slot.cursor.entry, slot.cursor.piece, line.row)
        start, end = 0, len(line.text)
        if not whole:
            at, cells = 0, 0
            for text, _, begin in line.segments:
                if begin >= 0 and cells <= x < cells + cell_len(text):
                    at = begin + min(len(text) - 1, x - cells)
                cells += cell_len(text)
            start, end = word_at(line.text, at)
        self.screen.selections = {self: Selection(Offset(start, y), Offset(end, y))}
