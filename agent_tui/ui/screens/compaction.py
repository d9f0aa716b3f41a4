"""The page of a compaction, made or only planned: the request before it and after it as bars in the colours of the
timeline, and below them all there is to say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.style import Style
from textual.app import ComposeResult
from textual.geometry import Size

from agent_tui.commands.context_texts import bar_cells, bars_of, changes_of, picture_text
from agent_tui.context.compaction.plan import CompactionFigures
from agent_tui.models.rows import ROW_KINDS
from agent_tui.ui.screens.context_head import FILL
from agent_tui.ui.screens.picker import room_on
from agent_tui.ui.screens.text import FRAME, TextRows, TextScreen
from agent_tui.ui.theme import Paint, Piece, width_of
from agent_tui.ui.widgets.drawn_lines import Lines

WOULD, DONE = "Compaction preview", "Compaction"
"""Titles."""

LABEL, NUMBER = 8, 9
"""Cells before a bar, and behind it."""
BETWEEN = "   "
LEAST_TEXT = 6
"""Lines that are left for the words below; the picture gives way first."""
THICK = 24
"""From so many lines on a bar is two lines high."""
WIDE = 90
"""Cells of a page with bars, where there is room."""


class Bars(Lines):
    """The two bars with the line of the limit, and in words what changes."""

    DEFAULT_CSS = "Bars { background: $surface; }"

    def __init__(self, picture: CompactionFigures) -> None:
        super().__init__(id="bars")
        self.picture = picture
        self._bars = bars_of(picture)
        self._thick = 1
        self._legend: list[list[tuple[str, str]]] = []

    def fit(self, width: int, room: int) -> int:
        """Takes at most ``room`` lines of ``width`` cells; returns how many."""
        self._thick = 2 if room >= THICK else 1
        self._legend = _lines_of(changes_of(self.picture), width - LABEL)
        bars = self._bars_high
        most = max(0, room - LEAST_TEXT - bars - 1)
        if len(self._legend) > most:
            self._legend = self._legend[:most]
        self.set_height(bars + len(self._legend) + 1 if bars and room > LEAST_TEXT + bars else 0)
        self.refresh()
        return self.line_count

    @property
    def _bars_high(self) -> int:
        """With a blank line between them where they are high."""
        return len(self._bars) * self._thick + (self._thick > 1) * max(0, len(self._bars) - 1)

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        bars, apart = self._bars_high, self._thick + (self._thick > 1)
        if y < bars:
            place, row = divmod(y, apart)
            if row >= self._thick:
                return []
            label, stack, number = self._bars[place]
            first = row == 0
            said = [(f"{label:<{LABEL}}" if first else " " * LABEL, paint("muted"))]
            pieces = [*said, *self._bar(stack, max(4, width - LABEL - NUMBER), paint)]
            return [*pieces, (f" {number}", paint("foreground", bold=True))] if first else pieces
        if y - bars >= len(self._legend):
            return []
        pieces = [(" " * LABEL, paint())]
        for name, text in self._legend[y - bars]:
            if name:
                pieces += [(self._fill(name), self._paint(name, paint)), (f" {text}{BETWEEN}", paint("foreground"))]
            else:
                pieces.append((f"{text}{BETWEEN}", paint("muted")))
        return pieces

    def _bar(self, stack: Mapping[str, int], width: int, paint: Paint) -> list[Piece]:
        scale = max(sum(each.values()) for _, each, _ in self._bars)
        limit = self.picture.limit
        mark = None
        if limit and scale < limit <= 2 * scale:
            scale = limit
        if limit and limit <= scale:
            mark = min(width - 1, round(width * limit / scale))
        pieces = [
            (self._fill(name) * cells, self._paint(name, paint)) for name, cells in bar_cells(stack, scale, width)
        ]
        free = width - width_of(pieces)
        if mark is not None and width - free <= mark:
            gap = mark - (width - free)
            pieces += [(" " * gap, paint()), ("┊", paint("warning", bold=True)), (" " * (free - gap - 1), paint())]
        else:
            pieces.append((" " * free, paint()))
        return pieces

    def _fill(self, name: str) -> str:
        return ROW_KINDS[name].pattern if self.app.no_color or self.app.current_theme.ansi else FILL

    def _paint(self, name: str, paint: Paint) -> Style:
        return paint() if self.app.no_color else paint(ROW_KINDS[name].variable)


def _lines_of(changes: Sequence[tuple[str, str]], width: int) -> list[list[tuple[str, str]]]:
    """What changes, side by side in lines of a width."""
    lines: list[list[tuple[str, str]]] = []
    left = 0
    for name, text in changes:
        cells = len(text) + (2 if name else 0)
        if not lines or cells > left:
            lines.append([])
            left = width
        lines[-1].append((name, text))
        left -= cells + len(BETWEEN)
    return lines


class CompactionScreen(TextScreen):
    """Shows a picture above its words; ``c`` copies all of it as text."""

    def __init__(self, title: str, picture: CompactionFigures) -> None:
        super().__init__(title, picture_text(picture))
        self._picture = picture

    def compose_rows(self) -> ComposeResult:
        yield Bars(self._picture)
        yield TextRows(self._picture.say)

    def fit(self, screen: Size) -> None:
        most, room = room_on(screen)
        bars = self.query_one(Bars)
        if self._picture.after:
            self._wide = max(self._wide, min(WIDE, most - FRAME - 1))
        super().fit(screen)
        above = bars.fit(min(self._wide, most - FRAME - 1), room - 2)
        self.query_one("#frame").styles.height = min(self._high + above, room)
        self.tell_keys(min(self._wide + FRAME + 1, most), self._high + above > room)
