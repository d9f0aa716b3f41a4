"""The bookkeeping of the context screen: how its number was made, and whether it holds, in the room there is."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from agent_tui.commands.bookkeeping import BookkeepingLine, Tone, fold, panel, receipt
from agent_tui.commands.report import ContextReport
from agent_tui.context.chart import Course
from agent_tui.models.rows import MESSAGES
from agent_tui.records import dataclass
from agent_tui.ui.safety import Guarded
from agent_tui.ui.screens.context_head import Head, StepCaption, in_lines
from agent_tui.ui.screens.context_lines import DROPPED, RowLine
from agent_tui.ui.screens.context_rows import ContextRows
from agent_tui.ui.screens.timeline import ChartStyle, TimelineView
from agent_tui.ui.theme import Paint, Piece, width_of
from agent_tui.ui.widgets.drawn_lines import Lines
from agent_tui.ui.widgets.rows import RowList

NAME = 13
"""Cells of the names where the words stand beside them."""

TALL = 30
"""From so many lines on the bookkeeping stands in full below the rows; on lower screens it is one line."""
LOW = 10
"""Below so many lines there are only rows and keys."""
LEAST_ROWS = 12
"""Lines that the rows have at least, where it takes no more than leaving out other words."""
LEAST_SEEN = 10
"""The same below the timeline, which says most of it."""
LEAST_PAST_ROWS = 8
"""The same for what is told of a step of the past: what was billed and what changed are what one goes there for."""
TONES: dict[Tone, str] = {
    "plain": "foreground",
    "good": "success",
    "bad": "error",
    "warning": "warning",
    "quiet": "muted",
}

Line = tuple[str, str, Tone]
"""A name, words, and how they are meant."""


def below(entries: Sequence[BookkeepingLine], width: int) -> list[Line]:
    """The words beside their names, for the foot of the screen."""
    return [
        (("" if number else entry.name).ljust(NAME), text, entry.tone)
        for entry in entries
        for number, text in enumerate(in_lines(entry.text, width - NAME))
    ]


class Words(Lines):
    """Lines of the bookkeeping below the rows."""

    DEFAULT_CSS = """
    Words { padding: 0 1; }
    Words.-below { border-top: solid $line; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[Line] = []

    def show(self, lines: list[Line], ruled: bool) -> None:
        """Other lines, with a rule above them where they are more than one fact."""
        self.lines = lines
        self.set_class(ruled, "-below")
        self.set_height(len(lines) + ruled)
        self.refresh()

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        if y >= len(self.lines):
            return []
        name, text, tone = self.lines[y]
        return [(name, paint("muted")), (text, paint(TONES[tone]))]


Keys = Sequence[tuple[str, str]]

OPEN, DROP, PIN, FOLD, WHY = ("Enter", "open"), ("d", "drop"), ("p", "pin"), ("z", "fold"), ("w", "why")
EARLIER, MARK, UNDO, HELP = ("←", "earlier"), ("Space", "mark"), ("u", "undo"), ("?", "keys")
EXACT = ("x", "exact count")
OTHERS = (("c", "cache"), ("v", "preview"), ("o", "order"), ("e", "export"), EXACT)
CLOSE, UNMARK = ("Esc", "close"), ("Esc", "unmark")
PAST_KEYS: Keys = (("← →", "steps"), ("w", "changes"), OPEN, ("e", "export"), ("Shift+← →", "ten steps"))
NOW = ("Esc", "back to now")
"""The keys at a step of the past."""


def keys_for(line: RowLine | None, marked: int) -> Keys:
    """The keys for a line, the most useful first."""
    if marked:
        return (("d", f"drop {marked}"), FOLD, PIN, MARK)
    if line is None:
        return (EARLIER, WHY, *OTHERS)
    kind = line.key.partition("/")[0]
    if line.kind == "dropped":
        return (("d", "restore"), UNDO, MARK, WHY)
    if line.kind == "row" and kind == MESSAGES.id and line.depth:
        edits = (DROP, FOLD, PIN) if line.row is not None and line.row.message_id else (DROP, FOLD)
        return (OPEN, *edits, EARLIER, WHY, MARK, UNDO, *OTHERS)
    if kind == "documents" and line.depth:
        return (OPEN, ("d", "unpin"), EARLIER, WHY, *OTHERS)
    opens = line.row is not None or line.record is not None or line.open is not None
    return (*((OPEN,) if opens else ()), EARLIER, WHY, *OTHERS)


class Foot(Lines):
    """The keys that there is room for; a line that a key brought stands in their place, as long as it is."""

    DEFAULT_CSS = "Foot { padding: 0 1; background: $surface; }"

    def __init__(self) -> None:
        super().__init__(id="foot", height=1)
        self.message = ""
        self._keys: Keys = ()
        self._close = CLOSE

    def offer(self, keys: Keys, close: tuple[str, str]) -> None:
        """Sets the keys that are of use, and the one that leaves."""
        if (keys, close) != (self._keys, self._close):
            self._keys, self._close = keys, close
            self.refresh()

    def say(self, text: str) -> bool:
        """Shows a line until the next one; empty for the keys. True when it is another."""
        if text == self.message:
            return False
        self.message = text
        self.refresh()
        return True

    def height_for(self, width: int) -> int:
        return len(in_lines(self.message, width)) if self.message else 1

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        if self.message:
            lines = in_lines(self.message, width)
            return [(lines[y], paint("accent"))] if y < len(lines) else []
        pieces: list[Piece] = []
        close = [*_key(*HELP, paint), *_key(*self._close, paint)]
        close = close if width_of(close) <= width else _key(*self._close, paint)
        for key, what in self._keys:
            more = _key(key, what, paint)
            if width_of([*pieces, *more, *close]) <= width:
                pieces += more
        return [*pieces, *close]


def _key(key: str, what: str, paint: Paint) -> list[Piece]:
    return [(key, paint("primary", bold=True)), (f" {what}   ", paint("muted"))]


LEAST_WIDTH = 3
LEAST_STEPS = 2
"""Steps from which on there is a timeline: before, one bar shows what there is."""
CHART = ((60, 26), (50, 20), (40, 12), (36, 10), (30, 7), (24, 6), (22, 5))
"""Lines of a screen, and how many of them are the timeline's columns; one line of it on lower screens."""


def chart_lines(height: int) -> int:
    """How many lines the columns have on a screen of ``height`` lines."""
    return next((lines for least, lines in CHART if height >= least), 1 if height >= LOW else 0)


class Covered(Widget):
    """A widget that only holds others, which cover it: all there is below them is one blank line."""

    def render_lines(self, crop: Region) -> list[Strip]:
        return [Strip.blank(crop.width)] * crop.height


class ContextView(Guarded, Covered, Vertical):
    """Shows a ``ContextReport``. Which rows are open stays as it is when another moment is shown. ``refused`` says
    which keys would do nothing now: they are not offered."""

    DEFAULT_CSS = """
    ContextView { overflow: hidden; }
    """

    @dataclass
    class Opened(Message):
        """Enter on a line that has nothing below it."""

        line: RowLine

    def __init__(self, moment: ContextReport, refused: Callable[[], Container[str]] = tuple) -> None:
        super().__init__()
        self.moment = moment
        self._refused = refused
        self.course: Course | None = None
        self.opened = {MESSAGES.id, DROPPED}
        self._said_at = 0
        self._built = Size()

    def compose(self) -> ComposeResult:
        yield Head()
        yield TimelineView()
        yield StepCaption()
        yield ContextRows()
        yield Words()
        yield Foot()

    @property
    def rows(self) -> ContextRows:
        return self.query_one(ContextRows)

    def show(self, moment: ContextReport, course: Course | None = None) -> None:
        """Another moment, or the same with other numbers, and its place among the steps."""
        self.moment, self.course = moment, course
        self.rebuild()

    def say(self, text: str) -> None:
        """A line in place of the keys, until the cursor moves."""
        if any(foot.say(text) for foot in self.query(Foot)):
            self.rebuild()
            self._said_at = self.rows.cursor

    def unmark(self) -> bool:
        """Takes all marks away; False where there are none."""
        had = self.rows.unmark()
        self._offer_keys()
        return had

    def toggle(self, key: str) -> None:
        self.opened ^= {key}
        self.rebuild()

    def rebuild(self) -> None:
        if self.is_mounted and self.size.width >= LEAST_WIDTH:
            self._lay_out(self.size)

    def _lay_out(self, size: Size) -> None:
        self._built = size
        width, height = size
        moment, inner = self.moment, width - 2
        gap = 1 if height >= TALL else 0
        head, told = self.query_one(Head), self.query_one(StepCaption)
        foot = self.query_one(Foot)
        foot.set_height(foot.height_for(inner))
        whole, folded = below(panel(self.moment), inner), self._folded(inner)
        top = head.show(moment, inner) + self._draw_timeline(inner, height)
        signs = self.query_one(TimelineView).signs
        room = height - foot.line_count - len(folded) - top
        least = LEAST_SEEN if self._has_timeline else LEAST_ROWS
        bar = 0 if self._has_timeline or moment.problem else 1 + gap
        top += told.show(moment, inner, bar, gap, (room - least, room - LEAST_PAST_ROWS, head.priced), signs)
        head.display = told.display = height >= LOW
        room = height - foot.line_count - (top if height >= LOW else 0)
        ruled = height >= TALL and len(whole) + 2 + LEAST_ROWS <= room
        self.query_one(Words).show(whole if ruled else folded if height >= LOW else [], ruled)
        told.name_columns(self.rows.show(moment, self.opened, width - 1))
        self._offer_keys()

    def _offer_keys(self) -> None:
        if self.moment.title:
            self.query_one(Foot).offer(PAST_KEYS, NOW)
        else:
            marked, refused = len(self.rows.marked), self._refused()
            keys = [key for key in keys_for(self.rows.line, marked) if key[0] not in refused]
            self.query_one(Foot).offer(keys, UNMARK if marked else CLOSE)

    @property
    def said(self) -> str:
        """The line in place of the keys; empty where there is none."""
        return next((foot.message for foot in self.query(Foot)), "")

    @property
    def _has_timeline(self) -> bool:
        return self.course is not None and self.course.timeline.count >= LEAST_STEPS

    def _draw_timeline(self, width: int, height: int) -> int:
        course = self.course if self._has_timeline else None
        patterns = self.app.no_color or self.app.current_theme.ansi
        how = ChartStyle(patterns, cost=height >= TALL and course is not None and course.timeline.priced)
        return self.query_one(TimelineView).show(course, width, chart_lines(height), how)

    def _folded(self, width: int) -> list[Line]:
        if self.moment.problem:
            return []
        entry = fold(self.moment)
        return [("", line, entry.tone) for line in in_lines(entry.text, width)]

    def explained(self) -> str:
        """How the number was made, for reading."""
        return "" if self.moment.problem else receipt(self.moment)

    def on_mount(self) -> None:
        # The view will have the whole screen: laid out for that at once, it is not drawn twice.
        if self.app.size.width >= LEAST_WIDTH:
            self._lay_out(self.app.size)

    def on_resize(self, event: events.Resize) -> None:
        if self.size != self._built:
            self.rebuild()

    @on(ContextRows.Toggled)
    def _toggled(self, event: ContextRows.Toggled) -> None:
        event.stop()
        self.toggle(event.key)

    @on(RowList.Chosen)
    def _chosen(self, event: RowList.Chosen) -> None:
        event.stop()
        if event.index >= len(self.rows.shown):
            return
        line = self.rows.shown[event.index]
        if line.open is not None:
            self.toggle(line.key)
        else:
            self.post_message(self.Opened(line))

    @on(RowList.Moved)
    def _moved(self, event: RowList.Moved) -> None:
        event.stop()
        if self.rows.cursor != self._said_at:
            self.say("")
        self._offer_keys()
