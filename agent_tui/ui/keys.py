"""Keys that work everywhere on the main screen, and what they do. The prompt has its own on top."""

from __future__ import annotations

from dataclasses import dataclass

from textual.binding import Binding, BindingType

TWICE = 2.0
"""Seconds in which a second Ctrl+C quits, and a second Esc opens the rewind picker."""

APP_BINDINGS: list[BindingType] = [
    Binding("ctrl+c", "cancel", "Copy, interrupt, clear, quit", show=False, priority=True, id="cancel"),
    Binding("escape", "escape", "Interrupt or close", show=False),
    Binding("shift+tab", "next_mode", "Permission mode", show=False, priority=True, id="mode"),
    Binding("ctrl+o", "toggle_tools", "Expand tool output", show=False, id="tools"),
    Binding("ctrl+t", "toggle_reasoning", "Show reasoning", show=False, id="reasoning"),
    Binding("ctrl+f", "find", "Find in the transcript", show=False, id="find"),
    Binding("ctrl+l", "redraw", "Redraw", show=False, id="redraw"),
    Binding("ctrl+p", "palette", "Command palette", show=False, id="palette"),
    Binding("ctrl+z", "suspend_process", "Suspend", show=False),
    Binding("ctrl+up", "jump(-1)", "Previous question", show=False, id="previous_question"),
    Binding("ctrl+down", "jump(1)", "Next question", show=False, id="next_question"),
]


@dataclass(slots=True, frozen=True)
class KeyHelp:
    """A key as help shows it. ``id`` is its name in ``[keys]`` of the configuration, where it can be rebound."""

    keys: str
    what: str
    id: str = ""


KEY_HELP: tuple[KeyHelp, ...] = (
    KeyHelp("Enter", "send; while the model works: queue", "send"),
    KeyHelp("Enter", "on empty: send what waits"),
    KeyHelp("Ctrl+J, Shift+Enter", "new line", "newline"),
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
    KeyHelp("Ctrl+G", "write in $EDITOR", "editor"),
    KeyHelp("Ctrl+V", "paste text or an image", "paste"),
    KeyHelp("Ctrl+O", "open or close tool output", "tools"),
    KeyHelp("Ctrl+T", "show or hide reasoning", "reasoning"),
    KeyHelp("Ctrl+F", "find in the transcript", "find"),
    KeyHelp("Ctrl+P", "command palette", "palette"),
    KeyHelp("Ctrl+L", "redraw", "redraw"),
    KeyHelp("PgUp PgDn", "scroll; Ctrl+End follows again", "page_up"),
    KeyHelp("Ctrl+↑ Ctrl+↓", "previous / next question", "previous_question"),
    KeyHelp("Tab", "complete; to a permission that is asked", "complete"),
    KeyHelp("y a n f", "permission: yes, always, no, no with a word", "allow"),
    KeyHelp("?", "on empty: this list"),
    KeyHelp("/ @ !", "command, file, shell"),
)
