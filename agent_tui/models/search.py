"""What a search over all sessions finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agent_tui.models.messages import Role
from agent_tui.models.session import SessionInfo


@dataclass(slots=True, frozen=True)
class SessionHit:
    """A session in which every word was found, and the newest message with most of them. ``message_id`` is None, and
    ``role`` with it, where the words are in what the session is called. ``line`` is one line for display and ``spans``
    where the words are in it; ``created`` is when it was said, in seconds since the epoch. ``left_behind``: a rewind
    left the message behind, it is not in the conversation now."""

    session: SessionInfo
    message_id: str | None = None
    role: Role | None = None
    created: float = 0.0
    line: str = ""
    spans: tuple[tuple[int, int], ...] = ()
    left_behind: bool = False


@dataclass(slots=True, frozen=True)
class IndexState:
    """How a search gets at texts: from an index of ``done`` of all messages, of which ``total`` there are, or
    (``missing``, for the reason in ``why``) by reading them all. Both ways find the same."""

    kind: Literal["whole", "building", "missing"] = "missing"
    done: int = 0
    total: int = 0
    why: str = ""


@dataclass(slots=True, frozen=True)
class IndexHealth:
    """What there is of the index: ``sessions`` of ``total`` are in it with all that was said, in ``size`` bytes.
    ``problem`` is why it is of no use, where a file is there and is not; ``possible``: there can be one here."""

    sessions: int = 0
    total: int = 0
    size: int = 0
    problem: str = ""
    possible: bool = True
