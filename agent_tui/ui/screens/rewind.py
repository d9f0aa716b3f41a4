"""Going back to an earlier message of the user, with or without the files."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.binding import Binding, BindingType

from agent_tui.context.accounting.lost import lost_text
from agent_tui.models.messages import Message
from agent_tui.text.cells import fit
from agent_tui.text.clean import clean, one_line
from agent_tui.text.numbers import age, plural
from agent_tui.ui.draw import Piece
from agent_tui.ui.guard import TypingGuard
from agent_tui.ui.screens.picker import Picker
from agent_tui.ui.theme import Paint

if TYPE_CHECKING:
    from agent_tui.ui.agent_protocol import Rewinds


ROOM = 76
"""Least cells of a row: below stand sentences."""


class RewindPicker(Picker[Message, "tuple[str, bool, bool]"]):
    """Answers (message id, restore files too, fork instead)."""

    TITLE_TEXT = "Go back to before…"
    PLACEHOLDER = "search your messages"
    PREVIEW_LINES = 4
    HINT = "Enter go back · Ctrl+R files too · Ctrl+F fork there · Esc close"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "files", "With files", show=False, priority=True),
        Binding("ctrl+f", "fork", "Fork", show=False, priority=True),
    ]

    def __init__(self, agent: Rewinds, search: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(search)
        self.agent = agent
        self.now = time.time()
        self.guard = TypingGuard(clock)
        path = agent.messages
        self.after = {m.id: len(path) - i - 1 for i, m in enumerate(path) if m.role == "user"}
        self.mine = [m for m in reversed(path) if m.role == "user"]
        self.lost: dict[str, str] = {}

    def entries(self, search: str) -> Sequence[Message]:
        wanted = search.lower()
        return [m for m in self.mine if wanted in m.text.lower()]

    def draw(self, entry: Message, width: int, paint: Paint, here: bool) -> Sequence[Piece]:
        when = fit(age(entry.created, self.now), 7, right=True) if entry.created else " " * 7
        return [
            (
                fit(one_line(entry.text, 300) or "(attachment)", max(4, width - 8)),
                paint("primary" if here else "foreground"),
            ),
            (" " + when, paint("muted")),
        ]

    def width_of(self, entry: Message) -> int:
        return max(ROOM, cell_len(one_line(entry.text, 300)) + 8)

    def preview(self, entry: Message) -> str:
        text, after = clean(entry.text)[:600], self.after[entry.id]
        leave = "leaves" if after == 1 else "leave"
        facts = f"{plural(after, 'message')} after it {leave} the conversation; nothing is deleted."
        if entry.id not in self.lost:
            lost = lost_text(self.agent.lost_by_rewind(entry.id), would=True)
            self.lost[entry.id] = f" {lost} A fork (Ctrl+F) leaves them in the original." if lost else ""
        return f"{facts}{self.lost[entry.id]}\n\n{text}"

    def on_screen_resume(self) -> None:
        self.guard.appeared()

    def chosen(self, entry: Message) -> None:
        self._answer(entry, files=False, fork=False)

    def action_files(self) -> None:
        self._answer(self.current, files=True, fork=False)

    def action_fork(self) -> None:
        self._answer(self.current, files=False, fork=True)

    def _answer(self, entry: Message | None, *, files: bool, fork: bool) -> None:
        """A key that came with those that opened this screen chooses nothing."""
        if entry is not None and not self.guard.accidental():
            self.dismiss((entry.id, files, fork))
