"""The screen of dead weight in the context: what could go, ticked by the user, with what that brings and costs."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from rich.cells import cell_len
from textual.binding import Binding, BindingType
from textual.widgets import Input

from agent_tui.commands.tidy import NOTHING, ids_of
from agent_tui.errors import AgentError
from agent_tui.text.cells import fit
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import plural, tokens
from agent_tui.ui.screens.picker import Picker
from agent_tui.ui.theme import Paint, Piece

if TYPE_CHECKING:
    from agent_tui.context.tidy import DeadWeight
    from agent_tui.engine.agent import Agent

BOX, SIZE, WHY = 4, 8, 34
"""Cells of the columns beside what is named."""
LEAST = 18
"""Cells for what is named, below which the reason is only in the preview."""


class Ticked(NamedTuple):
    """What the user chose to drop; ``later``: once the provider's cache is cold."""

    found: Sequence[DeadWeight]
    later: bool


class SearchWithoutSpace(Input):
    """Space ticks, so it is no letter of what is searched for."""

    def check_consume_key(self, key: str, character: str | None) -> bool:
        return character != " " and super().check_consume_key(key, character)


class TidyPicker(Picker["DeadWeight", Ticked]):
    """Space ticks, Enter drops what is ticked, Ctrl+L once that costs nothing."""

    TITLE_TEXT = "Dead weight in the context"
    PLACEHOLDER = "search"
    HINT = "Space tick · Ctrl+A all · Enter drop · Ctrl+L drop later · Esc close"
    EMPTY = NOTHING
    SEARCH = SearchWithoutSpace
    COLUMNS = True
    PREVIEW_LINES = 4
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "tick", "Tick", show=False, priority=True),
        Binding("ctrl+a", "tick_all", "All", show=False, priority=True),
        Binding("ctrl+l", "later", "Later", show=False, priority=True),
    ]

    def __init__(self, agent: Agent, found: Sequence[DeadWeight]) -> None:
        super().__init__()
        self.agent = agent
        self._found = found
        self._ticked: set[tuple[str, ...]] = set()
        self._sum = ""
        self._problem = False

    @property
    def ticked(self) -> list[DeadWeight]:
        return [one for one in self._found if one.message_ids in self._ticked]

    def entries(self, search: str) -> Sequence[DeadWeight]:
        wanted = search.lower().split()
        return [one for one in self._found if all(word in f"{one.what} {one.why}".lower() for word in wanted)]

    def headings(self, width: int, paint: Paint) -> Sequence[Piece]:
        return [(text, paint("muted")) for text in _columns("", "call", "tokens", "why", width)]

    def draw(self, entry: DeadWeight, width: int, paint: Paint, here: bool) -> Sequence[Piece]:
        on = entry.message_ids in self._ticked
        box, name, size, why = _columns(
            "[x]" if on else "[ ]", one_line(entry.what, 300), tokens(entry.tokens, True), entry.why, width
        )
        return [
            (box, paint("primary" if on else "muted", bold=on)),
            (name, paint("primary" if here else "foreground", bold=here)),
            (size, paint("foreground")),
            (why, paint("muted")),
        ]

    def refused(self) -> Container[str]:
        if not self._ticked or self._problem:
            return ("Enter", "Ctrl+L") if self.shown else ("Space", "Ctrl+A", "Enter", "Ctrl+L")
        return () if self.shown else ("Space", "Ctrl+A")

    def width_of(self, entry: DeadWeight) -> int:
        return BOX + max(LEAST, cell_len(one_line(entry.what, 300))) + SIZE + WHY

    def preview(self, entry: DeadWeight) -> str:
        return f"{one_line(entry.what, 300)}: {entry.why}\n{self._sum or 'Nothing ticked.'}"

    def action_tick(self) -> None:
        if (entry := self.current) is not None:
            self._ticked ^= {entry.message_ids}
            self._changed()

    def action_tick_all(self) -> None:
        """All that is shown; none of it where all is ticked already."""
        shown = {entry.message_ids for entry in self.shown}
        self._ticked = self._ticked - shown if shown <= self._ticked else self._ticked | shown
        self._changed()

    def _changed(self) -> None:
        self._problem = False
        self._sum = self._said() if self._ticked else ""
        self.look_again()
        self._preview()

    def _said(self) -> str:
        """What dropping the ticked would bring and cost; why it cannot be, where that is so."""
        try:
            return f"{plural(len(self._ticked), 'call')} ticked. {self.agent.edits.plan(ids_of(self.ticked)).line}"
        except AgentError as error:
            self._problem = True
            return str(error)

    def chosen(self, entry: DeadWeight) -> None:
        self._drop(later=False)

    def action_later(self) -> None:
        self._drop(later=True)

    def _drop(self, *, later: bool) -> None:
        if self._ticked and not self._problem:
            self.dismiss(Ticked(self.ticked, later))
            return
        self._sum = self._sum or "Nothing ticked. Space ticks a line, Ctrl+A all of them."
        self._preview()


def _columns(box: str, name: str, size: str, why: str, width: int) -> tuple[str, str, str, str]:
    beside = WHY if width - BOX - SIZE - WHY >= LEAST else 0
    room = max(4, width - BOX - SIZE - beside)
    return fit(box, BOX), fit(name, room), fit(size, SIZE, right=True), fit(f"  {why}", beside) if beside else ""
