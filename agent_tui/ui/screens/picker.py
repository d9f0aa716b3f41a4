"""A screen to choose one thing from many: a search line, rows that are drawn only when seen, a footer of keys; and the
simplest of them, for what was typed before."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Container, Sequence
from typing import ClassVar, Generic, Literal, TypeVar

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from agent_tui.history import PromptHistory
from agent_tui.text.cells import shorten
from agent_tui.text.clean import clean, one_line
from agent_tui.text.numbers import lines_in, plural
from agent_tui.ui.safety import Guarded
from agent_tui.ui.theme import Paint, Piece
from agent_tui.ui.widgets.drawn_lines import Lines
from agent_tui.ui.widgets.rows import RowList

T = TypeVar("T")
R = TypeVar("R")

WIDEST, TALLEST = 110, 34
"""Cells and lines that a dialog takes at most, however much there is to choose from."""
LEAST_WIDTH, LEAST_ROWS = 48, 3
MARK, BAR = 2, 2
"""Cells of a row before and behind what is drawn of an entry."""
MOST_PREVIEW = 8
"""Lines of a preview."""
MARGIN = 4
"""Cells beside a dialog, and lines above and below together, that keep what it lies on in mind; where there is room."""
LOW, SMALL = 24, 80
"""Below so many lines and cells of the screen a dialog may take all of it."""
MEASURED = 500
"""Entries that are asked how wide they are."""


def room_on(screen: Size) -> Size:
    """What a dialog may take of a screen: where there is room, some of what it lies on stays to be seen."""
    low, small = screen.height < LOW, screen.width < SMALL
    return Size(screen.width - (0 if small else MARGIN), screen.height - (2 if low else MARGIN))


class PickerRows(RowList, can_focus=False):
    """The rows of a picker; it draws them."""

    def __init__(self, picker: Picker[T, R]) -> None:
        super().__init__(id="rows")
        self.picker = picker

    def row(self, index: int, width: int, paint: Paint) -> Sequence[Piece]:
        here = index == self.cursor
        mark = ("❯ " if here else "  ", paint("primary", bold=True))
        return [mark, *self.picker.draw(self.picker.shown[index], width - MARK - 1, paint, here)]

    def selectable(self, index: int) -> bool:
        return self.picker.can_choose(self.picker.shown[index])


class Headings(Lines):
    """The names of a picker's columns, above its rows and in line with them."""

    def __init__(self, picker: Picker[T, R]) -> None:
        super().__init__(id="headings", height=1)
        self.picker = picker

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        room = self.picker.rows.scrollable_content_region.width
        return [("  ", paint()), *self.picker.headings(room - 3, paint)]


class Picker(Guarded, ModalScreen[R], Generic[T, R]):
    """Subclasses give the entries that match a search and draw one; ``chosen`` says what the screen answers."""

    TITLE_TEXT: ClassVar[str] = ""
    PLACEHOLDER: ClassVar[str] = "type to search"
    HINT: ClassVar[str] = "↑↓ move · Enter choose · Esc close"
    NO_MATCH: ClassVar[str] = "Nothing matches."
    EMPTY: ClassVar[str] = NO_MATCH
    """Said where there is nothing at all, whatever is searched for."""
    COLUMNS: ClassVar[bool] = False
    """Whether the rows have columns with names (``headings``)."""
    SEARCH: ClassVar[type[Input]] = Input
    PREVIEW_LINES: ClassVar[int] = 0
    """Lines that are kept free for the preview, so that the dialog does not change its size while one looks around."""

    DEFAULT_CSS = """
    Picker { align: center middle; background: $background 60%; }
    Picker #frame {
        width: 90%; height: 80%; padding: 0 1;
        background: $surface; border: round $primary; border-title-color: $primary; border-title-style: bold;
        border-subtitle-color: $muted;
    }
    Picker #search { height: 1; border: none; padding: 0 1; background: $panel; margin: 0 0 1 0; }
    Picker #headings { background: $surface; }
    Picker #rows { background: $surface; height: 1fr; }
    Picker #preview { height: auto; max-height: 8; color: $muted; margin: 1 0 0 0; padding: 0 1; }
    Picker #none { color: $muted; display: none; padding: 0 2; height: auto; }
    Picker.-empty #none { display: block; }
    Picker.-tiny #frame { border: none; padding: 0; }
    Picker.-tiny #search { margin: 0; }
    Picker.-tiny #preview { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Close", show=False),
        Binding("up,ctrl+k", "rows('move', -1)", "Up", show=False, priority=True),
        Binding("down,ctrl+j,ctrl+n", "rows('move', 1)", "Down", show=False, priority=True),
        Binding("pageup", "rows('page', -1)", "Page up", show=False, priority=True),
        Binding("pagedown", "rows('page', 1)", "Page down", show=False, priority=True),
        Binding("ctrl+home", "rows('move', -1_000_000)", "First", show=False, priority=True),
        Binding("ctrl+end", "rows('move', 1_000_000)", "Last", show=False, priority=True),
    ]

    def __init__(self, search: str = "") -> None:
        super().__init__()
        self.first_search = search
        self.hint = self.HINT
        self.searched = search
        self.shown: Sequence[T] = ()
        self.most = LEAST_ROWS
        self._had = False
        self._widest = 0
        self._said_lines = 0
        self._width = 0

    # For subclasses

    @abstractmethod
    def entries(self, search: str) -> Sequence[T]:
        """Returns the entries that match, best first."""

    @abstractmethod
    def draw(self, entry: T, width: int, paint: Paint, here: bool) -> Sequence[Piece]:
        """One row in at most ``width`` cells."""

    @abstractmethod
    def chosen(self, entry: T) -> None:
        """Enter on an entry; usually dismisses the screen."""

    def headings(self, width: int, paint: Paint) -> Sequence[Piece]:
        """The names of the columns as ``draw`` sets them; none where they need no names."""
        return ()

    def preview(self, entry: T) -> str:
        """Text below the rows about the entry under the cursor; none when empty."""
        return ""

    def can_choose(self, entry: T) -> bool:
        return True

    def refused(self) -> Container[str]:
        """The keys of the hint, as it names them, that would do nothing now: they are not offered."""
        return () if self.current is not None and self.can_choose(self.current) else ("↑↓", "Enter")

    def width_of(self, entry: T) -> int:
        """Cells that ``draw`` needs to say everything about it."""
        return WIDEST

    def start_at(self) -> int:
        return 0

    def preview_lines(self, height: int) -> int:
        """Lines kept free for the preview on a screen of ``height`` lines."""
        return min(self.PREVIEW_LINES, max(0, height // 2 - 4))

    def extra_lines(self, width: int) -> int:
        """Lines of whatever else a subclass shows beside rows and preview, when the dialog is so wide."""
        return int(self.COLUMNS)

    # Screen

    def compose(self) -> ComposeResult:
        with Vertical(id="frame") as frame:
            frame.border_title = Content(self.TITLE_TEXT)
            yield self.SEARCH(self.first_search, placeholder=self.PLACEHOLDER, id="search", select_on_focus=False)
            yield Static(Content(self.EMPTY), id="none")
            if self.COLUMNS:
                yield Headings(self)
            yield from self.compose_rows()
            yield Static(Content(""), id="preview")

    def compose_rows(self) -> ComposeResult:
        yield PickerRows(self)

    def on_mount(self) -> None:
        self.query_one("#search", Input).focus()
        self.search(self.first_search, first=True)

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.height < 14 or event.size.width < 50, "-tiny")
        self.fit(event.size)

    def fit(self, screen: Size) -> None:
        """Makes the dialog as large as what is in it, within the screen; it never shrinks while one types."""
        tiny, frame = self.has_class("-tiny"), self.query_one("#frame", Vertical)
        if tiny:
            frame.styles.width, frame.styles.height = "100%", "100%"
            return
        self.most = max(self.most, len(self.shown))
        self._had = self._had or bool(self.shown)
        self._widest = max(self._widest, *map(self.width_of, self.shown[:MEASURED]), 0)
        words = max(cell_len(text) for text in (self.TITLE_TEXT, self.hint, self.PLACEHOLDER)) + 2
        wanted = max(LEAST_WIDTH, words, min(WIDEST, self._widest + MARK + BAR)) + 4
        room = room_on(screen)
        width = min(wanted, room.width)
        kept = self.preview_lines(screen.height) if self._had else 0
        lines = min(max(kept, self._said_lines), max(0, screen.height // 2 - 4))
        frame.styles.width = self._width = width
        extra = self.extra_lines(width) if self._had else 0
        frame.styles.height = min(self.most + extra + (lines + 1 if lines else 0) + 4, room.height, TALLEST)
        self.query_one("#preview").styles.min_height = lines
        self._offer()

    def _offer(self) -> None:
        """Says which keys there are: of the hint those that do something now."""
        refused = self.refused()
        offered = " · ".join(part for part in self.hint.split(" · ") if part.split(" ")[0] not in refused)
        self.query_one("#frame", Vertical).border_subtitle = Content(fitting(offered, self._width - 6))

    @property
    def rows(self) -> PickerRows:
        return self.query_one("#rows", PickerRows)

    @property
    def search_text(self) -> str:
        return self.query_one("#search", Input).value

    @property
    def current(self) -> T | None:
        index = self.rows.cursor
        return self.shown[index] if index < len(self.shown) else None

    def look_again(self, index: int | None = None) -> None:
        """Shows what there is now of what is searched for; the cursor goes to a row, or stays."""
        self.shown = self.entries(self.searched)
        self._show(index)

    def _show(self, index: int | None) -> None:
        self.rows.set_count(len(self.shown), index)
        self.fit(self.size)
        self.say_empty()

    def search(self, text: str, *, first: bool = False) -> None:
        """Shows what matches; the cursor stands where the screen wants it at ``first``, else on the best."""
        self.searched = text
        self.shown = self.entries(text)
        self._show(self.start_at() if first else 0)
        self._preview()

    def say_empty(self, why: str = "") -> None:
        """Says that nothing is shown, where that is so: for a reason, as nothing matches, or there is nothing."""
        self.set_class(not self.shown, "-empty")
        for names in self.query(Headings):
            names.display = bool(self.shown)
        some = self._had or self.searched.strip()
        self.query_one("#none", Static).update(Content(why or (self.NO_MATCH if some else self.EMPTY)))

    def action_rows(self, what: Literal["move", "page"], by: int) -> None:
        if what == "move":
            self.rows.action_move(by)
        else:
            self.rows.action_page(by)

    def action_close(self) -> None:
        self.dismiss(None)

    @on(Input.Changed, "#search")
    def _search_changed(self, event: Input.Changed) -> None:
        event.stop()
        if event.value != self.searched:
            self.search(event.value)

    @on(Input.Submitted, "#search")
    def _search_submitted(self, event: Input.Submitted) -> None:
        """Enter comes through the search line, so that it always means what the typed text shows."""
        event.stop()
        if event.value != self.searched:
            self.search(event.value)
        self._choose(self.rows.cursor)

    @on(RowList.Moved)
    def _moved(self, event: RowList.Moved) -> None:
        event.stop()
        self._preview()

    @on(RowList.Chosen)
    def _chosen(self, event: RowList.Chosen) -> None:
        event.stop()
        self._choose(event.index)

    def _choose(self, index: int) -> None:
        if self.is_current and 0 <= index < len(self.shown) and self.can_choose(self.shown[index]):
            self.chosen(self.shown[index])

    def _preview(self) -> None:
        entry = self.current
        text = self.preview(entry) if entry is not None else ""
        preview = self.query_one("#preview", Static)
        kept = self._had and self.preview_lines(self.size.height)
        preview.display = bool(text or kept) and not self.has_class("-tiny")
        preview.update(Content(text))
        self._offer()
        if (lines := self._lines_of(text)) > self._said_lines:
            self._said_lines = lines
            self.fit(self.size)

    def _lines_of(self, text: str) -> int:
        """Lines that a preview takes in the dialog as wide as it is, at most as many as are shown."""
        width = max(LEAST_WIDTH, self._width) - 6
        return min(MOST_PREVIEW, sum(1 + (cell_len(line) - 1) // width for line in text.splitlines() if line))


def fitting(hint: str, width: int) -> str:
    """A line of keys in at most ``width`` cells: whole ones are left out before its last, which says how to leave."""
    parts = hint.split(" · ")
    while len(parts) > 1 and cell_len(" · ".join(parts)) > width:
        del parts[-2]
    return shorten(" · ".join(parts), width)


class HistoryPicker(Picker[str, str]):
    """Answers the chosen text, which then stands in the prompt."""

    TITLE_TEXT = "Prompt history"
    PLACEHOLDER = "search your prompts"
    HINT = "Enter use · Esc close"
    NO_MATCH = "No prompt matches in this project."
    EMPTY = "No prompts in this project yet."

    def __init__(self, history: PromptHistory, search: str = "") -> None:
        super().__init__(one_line(search, 100))
        self.history = history

    def entries(self, search: str) -> Sequence[str]:
        return self.history.search(search)

    def draw(self, entry: str, width: int, paint: Paint, here: bool) -> Sequence[Piece]:
        lines = lines_in(entry)
        more = f"  +{plural(lines - 1, 'line')}" if lines > 1 else ""
        text = shorten(one_line(entry, 400), max(4, width - len(more)))
        return [(text, paint("primary" if here else "foreground")), (more, paint("faint"))]

    def preview(self, entry: str) -> str:
        return clean(entry)[:800] if "\n" in entry else ""

    def chosen(self, entry: str) -> None:
        self.dismiss(entry)
