"""The same request sent twice to loopback, straight and through LiteLLM, and what differs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from agent_tui.models.messages import AttachmentPart, Message, ReasoningPart, TextPart, user_message
from agent_tui.models.requests import Effort, ModelRequest, ModelSpec, SystemBlock
from agent_tui.providers.catalog import resolve_target, takes_markers
from agent_tui.providers.direct import Connections
from tests.support import recorded, wire
from tests.support.loopback import Loopback, Recorded, Reply, chat_stream
from tests.support.pixel import PIXEL_BASE64

HEADERS = ("authorization", "x-api-key", "api-key", "x-goog-api-key", "anthropic-version", "anthropic-beta")


@dataclass(frozen=True, slots=True)
class Sent:
    """What arrived: the parts of a request that mean something to a provider."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any

    @staticmethod
    def of(request: Recorded) -> Sent:
        headers = {name: value for name in HEADERS if (value := request.header(name)) is not None}
        return Sent(request.method, request.path, headers, request.json)


class Sender:
    """A server, and a loop in which requests are sent to it: both are there for many requests."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Sender:
        self._server = self._stack.enter_context(Loopback())
        self._server.serve("*", Reply(chat_stream(["ok"])))
        self._runner = self._stack.enter_context(asyncio.Runner())
        self._connections = Connections()
        self._stack.callback(lambda: self._runner.run(self._connections.aclose()))
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def both(self, request: ModelRequest) -> tuple[Sent, Sent]:
        """The request as it arrives when it is sent straight, and when LiteLLM sends it."""
        return self._send(request, "auto"), self._send(request, "litellm")

    def _send(self, request: ModelRequest, via: Any) -> Sent:
        base = recorded.moved(request.spec.api_base, self._server.url)
        there = replace(request, spec=replace(request.spec, via=via, api_base=base))
        items: list[Any] = []
        before = len(self._server.requests)
        self._runner.run(recorded.ask(there, recorded.info_for(there.spec), items.append, self._connections))
        if len(self._server.requests) == before:
            raise AssertionError(f"nothing was sent: {items[-1]}")
        return Sent.of(self._server.requests[-1])


def camel(value: Any) -> Any:
    """Keys as Google's own JSON has them; its servers take both spellings."""
    if isinstance(value, dict):
        return {re.sub("_([a-z])", lambda m: m[1].upper(), k): camel(v) for k, v in value.items()}
    return [camel(v) for v in value] if isinstance(value, list) else value


def differences(mine: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """Where two JSON values differ, as ``path: mine | theirs``; list items by position."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        for name in sorted(mine.keys() | theirs.keys()):
            if name not in theirs:
                yield f"{path}.{name}: {json.dumps(mine[name])[:80]} | -"
            elif name not in mine:
                yield f"{path}.{name}: - | {json.dumps(theirs[name])[:80]}"
            else:
                yield from differences(mine[name], theirs[name], f"{path}.{name}")
    elif isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        for one, other in zip(mine, theirs, strict=True):
            yield from differences(one, other, f"{path}[]")
    elif mine != theirs:
        yield f"{path}: {json.dumps(mine)[:80]} | {json.dumps(theirs)[:80]}"


def conversations(spec: ModelSpec) -> dict[str, list[Message]]:
    """What a request may be made of, by name."""
    image = AttachmentPart("dot.png", "image/png", data=PIXEL_BASE64)
    pdf = AttachmentPart("doc.pdf", "application/pdf", data=PIXEL_BASE64)
    text = AttachmentPart("a.txt", "text/plain", text="words")
    seen = wire.result("call_1", "A")
    seen.parts.append(image)
    thought = ReasoningPart("hm", {"type": "thinking", "signature": "sig"})
    return {
        "question": [user_message("hi")],
        "calls": wire.conversation(spec),
        "thoughts": wire.conversation(spec, thought),
        "open loop": wire.conversation(spec, thought)[:-1],
        "image": [user_message("what is it?", attachments=[image])],
        "documents": [user_message("read", attachments=[pdf, text])],
        "seen image": [
            wire.user("u1", "look"),
            wire.answer("a1", spec, wire.call("call_1", "a.png")),
            seen,
        ],
        "foreign": [
            wire.user("u1", "hello"),
            wire.answer("a1", replace(wire.origin(resolve_target(spec)), model="other"), thought, TextPart("hi")),
            wire.user("u2", "and now?"),
        ],
    }


def matrix(spec: ModelSpec) -> Iterator[tuple[str, ModelRequest]]:
    """Requests for one model, each with a name."""
    efforts: tuple[Effort, ...] = ("off", "low", "medium", "high")
    for name, messages in conversations(spec).items():
        yield name, recorded.request_for(spec, messages, effort="medium", tools=[wire.TOOL])
    plain = [user_message("hi")]
    for effort in efforts:
        yield f"effort {effort}", recorded.request_for(spec, plain, effort=effort)
        yield f"loop, effort {effort}", recorded.request_for(spec, wire.conversation(spec), effort=effort)
    yield "no tools", recorded.request_for(spec, plain, tools=[])
    yield "no tools, calls", recorded.request_for(spec, wire.conversation(spec), tools=[], effort="off")
    yield "no maximum", recorded.request_for(spec, plain, max_output=None)
    yield "little room", recorded.request_for(spec, plain, max_output=1_500)
    yield "no system", recorded.request_for(spec, plain, system="")
    yield "document", replace(recorded.request_for(spec, plain), documents=[SystemBlock("documents", "pinned")])
    if takes_markers(resolve_target(spec)):
        hour = replace(spec, cache_ttl="1h")
        yield "kept for an hour", recorded.request_for(hour, wire.conversation(spec), tools=[wire.TOOL])
    extra = replace(spec, extra={**spec.extra, "temperature": 0.5, "extra_headers": {"x-own": "1"}})
    yield "extra", recorded.request_for(extra, plain, effort="off")
