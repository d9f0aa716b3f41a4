"""Calling a user who looks elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_tui.ui.chat.host import SeesFocus
    from agent_tui.ui.chat.needs import CallsUser, Notifies


class Attention:
    """``wanted`` is the user's setting, ``focus`` knows whether the terminal is looked at."""

    def __init__(self, window: Notifies, wanted: bool, focus: SeesFocus) -> None:
        self._window = window
        self._wanted = wanted
        self._focus = focus

    def call_user(self, text: str) -> None:
        if self._wanted and not self._focus.is_looked_at:
            self._window.notify(text)


_CALLS: type[CallsUser] = Attention
