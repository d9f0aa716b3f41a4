"""What passes between processes: one message a line, both ways, none of its fields lost.

A message is a dataclass; a line is ``{"op": NAME, "id": N, "v": {its fields}}``, derived from it. Requests share the
pipe and are told apart by ``id``; what belongs to none has the id 0. What a line says that this process does not know
is an error while ``STRICT`` is set, else a line in the log, once.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_tui.models.codec import decoder, dumps_for_pipe

log = logging.getLogger(__name__)

STRICT = "AGENT_TUI_STRICT_PIPES"
"""Environment variable, inherited by the processes behind the pipes, that makes an unknown name an error."""

_told: set[str] = set()


class BadLineError(ValueError):
    """A line that cannot be understood. ``id`` is the request it belongs to, 0 where it does not say."""

    def __init__(self, text: str, call_id: int = 0) -> None:
        super().__init__(text)
        self.id = call_id


class UnknownNameError(BadLineError):
    """A line that names what this process does not know, while that is an error."""


@dataclass(slots=True, frozen=True)
class Refused:
    """What was asked failed; ``error`` says why."""

    error: str


class Language:
    """The messages of one direction of a pipe, by the names they have in its lines."""

    def __init__(self, messages: Mapping[str, type[Any]]) -> None:
        self.messages = dict(messages)
        self._names = {cls: name for name, cls in messages.items()}

    def line(self, message: Any, call_id: int = 0) -> bytes:
        """A message as a line."""
        return self.wrap(type(message), call_id, dumps_for_pipe(message))

    def wrap(self, cls: type[Any], call_id: int, fields: str) -> bytes:
        """As ``line``, of a message whose fields are JSON already."""
        return f'{{"op":"{self._names[cls]}","id":{call_id},"v":{fields}}}\n'.encode()

    def read(self, data: bytes) -> tuple[int, Any]:
        """The id and the message of a line; None in its place for an unknown operation, which was reported.
        Raises BadLineError."""
        try:
            parsed = json.loads(data)
            op, call_id = parsed["op"], int(parsed["id"])
        except (ValueError, KeyError, TypeError) as error:
            raise BadLineError(f"{len(data)} bytes that are no message") from error
        try:
            cls: Any = self.messages.get(op)
            if cls is None:
                unknown(f"operation {op}")
                return call_id, None
            return call_id, decoder(cls, unknown_field)(parsed["v"])
        except UnknownNameError as error:
            error.id = call_id
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadLineError(f"{op} cannot be understood: {type(error).__name__}: {error}", call_id) from error


def unknown_field(name: str) -> None:
    unknown(f"field {name}")


def unknown(what: str) -> None:
    """Reports a name of the other process's that this one does not know. Raises UnknownNameError where that is an
    error."""
    if os.environ.get(STRICT):
        raise UnknownNameError(f"unknown {what}")
    if what not in _told and len(_told) < 100:
        _told.add(what)
        log.warning("Ignored what another version may have sent: unknown %s", what[:200])
