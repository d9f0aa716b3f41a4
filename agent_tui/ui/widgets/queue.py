"""Messages that wait: which goes out when, what failed, and the keys for them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from agent_tui.models.events import WaitingMessage
from agent_tui.text.cells import shorten
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import plural
from agent_tui.ui.theme import Paint, Piece
from agent_tui.ui.widgets.drawn_lines import Lines

WORDS = {
    "queued": ("queued", "muted"),
    "steer": ("next step", "accent"),
    "held": ("not sent", "warning"),
    "failed": ("failed", "error"),
    "unanswered": ("unanswered", "error"),
}
"""What each kind is called, and its colour."""
LEAST_TEXT = 24
"""Cells of a message that are shown before any keys are."""


def word(waits: WaitingMessage, paused: bool) -> tuple[str, str]:
    return ("paused", "warning") if paused and waits.kind in ("queued", "steer") else WORDS[waits.kind]


class QueueLines(Lines):
    """One line each, the next first; what got no answer is one line, of the newest."""

    DEFAULT_CSS = """
    QueueLines { padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__(id="queue")
        self.entries: list[WaitingMessage] = []
        self.unanswered = 0
        """How many messages got no answer."""
        self.paused = False
        self.limit = 4

    def set_limit(self, limit: int) -> None:
        self.limit = limit
        self.set_height(min(limit, len(self.entries)))

    def show(self, waiting: Sequence[WaitingMessage], paused: bool) -> None:
        unanswered = [waits for waits in waiting if waits.kind == "unanswered"]
        self.unanswered = len(unanswered)
        self.entries = [*unanswered[-1:], *(waits for waits in waiting if waits.kind != "unanswered")]
        self.paused = paused
        self.set_height(min(self.limit, len(self.entries)))
        self.refresh()

    @property
    def keys(self) -> str:
        """The words for what Enter on an empty prompt and Tab do now; empty where nothing waits for the user."""
        sends = self._sends() if self.entries else ""
        if not sends:
            return ""
        if len(self.entries) > 1:
            sends = f"{sends.replace(' it', '').replace(' them', '')} the first of {len(self.entries):,}"
        return f"{sends} · Tab to edit, reorder or drop"

    def _sends(self) -> str:
        """Returns words for what Enter on an empty prompt would do with the first of the messages."""
        kind = self.entries[0].kind
        if kind in ("unanswered", "failed"):
            return "Enter sends them again" if self.unanswered > 1 else "Enter sends it again"
        return "Enter sends it" if kind == "held" or self.paused else ""

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        if not 0 <= y < min(self.limit, len(self.entries)):
            return []
        hidden = len(self.entries) - self.limit
        last = y == min(self.limit, len(self.entries)) - 1
        if hidden > 0 and last and y:
            return [(shorten(f"  {plural(hidden + 1, 'more message')} · Tab lists them", width), paint("muted"))]
        waits = self.entries[y]
        name, color = self._word(waits)
        names = max(len(self._word(entry)[0]) for entry in self.entries[: self.limit])
        text, left = one_line(waits.text), width - names - 4
        tail = ""
        for part in self._tail(y, last, hidden):
            longer = f"{tail} · {part}" if tail else f"  {part}"
            if left - len(longer) < min(cell_len(text), LEAST_TEXT):
                break
            tail = longer
        return [
            ("⋯ ", paint("accent")),
            (f"{name:{names}}  ", paint(color)),
            (shorten(text, max(1, left - len(tail))), paint("foreground")),
            (tail, paint("faint")),
        ]

    def _word(self, waits: WaitingMessage) -> tuple[str, str]:
        name, color = word(waits, self.paused)
        return (f"{self.unanswered:,} {name}" if waits.kind == "unanswered" and self.unanswered > 1 else name), color

    def _tail(self, y: int, last: bool, hidden: int) -> list[str]:
        """What becomes of a message, and its keys, the most important first: they stand where there is room."""
        along = "sent with your next message" if self.unanswered else ""
        first = [along, self._sends()] if y == 0 else []
        keys = ["Tab lists all"] if hidden > 0 else ["↑ edits it", "Tab lists"]
        return [part for part in (*first, *(keys if last else ())) if part]
