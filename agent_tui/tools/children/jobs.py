"""What runs in the background of one program, commands and subagents: started, found, stopped and let go."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeVar

from agent_tui.errors import ToolError
from agent_tui.models.events import JobInfo, PortReach
from agent_tui.tools.children.command import CommandOrder, RunningCommand
from agent_tui.tools.children.work import StoppedBy, Work

W = TypeVar("W", bound=Work)

MAX_RUNNING = 16
"""Commands that run at the same time: a model in a loop must not fill the machine."""

TOO_MANY = f"{MAX_RUNNING} commands run in the background already. Stop one first."

MAX_ENDED = 30
"""How many that have ended can still be looked at."""


class Jobs:
    """They belong to the session that started them and end with it, but for those the user keeps. ``changed`` is called
    with a job that was started, has ended or is to be kept."""

    def __init__(self, changed: Callable[[Work], None] = lambda work: None) -> None:
        self._changed = changed
        self._jobs: dict[str, Work] = {}
        self._left: list[JobInfo] = []
        self._ending: set[asyncio.Task[None]] = set()
        self._waited_for: set[asyncio.Event] = set()
        self._count = 0

    async def start(self, order: CommandOrder, seconds: float | None = None, owner: str = "") -> RunningCommand:
        """Starts a command that nobody waits for, with a time limit, for the session ``owner``. Raises ToolError."""
        if self._commands() >= MAX_RUNNING:
            order.launch.close()
            raise ToolError(TOO_MANY)
        return self.add(await RunningCommand.start(order, background=True, seconds=seconds), owner)

    def add(self, work: W, owner: str = "") -> W:
        """Takes what nobody waits for (any more): it has an id from now on, and its end is told of."""
        self._count += 1
        work.id, work.owner, work.changed = f"{work.letter}{self._count}", owner, self._over
        self._jobs[work.id] = work
        self._changed(work)
        return work

    async def moved(self) -> None:
        """Ends when the user wants what is waited for in the background."""
        wanted = asyncio.Event()
        self._waited_for.add(wanted)
        try:
            await wanted.wait()
        finally:
            self._waited_for.discard(wanted)

    def move(self) -> bool:
        """Moves the commands that are waited for into the background; False where there are none. Raises ToolError
        where there would be too many."""
        if self._commands() + len(self._waited_for) > MAX_RUNNING:
            raise ToolError(TOO_MANY)
        for wanted in self._waited_for:
            wanted.set()
        return bool(self._waited_for)

    def count_from(self, number: int) -> None:
        """Ids up to ``number`` were given before, by an earlier run of the program."""
        self._count = max(self._count, number)

    def all(self, owner: str | None = None) -> list[Work]:
        """In the order they were started; those of one ``owner``, or of everybody."""
        return [job for job in self._jobs.values() if owner is None or job.owner == owner]

    def running(self) -> list[Work]:
        return [job for job in self._jobs.values() if job.running]

    def _commands(self) -> int:
        return sum(isinstance(job, RunningCommand) for job in self.running())

    def get(self, id: str, owner: str | None = None) -> Work:
        """One of those that ``all`` answers. Raises ToolError, naming these."""
        there_are = {job.id: job for job in self.all(owner)}
        if id in there_are:
            return there_are[id]
        near = difflib.get_close_matches(id, there_are, n=3) or list(there_are)[-8:]
        there = (
            f"There are: {', '.join(near)}."
            if near
            else "This session has nothing there; what runs ends with its session."
        )
        raise ToolError(f"There is nothing in the background called {id[:40]!r}. {there}")

    async def stop(self, id: str, by: StoppedBy) -> Work:
        """Ends one. Raises ToolError when there is none of that id."""
        job = self.get(id)
        if job.running:
            await job.stop(by)
        return job

    def keep(self, id: str, going_on: bool = True) -> Work:
        """Sets whether a job goes on when the session and the program end, and returns it. Raises ToolError when there
        is none of that id, it has ended, or is a subagent."""
        job = self.get(id)
        if not job.running:
            raise ToolError(f"{id} has ended already.")
        job.keep(going_on)
        self._changed(job)
        return job

    def session_ended(self) -> list[Work]:
        """Another session begins: ends what is not kept, beside everything else, and forgets what has ended. Answers
        what is being ended."""
        leaving = [job for job in self.running() if not job.kept]
        self._jobs = {job.id: job for job in self.running() if job.kept}
        for job in leaving:
            job.tell()
            task = asyncio.create_task(job.stop("the end of the session"))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        return leaving

    async def end_subagents(self) -> None:
        """Ends those: the session that they work for is about to be left."""
        working = [job for job in self.running() if not isinstance(job, RunningCommand)]
        await asyncio.gather(*(job.stop("the end of the session") for job in working))

    async def close(self) -> list[JobInfo]:
        """Ends what is not kept and lets go of the rest, which is answered; for good."""
        self.session_ended()
        kept, self._jobs = self._jobs, {}
        for job in kept.values():
            if await job.leave():
                self._left.append(job.info)
        await asyncio.gather(*self._ending, return_exceptions=True)
        return self._left

    @property
    def left(self) -> list[JobInfo]:
        """The jobs that run on, once closed."""
        return self._left

    def _over(self, job: Work) -> None:
        ended = [id for id, other in self._jobs.items() if not other.running]
        for id in ended[:-MAX_ENDED]:
            del self._jobs[id]
        self._changed(job)


STARTED = "Runs in the background as "
PORTS: Mapping[PortReach, str] = MappingProxyType(
    {
        "itself": "The sandbox has no network: only this command reaches the ports it opens.",
        "sandbox": "Ports it opens are there for your other commands in the sandbox, on 127.0.0.1; the user's browser "
        'does not reach them: for that it has to run with "outside": true.',
    }
)
"""What the model has to know of its ports."""
