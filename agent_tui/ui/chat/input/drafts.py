"""What stands in the prompt is kept for the next start."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_tui.history import History
    from agent_tui.ui.chat.host import SetsTimers
    from agent_tui.ui.prompt.widget import Prompt

DELAY = 1.0
"""Seconds from the first change to the writing."""


class Drafts:
    """Writes the draft a moment after a change, not with every key."""

    def __init__(self, history: History, prompt: Prompt, timers: SetsTimers) -> None:
        self._history = history
        self._prompt = prompt
        self._timers = timers
        self._saving = False

    def changed(self) -> None:
        if not self._saving:
            self._saving = True
            self._timers.set_timer(DELAY, self._save_later)

    def _save_later(self) -> None:
        self._saving = False
        if not self._history.browsing:
            self.save()

    def save(self) -> None:
        """Keeps it now, with every paste in place."""
        self._history.save_draft(self._prompt.whole_text)

    def forget(self) -> None:
        """It was sent."""
        self._history.save_draft("")

    def bring_back(self) -> None:
        """Puts the kept draft into an empty prompt."""
        draft = self._history.load_draft()
        if draft and self._prompt.is_empty:
            self._prompt.set_text(draft)
