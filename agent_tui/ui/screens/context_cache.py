"""Lists what each call read from the provider's cache and what it should have read, newest first, with why and
price."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len

from agent_tui.commands.report import entry_details, miss_words, read_words
from agent_tui.context.cache_forecast import cache_entries
from agent_tui.models.steps import CacheEntry
from agent_tui.text.cells import fit
from agent_tui.text.numbers import age, money, tokens
from agent_tui.ui.screens.picker import Picker
from agent_tui.ui.screens.text import TextScreen
from agent_tui.ui.theme import Paint, Piece

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent

LOW = 20
"""Below this height the details are only shown on Enter."""
AGE, COUNT, READ, EXPECTED, PRICE = 7, 8, 15, 10, 9
"""Columns of the numbers; the cause has the rest."""


class CachePicker(Picker[CacheEntry, None]):
    """Enter shows all that is known of a call. The search looks at causes and models."""

    TITLE_TEXT = "Prompt cache"
    COLUMNS = True
    PLACEHOLDER = "search causes and models: expired, tools, switched …"
    PREVIEW_LINES = 8
    HINT = "↑↓ move · Enter details · Esc close"
    EMPTY = "No answered calls yet."

    def __init__(self, agent: Agent) -> None:
        super().__init__()
        self._entries = cache_entries(agent.conversation.steps)
        self._now = time.time()

    def entries(self, search: str) -> Sequence[CacheEntry]:
        wanted = search.lower()
        if not wanted:
            return self._entries
        return [e for e in self._entries if wanted in f"{e.model} {_why(e)} {e.miss.cause if e.miss else ''}".lower()]

    def headings(self, width: int, paint: Paint) -> Sequence[Piece]:
        expected, room = self._columns(width)
        names = (
            fit("age", AGE),
            fit("input", COUNT, right=True),
            fit("read", READ, right=True),
            fit("expected", expected, right=True),
            f"  {fit('why', room)}",
            fit("price", PRICE, right=True),
        )
        return [("".join(names), paint("muted"))]

    @staticmethod
    def _columns(width: int) -> tuple[int, int]:
        """Cells of what was expected, 0 where there is no room for it, and of the cause."""
        expected = EXPECTED if width >= AGE + COUNT + EXPECTED + READ + PRICE + 16 else 0
        return expected, max(8, width - AGE - COUNT - READ - PRICE - expected - 2)

    def draw(self, entry: CacheEntry, width: int, paint: Paint, here: bool) -> Sequence[Piece]:
        wide, room = self._columns(width)
        expected = fit("" if entry.expected is None else tokens(entry.expected, True), wide, right=True)
        price = money(entry.miss.cost_usd) if entry.miss is not None else ""
        color = "warning" if entry.miss is not None else "muted"
        return [
            (fit(age(entry.created, self._now), AGE), paint("faint")),
            (fit(tokens(entry.input, False), COUNT, right=True), paint("primary" if here else "foreground", bold=here)),
            (fit(read_words(entry), READ, right=True), paint("foreground")),
            (expected, paint("muted")),
            (f"  {fit(_why(entry), room)}", paint(color)),
            (fit(price, PRICE, right=True), paint("warning")),
        ]

    def width_of(self, entry: CacheEntry) -> int:
        return AGE + 2 * COUNT + READ + PRICE + 2 + max(18, cell_len(_why(entry)))

    def preview(self, entry: CacheEntry) -> str:
        """The details, where they leave room for the rows."""
        return entry_details(entry) if self.preview_lines(self.size.height) else ""

    def preview_lines(self, height: int) -> int:
        return super().preview_lines(height) if height >= LOW else 0

    def chosen(self, entry: CacheEntry) -> None:
        self.app.push_screen(TextScreen("One call and the cache", entry_details(entry)))


def _why(entry: CacheEntry) -> str:
    words = "as expected" if entry.expected is not None else ""
    if entry.miss is not None:
        words = miss_words(entry.miss)
    return " · ".join(part for part in (words, "subagent" * entry.subagent) if part)
