"""A list of lines of which only the visible ones are drawn: tens of thousands of rows cost what thirty do."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from agent_tui.records import dataclass
from agent_tui.ui.safety import Guarded
from agent_tui.ui.theme import Paint, Piece, paint_of, strip_of


class RowList(Guarded, ScrollView, can_focus=True):
    """Rows with a cursor. Subclasses say how many there are (``set_count``) and draw one (``row``)."""

    DEFAULT_CSS = """
    RowList { height: 1fr; background: $background; scrollbar-size-vertical: 1; overflow-x: hidden; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,ctrl+k", "move(-1)", "Up", show=False),
        Binding("down,ctrl+j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "first", "First", show=False),
        Binding("end", "last", "Last", show=False),
        Binding("enter", "choose", "Choose", show=False),
    ]

    @dataclass
    class Moved(Message):
        """The cursor is on another row."""

        index: int

    @dataclass
    class Chosen(Message):
        """Enter or a click on the row."""

        index: int

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.count = 0
        self.cursor = 0

    @property
    def below(self) -> int:
        """The number of rows below those that are to be seen."""
        return self.count - round(self.scroll_offset.y) - self.size.height

    # For subclasses

    @abstractmethod
    def row(self, index: int, width: int, paint: Paint) -> Sequence[Piece]:
        """The pieces of a row, at most ``width`` cells of them."""

    def selectable(self, index: int) -> bool:
        """Returns whether the cursor may stand on this row."""
        return True

    def is_marked(self, index: int) -> bool:
        """Returns whether a row is drawn as the one under the cursor."""
        return index == self.cursor and self.selectable(index)

    # For users

    def set_count(self, count: int, cursor: int | None = None) -> None:
        """There are ``count`` rows now; the cursor goes to ``cursor``, or stays as near as possible."""
        self.count = count
        self.virtual_size = Size(self.scrollable_content_region.width, count)
        wanted = self.cursor if cursor is None else cursor
        self.cursor = self._nearest(max(0, min(wanted, count - 1)), 1)
        self.refresh()
        if self.is_attached:
            self._show_cursor()
            self.post_message(self.Moved(self.cursor))

    def move_to(self, index: int, direction: int = 1) -> None:
        """Puts the cursor on a row, or the next selectable one in ``direction``."""
        if not self.count:
            return
        index = self._nearest(max(0, min(index, self.count - 1)), direction)
        if index == self.cursor:
            return
        self.cursor = index
        self.refresh()
        self._show_cursor()
        self.post_message(self.Moved(index))

    def _nearest(self, index: int, direction: int) -> int:
        ways = range(index, self.count), range(min(index, self.count - 1), -1, -1)
        for way in ways if direction > 0 else reversed(ways):
            for row in way:
                if self.selectable(row):
                    return row
        return self.cursor if 0 <= self.cursor < self.count else 0

    def _show_cursor(self) -> None:
        top = 0 if self.cursor and not any(self.selectable(i) for i in range(min(self.cursor, 3))) else self.cursor
        self.scroll_to_region(Region(0, top, 1, self.cursor - top + 1), animate=False, force=True)

    # Keys and mouse

    def action_move(self, by: int) -> None:
        self.move_to(self.cursor + by, 1 if by > 0 else -1)

    def action_page(self, by: int) -> None:
        self.move_to(self.cursor + by * max(1, self.scrollable_content_region.height - 1), by)

    def action_first(self) -> None:
        self.move_to(0)

    def action_last(self) -> None:
        self.move_to(self.count - 1, -1)

    def action_choose(self) -> None:
        if self.count:
            self.post_message(self.Chosen(self.cursor))

    def on_click(self, event: events.Click) -> None:
        index = event.y + round(self.scroll_offset.y)
        if 0 <= index < self.count and self.selectable(index):
            event.stop()
            self.move_to(index)
            self.post_message(self.Chosen(index))

    # Drawing

    def on_resize(self) -> None:
        self.virtual_size = Size(self.scrollable_content_region.width, self.count)

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        index = y + round(self.scroll_offset.y)
        base = self.rich_style
        if not 0 <= index < self.count:
            return Strip.blank(width, base)
        paint = paint_of(self.app)
        pieces = self.row(index, width, paint)
        if self.is_marked(index):
            if self.app.current_theme.ansi:
                # Turned around as one bar: colours would be backgrounds of their own.
                base, pieces = base + Style(reverse=True), [(text, Style(bold=style.bold)) for text, style in pieces]
            else:
                base += paint(None, "panel")
        return strip_of(pieces, width, base)
