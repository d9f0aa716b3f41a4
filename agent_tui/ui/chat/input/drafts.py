"""What stands in the prompt is kept for the next start."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from agent_tui.ui.keys import TypingGuard

if TYPE_CHECKING:
    from agent_tui.history import History
    from agent_tui.ui.chat.host import SetsTimers
    from agent_tui.ui.chat.needs import Tells
    from agent_tui.ui.prompt.widget import Prompt

DELAY = 1.0
"""Seconds from the first change to the writing."""
YIELDED = "You had typed before your draft was here: ↑ brings the draft back."


class Drafts:
    """Writes the draft a moment after a change, not with every key."""

    def __init__(
        self, history: History, prompt: Prompt, timers: SetsTimers, tells: Tells, clock: Callable[[], float]
    ) -> None:
        self._history = history
        self._prompt = prompt
        self._timers = timers
        self._tells = tells
        self._clock = clock
        self._guard: TypingGuard | None = None  # while a draft stands there that no key has touched
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
        """Puts the kept draft into the prompt. What was typed before it could be seen is a message of its own: the
        draft is the newest of the history then."""
        draft = self._history.load_draft()
        if not draft:
            return
        if self._prompt.is_empty:
            self._prompt.set_text(draft)
            self._guard = TypingGuard(self._clock)
            self._guard.appeared()
        else:
            self._yield(draft)

    def key_comes(self) -> None:
        """A key is about to change the prompt."""
        guard, self._guard = self._guard, None
        if guard is not None and guard.accidental():
            self._yield(self._prompt.whole_text)
            self._prompt.set_text("")

    def _yield(self, draft: str) -> None:
        self._history.set_aside(draft)
        self._tells.say("info", YIELDED)
