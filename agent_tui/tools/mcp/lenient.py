"""Takes what a server says against the protocol as the fault of that answer, or of that entry of a list, alone.

The SDK drops an answer that it cannot read, so that its request waits until its time is over, and refuses a whole list
for one entry that is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.client import streamable_http
from mcp.client.client import Client
from mcp_types import methods
from pydantic import ValidationError

from agent_tui.text.clean import plain_line

_LISTS = {"tools/list": "tools", "resources/list": "resources", "prompts/list": "prompts"}
_NAMED = 5
_read_message: Any = getattr(types, "jsonrpc_message_adapter", None)


class _Reader:
    """Reads one message as the SDK does. An answer that is none becomes an error, which ends its request."""

    def validate_json(self, data: str | bytes, **how: Any) -> Any:
        try:
            return _read_message.validate_json(data, **how)
        except ValidationError as fault:
            if (error := _as_error(data, fault)) is None:
                raise
            return error

    def __getattr__(self, name: str) -> Any:
        return getattr(_read_message, name)


def _as_error(data: str | bytes, fault: ValidationError) -> types.JSONRPCError | None:
    """The error that an answer stands for; None for what is no answer to a request."""
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        return None
    request = said.get("id") if isinstance(said, dict) else None
    if isinstance(request, bool) or not isinstance(request, (int, str)) or "method" in said:
        return None
    found = said.get("error")
    if isinstance(found, dict):
        message, code = found.get("message"), found.get("code")
        text = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)
        error = types.ErrorData(code=types.INTERNAL_ERROR, message=f"{text} (code {code!r})", data=found.get("data"))
    else:
        why = fault.errors()[0]["msg"]
        error = types.ErrorData(code=types.INTERNAL_ERROR, message=f"an answer that breaks the protocol: {why}")
    return types.JSONRPCError(jsonrpc="2.0", id=request, error=error)


def read_leniently() -> None:
    """Has the SDK read messages this way, wherever it has the name of its reader. Idempotent."""
    for module in (types, streamable_http):
        if hasattr(module, "jsonrpc_message_adapter"):
            setattr(module, "jsonrpc_message_adapter", _Reader())  # noqa: B010


class LenientLists:
    """Stands before a connected client's dispatcher: entries of lists that are not valid do not reach it.
    ``left_out`` says which these were, of the newest listing. An SDK that keeps its dispatcher elsewhere refuses the
    whole list."""

    def __init__(self, client: Client) -> None:
        session = self._session = client.session
        self._inner: Any = getattr(session, "_dispatcher", None)
        self.left_out: dict[str, list[str]] = {}
        if self._inner is not None:
            session._dispatcher = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def send_raw_request(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> dict[str, Any]:
        raw: dict[str, Any] = await self._inner.send_raw_request(method, params, opts)
        field = _LISTS.get(method)
        if field is None or not isinstance(entries := raw.get(field), list):
            return raw
        if not (params or {}).get("cursor"):
            self.left_out.pop(field, None)
        rest = {key: value for key, value in raw.items() if key != field}
        if self._valid(method, {**rest, field: entries}) or not self._valid(method, {**rest, field: []}):
            return raw
        good = [entry for entry in entries if self._valid(method, {**rest, field: [entry]})]
        bad = [entry for entry in entries if entry not in good]
        self.left_out.setdefault(field, []).extend(map(_name, bad[:_NAMED]))
        return {**rest, field: good}

    def _valid(self, method: str, raw: dict[str, Any]) -> bool:
        try:
            methods.parse_server_result(method, self._session.protocol_version or "2025-11-25", raw)
        except KeyError:
            return True
        except ValueError:
            return False
        return True


def _name(entry: object) -> str:
    name = entry.get("name") if isinstance(entry, dict) else None
    return plain_line(name, 40) if isinstance(name, str) and name else "one without a name"
