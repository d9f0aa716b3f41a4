"""The protocol between the program and the provider worker: the messages.

A call is answered by its events and how it ended; everything else by one message, or Refused.
"""

from __future__ import annotations

from typing import Any, Literal

from agent_tui.pipes.pipe import PipeLanguage, Refused
from agent_tui.providers.dialects.litellm import LibraryCall
from agent_tui.providers.errors import SeenFailure
from agent_tui.records import dataclass

WorkerState = Literal["stopped", "ready", "litellm_loading", "litellm_ready"]
"""``ready``: it counts; ``litellm_ready``: models can be called without delay."""


@dataclass(slots=True, frozen=True)
class Count:
    """Asks for the o200k_base tokens of texts by kind, answered with Counts."""

    texts: list[str]


@dataclass(slots=True, frozen=True)
class Prepare:
    """Has the gateway's library imported, answered with Preparing at once."""


@dataclass(slots=True, frozen=True)
class Cancel:
    """Nobody waits for the request of this id any more."""


@dataclass(slots=True, frozen=True)
class Ping:
    """Answered with Pong."""


@dataclass(slots=True, frozen=True)
class State:
    state: WorkerState


@dataclass(slots=True, frozen=True)
class Pong:
    pass


@dataclass(slots=True, frozen=True)
class Counts:
    counts: list[tuple[int, ...]]


@dataclass(slots=True, frozen=True)
class Preparing:
    pass


@dataclass(slots=True, frozen=True)
class GatewayEvent:
    """One of what a call streams."""

    event: dict[str, Any]


@dataclass(slots=True, frozen=True)
class CallEnded:
    """All of it came."""


@dataclass(slots=True, frozen=True)
class GatewayFailed:
    seen: SeenFailure


@dataclass(slots=True, frozen=True)
class BoundReached:
    """A bound of our own ended a call: why, and what to do about it."""

    words: str
    way: str


TO_WORKER = PipeLanguage({"call": LibraryCall, "count": Count, "prepare": Prepare, "cancel": Cancel, "ping": Ping})
FROM_WORKER = PipeLanguage(
    {
        "event": GatewayEvent,
        "ended": CallEnded,
        "failed": GatewayFailed,
        "bound": BoundReached,
        "counts": Counts,
        "preparing": Preparing,
        "refused": Refused,
        "state": State,
        "pong": Pong,
    }
)
