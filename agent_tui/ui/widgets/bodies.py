"""The text of a question, whole: what is to be allowed, a plan, a change as it will be."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

from rich.cells import cell_len, chop_cells

from agent_tui.say.asks import Ask
from agent_tui.text.clean import spelled
from agent_tui.text.code import coloured
from agent_tui.text.numbers import plural
from agent_tui.ui.flow.diff import ROWS, diff_flows, shown_diff
from agent_tui.ui.flow.layout import Flow, Line
from agent_tui.ui.flow.palette import Palette
from agent_tui.ui.theme import Paint, Piece
from agent_tui.ui.widgets.drawn_lines import Lines
from agent_tui.ui.widgets.rows import RowList

NEAR = 24
"""A word of a command is cut only when it is longer than this many characters."""


class Body(RowList, can_focus=False):
    """A text, whole: long lines are wrapped, never cut. ``color`` says which colour a line has."""

    def __init__(self, text: str, color: Callable[[str], str] = lambda line: "foreground") -> None:
        super().__init__(classes="body")
        self._color = color
        self.lines: list[tuple[str, str]] = []
        self._wrapped = 0
        self.set_text(text)

    def set_text(self, text: str) -> None:
        """Another text; foreign text is spelled out."""
        self.text = spelled(text).expandtabs(4).rstrip("\n")
        width, self._wrapped = self._wrapped, 0
        self.wrap(width)

    def wrap(self, width: int) -> None:
        if width == self._wrapped or width <= 0:
            return
        self._wrapped = width
        self.lines = [
            (piece, self._color(line))
            for line in (self.text.split("\n") if self.text else ())
            for piece in pieces_of(line, max(1, width - 1))
        ]
        self.set_count(len(self.lines))

    def selectable(self, index: int) -> bool:
        return False

    def on_resize(self) -> None:
        self.wrap(self.scrollable_content_region.width)

    def row(self, index: int, width: int, paint: Paint) -> Sequence[Piece]:
        text, color = self.lines[index]
        return [(text, paint(color))]


def pieces_of(line: str, width: int) -> list[str]:
    """A line in pieces of at most ``width`` cells that together are the line, broken behind a blank if one is near.
    Where there is no room at all it is as if there were a cell."""
    pieces: list[str] = []
    at, width = 0, max(1, width)
    while not pieces or at < len(line):
        head = line[at : at + 4 * width]
        if cell_len(head) > width:
            head = chop_cells(head, width)[0] or head[:1]
            blank = head.rfind(" ", max(0, len(head) - NEAR)) + 1
            head = head[:blank] if blank else head
        pieces.append(head)
        at += len(head)
    return pieces


class FlowBody(Body):
    """Rows of flows. Of many only those that are looked at get their colours."""

    def __init__(self, text: str, count: int) -> None:
        self._flow_count = count
        self._starts: list[int] = [0]
        self._drawn: dict[int, list[Line]] = {}
        self._palette: Palette | None = None
        super().__init__(text)

    @abstractmethod
    def flows(self, start: int, end: int, colored: bool) -> list[Flow]:
        """Some of the rows; without ``colored`` they are as high."""

    def wrap(self, width: int) -> None:
        if width == self._wrapped or width <= 0:
            return
        self._wrapped = width
        self._drawn.clear()
        heights = [
            sum(flow.height(width) for flow in self.flows(start, start + ROWS, False))
            for start in range(0, self._flow_count, ROWS)
        ]
        self._starts = list(accumulate(heights, initial=0))
        self.set_count(self._starts[-1])

    def row(self, index: int, width: int, paint: Paint) -> Sequence[Piece]:
        if self._palette is None or self._palette.variables is not paint.variables:
            self._palette = Palette(paint.variables, self.rich_style)
            self._drawn.clear()
        part = bisect_right(self._starts, index) - 1
        if part not in self._drawn:
            flows = self.flows(part * ROWS, (part + 1) * ROWS, True)
            self._drawn[part] = [line for flow in flows for line in flow.lay(0, self._wrapped, self._palette)]
        line = self._drawn[part][index - self._starts[part]]
        line.pad(width, line.fill)
        return [(text, style) for text, style, _ in line.segments]


class DiffBody(FlowBody):
    """A change, as the transcript shows one."""

    def __init__(self, text: str, path: str) -> None:
        self._diff = shown_diff(text, path, spelled, whole=True)
        super().__init__(text, len(self._diff.lines))

    def flows(self, start: int, end: int, colored: bool) -> list[Flow]:
        return diff_flows(self._diff, start, end, (), colored=colored)


class CommandBody(FlowBody):
    """A command in its colours, whole."""

    def __init__(self, text: str) -> None:
        lines = spelled(text).expandtabs(4).rstrip("\n").split("\n")
        self._lines = list(zip(lines, coloured("\n".join(lines), "bash"), strict=True))
        super().__init__(text, len(lines))

    def flows(self, start: int, end: int, colored: bool) -> list[Flow]:
        made = [(line, [(at, style, None) for at, style in runs]) for line, runs in self._lines[start:end]]
        return [Flow(line, runs, wrap="char", wide=True) for line, runs in made]


def plan_color(line: str) -> str:
    """The colour of a line of a plan."""
    return "accent" if line.startswith("#") else "muted" if line.startswith(("```", ">")) else "foreground"


def body_of(ask: Ask) -> Body:
    """What has to be seen of a question, drawn and never interpreted."""
    match ask.body_kind:
        case "diff":
            return DiffBody(ask.body, ask.path)
        case "command":
            return CommandBody(ask.body)
        case "plan":
            return Body(ask.body, plan_color)
    if ask.kind == "stop":  # what it could not be answered with stands below it
        return Body(ask.body, lambda line: "foreground" if line == ask.body else "error")
    return Body(ask.body)


class More(Lines):
    """Follows ``text``; ``way`` is what has to be pressed before the key, empty where nothing has to."""

    def __init__(self, text: RowList) -> None:
        super().__init__()
        self._text = text
        self.way = ""

    def on_mount(self) -> None:
        self.follow(self._text)

    def follow(self, text: RowList) -> None:
        """Follows this text from now on."""
        self._text = text
        for what in ("scroll_y", "virtual_size"):
            self.watch(text, what, self._moved, init=False)

    def _moved(self) -> None:
        self.refresh()

    def say_way(self, way: str) -> None:
        self.way = way
        self.refresh()

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        if (below := self._text.below) > 0:
            return [(f"… +{plural(below, 'line')} · {self.way}PgDn", paint("accent"))]
        return [(f"The end of {plural(self._text.count, 'line')} · {self.way}PgUp for more", paint("muted"))]
