"""The protocol between the program and the provider worker: the messages.

A stream is answered by its items, the last being Finished or Failed; everything else by one message, or Refused.
"""

from __future__ import annotations

from typing import Literal

from agent_tui.models.requests import Delta, Failed, Finished, ModelInfo, ModelRequest, ModelSpec, Started, UsageReport
from agent_tui.pipes.pipe import PipeLanguage, Refused
from agent_tui.records import dataclass

WorkerState = Literal["stopped", "ready", "litellm_loading", "litellm_ready"]
"""``ready``: it counts; ``litellm_ready``: models can be called without delay."""


@dataclass(slots=True, frozen=True)
class Stream:
    """Asks for an answer through LiteLLM; ``info`` is what is known of the model."""

    request: ModelRequest
    info: ModelInfo


@dataclass(slots=True, frozen=True)
class Count:
    """Asks for the o200k_base tokens of texts by kind, answered with Counts."""

    texts: list[str]


@dataclass(slots=True, frozen=True)
class Prepare:
    """Has LiteLLM imported, and warmed up for a model, answered with Preparing at once."""

    spec: ModelSpec


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


TO_WORKER = PipeLanguage({"stream": Stream, "count": Count, "prepare": Prepare, "cancel": Cancel, "ping": Ping})
FROM_WORKER = PipeLanguage(
    {
        "started": Started,
        "delta": Delta,
        "usage": UsageReport,
        "finished": Finished,
        "failed": Failed,
        "counts": Counts,
        "preparing": Preparing,
        "refused": Refused,
        "state": State,
        "pong": Pong,
    }
)
