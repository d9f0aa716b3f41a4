"""Editing a line, with history and completion, by what the system has for that (readline)."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Sequence

from agent_tui import door

Completes = Callable[[str], Sequence[str]]
"""What a line can be completed to, each a whole line."""

_SETTINGS = (
    "set enable-bracketed-paste off",
    "set enable-meta-key off",
    "set bell-style none",
    "set colored-stats off",
    "set colored-completion-prefix off",
    "set show-mode-in-prompt off",
    "set enable-active-region off",
    "set page-completions off",
    "tab: complete",
)
"""Nothing of it may be more than letters: whatever the user's own settings of readline say."""
SHOWN = 40
"""Proposals that are said."""


class Editing:
    """Lines with readline, which is told that the terminal can do nothing but letters. ``kept`` stands in the next
    line."""

    def __init__(self, past: Sequence[str], completes: Completes) -> None:
        terminal = os.environ.get("TERM")
        os.environ["TERM"] = "dumb"
        try:
            import readline
        finally:
            if terminal is None:
                del os.environ["TERM"]
            else:
                os.environ["TERM"] = terminal
        self._readline = readline
        self.kept = ""
        self._prompt = ""
        self._completes = completes
        self._found: list[str] = []
        for setting in _SETTINGS:
            readline.parse_and_bind(setting)
        readline.set_auto_history(False)
        readline.set_completer_delims("")
        readline.set_completer(self._complete)
        readline.set_completion_display_matches_hook(self._show)
        readline.set_startup_hook(self._put_back)
        for text in past:
            self.remember(text)

    def remember(self, text: str) -> None:
        """A line for the history; of several lines none can be edited here."""
        if text and "\n" not in text:
            self._readline.add_history(text)

    def line(self, prompt: str, more: Callable[[], bool]) -> str | None:
        """A line, and those that are pasted with it; None for Ctrl+D on an empty one."""
        self._prompt = prompt
        lines: list[str] = []
        try:
            lines.append(door.ask(prompt))
            while more():
                lines.append(door.ask(""))
        except EOFError:
            return "\n".join(lines) if lines else None
        except BaseException:
            self.kept = " ".join([*lines, self.kept]).strip()
            raise
        return "\n".join(lines)

    def put_aside(self) -> None:
        """Keeps what stands in the line; it is about to be given up."""
        self.kept = self._readline.get_line_buffer()

    def drop(self) -> bool:
        """What stands in the line is not wanted; False where nothing does."""
        self.kept = ""
        return bool(self._readline.get_line_buffer())

    def _put_back(self) -> None:
        text, self.kept = self.kept, ""
        if text:
            self._readline.insert_text(text)

    def _complete(self, text: str, state: int) -> str | None:
        if state == 0:
            self._found = list(self._completes(text))
        return self._found[state] if state < len(self._found) else None

    def _show(self, substitution: str, matches: Sequence[str], longest: int) -> None:
        """Proposals in one line, then the line that is edited again."""
        shown = ", ".join(match.strip() for match in matches[:SHOWN])
        more = f", and {len(matches) - SHOWN:,} more" if len(matches) > SHOWN else ""
        door.say(f"\nProposals: {shown}{more}")
        door.show(self._prompt + self._readline.get_line_buffer())
        self._readline.redisplay()


def unfinished(descriptor: int) -> bytes:
    """What was typed and can be read at once, the beginning of a line that is not finished included."""
    import termios

    before = termios.tcgetattr(descriptor)
    raw = [*before[:3], before[3] & ~termios.ICANON, *before[4:6], [*before[6]]]
    raw[6][termios.VMIN], raw[6][termios.VTIME] = 0, 0
    data = b""
    try:
        termios.tcsetattr(descriptor, termios.TCSANOW, raw)
        while select.select([descriptor], [], [], 0)[0]:
            piece = os.read(descriptor, 4096)
            if not piece:
                break
            data += piece
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, before)
    return data
