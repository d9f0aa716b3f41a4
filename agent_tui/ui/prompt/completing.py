"""Completion as the prompt has it: the word that is asked about, and the popup with what fits it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from agent_tui.completion import CompletionQuery
from agent_tui.text.cells import fit, shorten
from agent_tui.text.clean import one_line
from agent_tui.ui.theme import Paint, Piece, width_of
from agent_tui.ui.widgets.rows import RowList

if TYPE_CHECKING:
    from agent_tui.completion import Proposal


LEAST, ROOM = 3, 8
"""Proposals that are shown on the lowest screen, and lines that are left for everything else."""


class Completions(RowList, can_focus=False):
    """As many proposals at a time as leave room for the end of the chat, with the number of the row where there are
    more; hidden when there are none."""

    DEFAULT_CSS = """
    Completions { height: auto; display: none; background: $surface; }
    Completions.-open { display: block; }
    """

    def __init__(self) -> None:
        super().__init__(id="completions")
        self.proposals: Sequence[Proposal] = ()
        self.made_for: CompletionQuery | None = None
        self.marked = False
        """False until a row is gone to, where nothing was typed that a row fits: Enter then takes none."""
        self._label_width = self._names_width = self._detail_width = 0

    @property
    def open(self) -> bool:
        return bool(self.proposals)

    @property
    def current(self) -> Proposal | None:
        return self.proposals[self.cursor] if self.proposals else None

    def show_proposals(self, proposals: Sequence[Proposal], query: CompletionQuery | None = None) -> None:
        """Shows what fits ``query``; the prompt takes nothing that was proposed for another one."""
        self.proposals, self.made_for = proposals, query
        self.marked = query is None or query.kind != "command" or not query.text.endswith(" ")
        self._label_width = max((cell_len(one_line(p.label, 60)) for p in proposals), default=0)
        self._names_width = max((cell_len(one_line(p.label, 60).split(" ", 1)[0]) for p in proposals), default=0)
        self._detail_width = max((cell_len(one_line(p.detail)) for p in proposals), default=0)
        self.set_class(bool(proposals), "-open")
        self.styles.height = min(max(LEAST, self.app.size.height - ROOM), len(proposals)) if proposals else 0
        self.set_count(len(proposals), 0)

    def is_marked(self, index: int) -> bool:
        return self.marked and super().is_marked(index)

    def action_move(self, by: int) -> None:
        if self.marked:
            super().action_move(by)
        else:
            self.marked = True
            self.refresh()

    def row(self, index: int, width: int, paint: Paint) -> Sequence[Piece]:
        proposal = self.proposals[index]
        here = self.is_marked(index)
        number = f" {index + 1}/{self.count}" if index == self.cursor and self.count > self.size.height else ""
        label = one_line(proposal.label, 400)
        mark = ("▌ " if here else "  ", paint("primary"))
        front = paint("primary" if here else "foreground", bold=here)
        if not proposal.detail:
            pieces = [mark, (shorten(label, width - 3 - len(number)), front)]
        else:
            # What a command does says more than what it takes: the name and its description are whole first.
            spare = max(12, self._names_width + 2, width - self._detail_width - 5)
            room = min(self._label_width, max(12, width // 2), spare)
            if label.startswith("/") and cell_len(label) > room:
                label = f"{label.split(' ', 1)[0]} …"
            detail = shorten(one_line(proposal.detail), max(0, width - room - 5 - len(number)))
            pieces = [mark, (fit(label, room), front), ("  " + detail, paint("muted"))]
        gap = width - width_of(pieces) - len(number)
        return [*pieces, (" " * gap + number, paint("faint"))] if number and gap >= 0 else pieces


GAP_CLOSERS = frozenset(" :,;.)]}!?")
"""Before these no blank stands behind a file that was completed."""

Place = tuple[int, int]


class Insertion(NamedTuple):
    """``insert`` replaces the line from ``start`` to the cursor. ``gap``: with a blank behind; ``runs``: as a
    command."""

    start: int
    insert: str
    gap: bool
    runs: bool


class Completer:
    """Knows nothing of the text but what it is told with each question."""

    def __init__(self, popup: Completions) -> None:
        self.query: CompletionQuery | None = None
        self._popup = popup
        self._dismissed: CompletionQuery | None = None
        self._gap: Place | None = None

    def look(self, query: CompletionQuery | None) -> bool:
        """Takes over what stands before the cursor now; whether it is another word, and ``wanted`` to be asked for."""
        if query == self.query:
            return False
        self.query = query
        if query is None or query == self._dismissed:
            self.hide()
        else:
            self._dismissed = None
        return True

    @property
    def wanted(self) -> CompletionQuery | None:
        """The query that proposals are wanted for; None where there is none, or the user did not want any for it."""
        return None if self.query == self._dismissed else self.query

    @property
    def offered(self) -> Completions | None:
        """The popup while it proposes something for what stands before the cursor now, not for keys ago."""
        return self._popup if self._popup.open and self._popup.made_for == self.query else None

    def hide(self) -> None:
        if self._popup.open:
            self._popup.show_proposals(())

    def close(self) -> None:
        """Nothing is asked about until something else is typed."""
        self.hide()
        self.query = None

    def dismiss(self) -> None:
        self._dismissed = self.query
        self.close()

    def choose(self, line: str, column: int, sending: bool) -> Insertion | None:
        """The chosen proposal; closes the popup. None where Enter (``sending``) is to send what is typed as a whole."""
        proposal, query = self.offered.current if self.offered else None, self.query
        if proposal is None or query is None:
            return None
        typed = line[query.start : column]
        # A name or a path is sent as it was typed, unless another was chosen: what is like it may be something else.
        whole = "/" in typed.partition(" ")[2] and not self._popup.cursor
        if sending and (typed.rstrip() == proposal.insert.rstrip() or query.kind == "shell" or whole):
            return None
        if sending and not self._popup.marked:
            return None
        self.hide()
        open_end, insert = proposal.insert.endswith(" "), proposal.insert
        if query.kind == "command" and " " not in insert and not sending:
            insert += " "
        return Insertion(
            query.start, insert, query.kind == "file" and open_end, query.kind == "command" and not open_end
        )

    def put(self, choice: Insertion, end: Place) -> None:
        self._gap = end if choice.gap else None

    def closes_gap(self, place: Place, character: str) -> bool:
        """Returns whether the blank behind a completed file is to go: before ``:10-40``, a sign, another blank."""
        gap, self._gap = self._gap, None
        return gap is not None and gap == place and character in GAP_CLOSERS
