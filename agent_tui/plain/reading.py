"""What is read, and when: the chat says what it wants, and is told of what was typed."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol, TypeVar

T = TypeVar("T")

PASTE = 0.05
"""Seconds within which lines that follow each other are one text: nobody types so fast, a paste comes at once."""


class Want(NamedTuple):
    """What the chat wants read: a message (``edit``), the answer to a question (``answer``), whatever is typed while
    the agent works (``nothing``), and no more (``end``). ``prompt`` stands before it."""

    kind: Literal["edit", "answer", "nothing", "end"]
    prompt: str = ""


def what_is_there(descriptor: int) -> bytes | None:
    """What can be read now: None where it is nothing after all, empty at the end and where the terminal is gone."""
    try:
        return os.read(descriptor, 1 << 16)
    except (BlockingIOError, InterruptedError):
        return None
    except OSError:
        return b""


class Listener(Protocol):
    """Who is told."""

    def line(self, text: str) -> None:
        """A line, or a paste of several."""

    def over(self) -> None:
        """Nothing more can be read, or Ctrl+D on an empty line."""

    def interrupted(self) -> None:
        """Ctrl+C."""

    def ended(self) -> None:
        """The program is asked to end."""


class Reads(Protocol):
    """Where lines come from. Everything happens on the running loop: nothing waits in a call that a signal would have
    to end."""

    @property
    def drawn(self) -> bool:
        """Whether it shows prompts and what is typed; else whoever wants a line writes the prompt."""

    @property
    def holds(self) -> bool:
        """Whether what is to be written has to wait."""

    @property
    def lent(self) -> bool:
        """Whether the terminal is somebody else's now."""

    def open(self, listener: Listener) -> None:
        """Begins to listen."""

    def want(self, want: Want) -> None:
        """What is wanted from now on."""

    def keep(self, text: str) -> None:
        """Text that stands in the next message that is typed."""

    def bring_back(self, draft: str) -> None:
        """A draft of an earlier run stands in the line, unless something is typed before it can be seen."""

    def drop(self) -> bool:
        """What stands in the line is not wanted; False where nothing does."""

    def typed_ahead(self) -> str:
        """Takes what was typed before a question is put, which cannot be its answer: whole lines are returned, the
        beginning of one is kept for the next message."""

    def step_aside(self) -> None:
        """Something is about to be written."""

    async def lend(self, work: Callable[[], T]) -> T:
        """Lets ``work``, which may block, have the terminal."""

    def close(self) -> str:
        """Listens no more and leaves everything as it was; returns what stood in the line."""
