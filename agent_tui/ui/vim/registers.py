"""Where deleted and yanked text is kept."""

from __future__ import annotations

from agent_tui.ui.vim.operators import Kept

CLIPBOARD = frozenset("+*")
NOWHERE = "_"


class Registers:
    """The unnamed one, ``0`` for what was yanked, and those with a letter. The clipboard's are not kept here."""

    def __init__(self) -> None:
        self._kept: dict[str, Kept] = {}

    def get(self, name: str) -> Kept | None:
        return self._kept.get(name.lower())

    def keep(self, kept: Kept, name: str, yanked: bool) -> None:
        if name == NOWHERE:
            return
        if name.isalpha() and name.isupper() and (before := self.get(name)) is not None:
            lines = before.lines or kept.lines
            kept = Kept(f"{before.text}{chr(10) if lines else ''}{kept.text}", lines)
        self._kept[""] = kept
        if name.isalpha():
            self._kept[name.lower()] = kept
        elif yanked and not name:
            self._kept["0"] = kept
