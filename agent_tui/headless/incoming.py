"""Reads stream-json: messages, control requests and the answers to ours, each a line of JSON."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import field
from typing import Any, BinaryIO, TypeAlias

from agent_tui.control.control import (
    Answer,
    Compact,
    EditContext,
    GetContext,
    GetServers,
    Interrupt,
    Question,
    ReconnectServer,
    Request,
    RestoreFiles,
    SetMode,
    SetModel,
    SetThinking,
    Steer,
    StopTask,
)
from agent_tui.control.lines import MAX_LINE, lines
from agent_tui.errors import ConfigError
from agent_tui.models.codec import to_dict
from agent_tui.models.image_headers import image_type
from agent_tui.models.messages import AttachmentPart, Metadata
from agent_tui.records import dataclass
from agent_tui.text.clean import clean_line


@dataclass(slots=True, frozen=True)
class UserMessage:
    """A message of the user's; each is a turn. ``size`` are the bytes of its line; ``verbatim``: it is sent as
    it is, nothing in it is a command or names a file."""

    text: str
    attachments: list[AttachmentPart] = field(default_factory=list)
    size: int = 0
    verbatim: bool = False


@dataclass(slots=True, frozen=True)
class Initialize:
    """The first request of a driver, with what it brings along: ``hooks``, ``agents`` and ``skills``."""

    brings: Metadata


@dataclass(slots=True, frozen=True)
class ControlRequest:
    """A control request."""

    id: str
    request: Request | Initialize


@dataclass(slots=True, frozen=True)
class Answered:
    """A control response: what was said to one of our questions, or the ``error`` that it was."""

    id: str
    said: Metadata
    error: str | None = None


@dataclass(slots=True, frozen=True)
class Wrong:
    """A line that cannot be used, and why; ``id`` where it is a control request. ``is_message``: it was a message of
    the user's, which somebody waits to see answered."""

    text: str
    id: str = ""
    is_message: bool = False


Incoming: TypeAlias = UserMessage | Interrupt | ControlRequest | Answered | Wrong


class _WrongMessageError(ValueError):
    """A message of the user's that cannot be used."""


class _WrongRequestError(ValueError):
    """A control request that cannot be used."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name


async def incoming(stream: BinaryIO) -> AsyncGenerator[Incoming, None]:
    """Yields what comes in, in order, as it comes. Raises ConfigError where the stream cannot be read."""
    number = 0
    try:
        async for line in lines(stream):
            number += 1
            if line is not None and not line.strip():
                continue
            try:
                if line is None:
                    raise ValueError(f"longer than {MAX_LINE // 1024**2} MB")
                yield parse(line)
            except _WrongRequestError as error:
                yield Wrong(f"{error}.", error.name)
            except ValueError as error:
                message = isinstance(error, _WrongMessageError)
                yield Wrong(f"Standard input, line {number}: {error}.", is_message=message)
    except OSError as error:
        raise ConfigError(f"Standard input cannot be read: {error.strerror or error}.") from None


def parse(line: bytes) -> Incoming:
    """One line. Raises ``ValueError`` that says what is wrong with it."""
    try:
        entry = json.loads(line.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        raise ValueError("not JSON") from None
    if not isinstance(entry, dict):
        raise ValueError("not a JSON object")
    match entry.get("type"):
        case "interrupt":
            return Interrupt()
        case "control_request":
            return _asked(entry)
        case "control_response":
            return _answered(entry)
        case "user":
            try:
                found = _user_message(entry, len(line))
            except ValueError as error:
                raise _WrongMessageError(str(error)) from None
            if not found.text.strip() and not found.attachments:
                raise _WrongMessageError("a user message says nothing")
            return found
    raise ValueError('its type is none of "user", "interrupt", "control_request" and "control_response"')


def _asked(entry: Metadata) -> ControlRequest:
    name, request = entry.get("request_id"), entry.get("request")
    if not isinstance(name, str) or not name or not isinstance(request, dict):
        raise ValueError('a control request has a "request_id" and a "request"')
    if request.get("subtype") == "initialize":
        if wrong := next((key for key in _NOT_TAKEN if request.get(key)), None):
            raise _WrongRequestError(name, f"initialize: {_NOT_TAKEN[wrong]}")
        return ControlRequest(name, Initialize(request))
    try:
        return ControlRequest(name, request_of(request))
    except ValueError as error:
        raise _WrongRequestError(name, str(error)) from None


_NOT_TAKEN: Mapping[str, str] = {
    "forwardSubagentText": "forward_subagent_text is not taken: what a subagent writes stays with it",
    "excludeDynamicSections": "exclude_dynamic_sections is not taken: the prompt's own sections are always there",
    "systemPromptSnapshot": "the snapshot of a system prompt is not taken: it is always the same within a session",
}


def request_of(request: Metadata) -> Request:
    """What a control request asks for. Raises ValueError for what cannot be used."""
    subtype = request.get("subtype")
    make = _REQUESTS.get(subtype) if isinstance(subtype, str) else None
    if make is None:
        raise ValueError(f"Unknown control request {_short(subtype)}; known are initialize, {', '.join(_REQUESTS)}")
    try:
        return make(request)
    except ValueError as error:
        raise ValueError(f"{subtype}: {error}") from None


def _text(request: Metadata, key: str, default: str | None = None) -> str:
    value = request.get(key, default)
    if not isinstance(value, str):
        raise ValueError(f"{key} must be a text")
    return value


def _steered(request: Metadata) -> Steer:
    message = _user_message(request, 0)
    return Steer(message.text, tuple(message.attachments))


def _ids(request: Metadata) -> tuple[str, ...]:
    ids = request.get("ids", [])
    if not isinstance(ids, list) or not all(isinstance(one, str) for one in ids):
        raise ValueError("ids must be a list of texts")
    return tuple(ids)


_REQUESTS: Mapping[str, Callable[[Metadata], Request]] = {
    "interrupt": lambda request: Interrupt(),
    "steer": lambda request: _steered(request),
    "set_model": lambda request: SetModel(_text(request, "model") if request.get("model") is not None else ""),
    "set_permission_mode": lambda request: SetMode(_text(request, "mode")),
    "set_thinking": lambda request: SetThinking(_text(request, "level")),
    "get_context": lambda request: GetContext(),
    "get_context_usage": lambda request: GetContext(),
    "edit_context": lambda request: EditContext(_text(request, "edit"), _ids(request)),
    "mcp_status": lambda request: GetServers(),
    "mcp_reconnect": lambda request: ReconnectServer(_text(request, "serverName")),
    "mcp_toggle": lambda request: _no_toggle(),
    "stop_task": lambda request: StopTask(_text(request, "task_id")),
    "rewind_files": lambda request: RestoreFiles(_text(request, "user_message_id")),
    "compact": lambda request: Compact(_text(request, "focus", "")),
}


def _no_toggle() -> Request:
    raise ValueError("a server is switched on and off by `enabled` in the configuration")


def _answered(entry: Metadata) -> Answered:
    response = entry.get("response")
    if not isinstance(response, dict) or not isinstance(name := response.get("request_id"), str):
        raise ValueError('a control response has a "response" with a "request_id"')
    if response.get("subtype") == "error":
        error = str(response.get("error") or "")
        return Answered(name, {"behavior": "deny", "message": error}, error or "it failed")
    said = response.get("response")
    if response.get("subtype") != "success" or not isinstance(said, dict):
        raise ValueError('a control response is of subtype "success" with a "response", or "error"')
    return Answered(name, said)


def question_line(question: Question) -> Metadata:
    """A question as a control request: ``can_use_tool`` for a permission, else ``ask_user``."""
    told: Metadata = {
        "text": question.text,
        "options": [to_dict(option) for option in question.options],
        "several": question.several,
    }
    if question.kind == "server":
        told |= {"server": question.server, "schema": question.schema, "url": question.url, "reason": question.reason}
    if question.kind != "permission":
        return control_request(question.id, {"subtype": "ask_user", "kind": question.kind, **told})
    tool = {
        "subtype": "can_use_tool",
        "tool_name": question.tool,
        "tool_use_id": question.call_id,
        "input": question.input,
        "display": question.display,
        "decision_reason": question.reason,
    }
    return control_request(question.id, {**tool, **told})


def control_request(name: str, request: Metadata) -> Metadata:
    """A request of ours as a line."""
    return {"type": "control_request", "request_id": name, "request": request}


def answer_of(question: Question, said: Metadata) -> Answer:
    """The answer to a question in what a control response said. Raises ValueError for what is none."""
    options, text = said.get("options"), said.get("text", said.get("message", ""))
    if not isinstance(text, str):
        raise ValueError("text must be a text")
    if (values := said.get("values")) is not None:
        if not isinstance(values, dict):
            raise ValueError("values must be an object")
        text = json.dumps(values)
    if options is not None:
        if not isinstance(options, list) or not all(isinstance(one, str) for one in options):
            raise ValueError("options must be a list of ids")
        return Answer(question.id, tuple(options), text)
    behavior = said.get("behavior")
    if behavior == "deny":
        return _first(question, ("reject",), text)
    if behavior == "allow":
        if question.kind in ("choice", "stop"):
            raise ValueError("this question takes options or text")
        if (changed := said.get("updatedInput")) is not None and changed != question.input:
            raise ValueError("updatedInput differs from the input: a call runs as the model made it, or not at all")
        return _first(question, ("allow_once", "allow_always"), text if question.kind == "server" else "")
    if question.kind == "choice" and text:
        return Answer(question.id, (), text)
    raise ValueError('an answer has "options", or a "behavior" that is "allow" or "deny"')


def _first(question: Question, kinds: tuple[str, ...], text: str) -> Answer:
    found = next((option.id for option in question.options if option.kind in kinds), None)
    return Answer(question.id, () if found is None else (found,), text)


def _short(value: object) -> str:
    return repr(clean_line(str(value))[:60])


def _user_message(entry: dict[str, Any], size: int) -> UserMessage:
    verbatim = entry.get("client_composed") is True
    if isinstance(text := entry.get("text"), str):
        return UserMessage(text, size=size, verbatim=verbatim)
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return UserMessage(content, size=size, verbatim=verbatim)
    if not isinstance(content, list):
        raise ValueError('a user message has a "text", or a "message" with "content"')
    texts: list[str] = []
    images: list[AttachmentPart] = []
    for block in content:
        if not isinstance(block, dict):
            raise ValueError("a block of its content is no object")
        if block.get("type") == "text" and isinstance(block.get("text"), str):
            texts.append(block["text"])
        elif block.get("type") == "image":
            images.append(_image(block.get("source"), len(images) + 1))
        else:
            raise ValueError(f"a block of its content is of type {_short(block.get('type'))}; text and image are known")
    return UserMessage("\n\n".join(texts), images, size, verbatim)


def _image(source: Any, number: int) -> AttachmentPart:
    data = source.get("data") if isinstance(source, dict) and source.get("type") == "base64" else None
    if not isinstance(data, str):
        raise ValueError("an image needs a source of type base64 with data")
    return image_part(data, number)


def image_part(data: str, number: int) -> AttachmentPart:
    """An image that came as base64. Raises ValueError for what is none."""
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("the data of an image is not base64") from None
    kind = image_type(raw[:16])
    if kind is None:
        raise ValueError("the data of an image is no PNG, JPEG, GIF or WebP")
    return AttachmentPart(f"image {number}", kind, data=data)
