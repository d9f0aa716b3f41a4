"""Commands and keys, from the registry and the key table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len

from agent_tui.commands.registry import find, load
from agent_tui.text.cells import fit, shorten
from agent_tui.ui.draw import Piece
from agent_tui.ui.key_help import KEY_HELP
from agent_tui.ui.screens.picker import Picker
from agent_tui.ui.theme import Paint

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent


LEFT = 38
"""Cells of the column with commands and keys, where there is room."""


@dataclass(slots=True, frozen=True)
class HelpRow:
    left: str
    right: str
    heading: bool = False
    command: str = ""
    doc: str = ""


def help_rows(agent: Agent | None, rebound: dict[str, str], keys_first: bool) -> list[HelpRow]:
    """Everything there is to know, in sections."""
    commands = [HelpRow(c.usage, c.summary, command=c.name, doc=_doc(c.doc, c.aliases)) for c in load().values()]
    if agent is not None:
        commands += [HelpRow(f"/{own.name}", own.description) for own in agent.project.user_commands()]
    keys = []
    for key in KEY_HELP:
        own = rebound.get(key.id, "") if key.id else ""
        doc = f"Its name in [keys] of the configuration is {key.id}." if key.id else ""
        keys.append(HelpRow(own or key.keys, key.what, doc=doc))
    sections = [("Keys", keys), ("Commands", commands)] if keys_first else [("Commands", commands), ("Keys", keys)]
    rows: list[HelpRow] = []
    for title, section in sections:
        rows += [HelpRow(title, "", heading=True), *section]
    return rows


def _doc(doc: str, aliases: tuple[str, ...]) -> str:
    also = f"Also: {', '.join('/' + a for a in aliases)}." if aliases else ""
    rest = " ".join(doc.partition("\n")[2].split())
    return " ".join(part for part in (rest, also) if part)


class HelpScreen(Picker[HelpRow, str]):
    """Answers a command's name when one is chosen."""

    TITLE_TEXT = "Help"
    PLACEHOLDER = "search commands and keys"
    PREVIEW_LINES = 2
    HINT = "↑↓ scroll · Enter runs a command · Esc close"

    def __init__(self, agent: Agent | None, rebound: dict[str, str], topic: str = "") -> None:
        keys_first = topic == "keys"
        command = None if keys_first or not topic else find(topic.lstrip("/"))
        super().__init__("" if keys_first else command.name if command else topic)
        self.all = help_rows(agent, rebound, keys_first)
        self._left = min(LEFT, max(cell_len(row.left) for row in self.all))

    def entries(self, search: str) -> Sequence[HelpRow]:
        words = search.lower().split()
        if not words:
            return self.all
        return [r for r in self.all if not r.heading and all(w in f"{r.left} {r.right}".lower() for w in words)]

    def width_of(self, entry: HelpRow) -> int:
        return self._left + 2 + cell_len(entry.right)

    def can_choose(self, entry: HelpRow) -> bool:
        return not entry.heading

    def draw(self, entry: HelpRow, width: int, paint: Paint, here: bool) -> Sequence[Piece]:
        if entry.heading:
            return [(entry.left, paint("accent", bold=True))]
        room = min(self._left, max(16, width * 2 // 5))
        return [
            (fit(entry.left, room), paint("primary", bold=here)),
            ("  " + shorten(entry.right, max(0, width - room - 2)), paint("foreground")),
        ]

    def preview(self, entry: HelpRow) -> str:
        return "\n".join(part for part in (entry.right, entry.doc) if part)

    def chosen(self, entry: HelpRow) -> None:
        if entry.command:
            self.dismiss(entry.command)
