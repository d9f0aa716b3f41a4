"""Searching what was typed before (Ctrl+R)."""

from __future__ import annotations

from collections.abc import Sequence

from agent_tui.history import History
from agent_tui.text.cells import shorten
from agent_tui.text.clean import clean, one_line
from agent_tui.text.numbers import lines_in, plural
from agent_tui.ui.draw import Piece
from agent_tui.ui.screens.picker import Picker
from agent_tui.ui.theme import Paint


class HistoryPicker(Picker[str, str]):
    """Answers the chosen text, which then stands in the prompt."""

    TITLE_TEXT = "Prompt history"
    PLACEHOLDER = "words that were in it"
    HINT = "Enter take it · Esc close"
    NO_MATCH = "Nothing like that was typed in this project."
    EMPTY = "Nothing was typed in this project yet."

    def __init__(self, history: History, search: str = "") -> None:
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
