"""The popup above the prompt that shows what Tab would insert. The prompt keeps the focus and drives it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len

from agent_tui.text.cells import fit, shorten
from agent_tui.text.clean import one_line
from agent_tui.ui.draw import Piece
from agent_tui.ui.theme import Paint
from agent_tui.ui.widgets.rows import RowList

if TYPE_CHECKING:
    from agent_tui.completion import Proposal, Query


class Completions(RowList, can_focus=False):
    """Up to eight proposals at a time; hidden when there are none."""

    DEFAULT_CSS = """
    Completions { height: auto; max-height: 8; display: none; background: $surface; }
    Completions.-open { display: block; }
    """

    def __init__(self) -> None:
        super().__init__(id="completions")
        self.proposals: Sequence[Proposal] = ()
        self.made_for: Query | None = None
        self._label_width = 0

    @property
    def open(self) -> bool:
        return bool(self.proposals)

    @property
    def current(self) -> Proposal | None:
        return self.proposals[self.cursor] if self.proposals else None

    def show_proposals(self, proposals: Sequence[Proposal], query: Query | None = None) -> None:
        """Shows what fits ``query``; the prompt takes nothing that was proposed for another one."""
        self.proposals, self.made_for = proposals, query
        self._label_width = max((cell_len(one_line(p.label, 60)) for p in proposals), default=0)
        self.set_class(bool(proposals), "-open")
        self.styles.height = min(8, len(proposals)) if proposals else 0
        self.set_count(len(proposals), 0)

    def row(self, index: int, width: int, paint: Paint) -> Sequence[Piece]:
        proposal = self.proposals[index]
        here = index == self.cursor
        label = one_line(proposal.label, 400)
        mark = ("▌ " if here else "  ", paint("primary"))
        front = paint("primary" if here else "foreground", bold=here)
        if not proposal.detail:
            return [mark, (shorten(label, width - 3), front)]
        room = min(self._label_width, max(12, width // 2))
        return [
            mark,
            (fit(label, room), front),
            ("  " + shorten(one_line(proposal.detail), max(0, width - room - 5)), paint("muted")),
        ]
