"""Choosing a theme, for now and for the next start."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.text.clean import one_line

if TYPE_CHECKING:
    from agent_tui.ui.chat.host import WearsThemes
    from agent_tui.ui.chat.needs import Tells
    from agent_tui.ui.theme import Themes


class ThemeChoice:
    """``configured`` is the theme that the configuration names; ``folder`` holds the user's own."""

    def __init__(self, wears: WearsThemes, tells: Tells, configured: str, folder: Path, state: Path) -> None:
        self._wears = wears
        self._tells = tells
        self._configured = configured
        self._folder = folder
        self._state = state

    @property
    def current(self) -> str:
        return self._wears.theme

    def load(self) -> Themes:
        """All themes there are, ready to be worn."""
        from agent_tui.ui.theme import load_themes

        found = load_themes(self._folder)
        for theme in found.themes.values():
            self._wears.register_theme(theme)
        return found

    def wear(self, name: str) -> bool:
        """Changes to a theme by its name and keeps it; False when there is none of that name."""
        from agent_tui.config import AUTO_THEME
        from agent_tui.ui.theme import load_themes

        if name == AUTO_THEME:
            self.keep(name)
            return True
        found = load_themes(self._folder)
        for problem in found.problems:
            self._tells.say("warning", problem)
        theme = found.themes.get(name)
        if theme is None:
            return False
        self._wears.register_theme(theme)
        self._wears.theme = name
        self.keep(name)
        return True

    def keep(self, name: str | None) -> None:
        """Remembers the theme for the next start, and says whether that works; nothing for None."""
        from agent_tui.config import AUTO_THEME
        from agent_tui.ui.theme import keep_choice, wanted_theme

        if not name:
            return
        problem = keep_choice(name, self._state)
        if problem is not None:
            self._tells.say("warning", problem)
        elif wanted_theme(self._configured, self._state) != name:
            configured = one_line(self._configured, 60)
            self._tells.hint(f"Theme {one_line(name, 60)} until you leave: the configuration names {configured}")
        elif name == AUTO_THEME:
            self._tells.hint("From the next start on the theme suits the terminal's background")
        else:
            self._tells.hint(f"Theme {one_line(name, 60)}, also next time")
