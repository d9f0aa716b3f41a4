"""A command that runs in the background, as everybody sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

JobState = Literal["running", "ended", "stopped"]
PortReach = Literal["all", "sandbox", "itself"]
"""Who reaches the ports that a command opens: everybody on the machine, the other commands in the sandbox, or nobody
but itself."""


@dataclass(slots=True, frozen=True)
class JobInfo:
    """``id`` is what model and user name it by. ``ended`` says that it ended by itself, with the exit ``code``
    (negative: the signal), ``stopped`` that somebody ended it. Times are seconds since the epoch.
    ``last_line`` of its output is cleaned and short; ``pid`` is the process whose end is that of all it started;
    ``log`` is the file with its output. ``kept``: it goes on when the program ends. ``reach``: of its ports."""

    id: str
    command: str
    state: JobState
    started: float
    pid: int
    log: str
    last_line: str = ""
    code: int | None = None
    finished: float | None = None
    kept: bool = False
    reach: PortReach = "all"

    def seconds(self, now: float) -> float:
        """How long it has run, or ran."""
        return max(0.0, (self.finished if self.finished is not None else now) - self.started)
