"""Keys that work everywhere on the main screen, and what they do. The prompt has its own on top."""

from __future__ import annotations

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
