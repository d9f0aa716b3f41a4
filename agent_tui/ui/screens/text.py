"""Something longer to read: a message, a summary, what a command says. Scrolls, is searched, and its lines are drawn
when seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from agent_tui.commands.info import InfoLine
from agent_tui.text.cells import wrapped
from agent_tui.text.clean import clean, one_line
from agent_tui.ui.safety import Guarded
from agent_tui.ui.screens.picker import fitting, room_on
from agent_tui.ui.theme import Paint, Piece
from agent_tui.ui.widgets.rows import RowList

MAX_CHARS = 2_000_000
KEYS = "↑↓ scroll · / find · c copy · Esc close"
READING = "↑↓ scroll · / find · "
"""Those that are named only where not everything is on the screen at once."""
FINDING = "Enter keep · Esc all"
NO_MATCH = "Nothing matches."
WIDEST = 126
"""Cells of the longest lines; what is longer wraps."""
FRAME = 4
"""Cells of the border and the air inside."""
MEASURED = 2_000
"""Lines that are measured for the width."""
MOST_SAID = 4
"""Lines of what is said below the rows."""

COLOURS = {
    "text": "foreground",
    "title": "primary",
    "name": "foreground",
    "muted": "muted",
    "bar": "primary",
    "ok": "success",
    "warn": "warning",
    "fail": "error",
    "on": "primary",
}


class TextRows(RowList):
    """Text in wrapped lines; the keys scroll. The scroll bar's cell is kept free, so that its coming covers nothing."""

    DEFAULT_CSS = "TextRows { scrollbar-gutter: stable; }"

    def __init__(self, text: str = "") -> None:
        super().__init__(id="rows")
        self.text = _prepared(text)
        self.searched = ""
        self.lines: Sequence[InfoLine] = ()
        self._width = 0

    # For subclasses

    def laid_out(self, width: int) -> Sequence[InfoLine]:
        """The lines that match what is searched for, in a width."""
        words = self.searched.lower().split()
        found = [line for line in self.text.split("\n") if all(word in line.lower() for word in words)]
        return [
            InfoLine(((piece, "title" if piece.startswith("#") else "text"),))
            for line in found or [NO_MATCH]
            for piece in wrapped(line, width) or [""]
        ]

    def size_in(self, width: int, room: int) -> tuple[int, int]:
        """The cells of the longest line, at most ``WIDEST``, and how many lines there are in ``width`` cells, where
        that is below ``room``."""
        lines = self.text.split("\n")
        longest = min(WIDEST, max(cell_len(line) for line in lines[:MEASURED]))
        inner = min(longest, width)
        return longest, len(lines) if len(lines) > room else sum(len(wrapped(line, inner)) or 1 for line in lines)

    # Screen

    def on_resize(self) -> None:
        width = self.scrollable_content_region.width
        if width and width != self._width:
            self._width = width
            self.again()

    def again(self, cursor: int | None = None) -> None:
        """Lays out what there is now."""
        if self._width:
            self.lines = self.laid_out(self._width)
            self.set_count(len(self.lines), cursor)

    def search(self, words: str) -> None:
        """Shows only the lines with these words in them; all of them without words."""
        self.searched = words
        self.again(0)

    def show(self, text: str) -> None:
        """Another text; who stands at the end sees its end."""
        at_end, top = self.scroll_offset.y >= self.max_scroll_y, self.scroll_offset.y
        self.text = _prepared(text)
        if self._width:
            self.again()
            self.scroll_to(y=self.max_scroll_y if at_end else top, animate=False, force=True)

    def selectable(self, index: int) -> bool:
        return False

    def action_move(self, by: int) -> None:
        self.scroll_relative(y=by, animate=False)

    def action_page(self, by: int) -> None:
        self.scroll_relative(y=by * max(1, self.size.height - 1), animate=False)

    def action_first(self) -> None:
        self.scroll_home(animate=False)

    def action_last(self) -> None:
        self.scroll_end(animate=False)

    def row(self, index: int, width: int, paint: Paint) -> Sequence[Piece]:
        return [(text, paint(COLOURS[look], bold=look in ("title", "on"))) for text, look in self.lines[index].pieces]


def _prepared(text: str) -> str:
    return clean(text[:MAX_CHARS]).expandtabs(4)


class SearchInput(Input):
    """The line below the rows: what is searched for, or what a key asks for. Esc leaves it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "screen.leave_line", "Leave", show=False)]


class TextScreen(Guarded, ModalScreen[None]):
    """Shows text under a title; ``/`` finds in it, ``c`` copies it."""

    DEFAULT_CSS = """
    TextScreen { align: center middle; background: $background 60%; }
    TextScreen #frame {
        width: 94%; height: 90%; padding: 0 1; background: $surface; border: round $primary;
        border-title-color: $primary; border-title-style: bold; border-subtitle-color: $muted;
    }
    TextScreen #rows { background: $surface; }
    TextScreen #said { height: auto; max-height: 4; color: $accent; display: none; }
    TextScreen #line { height: 1; border: none; padding: 0 1; background: $panel; display: none; }
    TextScreen.-said #said { display: block; }
    TextScreen.-typing #line { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Close", show=False),
        Binding("q", "dismiss(None)", "Close", show=False),
        Binding("c", "copy", "Copy", show=False),
        Binding("slash,ctrl+f", "find", "Find", show=False),
    ]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self.title_text = one_line(title, 100)
        self.text = text
        self.keys = KEYS
        self._wide = self._high = 0

    def compose(self) -> ComposeResult:
        with Vertical(id="frame") as frame:
            frame.border_title = Content(self.title_text)
            yield from self.compose_rows()
            yield Static(Content(""), id="said")
            yield SearchInput(id="line", select_on_focus=False)

    def compose_rows(self) -> ComposeResult:
        yield TextRows(self.text)

    @property
    def rows(self) -> TextRows:
        return self.query_one("#rows", TextRows)

    @property
    def line(self) -> SearchInput:
        return self.query_one("#line", SearchInput)

    def on_mount(self) -> None:
        self.rows.focus()

    def on_resize(self, event: events.Resize) -> None:
        self.fit(event.size)

    def fit(self, screen: Size) -> None:
        """Makes the frame as large as the text, within the screen. It never becomes smaller while one reads."""
        frame = self.query_one("#frame")
        most = room_on(screen)
        widest, high = self.rows.size_in(most.width - FRAME - 1, most.height)
        long = high + 2 + self._below > most.height
        words = max(cell_len(self.title_text), cell_len(self.keys_of(long))) + 4
        self._wide = max(self._wide, min(WIDEST, max(words, widest)))
        self._high = max(self._high, min(high + 2 + self._below, most.height))
        frame.styles.width = width = min(self._wide + FRAME + 1, most.width)
        frame.styles.height = min(self._high, most.height)
        self.tell_keys(width, long)

    @property
    def _below(self) -> int:
        """Lines of what stands below the rows."""
        said = self.query_one("#said", Static)
        lines = sum(1 + cell_len(line) // max(1, self._wide) for line in str(said.content).splitlines())
        return int(self.has_class("-typing")) + (min(MOST_SAID, lines) if self.has_class("-said") else 0)

    def keys_of(self, long: bool) -> str:
        """The keys as they are named where the text is longer than the frame, and where it is not."""
        return self.keys if long else self.keys.replace(READING, "")

    def tell_keys(self, width: int, long: bool) -> None:
        """Says in the frame what the keys do now."""
        keys = self.line_keys if self.has_class("-typing") else self.keys_of(long)
        self.query_one("#frame").border_subtitle = Content(fitting(keys, width - FRAME - 2))

    @property
    def line_keys(self) -> str:
        """What the keys do while something is typed in the line."""
        return FINDING

    def say(self, text: str) -> None:
        """Says what came of a key, below the rows; nothing any more where it is empty."""
        self.query_one("#said", Static).update(Content(clean(text)))
        self.set_class(bool(text), "-said")
        self.fit(self.size)

    # The line

    def ask(self, placeholder: str, text: str = "") -> None:
        """Opens the line."""
        self.line.placeholder = placeholder
        self.line.value = text
        self.line.cursor_position = len(text)
        self.add_class("-typing")
        self.line.focus()
        self.fit(self.size)

    def action_leave_line(self) -> None:
        """Esc in the line: nothing is searched for any more."""
        self.close_line()
        self.rows.search("")

    def close_line(self) -> None:
        self.remove_class("-typing")
        self.rows.focus()
        self.fit(self.size)

    def action_find(self) -> None:
        self.say("")
        self.ask("words to find", self.rows.searched)

    @on(Input.Changed, "#line")
    def _line_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.has_class("-typing"):
            self.typed(event.value)

    @on(Input.Submitted, "#line")
    def _line_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.close_line()
        self.entered(event.value)

    def typed(self, text: str) -> None:
        """The line holds this now."""
        self.rows.search(text)

    def entered(self, text: str) -> None:
        """Enter in the line."""

    def action_close(self) -> None:
        """Esc: all of the text again, where something is searched for; then it closes."""
        if self.rows.searched:
            self.rows.search("")
        else:
            self.dismiss(None)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self.text)
        self.say("Copied.")
