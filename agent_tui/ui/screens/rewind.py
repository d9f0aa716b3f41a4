"""Going back to an earlier message of the user, or to another branch, with or without the files."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.binding import Binding, BindingType

from agent_tui.commands.branch_words import (
    branch_text,
    files_text,
    first_words,
    head_of,
    leaves_text,
    tree,
    words_of,
)
from agent_tui.context.accounting.lost import lost_text
from agent_tui.errors import StoreError
from agent_tui.models.branches import Branch
from agent_tui.models.messages import Message
from agent_tui.text.cells import fit
from agent_tui.text.clean import clean
from agent_tui.text.numbers import age, plural, tokens
from agent_tui.ui.draw import Piece
from agent_tui.ui.guard import TypingGuard
from agent_tui.ui.screens.picker import Picker
from agent_tui.ui.theme import Paint

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent

WIDE = 76
"""Cells from which on a branch's row says what its numbers are."""

SHOWN = 4
"""Messages of the user's that are listed of a branch."""

DEEPEST = 3
"""Levels of branches of branches that are drawn further in."""


@dataclass(slots=True, frozen=True)
class Choice:
    """What the screen answers: go back to before ``message`` of the user's, or to where ``branch`` ends; ``files``
    too; or a ``fork`` there instead."""

    message: Message | None = None
    branch: Branch | None = None
    files: bool = False
    fork: bool = False


class RewindPicker(Picker["Message | Branch", Choice]):
    """The conversation, newest message first, and where it forks the branches that are not in it."""

    TITLE_TEXT = "Go back to before…, or to a branch"
    PLACEHOLDER = "search your messages"
    HINT = "Ctrl+R files · Tab branch · Ctrl+F fork · Esc close"
    PREVIEW_LINES = 5
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "files", "With files", show=False, priority=True),
        Binding("ctrl+f", "fork", "Fork", show=False, priority=True),
        Binding("tab", "branch(1)", "Next branch", show=False, priority=True),
        Binding("shift+tab", "branch(-1)", "Previous branch", show=False, priority=True),
    ]

    def __init__(self, agent: Agent, search: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(search)
        self.agent = agent
        self.now = time.time()
        self.guard = TypingGuard(clock)
        path = agent.conversation.path
        self.leave = {m.id: len(path) - i for i, m in enumerate(path)}
        self.all = list(tree(path, agent.branches.all()))
        self.told: dict[str, str] = {}

    def start_at(self) -> int:
        """The newest message of the conversation."""
        return next((i for i, entry in enumerate(self.shown) if isinstance(entry, Message)), 0)

    def entries(self, search: str) -> Sequence[Message | Branch]:
        wanted = search.lower()
        return [entry for entry in self.all if wanted in self._words(entry)] if wanted else self.all

    @staticmethod
    def _words(entry: Message | Branch) -> str:
        said = [entry] if isinstance(entry, Message) else [m for m in entry.own if m.role == "user"]
        return "\n".join(message.text for message in said).lower()

    def draw(self, entry: Message | Branch, width: int, paint: Paint, here: bool) -> Sequence[Piece]:
        color = paint("primary" if here else "foreground")
        if isinstance(entry, Message):
            return [(fit(first_words(entry), max(4, width - 8)), color), (self._age(entry.created), paint("muted"))]
        lead = "  " * min(entry.depth, DEEPEST) + "├─ "
        size = tokens(entry.tokens, True)
        count = f"{plural(len(entry.own), 'message')} · {size}" if width >= WIDE else f"{len(entry.own):,} · {size}"
        room = 22 if width >= WIDE else 12
        space = max(4, width - 8 - room - len(lead))
        return [
            (lead, paint("accent")),
            (fit(words_of(entry, space), space), color),
            (fit(count, room, right=True), paint("faint")),
            (self._age(entry.updated), paint("muted")),
        ]

    def width_of(self, entry: Message | Branch) -> int:
        if isinstance(entry, Message):
            return max(WIDE, cell_len(first_words(entry)) + 8)
        return WIDE + 4 + 22

    def _age(self, then: float) -> str:
        return " " + (fit(age(then, self.now), 7, right=True) if then else " " * 7)

    def preview(self, entry: Message | Branch) -> str:
        head = head_of(entry)
        key = head or ""
        if key not in self.told:
            self.told[key] = self._changes(head)
        facts = leaves_text(self.leave[entry.id]) if isinstance(entry, Message) else branch_text(entry)
        said = clean(entry.text)[:600] if isinstance(entry, Message) else _all_said(entry)
        return f"{facts}{self.told[key]}\n\n{said}"

    def _changes(self, head: str | None) -> str:
        try:
            files = files_text(self.agent.branches.files(head), self.agent.root)
        except StoreError as error:
            files = f"Its files cannot be looked at: {error}"
        parts = [files, lost_text(self.agent.branches.lost(head), would=True)]
        return "".join(f" {part}" for part in parts if part)

    def on_screen_resume(self) -> None:
        self.guard.appeared()

    def chosen(self, entry: Message | Branch) -> None:
        self._answer(entry)

    def action_files(self) -> None:
        self._answer(self.current, files=True)

    def action_fork(self) -> None:
        self._answer(self.current, fork=True)

    def action_branch(self, by: int) -> None:
        """To the next row of a branch, from the last on to the first."""
        places = [i for i, entry in enumerate(self.shown) if isinstance(entry, Branch)]
        if by < 0:
            places.reverse()
        at = self.rows.cursor
        following = [i for i in places if (i - at) * by > 0] or places
        if following:
            self.rows.move_to(following[0])

    def _answer(self, entry: Message | Branch | None, *, files: bool = False, fork: bool = False) -> None:
        """A key that came with those that opened this screen chooses nothing."""
        if entry is None or self.guard.accidental():
            return
        if isinstance(entry, Message):
            self.dismiss(Choice(message=entry, files=files, fork=fork))
        else:
            self.dismiss(Choice(branch=entry, files=files, fork=fork))


def _all_said(branch: Branch) -> str:
    said = [message for message in branch.own if message.role == "user"] or [branch.first]
    more = [f"and {plural(len(said) - SHOWN, 'more message')} of yours"] if len(said) > SHOWN else []
    return "\n".join([*(f"› {first_words(message)}" for message in said[:SHOWN]), *more])
