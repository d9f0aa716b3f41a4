"""Choosing a theme; each is worn as the cursor comes to it, by the chat behind too, and Esc puts the old one back."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.theme import Theme

from agent_tui.models.rows import DRAWN_ROWS
from agent_tui.text.cells import fit
from agent_tui.text.clean import one_line
from agent_tui.text.search import match
from agent_tui.ui.flow.palette import Palette
from agent_tui.ui.screens.picker import Picker, PickerRows
from agent_tui.ui.theme import Paint, Piece, Themes
from agent_tui.ui.widgets.drawn_lines import Lines

NAME, NARROW_NAME, KIND = 18, 15, 12
"""Cells of the columns; the name has less where the sample beside it needs the room."""
SAMPLE = 38
"""Cells of the sample."""
ROOMY, SWATCHES = 72, 100
"""Cells of the screen from which on rows say what kind a theme is, and show its colours."""

_CODE: tuple[tuple[tuple[str, str], ...], ...] = (
    (
        ("def ", "tok_keyword"),
        ("greet", "tok_name"),
        ("(name: ", ""),
        ("str", "tok_type"),
        (") -> ", ""),
        ("str", "tok_type"),
    ),
    (("    # said ", "tok_comment"), ("once", "tok_comment"), (" a day", "tok_comment")),
    (("    return ", "tok_keyword"), ('f"Hello, {name}"', "tok_string"), (" * ", ""), ("1", "tok_number")),
)
_DIFF: tuple[tuple[tuple[str, str], ...], ...] = (
    (("@@ -1,3 +1,3 @@", "hunk"),),
    (("-    return name", "remove"),),
    (("+    return name.strip()", "add"),),
)
_WORDS: tuple[tuple[str, str], ...] = (("✓ ok ", "ok"), ("✗ no ", "failed"), ("muted ", "muted"), ("faint ", "faint"))


class Sample(Lines):
    """Code, a diff, words and a selection in the colours of the theme in force."""

    DEFAULT_CSS = """
    Sample { width: 1fr; background: $background; margin: 0 0 0 1; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__(height=len(_CODE) + len(_DIFF) + 2)

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        palette = Palette(paint.variables, self.rich_style)
        if y < len(_CODE):
            pieces = [(text, palette(f"code {name}")) for text, name in _CODE[y]]
            return [*pieces, (" " * width, palette("code"))]
        y -= len(_CODE)
        if y < len(_DIFF):
            return [(text, palette(name)) for text, name in _DIFF[y]]
        if y == len(_DIFF):
            plain = self.app.current_theme.ansi
            selected = paint(reverse=True) if plain else paint("selection-text", "selection")
            return [*((text, palette(name)) for text, name in _WORDS), ("selected", selected)]
        return [("██", paint(row.variable)) for row in DRAWN_ROWS if row.always]


class ThemePicker(Picker[Theme, str]):
    """Answers the name of the theme that is to stay. ``before`` is the one in force; the others have to be known."""

    TITLE_TEXT = "Theme"
    PLACEHOLDER = "search"
    HINT = "↑↓ preview · Enter keep · Esc back"
    DEFAULT_CSS = """
    ThemePicker { align: center bottom; background: transparent; }
    ThemePicker #frame { margin: 0 0 1 0; }
    ThemePicker #beside { height: 1fr; }
    """

    def __init__(self, found: Themes, before: str, search: str = "") -> None:
        super().__init__(search)
        self.themes = found.themes
        self.problems = found.problems
        self.before = before
        self.sample = Sample()

    def compose_rows(self) -> ComposeResult:
        with Horizontal(id="beside"):
            yield PickerRows(self)
            yield self.sample

    def entries(self, search: str) -> Sequence[Theme]:
        return [self.themes[name] for name in match(search, sorted(self.themes))]

    def start_at(self) -> int:
        return next((i for i, t in enumerate(self.shown) if t.name == self.before), 0)

    def width_of(self, entry: Theme) -> int:
        return self._list_width() + SAMPLE

    def extra_lines(self, width: int) -> int:
        """The sample may be higher than the list."""
        self.rows.styles.width = self._list_width()
        return max(0, self.sample.line_count - self.most)

    def _list_width(self) -> int:
        name, kind, swatches = self._columns()
        return 4 + name + kind + swatches + 2

    def _columns(self) -> tuple[int, int, int]:
        width = self.app.size.width
        swatches = 2 * sum(row.always for row in DRAWN_ROWS)
        roomy = width >= ROOMY
        return NAME if roomy else NARROW_NAME, KIND if roomy else 0, swatches if width >= SWATCHES else 0

    def draw(self, entry: Theme, width: int, paint: Paint, here: bool) -> Sequence[Piece]:
        name, kind, swatches = self._columns()
        own = Paint(entry.variables)
        word = "16 colours" if entry.ansi else "dark" if entry.dark else "light"
        return [
            ("● " if entry.name == self.before else "  ", paint("accent")),
            (fit(one_line(entry.name, 60), name), paint("primary" if here else "foreground", bold=here)),
            (fit(word, kind), paint("muted")),
            *(("██", own(row.variable)) for row in DRAWN_ROWS if row.always and swatches),
        ]

    def preview(self, entry: Theme) -> str:
        if self.is_current and self.app.theme != entry.name:
            self.app.theme = entry.name
            self.sample.refresh()
        return "\n".join(one_line(p, 300) for p in self.problems)

    def chosen(self, entry: Theme) -> None:
        self.app.theme = entry.name
        self.dismiss(entry.name)

    def action_close(self) -> None:
        self.app.theme = self.before
        self.dismiss(None)
