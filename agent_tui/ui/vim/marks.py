"""Places that the user named with ``m``, and the one they jumped from last; they move with the lines they stand in."""

from __future__ import annotations

from agent_tui.ui.vim.motions import Move
from agent_tui.ui.vim.text import Place, Text

MARKS = frozenset("`'")
"""Motions to a mark: to its place, and to its line."""
LAST_JUMP = "'"
JUMPS = frozenset({*MARKS, "G", "gg", "%", "{", "}"})
"""Motions that are jumps: `` `` `` goes back to where they began."""


class Marks:
    """Named by a small letter; what any other character names is not kept."""

    def __init__(self) -> None:
        self._places: dict[str, Place] = {}
        self._text = Text(("",))

    def forget(self, text: Text) -> None:
        """Another text begins."""
        self._places.clear()
        self._text = text

    def set(self, name: str, place: Place) -> None:
        if name.isascii() and name.islower():
            self._places[name] = place
        elif name in MARKS:
            self._places[LAST_JUMP] = place

    def move(self, key: str, name: str, text: Text) -> Move | None:
        """Where the motion ``key`` to a mark leads; None where there is none of that name, or not any more."""
        place = self._places.get(LAST_JUMP, (0, 0)) if name in MARKS else self._places.get(name)
        if place is None:
            return None
        row = min(place[0], text.last)
        return Move(text.first_word(row), "lines") if key == "'" else Move(text.within((row, place[1])))

    def follow(self, text: Text) -> None:
        """After each change: marks behind lines that came or went move along, and those of lines that are gone go."""
        old, new = self._text.lines, text.lines
        self._text = text
        if old == new or not self._places:
            return
        if new == ("",):
            self._places.clear()
        most = min(len(old), len(new))
        top = next((row for row in range(most) if old[row] != new[row]), most)
        tail = next((row for row in range(most - top) if old[-1 - row] != new[-1 - row]), most - top)
        moved: dict[str, Place] = {}
        for name, (row, column) in self._places.items():
            if row >= len(old) - tail:
                moved[name] = (row + len(new) - len(old), column)
            elif row < max(top, len(new) - tail):
                moved[name] = (row, column)
        self._places = moved
