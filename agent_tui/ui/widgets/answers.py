"""What stands in the panel of a question: its title with the reason, its answers as rows, a line for words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.cells import cell_len
from textual import events
from textual.widgets import Input

from agent_tui.commands.tool_words import about_a_path
from agent_tui.models.events import PermissionAsked
from agent_tui.say.answering import Answering
from agent_tui.say.asks import AskChoice
from agent_tui.text.cells import shorten, shorten_path, whole_parts
from agent_tui.text.clean import spelled
from agent_tui.text.numbers import lines_changed
from agent_tui.ui.theme import Paint, Piece
from agent_tui.ui.widgets.bodies import pieces_of
from agent_tui.ui.widgets.drawn_lines import Lines

LEAST_BODY = 6
"""Lines that wrapped choices leave to the text above them."""
LEAD, MOST_LINES = 5, 4
"""Cells before a choice's words, and the most lines of one."""
MAX_COMPARED = 100_000
PARTS = " · "
"""What stands between the parts of a reason."""


class Choices(Lines):
    """The rows, with a cursor. Their words stand for them in one line on low screens; without words rows stay. Where
    long labels leave too little room, only that under the cursor is wrapped."""

    def __init__(self, answering: Answering, clicked: Callable[[AskChoice], None]) -> None:
        super().__init__(height=len(answering.rows))
        self._clicked = clicked
        self._answering = answering
        self.choices = answering.rows
        self.cursor = 0
        self.short = False
        self._rows: list[tuple[int, str]] = []
        self._packed: list[list[AskChoice]] = []
        self._top = 0

    def fit(self, short: bool, room: int, text: int, width: int) -> None:
        """``short``: several in a line. ``text`` are the lines of what stands above; without ``room`` rows are scrolled
        to."""
        self.short = short and all(choice.word for choice in self.choices)
        self._packed = self._in_lines(width) if self.short else []
        whole = self._laid(width, all_whole=True)
        self._rows = whole if len(whole) <= room - min(text, LEAST_BODY) else self._laid(width, all_whole=False)
        height = len(self._packed) if self.short else max(1, min(len(self._rows), room))
        ends = [n for n, (index, _) in enumerate(self._rows) if index <= self.cursor]
        self._top = max(0, (ends[-1] if ends else 0) - height + 1)
        if height != self.line_count:
            self.set_height(height)
            self.refresh(layout=True)
        self.refresh()

    def _in_lines(self, width: int) -> list[list[AskChoice]]:
        """The choices by their words, as many in a line as have room there."""
        lines: list[list[AskChoice]] = []
        left = 0
        for choice in self.choices:
            cells = cell_len(f"{choice.key} {self._word(choice)}  ")
            if not lines or cells > left:
                lines.append([])
                left = width
            lines[-1].append(choice)
            left -= cells
        return lines

    def _word(self, choice: AskChoice) -> str:
        return choice.word or choice.label

    def _laid(self, width: int, *, all_whole: bool) -> list[tuple[int, str]]:
        """The lines: which choice each is of, and its text."""
        rows: list[tuple[int, str]] = []
        for index, choice in enumerate(self.choices):
            label, room = self._answering.mark(choice) + choice.label, max(1, width - LEAD)
            pieces = pieces_of(label, room) if all_whole or index == self.cursor else [shorten(label, room)]
            if len(pieces) > MOST_LINES:
                pieces[MOST_LINES - 1 :] = [shorten("".join(pieces[MOST_LINES - 1 :]), room)]
            rows += [(index, piece) for piece in pieces]
        return rows

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        if self.short:
            pieces: list[Piece] = []
            for choice in self._packed[y] if y < len(self._packed) else ():
                here, word = self.choices[self.cursor] is choice, self._word(choice)
                pieces += [(" " if pieces else "", paint()), (choice.key, paint("accent", bold=True))]
                pieces.append((f" {word} ", paint("primary" if here else "foreground", bold=here)))
            return pieces
        if y + self._top >= len(self._rows):
            return []
        index, text = self._rows[y + self._top]
        here, goes_on = index == self.cursor, y + self._top and self._rows[y + self._top - 1][0] == index
        return [
            ("❯ " if here and not goes_on else "  ", paint("primary", bold=True)),
            (" " * (LEAD - 2) if goes_on else f"{self.choices[index].key or ' '}  ", paint("accent", bold=True)),
            (text, paint("primary" if here else "foreground", bold=here)),
        ]

    def on_click(self, event: events.Click) -> None:
        if not self.short and 0 <= event.y < self.line_count:
            event.stop()
            self._clicked(self.choices[self._rows[event.y + self._top][0]])


class Header(Lines):
    """What is asked and about what, and why in lines of its own, of which the last says where a call would run."""

    def __init__(self, answering: Answering, beside: str) -> None:
        super().__init__(height=1)
        self._answering = answering
        self._instead = ""
        self._beside = beside
        self._why: list[str] = []

    def fit(self, width: int, most: int) -> int:
        """Wraps the reason into at most so many lines. Returns the lines of all."""
        why = "" if self._answering.offer is not None else spelled(self._answering.ask.why, line=True)
        self._why = _at_most(why, width, most) if why else []
        head, between, tail = why.rpartition(PARTS)
        if len(self._why) > 1 and between:
            self._why = [*_at_most(head, width, most - 1), shorten(tail, width)]
        return 1 + len(self._why)

    def tell(self, words: str) -> None:
        """Words that stand where the question does, until there are none."""
        self._instead = words
        self.refresh()

    def tell_beside(self, words: str) -> None:
        """Words that stand beside the question."""
        self._beside = words
        self.refresh()

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        if y:
            return [(self._why[y - 1], paint("muted"))] if y <= len(self._why) else []
        what = shorten(self._instead or spelled(self._answering.title, line=True), width)
        pieces = [(what, paint("warning", bold=True))]
        if self._instead or self._answering.offer is not None:
            return pieces
        room = max(0, width - cell_len(what) - 2)
        if self._answering.ask.kind == "permission":
            return [*pieces, ("  " + self._subject(room), paint("foreground"))]
        return [*pieces, ("  " + whole_parts(spelled(self._beside, line=True), room), paint("muted"))]

    def _subject(self, width: int) -> str:
        """What the tool would work on, in at most ``width`` cells; nothing where the body says it word by word."""
        ask = self._answering.ask
        display = ask.asked.display if isinstance(ask.asked, PermissionAsked) else None
        subject = spelled(ask.subject, line=True)
        if ask.body_kind == "diff":
            added, removed = (display or {}).get("added"), (display or {}).get("removed")
            known = f"  {lines_changed(added, removed)}" if isinstance(added, int) and isinstance(removed, int) else ""
            room = width - len(known)
            return (shorten_path if about_a_path(ask.tool) else shorten)(subject, room) + known
        body = " ".join(ask.body[:MAX_COMPARED].split())
        same = " ".join(ask.subject.split()).rstrip("…") in body
        return "" if ask.body_kind == "command" and same else shorten(subject, width)


def _at_most(text: str, width: int, most: int) -> list[str]:
    pieces = pieces_of(text, width)
    return pieces if len(pieces) <= most else [*pieces[: most - 1], shorten("".join(pieces[most - 1 :]), width)]


class WholeInput(Input):
    """A line in which all of what is pasted counts: the lines of a text become one, and a key that came in two of them
    is refused and not cut."""

    def on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        self.take(event.text)

    def take(self, pasted: str) -> None:
        self.replace(" ".join(pasted.strip().splitlines()), *self.selection)
