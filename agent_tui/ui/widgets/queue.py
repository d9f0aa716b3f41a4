"""Messages that wait: those for after the turn, and those that go in at the next step."""

from __future__ import annotations

from collections.abc import Sequence

from agent_tui.text.cells import shorten
from agent_tui.text.clean import one_line
from agent_tui.ui.draw import Piece
from agent_tui.ui.theme import Paint
from agent_tui.ui.widgets.lines import Lines

TAILS = {"queued": "  ↑ takes it back", "not sent": "  Enter sends · ↑ takes it back"}


class Queue(Lines):
    """One line each, the newest last; ↑ on an empty prompt takes that one back."""

    DEFAULT_CSS = """
    Queue { padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__(id="queue")
        self.entries: list[tuple[str, str]] = []
        self.limit = 4

    def set_limit(self, limit: int) -> None:
        """How many lines there may be; the rest is a number."""
        self.limit = limit
        self.set_height(min(limit, len(self.entries)))

    def show(self, queued: Sequence[str], steer: Sequence[str], held: Sequence[str] = ()) -> None:
        kinds = (("not sent", held), ("next step", steer), ("queued", queued))
        self.entries = [(kind, text) for kind, texts in kinds for text in texts]
        self.set_height(min(self.limit, len(self.entries)))
        self.refresh()

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        hidden = len(self.entries) - self.limit
        if hidden > 0 and y == 0:
            return [(f"  {hidden + 1} more waiting", paint("muted"))]
        index = y if hidden <= 0 else y + hidden
        if not 0 <= index < len(self.entries):
            return []
        kind, text = self.entries[index]
        last = index == len(self.entries) - 1
        tail = TAILS.get(kind, "") if last and width > 60 else ""
        room = max(1, width - len(kind) - 4 - len(tail))
        return [
            ("⋯ ", paint("accent")),
            (f"{kind}  ", paint("accent" if kind == "next step" else "muted")),
            (shorten(one_line(text), room), paint("foreground")),
            (tail, paint("faint")),
        ]
