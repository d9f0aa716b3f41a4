"""The branches of a session that are not the conversation in front, and what going to one of them did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_tui.models.messages import Message


@dataclass(slots=True, frozen=True)
class Branch:
    """A way through the messages of a session that ends with the message ``end`` and is not the conversation.

    ``fork`` is the id of the last message it shares (None: it shares none) with the conversation, or with the branch
    ending with ``under``, off which it forks; ``shared`` is how many messages it shares. ``own`` are the others,
    oldest first, and ``tokens`` the estimate of what those cost as input.
    """

    end: str
    fork: str | None
    own: Sequence[Message]
    shared: int
    tokens: int
    under: str | None = None
    depth: int = 0

    @property
    def first(self) -> Message:
        """The message of the user it begins with, or whatever it begins with."""
        return next((message for message in self.own if message.role == "user"), self.own[0])

    @property
    def updated(self) -> float:
        """Seconds since the epoch at which its newest message was made."""
        return self.own[-1].created


@dataclass(slots=True, frozen=True)
class FilesMoved:
    """``put``: files that are put as they are on the branch gone to; ``left``: a line for each that is not."""

    put: Sequence[Path] = ()
    left: Sequence[str] = ()


@dataclass(slots=True, frozen=True)
class Moved:
    """The conversation has become another one: so many messages ``left`` it and so many ``came``. ``text`` is the
    message of the user's that it goes back to before; ``files`` what became of the files, None where that was not
    asked for."""

    left: int
    came: int
    text: str = ""
    files: FilesMoved | None = None
