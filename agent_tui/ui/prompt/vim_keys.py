"""Vim's keys on the prompt: keys go to the state machine, and what becomes of the text goes back."""

from __future__ import annotations

from collections.abc import Callable

from textual.widgets import TextArea
from textual.widgets.text_area import Selection

from agent_tui.ui.vim.commands import shared
from agent_tui.ui.vim.machine import Ask, Mode, Vim

NAMES: dict[Mode, str] = {
    "insert": "INSERT",
    "normal": "NORMAL",
    "visual": "VISUAL",
    "visual line": "V-LINE",
}
ESCAPES = frozenset({"escape", "ctrl+left_square_bracket"})
"""Ctrl+[ is Esc in every terminal; with the kitty protocol it has a name of its own."""
NAMED = frozenset({*ESCAPES, "backspace", "delete", "left", "right", "up", "down", "home", "end", "ctrl+r"})
HELP = "?"
BEGINNINGS = frozenset(f"/@!{HELP}")
"""On an empty prompt they mean what they always mean there."""


def location(text: str, at: int) -> tuple[int, int]:
    """(row, column) of a place that is counted in characters."""
    before = text[:at]
    return before.count("\n"), at - before.rfind("\n") - 1


class VimKeys:
    """Between a text area and the machine. What is typed in insert mode the text area takes itself. ``asks`` carries
    out what lies outside the text, ``shows`` shows the mode, with what was typed of a command; ``unbreakable`` says
    from where to where in a text stands what is one thing, such as a long paste."""

    def __init__(
        self,
        area: TextArea,
        asks: Callable[[Ask], None],
        shows: Callable[[Mode, str], None],
        unbreakable: Callable[[str], list[tuple[int, int]]],
    ) -> None:
        self.vim = Vim()
        self._area = area
        self._asks = asks
        self._shows = shows
        self._unbreakable = unbreakable
        self._applied: tuple[str, Selection] = ("", Selection())
        self._shown = ""
        self._show()

    @property
    def inserting(self) -> bool:
        return self.vim.mode == "insert"

    def begin(self) -> None:
        """The prompt was sent: the next one begins in insert mode."""
        self.vim.begin()
        self._applied = ("", Selection())
        self._show()

    def takes(self, key: str, character: str | None) -> bool:
        """Gives a key to vim and returns whether it was meant for vim; then it has done its work."""
        if key.startswith("alt+") and character is not None and character.isprintable():
            return self._escaped(character)
        if self.inserting:
            if key not in ESCAPES:
                return False
            empty = not self._area.text
            self._press("escape")
            if empty:
                # There is nothing to leave: what Esc does elsewhere is what was wanted.
                self._asks(("escape", ""))
            return True
        if key in NAMED:
            self._press("escape" if key in ESCAPES else key)
        elif character is None or len(character) != 1 or not character.isprintable():
            self.vim.cancel()
            self._show()
            return False
        elif not self._area.text and not self.vim.pending and character in BEGINNINGS:
            if character != HELP:
                self._press("i")
            return False
        elif character == "/" and not self.vim.pending:
            self._asks(("find", ""))
        else:
            self._press(character)
        return True

    def _escaped(self, character: str) -> bool:
        """Esc and a letter that came together: a terminal says so of Alt and that letter, too."""
        if self.inserting or self.vim.pending or self.vim.selecting:
            self._press("escape")
        self.takes(character, character)
        return True

    def undo(self) -> None:
        self._sync()
        self.vim.undo()
        self._apply()

    def redo(self) -> None:
        self._sync()
        self.vim.redo()
        self._apply()

    def _press(self, key: str) -> None:
        self._sync()
        self.vim.press(key)
        self._keep_whole()
        self._apply()
        for ask in self.vim.asks:
            self._asks(ask)
        if not any(what == "paste" for what, _ in self.vim.asks):
            self.settle()

    def _keep_whole(self) -> None:
        """Lets what stands for a long paste go whole or stay whole: a part of it would stand for nothing, unseen."""
        old, new = self._applied[0], str(self.vim.text)
        head = shared(old, new)
        tail = shared(old[head:][::-1], new[head:][::-1])
        start, end = head, len(old) - tail
        broken = [(a, b) for a, b in self._unbreakable(old) if a < max(end, start + 1) and b > start]
        broken = [(a, b) for a, b in broken if a < start or b > end]
        if old == new or not any(a < start or end > start for a, b in broken):
            return
        if len(new) - tail > head:
            self.vim.undo()
            return
        first, last = min(start, *(a for a, _ in broken)), max(end, *(b for _, b in broken))
        text = old[:first] + old[last:]
        self.vim.amend(text, location(text, first))

    def settle(self) -> None:
        """Takes over what was done outside: the cursor of normal mode does not stand behind a line."""
        self._sync()
        self._apply()

    def _sync(self) -> None:
        text, selection = self._area.text, self._area.selection
        if (text, selection) == self._applied:
            return
        self.vim.sync(text, selection.end)
        if not self.inserting and not selection.is_empty and text == self._applied[0]:
            start, end = sorted(selection)
            self.vim.select(start, (end[0], max(0, end[1] - 1)))

    def _apply(self) -> None:
        text = str(self.vim.text)
        if text != self._area.text:
            self._area.replace(text, (0, 0), self._area.document.end, maintain_selection_offset=False)
        selection = self._selection()
        if selection != self._area.selection:
            self._area.selection = selection
        self._applied = (text, selection)
        self._show()

    def _selection(self) -> Selection:
        """Returns what the text area shows as selected; the cell under the cursor is drawn as the cursor."""
        vim = self.vim
        if not vim.selecting:
            return Selection.cursor(vim.cursor)
        forward = vim.anchor <= vim.cursor
        if vim.mode == "visual":
            return Selection(vim.anchor if forward else vim.text.after(vim.anchor), vim.cursor)
        top, bottom = sorted((vim.anchor[0], vim.cursor[0]))
        ends = (top, 0), (bottom, vim.text.length(bottom))
        return Selection(*ends) if forward else Selection(*reversed(ends))

    def _show(self) -> None:
        words = " ".join(part for part in (NAMES[self.vim.mode], self.vim.pending) if part)
        if words != self._shown:
            self._shown = words
            self._shows(self.vim.mode, words)
