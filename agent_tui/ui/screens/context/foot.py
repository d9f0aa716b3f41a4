"""The bottom of the context screen: the keys, or what a key has brought."""

from __future__ import annotations

from collections.abc import Sequence

from agent_tui.ui.screens.context.wrapping import wrapped
from agent_tui.ui.theme import Paint, Piece, width_of
from agent_tui.ui.widgets.lines import Lines

KEYS = (
    ("Enter", "open"),
    ("←", "earlier"),
    ("w", "why"),
    ("p", "preview"),
    ("c", "cache"),
    ("e", "export"),
    ("x", "exact count"),
    ("s", "stats"),
)
CLOSE = ("Esc", "close")
PAST_KEYS = (
    ("← →", "steps"),
    ("w", "changes"),
    ("Enter", "open"),
    ("e", "export"),
    ("Shift+← →", "ten steps"),
)
NOW = ("Esc", "back to now")
"""The keys at a step of the past."""


class Foot(Lines):
    """The keys that there is room for; a line that a key brought stands in their place, as long as it is."""

    DEFAULT_CSS = "Foot { padding: 0 1; background: $surface; }"

    def __init__(self) -> None:
        super().__init__(id="foot", height=1)
        self.message = ""
        self._past = False

    def at(self, past: bool) -> None:
        """Whether a step of the past is shown: other keys are of use there."""
        if past != self._past:
            self._past = past
            self.refresh()

    def say(self, text: str) -> bool:
        """Shows a line until the next one; empty for the keys. True when it is another."""
        if text == self.message:
            return False
        self.message = text
        self.refresh()
        return True

    def height_for(self, width: int) -> int:
        return len(wrapped(self.message, width)) if self.message else 1

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        if self.message:
            lines = wrapped(self.message, width)
            return [(lines[y], paint("accent"))] if y < len(lines) else []
        pieces: list[Piece] = []
        close = _key(*(NOW if self._past else CLOSE), paint)
        for key, what in PAST_KEYS if self._past else KEYS:
            more = _key(key, what, paint)
            if width_of([*pieces, *more, *close]) <= width:
                pieces += more
        return [*pieces, *close]


def _key(key: str, what: str, paint: Paint) -> list[Piece]:
    return [(key, paint("primary", bold=True)), (f" {what}   ", paint("muted"))]
