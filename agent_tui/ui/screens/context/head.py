"""The top of the context screen: what is used in words, the stacked bar, what else there is to know at a glance."""

from __future__ import annotations

from collections.abc import Sequence

from agent_tui.commands.usage_words import facts, sentences
from agent_tui.models.context import ContextUsage
from agent_tui.models.rows import ROW_KINDS
from agent_tui.text.clean import one_line
from agent_tui.ui.screens.context.bar import LIMIT, bar_cells
from agent_tui.ui.screens.context.moment import Moment
from agent_tui.ui.screens.context.wrapping import fitting, joined, shortened, wrapped
from agent_tui.ui.theme import Paint, Piece
from agent_tui.ui.widgets.lines import Lines

FILL = "█"
"""Where colours tell the parts of the bar apart. Sixteen are too few for that, so patterns do it there."""


class Head(Lines):
    """Draws the moment that is shown."""

    DEFAULT_CSS = "Head { padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__(id="head", height=3)
        self._usage: ContextUsage | None = None
        self._words: list[tuple[str, str]] = []
        self._thick = 1
        self._headings = ""

    def show(self, moment: Moment, width: int, thick: int, gap: int, most: int, most_told: int) -> int:
        """Another moment, its words wrapped to ``width``; the bar is ``thick`` lines high, and ``gap`` lines below are
        left free above the names of the columns. Facts are said shorter, or left out, where there would be more than
        ``most`` lines, and what is told of a step where there would be more than ``most_told``. Returns how many lines
        it takes.
        """
        self._usage, self._thick = moment.usage, thick
        title = [(line, "title") for line in wrapped(one_line(moment.title, 300), width)] if moment.title else []
        words = [(line, "words") for line in joined(sentences(moment.usage, moment.in_flight), " ", width)]
        known = facts(moment.usage, moment.in_flight, moment.prices, ahead=not moment.title)
        told = [line for said in moment.told for line in wrapped(one_line(said, 1_000), width)]
        if moment.problem:
            self._set(
                [
                    *title,
                    *((line, "words") for line in wrapped(moment.problem, width)),
                    *((line, "told") for line in told),
                ][: max(1, most)]
            )
            return len(self._words)
        above = [*title, *words, *[("", "bar")] * thick]
        rest = len(above) + gap + 1
        shown = [(line, "told") for line in shortened(told, most_told - rest, width)]
        shown += [(line, "facts") for line in fitting(known, most - rest - len(shown), width)]
        self._set([*above, *shown, *[("", "facts")] * gap, ("", "headings")])
        return len(self._words)

    def _set(self, words: list[tuple[str, str]]) -> None:
        self._words = words
        if self.line_count != len(self._words):
            self.set_height(len(self._words))
        self.refresh()

    def name_columns(self, text: str) -> None:
        """The names of the columns of the rows below."""
        self._headings = text

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        if self._usage is None or y >= len(self._words):
            return []
        text, kind = self._words[y]
        match kind:
            case "bar":
                return self.bar(self._usage, width, paint)
            case "headings":
                return [(self._headings, paint("muted"))]
            case "told":
                return [(text, paint("foreground"))]
            case "title":
                return [(text, paint("accent", bold=True))]
            case "words":
                return [(text, paint("error" if self._usage.over else "foreground", bold=True))]
            case _:
                return [(text, paint("muted"))]

    def bar(self, usage: ContextUsage, width: int, paint: Paint) -> list[Piece]:
        plain, few = self.app.no_color, self.app.current_theme.ansi
        pieces: list[Piece] = []
        for name, cells in bar_cells(usage, width):
            kind = ROW_KINDS.get(name)
            if name == LIMIT:
                pieces.append(("┊", paint("warning", bold=True)))
            elif kind is None:
                pieces.append((FILL * cells, paint("primary")))
            else:
                fill = kind.pattern if plain or few or name == "reserve" else FILL
                pieces.append((fill * cells, paint() if plain else paint(kind.variable)))
        return pieces
