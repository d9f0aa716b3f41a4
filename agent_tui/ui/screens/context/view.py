"""The picture of one moment on the context screen: head, rows, bookkeeping. It knows no agent and no other time."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from agent_tui.commands.usage_text import Entry, bookkeeping, folded
from agent_tui.ui.safety import Guarded
from agent_tui.ui.screens.context.bookkeeping import LEAST_PAST_ROWS, LEAST_ROWS, LOW, TALL, Line, Words, place
from agent_tui.ui.screens.context.foot import Foot
from agent_tui.ui.screens.context.head import Head
from agent_tui.ui.screens.context.moment import Moment
from agent_tui.ui.screens.context.rows import Shown
from agent_tui.ui.screens.context.table import ContextRows
from agent_tui.ui.screens.context.wrapping import wrapped
from agent_tui.ui.widgets.rows import RowList

LEAST_WIDTH = 3


class Covered(Widget):
    """What only holds others, which cover it: one blank line is all there is below them, cut at their edges once."""

    def render_lines(self, crop: Region) -> list[Strip]:
        return [Strip.blank(crop.width)] * crop.height


class Holder(Covered, Horizontal):
    """Rows and bookkeeping, beside or below each other."""


class ContextView(Guarded, Covered, Vertical):
    """Shows a ``Moment``. Which rows are open stays as it is when another moment is shown."""

    DEFAULT_CSS = """
    ContextView { overflow: hidden; }
    ContextView Holder { height: 1fr; }
    """

    @dataclass
    class Opened(Message):
        """Enter on a line that has nothing below it."""

        line: Shown

    def __init__(self, moment: Moment) -> None:
        super().__init__()
        self.moment = moment
        self.opened = {"messages"}
        self._said_at = 0
        self._built = Size()

    def compose(self) -> ComposeResult:
        yield Head()
        with Holder():
            yield ContextRows()
            yield Words()
        yield Foot()

    @property
    def rows(self) -> ContextRows:
        return self.query_one(ContextRows)

    def show(self, moment: Moment) -> None:
        """Another moment, or the same with other numbers."""
        self.moment = moment
        self.rebuild()

    def say(self, text: str) -> None:
        """A line in place of the keys, until the cursor moves."""
        if self.is_mounted and self.query_one(Foot).say(text):
            self._said_at = self.rows.cursor
            self.rebuild()

    def toggle(self, key: str) -> None:
        """Opens or closes a row."""
        self.opened ^= {key}
        self.rebuild()

    def rebuild(self) -> None:
        """Lays everything out for the size there is."""
        if self.is_mounted and self.size.width >= LEAST_WIDTH:
            self._lay_out(self.size)

    def _lay_out(self, size: Size) -> None:
        self._built = size
        width, height = size
        moment, inner = self.moment, width - 2
        thick, gap = (2 if height >= TALL else 1), (1 if height >= TALL else 0)
        head = self.query_one(Head)
        foot = self.query_one(Foot)
        foot.at(past=bool(moment.title))
        foot.set_height(foot.height_for(inner))
        entries = self._entries()
        fold = self._fold(entries, inner)
        room = height - foot.line_count - len(fold)
        top = head.show(moment, inner, thick, gap, room - LEAST_ROWS, room - LEAST_PAST_ROWS)
        head.display = height >= LOW
        placed = place(entries, fold, width, height, height - foot.line_count - (top if height >= LOW else 0))
        self.query_one(Holder).styles.layout = "horizontal" if placed.side else "vertical"
        self.query_one(Words).show(placed)
        head.name_columns(self.rows.show(moment, self.opened, width - placed.side - 1))

    def _fold(self, entries: list[Entry], width: int) -> list[Line]:
        if self.moment.problem:
            return []
        entry = folded(self.moment.usage, all(e.tone != "bad" for e in entries))
        text = f"{entry.text} · read-only" if self.moment.read_only else entry.text
        return [("", line, entry.tone) for line in wrapped(text, width)]

    def _entries(self) -> list[Entry]:
        moment = self.moment
        if moment.problem:
            return []
        trigger = moment.usage.total if moment.trigger is None else moment.trigger
        entries = bookkeeping(moment.usage, trigger, moment.records)
        if moment.read_only:
            entries.append(Entry("Read-only", moment.read_only, "warning"))
        return entries

    def explained(self) -> str:
        """The bookkeeping in full, for reading."""
        whole = [Entry("Why", self.moment.usage.why)] if self.moment.usage.why else []
        return "\n\n".join(f"# {e.name}\n{e.text}" for e in [*whole, *self._entries()] if e.name != "Compaction")

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
        if event.index != self._said_at:
            self.say("")
