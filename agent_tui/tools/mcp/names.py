"""Names, descriptions and schemas of MCP servers, made safe: for providers, for permission rules and for the screen."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from agent_tui.models.messages import Metadata
from agent_tui.models.tool_schemas import sound_schema
from agent_tui.text.clean import plain, plain_line

PREFIX = "mcp__"
NAME_LIMIT = 64
"""Characters of a tool's name that every provider takes; of the kinds letters, digits, ``_`` and ``-``."""

SERVER_LIMIT = 24
DESCRIPTION_LIMIT = 2_000
SCHEMA_LIMIT = 40_000
"""Characters of one tool's schema; what is longer is offered without its details."""

_DEPTH = 40
_BAD = re.compile(r"[^A-Za-z0-9_-]")


def no_server(server: str) -> str:
    """Returns the line that says that no server has that name."""
    return f"There is no MCP server {plain_line(server, 60)}."


def server_group(server: str) -> str:
    """The child rows of ``/context`` that are a server's."""
    return f"mcp:{plain_line(server, 60)}"


def server_part(server: str) -> str:
    """The server's part of its tools' names: without ``__`` or ``_`` at its end, so that no other passes for it."""
    name = re.sub(r"_{2,}", "_", _BAD.sub("_", server)).strip("_")
    if name == server and len(name) <= SERVER_LIMIT:
        return name
    return f"{name[: SERVER_LIMIT - 7].rstrip('_')}-{_digest(server, 6)}"


def tool_name(server: str, tool: str) -> str:
    """``mcp__server__tool``; where that has to be changed or cut, a digest keeps it unique and always the same."""
    start = f"{PREFIX}{server_part(server)}__"
    name = _BAD.sub("_", tool)
    if name == tool and tool and len(start) + len(tool) <= NAME_LIMIT:
        return start + tool
    room = NAME_LIMIT - len(start) - 9
    return f"{start}{name[:room]}-{_digest(tool, 8)}"


def safe_schema(schema: Any) -> Metadata:
    """An input schema that can be sent: sound, its texts plain, neither huge nor endlessly deep."""
    if not isinstance(schema, dict):
        return _open_schema()
    try:
        copy = sound_schema(_walk(schema, 0))
    except ValueError:
        return _open_schema()
    copy.pop("$schema", None)
    return copy if len(json.dumps(copy)) <= SCHEMA_LIMIT else _open_schema()


def _open_schema() -> Metadata:
    return {"type": "object", "properties": {}, "additionalProperties": True}


def _walk(value: Any, depth: int) -> Any:
    if depth > _DEPTH:
        raise ValueError("nested too deeply")
    if isinstance(value, dict):
        return {str(k): _walk(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list):
        return [_walk(v, depth + 1) for v in value]
    if isinstance(value, str) and (not value.isascii() or not value.isprintable()):
        return plain(value, DESCRIPTION_LIMIT)
    return value


def _digest(text: str, length: int) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()[:length]
