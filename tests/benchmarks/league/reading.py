"""What a request holds, whatever its dialect: pieces in the order in which a model reads them, and the tools by name.

Everything is lenient: agents send fields that nobody documents, and none of them is refused here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["system", "tools", "user", "assistant", "call", "result"]


@dataclass(slots=True)
class Piece:
    """One text of the prompt. ``marked``: the client asked to cache up to here."""

    kind: Kind
    text: str
    marked: bool = False


@dataclass(slots=True)
class Asked:
    """A request as understood. ``tools``: the schema of the arguments by name."""

    pieces: list[Piece]
    tools: dict[str, dict[str, Any]] = field(default_factory=dict)
    stream: bool = True
    model: str = ""

    def texts(self, *kinds: Kind) -> str:
        return "\n".join(piece.text for piece in self.pieces if piece.kind in kinds)


def compact_json(value: Any) -> str:
    return json.dumps(_unmarked(value), ensure_ascii=False, separators=(", ", ": "))


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unmarked(inner) for key, inner in value.items() if key != "cache_control"}
    return [_unmarked(inner) for inner in value] if isinstance(value, list) else value


def text_of(content: Any) -> str:
    """The text of a content field: a string, a block, or a list of them. What is no text is written as JSON."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(text_of, content)))
    if isinstance(content, dict):
        for key in ("text", "output", "content"):
            if isinstance(content.get(key), (str, list)):
                return text_of(content[key])
    return compact_json(content)


def call_text(name: str, arguments: Any) -> str:
    """A call as chat templates write it."""
    shown = arguments if isinstance(arguments, str) else compact_json(arguments)
    return f'{{"name": "{name}", "arguments": {shown}}}'


def tool_text(name: str, description: str, parameters: Any) -> str:
    """A declaration as chat templates write it."""
    function = {"name": name, "description": description, "parameters": parameters}
    return compact_json({"type": "function", "function": function})


# Anthropic's Messages


def anthropic(body: dict[str, Any]) -> Asked:
    pieces: list[Piece] = []
    tools: dict[str, dict[str, Any]] = {}
    for tool in body.get("tools") or ():
        tools[tool["name"]] = tool.get("input_schema") or {}
        text = tool_text(tool["name"], tool.get("description") or "", tools[tool["name"]])
        pieces.append(Piece("tools", text, "cache_control" in tool))
    system = body.get("system") or []
    for block in [{"text": system}] if isinstance(system, str) else system:
        pieces.append(Piece("system", text_of(block), "cache_control" in block))
    for message in body.get("messages") or ():
        content = message.get("content")
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content or ():
            pieces.append(_anthropic_block(message["role"], block))
    return Asked(pieces, tools, bool(body.get("stream")), str(body.get("model")))


def _anthropic_block(role: str, block: dict[str, Any]) -> Piece:
    marked = "cache_control" in block
    if block.get("type") == "tool_use":
        return Piece("call", call_text(block["name"], block["input"]), marked)
    if block.get("type") == "tool_result":
        return Piece("result", text_of(block.get("content")), marked)
    kinds: dict[str, Kind] = {"assistant": "assistant", "system": "system"}
    return Piece(kinds.get(role, "user"), text_of(block), marked)


# OpenAI's chat completions


def chat(body: dict[str, Any]) -> Asked:
    pieces: list[Piece] = []
    tools: dict[str, dict[str, Any]] = {}
    for tool in body.get("tools") or ():
        own = tool.get("function") or tool
        tools[own["name"]] = own.get("parameters") or {}
        pieces.append(Piece("tools", tool_text(own["name"], own.get("description") or "", tools[own["name"]])))
    for message in body.get("messages") or ():
        pieces += _chat_message(message)
    return Asked(pieces, tools, bool(body.get("stream")), str(body.get("model")))


def _chat_message(message: dict[str, Any]) -> Iterator[Piece]:
    role, text = message.get("role"), text_of(message.get("content"))
    if role == "tool":
        yield Piece("result", text)
        return
    kinds: dict[Any, Kind] = {"assistant": "assistant", "system": "system", "developer": "system"}
    calls = message.get("tool_calls") or ()
    if text or not calls:
        yield Piece(kinds.get(role, "user"), text)
    for call in calls:
        yield Piece("call", call_text(call["function"]["name"], call["function"]["arguments"]))


# OpenAI's Responses


def responses(body: dict[str, Any]) -> Asked:
    pieces: list[Piece] = []
    tools: dict[str, dict[str, Any]] = {}
    for tool in _flat_tools(body.get("tools") or ()):
        name = tool.get("name") or tool.get("type") or "tool"
        tools[name] = tool.get("parameters") or {}
        pieces.append(Piece("tools", tool_text(name, tool.get("description") or "", tool.get("parameters") or tool)))
    if body.get("instructions"):
        pieces.append(Piece("system", body["instructions"]))
    items = body.get("input") or []
    for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
        pieces += _responses_item(item)
    return Asked(pieces, tools, bool(body.get("stream")), str(body.get("model")))


def _flat_tools(tools: Any) -> Iterator[dict[str, Any]]:
    for tool in tools:
        if tool.get("type") == "namespace":
            yield from _flat_tools(tool.get("tools") or ())
        else:
            yield tool


def _responses_item(item: dict[str, Any]) -> Iterator[Piece]:
    kind = item.get("type", "message")
    if kind in ("function_call", "custom_tool_call"):
        yield Piece("call", call_text(item.get("name", ""), item.get("arguments", item.get("input", ""))))
    elif kind in ("function_call_output", "custom_tool_call_output"):
        yield Piece("result", text_of(item.get("output")))
    elif kind == "message":
        roles: dict[Any, Kind] = {"assistant": "assistant", "system": "system", "developer": "system"}
        yield Piece(roles.get(item.get("role"), "user"), text_of(item.get("content")))


# Gemini's generateContent


def gemini(body: dict[str, Any]) -> Asked:
    body = body.get("generateContentRequest") or body
    pieces: list[Piece] = []
    tools: dict[str, dict[str, Any]] = {}
    for group in body.get("tools") or ():
        for tool in group.get("functionDeclarations") or ():
            tools[tool["name"]] = tool.get("parametersJsonSchema") or tool.get("parameters") or {}
            pieces.append(Piece("tools", tool_text(tool["name"], tool.get("description") or "", tools[tool["name"]])))
    for part in (body.get("systemInstruction") or {}).get("parts") or ():
        pieces.append(Piece("system", text_of(part)))
    for content in body.get("contents") or ():
        for part in content.get("parts") or ():
            pieces.append(_gemini_part(content.get("role", "user"), part))
    return Asked(pieces, tools, True, "")


def _gemini_part(role: str, part: dict[str, Any]) -> Piece:
    if "functionCall" in part:
        return Piece("call", call_text(part["functionCall"]["name"], part["functionCall"].get("args") or {}))
    if "functionResponse" in part:
        return Piece("result", text_of(part["functionResponse"].get("response")))
    return Piece("assistant" if role == "model" else "user", text_of(part))
