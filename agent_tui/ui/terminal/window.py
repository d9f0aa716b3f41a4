"""The terminal around the screen: its title, its bell and its notifications."""

from __future__ import annotations

from typing import Protocol

from agent_tui.text.clean import one_line


class ReachesTerminal(Protocol):
    def write_to_terminal(self, sequence: str) -> None:
        """Sends a control sequence of ours; nothing happens without a terminal."""

    def bell(self) -> None: ...


class Window:
    """The window that the terminal is shown in."""

    def __init__(self, terminal: ReachesTerminal) -> None:
        self._terminal = terminal

    def push_title(self) -> None:
        """Keeps the title so that ``pop_title`` can put it back."""
        self._terminal.write_to_terminal("\x1b[22;2t")

    def pop_title(self) -> None:
        self._terminal.write_to_terminal("\x1b[23;2t")

    def set_title(self, text: str) -> None:
        self._terminal.write_to_terminal(f"\x1b]2;{one_line(text, 120)}\x07")

    def notify(self, text: str) -> None:
        """A bell and, where the terminal knows OSC 9, a desktop notification."""
        self._terminal.write_to_terminal(f"\x1b]9;{one_line(text, 200)}\x07")
        self._terminal.bell()
