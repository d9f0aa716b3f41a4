"""The command palette: every command and every key, from the registry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len

from agent_tui.commands.registry import load
from agent_tui.text.cells import fit, shorten
from agent_tui.text.fuzzy import match
from agent_tui.ui.draw import Piece
from agent_tui.ui.screens.picker import Picker
from agent_tui.ui.theme import Paint

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent


LEFT = 38
"""Cells of the column with the names, where there is room."""


@dataclass(slots=True, frozen=True)
class Entry:
    """``command`` is run when it takes no arguments, else put into the prompt; ``action`` is an action of the app."""

    label: str
    detail: str
    command: str = ""
    action: str = ""
    needs_args: bool = False


ACTIONS = (
    Entry("Find in the transcript", "Ctrl+F", action="find"),
    Entry("Show or hide reasoning", "Ctrl+T", action="toggle_reasoning"),
    Entry("Open or close tool output", "Ctrl+O", action="toggle_tools"),
    Entry("Next permission mode", "Shift+Tab", action="next_mode"),
    Entry("Redraw the screen", "Ctrl+L", action="redraw"),
)


def palette_entries(agent: Agent | None) -> list[Entry]:
    """Commands first, then what only keys do, then the user's own commands."""
    entries = [
        Entry(c.usage, c.summary, f"/{c.name}", needs_args=bool(c.args) and not c.args.startswith("["))
        for c in load().values()
    ]
    entries += ACTIONS
    if agent is not None:
        entries += [Entry(f"/{own.name}", own.description, f"/{own.name}") for own in agent.project.user_commands()]
    return entries


class Palette(Picker[Entry, Entry]):
    """Answers the chosen entry."""

    TITLE_TEXT = "Commands"
    PLACEHOLDER = "what do you want to do?"
    HINT = "Enter run · Esc close"

    def __init__(self, agent: Agent | None) -> None:
        super().__init__()
        self.all = palette_entries(agent)
        self._left = min(LEFT, max(cell_len(entry.label) for entry in self.all))

    def entries(self, search: str) -> Sequence[Entry]:
        by_text = {f"{e.label.lstrip('/')} {e.detail}": e for e in self.all}
        return [by_text[text] for text in match(search.lstrip("/"), list(by_text))] if search else self.all

    def draw(self, entry: Entry, width: int, paint: Paint, here: bool) -> Sequence[Piece]:
        room = min(self._left, max(16, width // 2))
        return [
            (fit(entry.label, room), paint("primary" if here else "foreground", bold=here)),
            ("  " + shorten(entry.detail, max(0, width - room - 2)), paint("muted")),
        ]

    def width_of(self, entry: Entry) -> int:
        return self._left + 2 + cell_len(entry.detail)

    def chosen(self, entry: Entry) -> None:
        self.dismiss(entry)
