"""What runs beside the turns: a command in the background, or (the engine's) a subagent."""

from __future__ import annotations

import asyncio
import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Literal

from agent_tui.models.events import JobInfo, JobState
from agent_tui.text.clean import pictured
from agent_tui.text.numbers import duration

StoppedBy = Literal["a call", "the user", "its time limit", "too much output", "the end of the session"]
"""Who or what ended it; ``a call`` is the model's own."""


class Work(ABC):
    """A piece of work; ``changed`` is called at its end. ``kind`` is what it is to people, ``command`` what it does;
    ``id`` and ``owner``, the session that started it (this one, or that of a subagent), are those of the list it is
    in."""

    kind: ClassVar[str]
    letter: ClassVar[str]
    """Its ids begin with it."""

    def __init__(self, command: str) -> None:
        self.command = command
        self.id = self.owner = ""
        self.changed: Callable[[Work], None] = lambda work: None
        self.kept = False
        self.told = False
        """True when the model knows that it has ended."""
        self.stopped_by: StoppedBy | None = None
        self.started, self.begun = time.time(), time.monotonic()
        self._finished: float | None = None
        self._over = asyncio.Event()

    @property
    @abstractmethod
    def info(self) -> JobInfo: ...

    @property
    @abstractmethod
    def shown(self) -> str:
        """What it has said, for people."""

    @property
    @abstractmethod
    def failed(self) -> bool: ...

    @abstractmethod
    def look(self) -> str:
        """For the model: what is new, and how it is."""

    @abstractmethod
    async def stop(self, by: StoppedBy) -> None:
        """Ends it."""

    @abstractmethod
    def keep(self, going_on: bool) -> None:
        """Sets whether it goes on when the program ends. Raises ToolError where it cannot."""

    @abstractmethod
    async def leave(self) -> bool:
        """Lets one that is kept go its own way; False when it ended meanwhile."""

    @abstractmethod
    def ending(self) -> str:
        """How it ended by itself, in a few words."""

    @property
    def news(self) -> str:
        """What the model is told of it unasked."""
        return f"background {self.kind} {self.state_line()} · {self.line}"

    @property
    def running(self) -> bool:
        return self._finished is None

    @property
    def state(self) -> JobState:
        return "running" if self.running else "stopped" if self.stopped_by is not None else "ended"

    @property
    def line(self) -> str:
        """What it does, on one line."""
        text = " ".join(pictured(self.command).split())
        return text if len(text) <= 100 else text[:99] + "…"

    def state_line(self, to_user: bool = False) -> str:
        """Returns its state, in one line, for the model or for the user."""
        lasted = duration((self._finished or time.time()) - self.started)
        if self.running:
            return f"{self.id} has been running for {lasted}"
        if self.stopped_by is not None:
            if to_user and self.stopped_by == "the user":
                return f"You stopped {self.id} after {lasted}"
            by = "" if self.stopped_by == "a call" else f" by {self.stopped_by}"
            return f"{self.id} was stopped after {lasted}{by}"
        return f"{self.id} ended after {lasted}: {self.ending()}"

    def tell(self) -> None:
        """The model is told of its end."""
        self.told = True

    async def ended(self, seconds: float) -> bool:
        """Waits for its end; False when it runs on after ``seconds``."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._over.wait()
        return not self.running

    def _end(self) -> None:
        """It has come to its end."""
        self._finished, self.kept = time.time(), False
        self._over.set()
        self.changed(self)
