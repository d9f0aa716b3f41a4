"""All keys as help shows them. Its own module: nobody needs it before the first frame."""

from __future__ import annotations

from dataclasses import dataclass


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
    KeyHelp("Tab", "complete; to a question that is open, and back; else to what waits", "complete"),
    KeyHelp("y a s n f", "permission: yes, always, this session, no, no with a word", "allow"),
    KeyHelp("?", "on empty: this list"),
    KeyHelp("/ @ !", "command, file, shell"),
    KeyHelp("Esc i v V", "with /vim: normal mode, typing, selecting"),
)
