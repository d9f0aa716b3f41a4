"""Cohere's chat API, version 2 (docs.cohere.com/reference/chat-stream)."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from agent_tui.models.messages import Metadata
from agent_tui.models.requests import ModelSpec, Target
from agent_tui.models.usage import TokenUsage
from agent_tui.providers.dialects.chat import chat_messages
from agent_tui.providers.dialects.outgoing import OutgoingRequest
from agent_tui.providers.dialects.parts import Event, Kind, OpenPart, StreamReader, as_arguments, place_of
from agent_tui.providers.dialects.record import Dialect, ImageLimits, Source, Wire
from agent_tui.providers.dialects.shared import integer, mapping, number, usage_of

_OF_A_MESSAGE = frozenset({"role", "content", "tool_calls", "tool_plan", "tool_call_id"})


def _body(made: OutgoingRequest) -> Metadata:
    tools = made.tools
    messages = [_message(message) for message in chat_messages(made, tools)]
    body: Metadata = {"model": made.target.model, "messages": messages, "stream": True}
    if tools:
        body["tools"] = tools
    return {**body, **made.rest, **made.extra_body}


def _message(message: Metadata) -> Metadata:
    made = {name: value for name, value in message.items() if name in _OF_A_MESSAGE}
    if made.get("content") is None:
        made.pop("content", None)
    if calls := made.get("tool_calls"):
        made["tool_calls"] = [{name: call[name] for name in ("id", "type", "function")} for call in calls]
    return made


_EVENTS = ("message-", "content-", "tool-", "citation-")


class CohereStream(StreamReader):
    """Content blocks and tool calls by index, each numbered on its own. The tool plan is reasoning."""

    @staticmethod
    def knows(event: Event) -> bool:
        return str(event.get("type") or "").startswith(_EVENTS) or _is_whole(event)

    def event(self, event: Event) -> None:
        if _is_whole(event):
            for one in _streamed(event):
                self.event(one)
            return
        kind, place = str(event["type"]), place_of(event.get("index"))
        delta = event.get("delta") or {}
        message = delta.get("message") or {}
        if kind in ("content-start", "content-delta"):
            content = message.get("content") or {}
            of: Kind = "reasoning" if "thinking" in content else "text"
            text = content.get("thinking" if of == "reasoning" else "text") or ""
            if kind == "content-start":
                part = self.out.begin(of, ("content", place), text=text)
            else:
                part = self.out.part(of, ("content", place))
                self.out.write(part, text)
            if of == "reasoning":
                self._name_field(part, "content")
        elif kind == "content-end":
            self._close(("content", place))
        elif kind == "tool-plan-delta":
            part = self.out.part("reasoning", "plan")
            self.out.write(part, message.get("tool_plan") or "")
            self._name_field(part, "tool_plan")
        elif kind in ("tool-call-start", "tool-call-delta"):
            call = message.get("tool_calls") or {}
            function = call.get("function") or {}
            self._close("plan")
            self.out.call(
                as_arguments(function.get("arguments")),
                place=("call", place),
                call_id=call.get("id"),
                name=str(function.get("name") or ""),
                begins=kind == "tool-call-start",
            )
        elif kind == "tool-call-end":
            self._close(("call", place))
        elif kind == "message-end":
            self.out.report(delta.get("usage"))
            self.out.ends(delta.get("finish_reason") or "stop")
            if delta.get("error"):
                self.out.error = {"message": str(delta["error"])}

    def _close(self, place: Hashable) -> None:
        if (part := self.out.open_at(place)) is not None and part.place == place:
            self.out.close(part)

    def _name_field(self, part: OpenPart, field: str) -> None:
        """The field that thoughts go back in."""
        if part.index is not None and part.metadata is None:
            self.out.note(part, {"field": field})


def _is_whole(event: Event) -> bool:
    """Returns whether it is an answer of a server that does not stream."""
    return "finish_reason" in event and isinstance(event.get("message"), dict)


def _streamed(answer: Event) -> Iterator[Event]:
    message = answer["message"]
    if plan := message.get("tool_plan"):
        yield {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": plan}}}
    content = message.get("content") or []
    for index, block in enumerate([{"text": content}] if isinstance(content, str) else content):
        yield {"type": "content-start", "index": index, "delta": {"message": {"content": block}}}
        yield {"type": "content-end", "index": index}
    for index, call in enumerate(message.get("tool_calls") or []):
        yield {"type": "tool-call-start", "index": index, "delta": {"message": {"tool_calls": call}}}
        yield {"type": "tool-call-end", "index": index}
    yield {"type": "message-end", "delta": answer}


def read_usage(raw: Mapping[str, Any]) -> TokenUsage:
    """``tokens`` is the context; ``billed_units`` leaves out the prompt's framing."""
    tokens = mapping(raw.get("tokens")) or mapping(raw.get("billed_units"))
    return usage_of(
        number(tokens.get("input_tokens")),
        number(tokens.get("output_tokens")),
        integer(tokens.get("reasoning_tokens")),
        integer(raw.get("cached_tokens")),
        None,
    )


def _url(path: str, spec: ModelSpec, target: Target, dialect: Dialect) -> tuple[str, str | None]:
    return path_of_call(path), None


def path_of_call(path: str) -> str:
    """The path of a call, from that of a configured address."""
    return path if path.endswith("/chat") else f"{path}/chat" if _VERSION.search(path) else f"{path}/v2/chat"


_VERSION = re.compile(r"/v\d+$")
WIRE = Wire(_body, _url, CohereStream)
_COHERE = Dialect(
    "cohere",
    WIRE,
    "https://api.cohere.com/v2",
    base_variables=("COHERE_API_BASE",),
    keys=("COHERE_API_KEY", "CO_API_KEY"),
    # Text and images only (docs.cohere.com/reference/chat, read 2026-11-22).
    no_files=True,
    tool_names="cohere",
    bare_thoughts=True,
    # 20 images, 20 MB together.
    images=ImageLimits(18_000_000, None, count=20, source=Source("docs.cohere.com/docs/image-inputs", "2026-11-21")),
)
RECORDS = (_COHERE, replace(_COHERE, name="cohere_chat"))
