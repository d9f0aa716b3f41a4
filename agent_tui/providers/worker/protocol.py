"""What passes between the UI process and the provider worker: one JSON object a line, both ways.

To the worker: ``{"op": "stream"|"describe"|"count"|"exact"|"prepare"|"cancel"|"ping", "id": N, …}``.
From it: ``{"id": N, "e": "item"|"done"|"error", …}``, ``{"e": "state", "state": …}`` and ``{"e": "pong"}``.
Requests of many sessions share the pipe, told apart by ``id``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

from agent_tui.models.codec import dumps, from_dict, to_dict
from agent_tui.models.messages import Message
from agent_tui.models.requests import (
    Delta,
    Failed,
    Finished,
    ModelRequest,
    ModelSpec,
    Started,
    StreamItem,
    UsageReport,
)

WorkerState = Literal["stopped", "starting", "ready", "litellm_loading", "litellm_ready"]
STATES = frozenset({"starting", "ready", "litellm_loading", "litellm_ready"})
"""``ready``: counting and descriptions answer; ``litellm_ready``: models can be called without delay."""

TEXT_LIMIT = 64_000
"""Characters of one delta in one line: a huge chunk becomes several lines, so that reading one never stalls."""

_ITEMS: dict[str, type[Any]] = {"started": Started, "usage": UsageReport, "finished": Finished, "failed": Failed}
_NAMES = {cls: name for name, cls in _ITEMS.items()}


def line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def item_lines(call_id: int, item: StreamItem) -> Iterator[bytes]:
    """A stream item as lines. Deltas are short arrays, the longest ones cut in pieces that append to the same part."""
    if not isinstance(item, Delta):
        yield line({"id": call_id, "e": "item", "t": _NAMES[type(item)], "v": to_dict(item)})
        return
    text = item.text
    for start in range(0, max(1, len(text)), TEXT_LIMIT):
        piece = text[start : start + TEXT_LIMIT]
        last = start + TEXT_LIMIT >= len(text)
        value: list[Any] = [item.index, item.kind, piece]
        extra: dict[str, Any] = {}
        if start == 0 and item.call_id is not None:
            extra["call_id"] = item.call_id
        if start == 0 and item.name is not None:
            extra["name"] = item.name
        if last and item.metadata is not None:
            extra["metadata"] = item.metadata
        if last and item.closed:
            extra["closed"] = True
        if extra:
            value.append(extra)
        yield line({"id": call_id, "d": value})


def item_from(data: dict[str, Any]) -> StreamItem:
    """The stream item of a decoded line. Raises KeyError, TypeError or ValueError for anything else."""
    if "d" in data:
        index, kind, text, *extra = data["d"]
        return Delta(index, kind, text, **(extra[0] if extra else {}))
    item: StreamItem = from_dict(_ITEMS[data["t"]], data["v"])
    return item


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
        self._kept: dict[str, dict[str, tuple[Message, str]]] = {}

    def encode(self, op: str, call_id: int, request: ModelRequest) -> bytes:
        before = self._kept.get(request.session_id, {})
        now: dict[str, tuple[Message, str]] = {}
        sent: list[str] = []
        for entry in request.messages:
            known = before.get(entry.key)
            if known is not None and known[0] is entry.message:
                text = known[1]
            else:
                text = dumps(entry.message)
            if entry.message.status != "streaming":
                now[entry.key] = (entry.message, text)
            sent.append(f'{{"key":{json.dumps(entry.key)},"message":{text}}}')
        if len(self._kept) > 8:
            self._kept.clear()
        self._kept[request.session_id] = now
        head = {
            "op": op,
            "id": call_id,
            "api_key": request.spec.api_key,
            "request": {
                "id": request.id,
                "spec": to_dict(request.spec),
                "session_id": request.session_id,
                "system": to_dict(request.system),
                "tools": to_dict(request.tools),
                "max_output": request.max_output,
                "effort": request.effort,
                "fixed_fingerprint": request.fixed_fingerprint,
                "timeout": request.timeout,
                "content_timeout": request.content_timeout,
                "documents": to_dict(request.documents),
                "replay": to_dict(request.replay),
            },
        }
        text = json.dumps(head, ensure_ascii=True, separators=(",", ":"))
        return f'{text[:-2]},"messages":[{",".join(sent)}]}}}}\n'.encode()


def request_from(data: dict[str, Any]) -> ModelRequest:
    """The request of a decoded line, its key put back."""
    request = from_dict(ModelRequest, data["request"])
    request.spec = spec_from(data["request"]["spec"], data.get("api_key"))
    return request


def spec_line(op: str, call_id: int, spec: ModelSpec) -> bytes:
    return line({"op": op, "id": call_id, "spec": to_dict(spec), "api_key": spec.api_key})


def spec_from(data: dict[str, Any], api_key: str | None) -> ModelSpec:
    return ModelSpec(**data, api_key=api_key)
