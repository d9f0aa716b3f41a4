"""Undo and redo by whole changes: one command, or all that was typed between going into insert mode and leaving it."""

from __future__ import annotations

from dataclasses import dataclass

from agent_tui.ui.vim.text import Place, Text

KEPT = 200
"""Changes that can be undone, as many as without vim."""


@dataclass(slots=True, frozen=True)
class Change:
    """A text that was left, and where the cursor stood when it was."""

    text: Text
    cursor: Place


class Undo:
    """Two stacks of texts."""

    def __init__(self) -> None:
        self._past: list[Change] = []
        self._future: list[Change] = []

    def forget(self) -> None:
        self._past.clear()
        self._future.clear()

    def changed(self, before: Text, cursor: Place) -> None:
        """A change was made to ``before``."""
        self._past.append(Change(before, cursor))
        del self._past[:-KEPT]
        self._future.clear()

    def back(self, now: Text) -> tuple[Text, Place] | None:
        """The text before the last change; None where there was none."""
        return self._step(self._past, self._future, now)

    def forth(self, now: Text) -> tuple[Text, Place] | None:
        return self._step(self._future, self._past, now)

    @staticmethod
    def _step(source: list[Change], other: list[Change], now: Text) -> tuple[Text, Place] | None:
        if not source:
            return None
        change = source.pop()
        other.append(Change(now, change.cursor))
        return change.text, _place(now, change.text, change.cursor)


def _place(old: Text, new: Text, cursor: Place) -> Place:
    """Where the change was made: the cursor's own place if it lies there, else the first line that is another."""
    shared = zip(old.lines, new.lines, strict=False)
    top = next((row for row, (one, two) in enumerate(shared) if one != two), min(len(old.lines), len(new.lines)))
    tail = 0
    while tail < min(len(old.lines), len(new.lines)) - top and old.lines[-1 - tail] == new.lines[-1 - tail]:
        tail += 1
    bottom = len(new.lines) - tail
    if top - 1 <= cursor[0] <= max(bottom, top):
        return new.within(cursor)
    return new.first_word(min(top, new.last))
