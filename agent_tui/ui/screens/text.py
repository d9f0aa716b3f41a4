"""Something longer to read: a message, a summary. Scrolls; lines are drawn when seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len, chop_cells
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.geometry import Size
from textual.screen import ModalScreen

from agent_tui.text.clean import clean, one_line
from agent_tui.ui.safety import Guarded
from agent_tui.ui.screens.picker import room_on
from agent_tui.ui.theme import Paint, Piece
from agent_tui.ui.widgets.rows import RowList

MAX_CHARS = 2_000_000
KEYS = "↑↓ scroll · c copy · Esc close"
WIDEST = 126
"""Cells of the longest lines; what is longer wraps."""
FRAME = 4
"""Cells of the border and the air inside."""
MEASURED = 2_000
"""Lines that are measured for the width."""


class TextRows(RowList):
    """Text in wrapped lines; the keys scroll. The scroll bar's cell is kept free, so that its coming covers nothing."""

    DEFAULT_CSS = "TextRows { scrollbar-gutter: stable; }"

    def __init__(self, text: str) -> None:
        super().__init__(id="rows")
        self.text = _prepared(text)
        self.lines: list[str] = []
        self._width = 0

    def on_resize(self) -> None:
        width = self.scrollable_content_region.width
        if width and width != self._width:
            self._width = width
            self._break()

    def _break(self) -> None:
        self.lines = [piece for line in self.text.split("\n") for piece in _wrap(line, self._width)]
        self.set_count(len(self.lines))

    def show(self, text: str) -> None:
        """Another text; who stands at the end sees its end."""
        at_end, top = self.scroll_offset.y >= self.max_scroll_y, self.scroll_offset.y
        self.text = _prepared(text)
        if self._width:
            self._break()
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
        line = self.lines[index]
        heading = line.startswith("#")
        return [(line, paint("primary" if heading else "foreground", bold=heading))]


def _prepared(text: str) -> str:
    return clean(text[:MAX_CHARS]).expandtabs(4)


def _wrap(line: str, width: int) -> list[str]:
    """Breaks a line at blanks where possible; what goes on stands below where the line began."""
    if cell_len(line) <= width:
        return [line]
    rest = line.lstrip(" ")
    indent = line[: len(line) - len(rest)][: width // 2]
    lines: list[str] = []
    current = indent
    for word in rest.split(" "):
        joined = f"{current} {word}" if current.strip() else current + word
        if cell_len(joined) <= width:
            current = joined
            continue
        if current.strip():
            lines.append(current)
        *full, last = chop_cells(word, width - len(indent)) or [""]
        lines += [indent + piece for piece in full]
        current = indent + last
    return [*lines, current]


class TextScreen(Guarded, ModalScreen[None]):
    """Shows text under a title; ``c`` copies it."""

    DEFAULT_CSS = """
    TextScreen { align: center middle; background: $background 60%; }
    TextScreen #frame {
        width: 94%; height: 90%; padding: 0 1; background: $surface; border: round $primary;
        border-title-color: $primary; border-title-style: bold; border-subtitle-color: $muted;
    }
    TextScreen #rows { background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", "Close", show=False),
        Binding("c,y", "copy", "Copy", show=False),
    ]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self.title_text = one_line(title, 100)
        self.text = text
        self._wide = self._high = 0

    def compose(self) -> ComposeResult:
        with Vertical(id="frame") as frame:
            frame.border_title = self.title_text.replace("[", "(").replace("]", ")")
            frame.border_subtitle = KEYS
            yield TextRows(self.text)

    def on_mount(self) -> None:
        self.query_one("#rows").focus()

    def on_resize(self, event: events.Resize) -> None:
        self.fit(event.size)

    def fit(self, screen: Size) -> None:
        """Makes the frame as large as the text, within the screen. It never becomes smaller while one reads."""
        rows, frame = self.query_one(TextRows), self.query_one("#frame")
        lines = rows.text.split("\n")
        words = max(cell_len(self.title_text), cell_len(KEYS)) + 4
        self._wide = max(self._wide, min(WIDEST, max(words, *(cell_len(line) for line in lines[:MEASURED]))))
        most, room = room_on(screen)
        width = min(self._wide + FRAME + 1, most)
        high = len(lines) if len(lines) > room else sum(len(_wrap(line, width - FRAME - 1)) for line in lines)
        self._high = max(self._high, min(high + 2, room))
        frame.styles.width, frame.styles.height = width, min(self._high, room)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self.text)
        self.query_one("#frame").border_subtitle = "copied · Esc close"
