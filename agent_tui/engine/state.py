"""The state of the agent: what runs, the session and model in force, who hears what happens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from enum import Enum
from typing import Any

from agent_tui.engine.compaction.service import CompactionService
from agent_tui.engine.conversation import Conversation
from agent_tui.engine.runtime import Runtime
from agent_tui.errors import AgentError
from agent_tui.models.events import Event, Notice
from agent_tui.models.requests import ModelInfo
from agent_tui.providers.catalog import images_of
from agent_tui.providers.dialects.record import USUAL_IMAGES, ImageLimits

STILL_OPENING = "The session is still opening."


class Binding:
    """A session, the model it talks to and its compaction. Another session or model is another binding.

    The model's facts may still have to come: until then what the configuration says stands in.
    """

    def __init__(self, runtime: Runtime, compaction: CompactionService) -> None:
        self._runtime = runtime
        self._compaction = compaction
        self._described = asyncio.Event()
        self._failed = False

    @property
    def runtime(self) -> Runtime:
        return self._runtime

    @property
    def compaction(self) -> CompactionService:
        return self._compaction

    @property
    def conversation(self) -> Conversation:
        return self._runtime.conversation

    @property
    def described(self) -> bool:
        """True when the model's facts have been asked for, with or without an answer."""
        return self._described.is_set()

    @property
    def failed(self) -> bool:
        """True when there was no answer: they are to be asked for again."""
        return self._failed

    def describe_as(self, info: ModelInfo, failed: bool = False) -> None:
        """The model's facts have come, or (``failed``) what is to stand in for them until they do."""
        self._runtime.describe_as(info)
        self._failed = failed
        self._described.set()

    async def until_described(self) -> None:
        await self._described.wait()


class Bindings:
    """Holds the binding that is in force."""

    def __init__(self) -> None:
        self._current: Binding | None = None

    @property
    def opened(self) -> bool:
        return self._current is not None

    @property
    def current(self) -> Binding:
        """Raises AgentError before the first session is opened; the only place that does."""
        if self._current is None:
            raise AgentError(STILL_OPENING)
        return self._current

    @property
    def image_limits(self) -> ImageLimits:
        """The limits of the model in use on images; the usual ones before the first session is opened."""
        return images_of(self._current.runtime.info.target) if self._current is not None else USUAL_IMAGES

    def is_current(self, binding: Binding) -> bool:
        return binding is self._current

    def swap(self, binding: Binding) -> None:
        """From here on everything is done with this one."""
        self._current = binding


log = logging.getLogger(__name__)


class Hub:
    """Events go to all subscribers, in the order they subscribed; background work that fails is told as one."""

    def __init__(self) -> None:
        self._subscribers: list[Callable[[Event], None]] = []
        self._background: set[asyncio.Task[Any]] = set()

    def subscribe(self, callback: Callable[[Event], None]) -> Callable[[], None]:
        """Calls ``callback`` with every event from now on; returns what ends that."""
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback) if callback in self._subscribers else None

    def publish(self, event: Event) -> None:
        """Tells everybody; one subscriber's failure is in the log and keeps nothing from the others."""
        for callback in tuple(self._subscribers):
            try:
                callback(event)
            except Exception:
                log.exception("A subscriber failed on %s", type(event).__name__)

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> None:
        """Does work in the background; it ends with the agent at the latest."""
        self.keep(asyncio.create_task(work, name=name))

    def keep(self, task: asyncio.Task[Any]) -> None:
        """The same of a task that runs already."""
        self._background.add(task)
        task.add_done_callback(self._reap)

    async def settled(self) -> None:
        """Waits until nothing goes on in the background."""
        while self._background:
            await asyncio.gather(*self._background, return_exceptions=True)

    async def close(self) -> None:
        """Ends what goes on in the background."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)

    def _reap(self, task: asyncio.Task[Any]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("Background task %s failed", task.get_name(), exc_info=error)
            self.publish(Notice("error", str(error) or type(error).__name__, "background"))


class RunState(Enum):
    """``OPENING``: no session is bound yet. ``LOOKING``: a session is only read. ``TURN``: the model works, or is about
    to. ``INTERRUPTED``: the user ended that and it has not stopped yet. ``COMPACTING``: the user asked for it.
    ``WORKING``: other work that excludes turns, such as a switch of models. ``CLOSING``: nothing begins any more."""

    OPENING = "opening"
    LOOKING = "looking"
    IDLE = "idle"
    TURN = "turn"
    INTERRUPTED = "interrupted"
    COMPACTING = "compacting"
    WORKING = "working"
    CLOSING = "closing"


CHANGES: Mapping[RunState, frozenset[RunState]] = {
    RunState.OPENING: frozenset({RunState.IDLE, RunState.LOOKING, RunState.CLOSING}),
    RunState.LOOKING: frozenset({RunState.CLOSING}),
    RunState.IDLE: frozenset({RunState.TURN, RunState.COMPACTING, RunState.WORKING, RunState.CLOSING}),
    RunState.TURN: frozenset({RunState.INTERRUPTED, RunState.IDLE, RunState.CLOSING}),
    # An interrupt may come too late for its turn; then the next message follows.
    RunState.INTERRUPTED: frozenset({RunState.TURN, RunState.IDLE, RunState.CLOSING}),
    RunState.COMPACTING: frozenset({RunState.IDLE, RunState.CLOSING}),
    RunState.WORKING: frozenset({RunState.IDLE, RunState.CLOSING}),
    RunState.CLOSING: frozenset(),
}

BUSY = frozenset({RunState.TURN, RunState.INTERRUPTED, RunState.COMPACTING, RunState.WORKING})


class IllegalChangeError(RuntimeError):
    """A change of state that cannot be: a mistake in this program, never the user's."""


class RunStates:
    """The state now. Only ``change`` changes it."""

    def __init__(self) -> None:
        self._now = RunState.OPENING

    @property
    def now(self) -> RunState:
        return self._now

    @property
    def busy(self) -> bool:
        """True when something runs that excludes a turn, or is one."""
        return self._now in BUSY

    @property
    def in_turn(self) -> bool:
        """True when the model works, or is about to."""
        return self._now in (RunState.TURN, RunState.INTERRUPTED)

    def change(self, to: RunState) -> None:
        """Raises IllegalChangeError for a change that is not in ``CHANGES``."""
        if to not in CHANGES[self._now]:
            raise IllegalChangeError(f"{self._now.value} → {to.value}")
        self._now = to
