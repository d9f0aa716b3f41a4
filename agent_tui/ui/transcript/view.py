"""The scroll view over a document: what is visible, following the end, keeping the reader's place."""

from __future__ import annotations

from time import perf_counter, thread_time
from typing import Any

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.selection import Selection
from textual.strip import Strip

from agent_tui.ui.flow.paint import Mark, found, key, paint
from agent_tui.ui.flow.palette import Palette
from agent_tui.ui.safety import Guarded
from agent_tui.ui.screen_buffer import runs, through
from agent_tui.ui.textual_private.drawing import JumpingScrollView
from agent_tui.ui.transcript.document import Cursor, Document, ScreenSlot
from agent_tui.ui.transcript.entry import Entry, Folding
from agent_tui.ui.transcript.find import Finder
from agent_tui.ui.transcript.messages import FollowChanged

FRAME = 1 / 30
"""Seconds between two drawings of a growing answer."""
CALM_FRAME = 1 / 4
"""The same with reduced motion, and beneath a dialog, where rows cannot be moved: each one is sent."""
SHARE = 0.1
"""Share of a processor that laying out a growing answer may take: a slow one makes the next one wait."""


class DocumentView(Guarded, JumpingScrollView, can_focus=True):
    """Draws a document. ``changed`` and ``grown`` are told what became different; drawing happens once a refresh.

    It never scrolls with an animation: that would count in rows that become others while it runs.
    """

    DEFAULT_CSS = """
    DocumentView {
        height: 1fr;
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-gutter: stable;
        scrollbar-size-vertical: 1;
    }
    """
    ALLOW_SELECT = True

    def __init__(self, *, reduced_motion: bool = False, folding: Folding, **names: Any) -> None:
        super().__init__(**names)
        self.folding = folding
        self.document = Document(folding)
        self.reduced_motion = reduced_motion
        self.finder: Finder | None = None
        self._follow = True
        self._top = Cursor(0, 0, 0)
        self._slots: list[ScreenSlot] = []
        self._look: object = None
        self._dirty = False
        self._frame_pending = False
        self._frame_end = 0.0
        self._frame_cost = 0.0
        self._waiting: set[Entry] = set()
        self._new_entries = 0

    def text_width(self, size: Size) -> int:
        """The columns of the text, where those of the whole view are known already."""
        return size.width - self.scrollbar_size_vertical

    @property
    def follow(self) -> bool:
        """True when the end stays in view while new content arrives."""
        return self._follow

    @property
    def slots(self) -> list[ScreenSlot]:
        """The visible lines and their places, settled."""
        self.settle()
        return self._slots

    def follow_end(self) -> None:
        """Goes to the end and stays there."""
        self._set_follow(True)
        self.changed()

    def changed(self) -> None:
        """Something became different: settle before the next drawing."""
        if not self._dirty:
            self._dirty = True
            if self.is_mounted:
                self.call_next(self.settle)

    def entry_changed(self, entry: Entry, new: bool) -> None:
        """An entry is new or different."""
        if new and not self._follow:
            self._new_entries += 1
            self.post_message(FollowChanged(False, self._new_entries))
        if self.finder is not None and not entry.live:
            self.finder.again(entry)
        self.changed()

    def grown(self, entry: Entry) -> None:
        """A streaming entry has more text: drawn at the next frame."""
        self._waiting.add(entry)
        if self._frame_pending or not self.is_mounted:
            return
        frame = CALM_FRAME if self.reduced_motion or self.app.screen is not self.screen else FRAME
        wait = max(frame, self._frame_cost / SHARE) - (perf_counter() - self._frame_end)
        self._frame_pending = True
        self.frame_in(max(0.0, wait), self._frame)

    def _frame(self) -> None:
        self._frame_pending = False
        begun = thread_time()
        self._take_waiting()
        self._settle()
        self._frame_cost = thread_time() - begun
        self._frame_end = perf_counter()

    def _take_waiting(self) -> None:
        """Only what is in view is made anew; of the rest just the height is estimated."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, set()
        first, last = (self._slots[0].cursor.entry, self._slots[-1].cursor.entry) if self._slots else (0, -1)
        for entry in waiting:
            self.document.touch(entry)
            if not self._follow and not first <= entry.index <= last:
                self.document.measure(entry)
        self._dirty = True

    def settle(self) -> None:
        """Makes what is visible exact: lines, heights, scroll position. Cheap when nothing changed."""
        if self._settle():
            self.screen.check_idle()

    def _settle(self) -> bool:
        """Returns whether there is something to draw."""
        if not self.is_mounted or not (size := self.size):
            return False
        width, height = self.text_width(size), size.height
        if width != self.document.width or self.document.palette is None:
            self._restyle()
            self.document.resize(width)
            self._dirty = True
        if not self._dirty:
            return False
        self._take_waiting()
        self._dirty = False
        old = [slot.line for slot in self._slots]
        self._fill(height)
        self._place(height)
        if self.document.tools.album is not None:
            self.document.tools.album.look(slot.line for slot in self._slots)
        new = [slot.line for slot in self._slots]
        if len(old) != len(new):
            self.mark()
        elif rows := [y for y, (before, after) in enumerate(zip(old, new, strict=True)) if before is not after]:
            self.mark(*(Region(0, first, size.width, count) for first, count in runs(rows)))
        if not self._follow:
            self.mark(Region(0, height - 1, size.width, 1))
        return True

    def _fill(self, rows: int) -> None:
        document = self.document
        if not document.entries:
            self._slots, self._top = [], Cursor(0, 0, 0)
            return
        if self._follow:
            self._top = document.last(rows)
        else:
            self._top = self._checked(self._top)
        self._slots = document.lines(self._top, rows)
        if len(self._slots) < rows and not self._follow:
            self._top = document.last(rows)
            self._slots = document.lines(self._top, rows)
        if self._slots:
            self._top = self._slots[0].cursor

    def _checked(self, cursor: Cursor) -> Cursor:
        """The cursor, or the nearest place that exists."""
        entry = min(cursor.entry, len(self.document.entries) - 1)
        pieces = self.document.pieces(entry)
        if entry != cursor.entry or not pieces:
            return Cursor(entry, 0, 0)
        if cursor.piece >= len(pieces):
            return Cursor(entry, len(pieces) - 1, 0)
        lines = self.document.lay(entry, cursor.piece)
        return Cursor(entry, cursor.piece, min(cursor.line, max(0, len(lines) - 1)))

    def _place(self, height: int) -> None:
        """Sets the virtual size and the scroll position that belong to what is visible."""
        total = self.document.heights.total
        row = self.document.offset(self._top) if self._slots else 0
        if self._follow:
            row = max(0, total - height)
        self.place(Size(self.document.width, total), row)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self._scrolled(round(new_value) - round(old_value), round(new_value))

    def _scrolled(self, rows: int, target: int) -> None:
        """The user scrolled. Near by, lines are counted exactly; far away, heights are as estimated."""
        document, height = self.document, self.size.height
        if not document.entries:
            return
        if target <= 0:
            top = Cursor(0, 0, 0)
        elif target >= self.max_scroll_y:
            top = document.last(height)
        elif abs(rows) > 3 * height:
            top = document.at(target)
        elif rows < 0:
            top = document.back(self._top, -rows)
        else:
            ahead = document.lines(self._top, rows + 1)
            top = ahead[-1].cursor if ahead else self._top
        self._top = top
        # Upwards and still at the end: not the reader, the view became higher.
        self._set_follow(target >= self.max_scroll_y and (rows > 0 or self._follow))
        self._dirty = True
        self.settle()

    def go_to(self, cursor: Cursor, margin: int = 0) -> None:
        """Brings a place to the top of the view, ``margin`` rows below it."""
        self._set_follow(False)
        self._top = self.document.back(cursor, margin)
        self._dirty = True
        self.settle()
        if not self._slots:
            return
        last = self._slots[-1].cursor
        if last.entry == len(self.document.entries) - 1 and self.scroll_y >= self.max_scroll_y > 0:
            self._set_follow(False)

    def _set_follow(self, follow: bool) -> None:
        if follow != self._follow:
            self._follow = follow
            self._new_entries = 0
            self.post_message(FollowChanged(follow, 0))

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _: self.notify_style_update())
        self.changed()

    def on_resize(self) -> None:
        self._dirty = True
        self.settle()
        self.refresh()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        if self.is_mounted and self.document.palette is not None:
            known = self.document.palette
            if known.variables is not self.app.theme_variables or known.base != self.rich_style:
                self._restyle()
                self.call_next(self.settle)

    def _restyle(self) -> None:
        palette, made = self.document.palette, Palette(self.app.theme_variables, self.rich_style)
        if palette is None or (palette.base, palette.variables) != (made.base, made.variables):
            self.document.restyle(made)
            self._dirty = True
            self.refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Lines as they are painted: there is nothing around them that Textual would have to draw, and what stands
        beside them is the scrollbar's, where there is one."""
        if self._dirty:
            self.settle()
        size, slots, filters = self.size, self._slots, self.get_line_filters()
        background = self.background_colors[1]
        look = self._looks(size, *filters, background)
        marked = self.finder is not None or self.text_selection is not None
        chip = size.height - 1 if self._new_entries and not self._follow else -1
        strips: list[Strip] = []
        for y in crop.line_range:
            line = slots[y].line if y < len(slots) else None
            if line is not None and line.look is look and line.shown is not None and not marked and y != chip:
                strips.append(line.shown)
                continue
            strip = through(self._whole(y, size), filters, background)
            if line is not None and not marked and y != chip:
                line.shown, line.look = strip, look
            strips.append(strip)
        begin, end = crop.column_span
        return strips if (begin, end) == (0, size.width) else [strip.crop(begin, end) for strip in strips]

    def render_line(self, y: int) -> Strip:
        if self._dirty:
            self.settle()
        return self._line(y, self.text_width(self.size), self.text_selection)

    def _looks(self, *facts: object) -> object:
        """Stands for all that decides how a line looks but the line itself: the same object while that is the same."""
        look = (self.document.palette, self.show_vertical_scrollbar, *facts)
        if look != self._look:
            self._look = look
        return self._look

    def _whole(self, y: int, size: Size) -> Strip:
        """The line up to the scrollbar, or to the end where there is none."""
        strip = self._line(y, self.text_width(size), self.text_selection)
        if self.show_vertical_scrollbar:
            return strip
        return strip.extend_cell_length(size.width, Style(bgcolor=self.rich_style.bgcolor))

    def _line(self, y: int, width: int, selection: Selection | None) -> Strip:
        palette = self.document.palette
        if palette is None or y >= len(self._slots):
            return Strip.blank(width, self.rich_style)
        cursor, line = self._slots[y]
        where = key(cursor.entry, cursor.piece, line.row)
        plain = self.finder is None and selection is None
        marks = [] if plain else self._marks(cursor, line.row, line.text, where, selection)
        selected = self.screen.get_component_rich_style("screen--selection") if marks else None
        strip = paint(line, where, width, palette, marks, selected)
        chip = y == self.size.height - 1 and not self._follow and self._new_entries
        return self._with_chip(strip, palette, width) if chip else strip

    def _marks(self, cursor: Cursor, row: int, text: str, where: int, selection: Selection | None) -> list[Mark]:
        marks: list[Mark] = []
        if self.finder is not None:
            current = self.finder.current
            start = None
            if current is not None and current.entry == cursor.entry and current.row == row:
                place = self.document.entries[cursor.entry].starts
                if current.block < len(place) and place[current.block] + current.piece == cursor.piece:
                    start = current.start
            marks = found(self.finder.places(text), start)
        if selection is not None:
            span = selection.get_span(where)
            if span is not None:
                marks.append((span[0], len(text) if span[1] < 0 else span[1], "selected"))
        return marks

    def _with_chip(self, strip: Strip, palette: Palette, width: int) -> Strip:
        label = f" ↓ {self._new_entries} new "
        left = max(0, width - cell_len(label) - 1)
        chip = Strip([Segment(label, palette("chip"))])
        rest = Strip.blank(max(0, width - left - cell_len(label)), palette.base)
        return Strip.join([strip.crop(0, left), chip, rest])

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()
