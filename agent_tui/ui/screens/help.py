"""Commands and keys: help lists them, the palette carries them out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len

from agent_tui.commands.registry import find, load
from agent_tui.records import dataclass
from agent_tui.text.cells import fit, shorten
from agent_tui.text.search import match
from agent_tui.ui.screens.picker import Picker
from agent_tui.ui.theme import Paint, Piece

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent


@dataclass(slots=True, frozen=True)
class KeyHelp:
    """A key as help shows it. ``id`` is its name in ``[keys]`` of the configuration, where it can be rebound."""

    keys: str
    what: str
    id: str = ""


KEY_HELP: tuple[KeyHelp, ...] = (
    KeyHelp("Enter", "send; while the model works: queue", "send"),
    KeyHelp("Enter", "on empty: send what waits"),
    KeyHelp(
        "Ctrl+J, Shift+Enter, Alt+Enter", "new line (\\ before Enter, too); /doctor says which work here", "newline"
    ),
    KeyHelp("Ctrl+S", "steer: goes in at the next step", "steer"),
    KeyHelp("Esc", "interrupt, or close what is open", "escape"),
    KeyHelp("Esc Esc", "on empty: go back to an earlier message"),
    KeyHelp("Ctrl+C", "copy a selection, interrupt, clear; twice: quit", "cancel"),
    KeyHelp("Ctrl+D", "on empty: quit", "quit"),
    KeyHelp("Ctrl+Z", "suspend", "suspend"),
    KeyHelp("Ctrl+_ / Alt+_, Ctrl+Y", "undo / redo typing", "undo"),
    KeyHelp("Shift+Tab", "permission mode", "mode"),
    KeyHelp("↑ ↓", "history; ↑ on empty takes a queued message back", "older"),
    KeyHelp("Ctrl+R", "search the history", "history"),
    KeyHelp("Ctrl+G", "write in $EDITOR; the plan that is asked about, too", "editor"),
    KeyHelp("Ctrl+V", "paste text or an image", "paste"),
    KeyHelp("Ctrl+O", "open or close tool output", "tools"),
    KeyHelp("Ctrl+T", "show or hide reasoning", "reasoning"),
    KeyHelp("Ctrl+F", "find in the transcript", "find"),
    KeyHelp("Ctrl+P", "command palette", "palette"),
    KeyHelp("Ctrl+L", "redraw", "redraw"),
    KeyHelp("PgUp PgDn", "scroll; Ctrl+End follows again", "page_up"),
    KeyHelp("Ctrl+↑ Ctrl+↓", "previous / next question", "previous_question"),
    KeyHelp("P", "in the transcript and in /context: pin a message"),
    KeyHelp("Tab", "complete; to a question that is open, and back; else to what waits", "complete"),
    KeyHelp("y a s n f", "permission: yes, always, this session, no, no with a word", "allow"),
    KeyHelp("?", "on empty: this list"),
    KeyHelp("/ @ !", "command, file, shell"),
    KeyHelp("Esc i v V", "with /vim: normal mode, typing, selecting"),
)


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
    commands = [HelpRow("Commands", "", heading=True)]
    commands += [HelpRow(c.usage, c.summary, command=c.name, doc=_doc(c.doc, c.aliases)) for c in load().values()]
    if agent is not None:
        commands += [HelpRow(f"/{own.name}", own.description) for own in agent.project.user_commands()]
    keys = [HelpRow("Keys", "", heading=True)]
    for key in KEY_HELP:
        doc = f"Its name in [keys] of the configuration is {key.id}." if key.id else ""
        keys.append(HelpRow((key.id and rebound.get(key.id)) or key.keys, key.what, doc=doc))
    return keys + commands if keys_first else commands + keys


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
