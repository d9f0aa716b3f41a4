"""The protocol between the UI process and the provider worker: the messages, and what makes their lines cheap.

Requests of many sessions share the pipe. A stream is answered by its items, the last being Finished or Failed;
everything else by one message, or Refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import attrgetter
from typing import Any, Literal

from agent_tui.models.codec import dumps_for_pipe, travelling
from agent_tui.models.requests import (
    Delta,
    Failed,
    Finished,
    ModelInfo,
    ModelRequest,
    ModelSpec,
    SentMessage,
    Started,
    StreamItem,
    UsageReport,
)
from agent_tui.pipes.pipe import Language, Refused
from agent_tui.records import dataclass

WorkerState = Literal["stopped", "starting", "ready", "litellm_loading", "litellm_ready"]
"""``ready``: counting and descriptions answer; ``litellm_ready``: models can be called without delay."""

TEXT_LIMIT = 64_000
"""Characters of one delta in one line: a huge chunk becomes several lines, so that reading one never stalls."""


@dataclass(slots=True, frozen=True)
class Stream:
    request: ModelRequest


@dataclass(slots=True, frozen=True)
class CountExactly:
    """Asks for the provider's own count of a request, answered with ExactCount."""

    request: ModelRequest


@dataclass(slots=True, frozen=True)
class Describe:
    """Asks for a ModelInfo."""

    spec: ModelSpec


@dataclass(slots=True, frozen=True)
class Count:
    """Asks for the o200k_base tokens of texts, answered with Counts."""

    texts: list[str]


@dataclass(slots=True, frozen=True)
class Prepare:
    """Has LiteLLM imported where the model needs it (None: in any case), answered with Preparing at once."""

    spec: ModelSpec | None = None


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
class ExactCount:
    tokens: int | None


@dataclass(slots=True, frozen=True)
class Counts:
    counts: list[int]


@dataclass(slots=True, frozen=True)
class Preparing:
    pass


TO_WORKER = Language(
    {
        "stream": Stream,
        "count_exactly": CountExactly,
        "describe": Describe,
        "count": Count,
        "prepare": Prepare,
        "cancel": Cancel,
        "ping": Ping,
    }
)
FROM_WORKER = Language(
    {
        "started": Started,
        "delta": Delta,
        "usage": UsageReport,
        "finished": Finished,
        "failed": Failed,
        "info": ModelInfo,
        "counts": Counts,
        "exact_count": ExactCount,
        "preparing": Preparing,
        "refused": Refused,
        "state": State,
        "pong": Pong,
    }
)


def item_lines(call_id: int, item: StreamItem) -> Iterator[bytes]:
    """A stream item as lines, the longest deltas cut in pieces that append to the same part."""
    if not isinstance(item, Delta) or len(item.text) <= TEXT_LIMIT:
        yield FROM_WORKER.line(item, call_id)
        return
    text = item.text
    for start in range(0, len(text), TEXT_LIMIT):
        piece = replace(item, text=text[start : start + TEXT_LIMIT])
        if start > 0:
            piece = replace(piece, call_id=None, name=None)
        if start + TEXT_LIMIT < len(text):
            piece = replace(piece, metadata=None, closed=False)
        yield FROM_WORKER.line(piece, call_id)


def merge(first: Delta, second: Delta) -> Delta | None:
    """Two deltas as one that does the same to the answer, or None when they have to stay apart."""
    if first.index != second.index or first.kind != second.kind or first.closed:
        return None
    if second.call_id is not None:
        return None
    return Delta(
        first.index,
        first.kind,
        first.text + second.text,
        second.metadata if second.metadata is not None else first.metadata,
        second.closed,
        first.call_id,
        first.name if first.name is not None else second.name,
    )


class RequestEncoder:
    """Turns model requests into lines. The JSON of complete messages is kept from one request to the next, so that
    a long conversation costs only its new messages each step."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, tuple[SentMessage, str]]] = {}

    def encode(self, message: Stream | CountExactly, call_id: int) -> bytes:
        request = message.request
        before = self._kept.get(request.session_id, {})
        now: dict[str, tuple[SentMessage, str]] = {}
        sent: list[str] = []
        for entry in request.messages:
            known = before.get(entry.key)
            text = known[1] if known is not None and _same(known[0], entry) else dumps_for_pipe(entry)
            if entry.message.status != "streaming":
                now[entry.key] = (entry, text)
            sent.append(text)
        if len(self._kept) > 8:
            self._kept.clear()
        self._kept[request.session_id] = now
        rest = dumps_for_pipe({name: getattr(request, name) for name in _BESIDE_MESSAGES})
        fields = f'{{"request":{rest[:-1]},"messages":[{",".join(sent)}]}}}}'
        return TO_WORKER.wrap(type(message), call_id, fields)


def _same(known: SentMessage, entry: SentMessage) -> bool:
    """Returns whether the kept JSON is still that of an entry: of the same message, everything beside it being
    equal."""
    return known.message is entry.message and _beside_message(known) == _beside_message(entry)


_BESIDE_MESSAGES = tuple(name for name in travelling(ModelRequest) if name != "messages")
_beside_message: Any = attrgetter(*(name for name in travelling(SentMessage) if name != "message"))


DELAY = 0.03
"""Seconds that deltas wait for company: about the time between two frames of the screen, which is woken for each line.
The first delta of a stream does not wait."""


class Outbox:
    """Orders and gathers lines for ``write``, which takes bytes and never blocks."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._waiting: dict[int, list[Delta]] = {}
        self._begun: set[int] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._last = 0.0

    def send(self, message: object, call_id: int = 0) -> None:
        """Writes a message that is not part of a stream's content."""
        self.flush()
        self._write(FROM_WORKER.line(message, call_id))

    def item(self, call_id: int, item: StreamItem) -> None:
        """Adds a stream item; a delta waits up to ``DELAY`` to be joined with the next ones."""
        if not isinstance(item, Delta):
            self.flush()
            self._put(call_id, item)
            return
        waiting = self._waiting.setdefault(call_id, [])
        joined = merge(waiting[-1], item) if waiting else None
        if joined is not None:
            waiting[-1] = joined
        else:
            waiting.append(item)
        loop = asyncio.get_running_loop()
        if call_id not in self._begun:
            self._begun.add(call_id)
            self.flush()
        elif self._timer is None:
            self._timer = loop.call_later(DELAY, self.flush)
        elif loop.time() - self._last >= DELAY:
            self.flush()

    def end(self, call_id: int) -> None:
        """Forgets a stream; what of it still waits is written."""
        self.flush()
        self._begun.discard(call_id)

    def drop(self, call_id: int) -> None:
        """Forgets a stream that nobody listens to any more."""
        self._waiting.pop(call_id, None)
        self._begun.discard(call_id)

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._last = asyncio.get_running_loop().time()
        waiting, self._waiting = self._waiting, {}
        for call_id, deltas in waiting.items():
            for delta in deltas:
                self._put(call_id, delta)

    def _put(self, call_id: int, item: StreamItem) -> None:
        for data in item_lines(call_id, item):
            self._write(data)
