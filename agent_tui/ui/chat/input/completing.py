"""Proposals for what is being typed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from agent_tui.completion import FileIndex, Query, propose, shell_lines

if TYPE_CHECKING:
    from agent_tui.history import History
    from agent_tui.ui.chat.needs import HasWords, StartsTasks
    from agent_tui.ui.chat.stage import Stage


class Completing:
    """Looks for proposals in a task; only the newest question is answered."""

    def __init__(self, seat: HasWords, stage: Stage, files: FileIndex, history: History, tasks: StartsTasks) -> None:
        self._seat = seat
        self._stage = stage
        self._files = files
        self._history = history
        self._tasks = tasks

    def complete(self, query: Query | None) -> None:
        """Proposes something for ``query``; nothing for None."""
        if not self._stage.furnished:
            return
        if query is None:
            self._stage.completions.show_proposals(())
            return
        if query.kind == "file" and not query.text:
            self._files.stale()
        self._tasks.begin(partial(self._propose, query), group="complete", exclusive=True)

    async def _propose(self, query: Query) -> None:
        shell = shell_lines(self._history) if query.kind == "shell" else []
        found = await propose(query, self._seat.agent, self._files, shell)
        if self._stage.prompt.query_now == query:
            self._stage.completions.show_proposals(found, query)
