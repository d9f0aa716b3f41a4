"""Choosing a session: this project's first, with age, size and a preview."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.binding import Binding, BindingType

from agent_tui.errors import StoreError
from agent_tui.models.session import SessionInfo
from agent_tui.text.cells import fit, shorten
from agent_tui.text.clean import clean, one_line
from agent_tui.text.numbers import age, plural
from agent_tui.ui.draw import Piece
from agent_tui.ui.screens.picker import Picker
from agent_tui.ui.theme import Paint

if TYPE_CHECKING:
    from agent_tui.ui.agent_protocol import ListsSessions


class SessionPicker(Picker[SessionInfo, str]):
    """Answers the chosen session's id. Ctrl+A shows all projects' sessions or this project's alone."""

    TITLE_TEXT = "Resume a session"
    PLACEHOLDER = "search titles and texts"
    HINT = "Enter resume · Ctrl+A all projects · Esc close"
    PREVIEW_LINES = 2
    EMPTY = "No session matches."
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+a", "all", "All projects", show=False, priority=True)]

    def __init__(self, agent: ListsSessions, search: str = "") -> None:
        super().__init__(search)
        self.agent = agent
        self.everywhere = True
        self.project = str(agent.root)
        self.now = time.time()

    def entries(self, search: str) -> Sequence[SessionInfo]:
        found = self.agent.store.sessions(search=search)
        here = [s for s in found if s.project == self.project]
        shown = [*here, *(s for s in found if s.project != self.project)] if self.everywhere else here
        return [s for s in shown if s.messages or s.id != self.agent.info.id]

    def draw(self, entry: SessionInfo, width: int, paint: Paint, here: bool) -> Sequence[Piece]:
        current = entry.id == self.agent.info.id
        when = fit(age(entry.updated, self.now), 7, right=True)
        count = fit(f"{entry.messages:,}", 7, right=True)
        elsewhere = "" if entry.project == self.project else one_line(Path(entry.project).name, 24)
        place = fit(elsewhere, 18) if width > 70 else ""
        fork = " fork" if entry.copied else ""
        title = one_line(entry.title or entry.preview, 200) or "untitled"
        room = max(8, width - 7 - 7 - len(place) - len(fork) - (10 if current else 0) - 3)
        return [
            (fit(title, room), paint("primary" if here else "foreground", bold=here)),
            (fork, paint("secondary")),
            (" current  " if current else "", paint("accent")),
            (f" {place}" if place else "", paint("secondary")),
            (count, paint("faint")),
            (when, paint("muted")),
        ]

    def width_of(self, entry: SessionInfo) -> int:
        place = 0 if entry.project == self.project else 18
        return cell_len(one_line(entry.title or entry.preview, 200)) + 10 + place + 7 + 7 + 3

    def preview(self, entry: SessionInfo) -> str:
        first = " ".join(clean(entry.preview).split())
        facts = [one_line(entry.model, 60), plural(entry.messages, "message"), entry.id]
        try:
            others = self.agent.store.tree_size(entry.id)[1]
        except StoreError:
            facts.append("parts of it cannot be read")
            others = 0
        if others:
            facts[1] += f" and {plural(others, 'more branch', 'more branches')}"
        if entry.copied:
            facts.insert(1, "a fork of another session")
        if entry.project != self.project:
            facts.insert(0, one_line(entry.project, 200))
        return f"{shorten(first, 300) or 'no text'}\n{' · '.join(f for f in facts if f)}"

    def chosen(self, entry: SessionInfo) -> None:
        self.dismiss(entry.id)

    def action_all(self) -> None:
        self.everywhere = not self.everywhere
        self.search(self.search_text)
