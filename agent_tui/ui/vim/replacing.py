"""Replace mode: what is typed stands in the place of what was there, and Backspace brings that back."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent_tui.ui.vim.motions import ALIASES, Asked, moved
from agent_tui.ui.vim.text import Place, Text


def typed_over(text: Text, place: Place, typed: str) -> tuple[Text, Place]:
    """``typed`` instead of as many characters; at the end of the line it makes it longer. The place is behind it."""
    for character in typed:
        text = text.replaced(place, text.after(place), character)
        place = (place[0], place[1] + len(character))
    return text, place


@dataclass(slots=True)
class Replacing:
    """One stay in replace mode. ``before`` and ``undo_at`` are what undo brings back, ``times`` the count that ``R``
    was given; ``typed`` is what was typed in one go, and ``under`` what stood there."""

    before: Text
    undo_at: Place
    times: int = 1
    typed: list[str] = field(default_factory=list)
    under: list[str] = field(default_factory=list)

    def press(self, text: Text, place: Place, key: str) -> tuple[Text, Place]:
        """A key other than Esc. One that means nothing here changes nothing."""
        if key == "backspace":
            return self.back(text, place)
        if len(key) == 1:
            return self.type(text, place, key)
        if (motion := ALIASES.get(key)) is not None:
            self.moved()
            found = moved(motion, "", Asked(text, place, wanted=place[1], visual=True), None)
            if found is not None:
                to = (found.to[0], text.length(found.to[0])) if key == "end" else found.to
                return text, text.within(to, past_end=True)
        return text, place

    def type(self, text: Text, place: Place, character: str) -> tuple[Text, Place]:
        self.typed.append(character)
        self.under.append(text.between(place, text.after(place)))
        return typed_over(text, place, character)

    def back(self, text: Text, place: Place) -> tuple[Text, Place]:
        """Backspace: what stood there comes back; before the first typed character it only moves."""
        row, column = place
        if not self.typed:
            return text, text.within((row, column - 1), past_end=True)
        start = (row, column - len(self.typed.pop()))
        return text.replaced(start, place, self.under.pop()), start

    def moved(self) -> None:
        """The cursor went elsewhere: what was typed before it stays."""
        self.typed.clear()
        self.under.clear()

    def ended(self, text: Text, place: Place) -> tuple[Text, Place]:
        """With the same typed as often again as a count asked for."""
        return typed_over(text, place, "".join(self.typed) * (self.times - 1))
