"""What ``.`` does again."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agent_tui.ui.vim.commands import Command
from agent_tui.ui.vim.inserting import Typed
from agent_tui.ui.vim.selecting import Extent


@dataclass(slots=True, frozen=True)
class Repeatable:
    """A command, what was selected for it, and what was typed after it."""

    command: Command
    extent: Extent | None = None
    typed: Typed | None = None


class Repeats:
    """Remembers the last change; while that is done again, nothing else."""

    def __init__(self) -> None:
        self.running: Repeatable | None = None
        self._last: Repeatable | None = None

    def did(self, repeatable: Repeatable) -> None:
        """This changed something, or what is typed now will."""
        if self.running is None:
            self._last = repeatable

    def was_typed(self, typed: Typed) -> None:
        """What was typed after the last change."""
        if self.running is None and self._last is not None:
            self._last = replace(self._last, typed=typed)

    def begin(self, count: int | None) -> Repeatable | None:
        """What is to be done again now, if anything: with this count from now on, where nothing was selected for it.
        ``end`` has to follow."""
        if self._last is not None and count is not None and self._last.extent is None:
            self._last = replace(self._last, command=replace(self._last.command, count=count))
        self.running = self._last
        return self._last

    def end(self) -> None:
        self.running = None
