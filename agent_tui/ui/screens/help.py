"""Commands and keys: help only lists them, the palette carries them out."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual import events
from textual.binding import Binding, BindingType

from agent_tui.commands.registry import PARTS, Command, find, listed, load
from agent_tui.records import dataclass
from agent_tui.text.cells import fit, shorten
from agent_tui.text.search import match
from agent_tui.ui.screens.context_head import in_lines
from agent_tui.ui.screens.picker import MARK, Picker
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
    KeyHelp("Enter", "empty prompt: send queued messages"),
    KeyHelp(
        "Ctrl+J, Shift+Enter, Alt+Enter", "new line (\\ before Enter, too); /doctor says which work here", "newline"
    ),
    KeyHelp("Ctrl+S", "steer: send before the next step", "steer"),
    KeyHelp("Esc", "interrupt, or close a dialog", "escape"),
    KeyHelp("Esc Esc", "empty prompt: rewind to an earlier message"),
    KeyHelp("Ctrl+C", "copy a selection, interrupt, clear; twice: quit", "cancel"),
    KeyHelp("Ctrl+D", "empty prompt: quit", "quit"),
    KeyHelp("Ctrl+Z", "suspend", "suspend"),
    KeyHelp("Ctrl+_ / Alt+_, Ctrl+Y", "undo / redo typing", "undo"),
    KeyHelp("Shift+Tab", "permission mode", "mode"),
    KeyHelp("↑ ↓", "history; ↑ in an empty prompt edits a queued message", "older"),
    KeyHelp("Ctrl+R", "search the history", "history"),
    KeyHelp("Ctrl+G", "write in $EDITOR, also an open plan", "editor"),
    KeyHelp("Ctrl+V", "paste text or an image", "paste"),
    KeyHelp("Ctrl+O", "open or close tool output", "tools"),
    KeyHelp("Ctrl+B", "move a running command to the background", "background"),
    KeyHelp("Ctrl+T", "show or hide reasoning", "reasoning"),
    KeyHelp("Ctrl+F", "find in the transcript", "find"),
    KeyHelp("Ctrl+P", "command palette", "palette"),
    KeyHelp("Ctrl+L", "redraw", "redraw"),
    KeyHelp("PgUp PgDn", "scroll; Ctrl+End follows again", "page_up"),
    KeyHelp("Ctrl+↑ Ctrl+↓", "previous / next question", "previous_question"),
    KeyHelp("P", "in the transcript and in /context: pin a message"),
    KeyHelp("Tab", "complete; go to an open question and back, or to the queue", "complete"),
    KeyHelp("y a s n f", "permission: yes, always, this session, no, no and say why", "allow"),
    KeyHelp("?", "empty prompt: this list"),
    KeyHelp("/ @ !", "command, file, shell"),
    KeyHelp("Esc i v V", "with /vim: normal mode, typing, selecting"),
)


LEFT = 14
"""Cells of the column with commands and keys at most; longer ones wrap."""
WIDE = 100
"""Cells of the dialog's rows at most: longer lines are hard to read."""
PALETTE_LEFT = 38
NAMES_LEFT = 14
"""Cells of the palette's first column, at most, and what the longest command's name needs."""


@dataclass(slots=True, frozen=True)
class HelpRow:
    """A line of the help. ``more``: it goes on with the one above."""

    left: str
    right: str
    heading: bool = False
    more: bool = False
    command: str = ""
    doc: str = ""


def help_rows(agent: Agent | None, rebound: dict[str, str], keys_first: bool) -> list[HelpRow]:
    """Commands by parts, the user's own, and keys; each in one row."""
    known = load()
    commands: list[HelpRow] = []
    for part, names in PARTS.items():
        commands.append(HelpRow(part, "", heading=True))
        commands += [HelpRow(f"/{n}", known[n].summary, command=n, doc=_doc(known[n])) for n in names if n in known]
    own = agent.project.user_commands() if agent is not None else []
    if own:
        commands.append(HelpRow("Your own", "", heading=True))
        commands += [HelpRow(f"/{each.name}", each.description, command=each.name) for each in own]
    keys = [HelpRow("Keys", "", heading=True)]
    for key in KEY_HELP:
        doc = f"Name in [keys] of the configuration: {key.id}." if key.id else ""
        keys.append(HelpRow((key.id and rebound.get(key.id)) or key.keys, key.what, doc=doc))
    return keys + commands if keys_first else commands + keys


def _doc(command: Command) -> str:
    rest = " ".join(command.doc.partition("\n")[2].split())
    also = f"Also: {', '.join('/' + a for a in command.aliases)}." if command.aliases else ""
    return " ".join(part for part in (f"{command.usage}." if command.args else "", rest, also) if part)


def in_columns(row: HelpRow, left: int, width: int) -> list[HelpRow]:
    """The row as lines of at most ``width`` cells, its first column ``left`` of them."""
    if row.heading:
        return [HelpRow("", "", more=True), row]
    names, words = in_lines(row.left, left), in_lines(row.right, width - left - 2)
    first, *others = zip_longest(names, words, fillvalue="")
    return [replace(row, left=first[0], right=first[1]), *(HelpRow(a, b, more=True) for a, b in others)]


class HelpScreen(Picker[HelpRow, str]):
    """Runs nothing; answers the name of a command that is to stand in the prompt."""

    TITLE_TEXT = "Help"
    PLACEHOLDER = "search commands and keys"
    PREVIEW_LINES = 3
    HINT = "↑↓ scroll · Tab put into the prompt · Esc close"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "take", "Put into the prompt", show=False, priority=True)]

    def __init__(self, agent: Agent | None, rebound: dict[str, str], topic: str = "") -> None:
        keys_first = topic == "keys"
        command = None if keys_first or not topic else find(topic.lstrip("/"))
        super().__init__("" if keys_first else command.name if command else topic)
        self.all = help_rows(agent, rebound, keys_first)
        self._cells = WIDE

    @property
    def _left(self) -> int:
        return min(LEFT, max(8, self._cells // 3))

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        cells = min(WIDE, self.rows.scrollable_content_region.width - MARK - 1)
        if cells > 0 and cells != self._cells:
            self._cells = cells
            self.look_again()

    def entries(self, search: str) -> Sequence[HelpRow]:
        words = search.lower().split()
        rows = [r for r in self.all if not words or (not r.heading and all(w in _said(r) for w in words))]
        lines = [line for row in rows for line in in_columns(row, self._left, self._cells)]
        return lines if words else lines[1:]

    def width_of(self, entry: HelpRow) -> int:
        return WIDE

    def can_choose(self, entry: HelpRow) -> bool:
        return not entry.heading and not entry.more

    def draw(self, entry: HelpRow, width: int, paint: Paint, here: bool) -> Sequence[Piece]:
        if entry.heading:
            return [(entry.left, paint("accent", bold=True))]
        return [
            (fit(entry.left, self._left), paint("primary", bold=here)),
            ("  " + shorten(entry.right, max(0, width - self._left - 2)), paint("foreground")),
        ]

    def preview(self, entry: HelpRow) -> str:
        return entry.doc

    def refused(self) -> Container[str]:
        if self.current is None:
            return ("↑↓", "Tab")
        return () if self.current.command else ("Tab",)

    def chosen(self, entry: HelpRow) -> None:
        """Enter is what one presses to be done with reading, too."""

    def action_take(self) -> None:
        if self.current is not None and self.current.command:
            self.dismiss(self.current.command)


def _said(row: HelpRow) -> str:
    return f"{row.left} {row.right} {row.doc}".lower()


@dataclass(slots=True, frozen=True)
class HelpEntry:
    """``command`` is run when it takes no arguments, else put into the prompt; ``action`` is an action of the app."""

    label: str
    detail: str
    command: str = ""
    action: str = ""
    needs_args: bool = False


ACTIONS = (
    HelpEntry("Find in the transcript", "Ctrl+F", action="find"),
    HelpEntry("Show or hide reasoning", "Ctrl+T", action="toggle_reasoning"),
    HelpEntry("Open or close tool output", "Ctrl+O", action="toggle_tools"),
    HelpEntry("Move a command to the background", "Ctrl+B", action="to_background"),
    HelpEntry("Next permission mode", "Shift+Tab", action="next_mode"),
    HelpEntry("Redraw the screen", "Ctrl+L", action="redraw"),
)


def palette_entries(agent: Agent | None) -> list[HelpEntry]:
    """Commands first, then what only keys do, then the user's own commands."""
    entries = [
        HelpEntry(c.usage, c.summary, f"/{c.name}", needs_args=bool(c.args) and not c.args.startswith("["))
        for c in listed()
    ]
    entries += ACTIONS
    if agent is not None:
        entries += [HelpEntry(f"/{own.name}", own.description, f"/{own.name}") for own in agent.project.user_commands()]
    return entries


class CommandPalette(Picker[HelpEntry, HelpEntry]):
    """Answers the chosen entry."""

    TITLE_TEXT = "Commands"
    PLACEHOLDER = "what do you want to do?"
    HINT = "Enter run · Esc close"

    def __init__(self, agent: Agent | None) -> None:
        super().__init__()
        self.all = palette_entries(agent)
        self._left = min(PALETTE_LEFT, max(cell_len(entry.label) for entry in self.all))
        self._details = max(cell_len(entry.detail) for entry in self.all)

    def entries(self, search: str) -> Sequence[HelpEntry]:
        by_text = {f"{e.label.lstrip('/')} {e.detail}": e for e in self.all}
        return [by_text[text] for text in match(search.lstrip("/"), list(by_text))] if search else self.all

    def draw(self, entry: HelpEntry, width: int, paint: Paint, here: bool) -> Sequence[Piece]:
        # What a command does says more than what it takes.
        room, label = min(self._left, max(NAMES_LEFT, width - self._details - 2)), entry.label
        if entry.action:
            room = max(room, cell_len(label))
        elif cell_len(label) > room:
            label = f"{label.split(' ', 1)[0]} …"
        return [
            (fit(label, room), paint("primary" if here else "foreground", bold=here)),
            ("  " + shorten(entry.detail, max(0, width - room - 2)), paint("muted")),
        ]

    def width_of(self, entry: HelpEntry) -> int:
        return self._left + 2 + cell_len(entry.detail)

    def chosen(self, entry: HelpEntry) -> None:
        self.dismiss(entry)
