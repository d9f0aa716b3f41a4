"""What MCP servers answer, read as far as it can be used: one entry or one part that the protocol does not know costs
that entry or part, and is named, never the whole answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.client.client import Client
from mcp_types import methods

from agent_tui.text.clean import cut, plain_line

_LISTS = {"tools/list": "tools", "resources/list": "resources", "prompts/list": "prompts"}
_NAMED = 5
_KINDS = frozenset({"text", "image", "audio", "resource", "resource_link"})
_SHOWN = 2_000
"""Characters that are passed on of a part which the protocol does not know."""
_WHY = 300


class LenientAnswers:
    """Stands before a connected client's dispatcher: what is not valid in an answer does not reach it.

    ``left_out`` says which entries these were, of the newest listing of each kind. Of a result every part is passed on:
    one of an unknown kind as text that says so, one that breaks the schema of its own tool with a note. An SDK that
    keeps its dispatcher elsewhere refuses the whole answer.
    """

    def __init__(self, client: Client) -> None:
        session = self._session = client.session
        self._inner: Any = getattr(session, "_dispatcher", None)
        self.left_out: dict[str, list[str]] = {}
        if self._inner is not None:
            session._dispatcher = self
        self._validate: Any = getattr(session, "validate_tool_result", None)
        if self._validate is not None:
            setattr(session, "validate_tool_result", self._note_misfit)  # noqa: B010

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def send_raw_request(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> dict[str, Any]:
        raw: dict[str, Any] = await self._inner.send_raw_request(method, params, opts)
        if not isinstance(raw, dict):
            return raw
        if method in _LISTS:
            return self._usable_list(method, raw, first=not (params or {}).get("cursor"))
        if self._is_valid(method, raw):
            return raw
        mended = _MENDED[method](self, raw) if method in _MENDED else raw
        return mended if self._is_valid(method, mended) else raw

    def _usable_list(self, method: str, raw: dict[str, Any], *, first: bool) -> dict[str, Any]:
        field = _LISTS[method]
        if not isinstance(entries := raw.get(field), list):
            return raw
        if first:
            self.left_out.pop(field, None)
        rest = {key: value for key, value in raw.items() if key != field}
        if self._is_valid(method, {**rest, field: entries}) or not self._is_valid(method, {**rest, field: []}):
            return raw
        good: list[Any] = []
        bad: list[Any] = []
        for entry in entries:
            forms = [entry, *(_simpler_tools(entry) if field == "tools" else ())]
            usable = next((form for form in forms if self._is_valid(method, {**rest, field: [form]})), None)
            if usable is None:
                bad.append(entry)
            else:
                good.append(usable)
        self.left_out.setdefault(field, []).extend(f"{_name(entry)} (invalid)" for entry in bad[:_NAMED])
        return {**rest, field: good}

    def _call_result(self, raw: dict[str, Any]) -> dict[str, Any]:
        """A result of a tool with all that it has, each in a form that the protocol knows."""
        said = raw.get("content")
        content = said if isinstance(said, list) else [] if said is None else [said]
        parts = [part if self._is_valid("tools/call", {"content": [part]}) else _as_text(part) for part in content]
        structured, is_error = raw.get("structuredContent"), raw.get("isError")
        if "structuredContent" in raw and not self._is_valid(
            "tools/call", {"content": [], **_only(raw, "structuredContent")}
        ):
            parts.append({"type": "text", "text": json.dumps(structured, ensure_ascii=False)})
            return {"content": parts, "isError": is_error is True}
        return {"content": parts, "isError": is_error is True, **_only(raw, "structuredContent")}

    def _prompt(self, raw: dict[str, Any]) -> dict[str, Any]:
        said = raw.get("messages")
        messages = []
        for message in said if isinstance(said, list) else []:
            if not self._is_valid("prompts/get", {"messages": [message]}):
                content = message.get("content") if isinstance(message, dict) else message
                role = message.get("role") if isinstance(message, dict) else None
                message = {"role": "assistant" if role == "assistant" else "user", "content": _as_text(content)}
            messages.append(message)
        return {"messages": messages}

    def _resource(self, raw: dict[str, Any]) -> dict[str, Any]:
        said = raw.get("contents")
        contents = []
        for entry in said if isinstance(said, list) else []:
            if not self._is_valid("resources/read", {"contents": [entry]}):
                uri = entry.get("uri") if isinstance(entry, dict) else None
                entry = {"uri": uri if isinstance(uri, str) else "", "text": _as_text(entry)["text"]}
            contents.append(entry)
        return {"contents": contents}

    async def _note_misfit(self, name: str, result: types.CallToolResult) -> None:
        """Adds to a result that breaks the schema of its own tool what is wrong; the SDK would refuse it whole."""
        try:
            await self._validate(name, result)
        except RuntimeError as error:
            why = getattr(error.__cause__, "message", None) or str(error)
            note = f"[The result does not fit the output schema that the server gave: {plain_line(str(why), _WHY)}]"
            result.content.append(types.TextContent(type="text", text=note))

    def _is_valid(self, method: str, raw: dict[str, Any]) -> bool:
        try:
            methods.parse_server_result(method, self._session.protocol_version or "2025-11-25", raw)
        except KeyError:
            return True
        except ValueError:
            return False
        return True


_MENDED = {
    "tools/call": LenientAnswers._call_result,
    "prompts/get": LenientAnswers._prompt,
    "resources/read": LenientAnswers._resource,
}


def repeats(texts: list[str], structured: Any) -> bool:
    """Returns whether the text of a result says all of its structured content: as JSON, or as the one value in it."""
    values = [structured]
    if isinstance(structured, dict) and len(structured) == 1:
        values += structured.values()
    said: list[Any] = [*texts, "\n".join(texts)]
    for text in (*texts, "\n".join(texts)):
        try:
            said.append(json.loads(text))
        except (ValueError, RecursionError):
            continue
    # Servers write a list as one part for each entry.
    said.append([_loaded(text) for text in texts])
    return any(value == one for value in values for one in said)


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _simpler_tools(entry: Any) -> list[Any]:
    """A tool without what is wrong in its schemas, the least changed first: one that takes no arguments often has none,
    or an empty one; what it returns need not be known."""
    if not isinstance(entry, dict) or not isinstance(schema := entry.get("inputSchema") or {}, dict):
        return []
    mended = {**entry, "inputSchema": {**schema, "type": "object"}}
    return [mended, {key: value for key, value in mended.items() if key in ("name", "description", "inputSchema")}]


def _as_text(part: Any) -> dict[str, Any]:
    """A part of a kind that the protocol does not know, as one that says so."""
    if isinstance(part, str):
        return {"type": "text", "text": part}
    kind = part.get("type") if isinstance(part, dict) else None
    is_new = isinstance(kind, str) and kind not in _KINDS
    named = f"of the unknown type {plain_line(str(kind), 40)!r}" if is_new else "that cannot be read"
    text = part.get("text") if isinstance(part, dict) else None
    said = text if isinstance(text, str) else cut(json.dumps(part, ensure_ascii=False), _SHOWN)
    return {"type": "text", "text": f"[a part {named}]\n{said}"}


def _only(raw: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {name: raw[name]} if name in raw else {}


def _name(entry: object) -> str:
    name = entry.get("name") if isinstance(entry, dict) else None
    return plain_line(name, 40) if isinstance(name, str) and name else "one without a name"
