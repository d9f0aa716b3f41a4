"""Choosing a theme; each is shown as the cursor comes to it, and Esc puts the old one back."""

from __future__ import annotations

from collections.abc import Sequence

from textual.theme import Theme

from agent_tui.models.rows import DRAWN_ROWS
from agent_tui.text.cells import fit
from agent_tui.text.clean import one_line
from agent_tui.text.fuzzy import match
from agent_tui.ui.draw import Piece
from agent_tui.ui.screens.picker import Picker
from agent_tui.ui.theme import Paint, Themes, variable_defaults


class ThemePicker(Picker[Theme, str]):
    """Answers the name of the theme that is to stay. ``before`` is the one in force; the others have to be known."""

    TITLE_TEXT = "Theme"
    PLACEHOLDER = "search"
    HINT = "↑↓ preview · Enter keep · Esc back"

    def __init__(self, found: Themes, before: str, search: str = "") -> None:
        super().__init__(search)
        self.themes = found.themes
        self.problems = found.problems
        self.before = before

    def entries(self, search: str) -> Sequence[Theme]:
        return [self.themes[name] for name in match(search, sorted(self.themes))]

    def start_at(self) -> int:
        return next((i for i, t in enumerate(self.shown) if t.name == self.before), 0)

    def draw(self, entry: Theme, width: int, paint: Paint, here: bool) -> Sequence[Piece]:
        own = Paint({**variable_defaults(entry), **entry.variables})
        kind = "16 colours" if entry.ansi else "dark" if entry.dark else "light"
        swatch: list[Piece] = [("██", own(row.variable)) for row in DRAWN_ROWS if row.always] if width > 50 else []
        return [
            ("● " if entry.name == self.before else "  ", paint("accent")),
            (fit(one_line(entry.name, 60), 22), paint("primary" if here else "foreground", bold=here)),
            (fit(kind, 12), paint("muted")),
            *swatch,
        ]

    def preview(self, entry: Theme) -> str:
        if self.is_current and self.app.theme != entry.name:
            self.app.theme = entry.name
        return "\n".join(one_line(p, 300) for p in self.problems)

    def chosen(self, entry: Theme) -> None:
        self.app.theme = entry.name
        self.dismiss(entry.name)

    def action_close(self) -> None:
        self.app.theme = self.before
        self.dismiss(None)
