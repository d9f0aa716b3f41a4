"""Work beside the keys: tasks of the app that say so when they fail."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.worker import Worker

    from agent_tui.ui.chat.host import RunsWorkers
    from agent_tui.ui.chat.needs import StartsTasks


class Tasks:
    """Starts workers that do not end the program when they fail."""

    def __init__(self, runs: RunsWorkers) -> None:
        self._runs = runs

    def begin(
        self, work: Callable[[], Coroutine[Any, Any, None]], *, group: str = "default", exclusive: bool = False
    ) -> Worker[None]:
        # A function, not a coroutine: one that is replaced before it began leaves nothing unawaited.
        return self._runs.run_worker(work, group=group, exclusive=exclusive, exit_on_error=False)


_TASKS: type[StartsTasks] = Tasks
