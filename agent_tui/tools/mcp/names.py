"""Descriptions and schemas of MCP servers, made safe: for providers and for the screen."""

from __future__ import annotations

import json
from typing import Any

from agent_tui.models.messages import Metadata
from agent_tui.models.tool_schemas import sound_schema
from agent_tui.text.clean import plain, plain_line

DESCRIPTION_LIMIT = 2_000
SCHEMA_LIMIT = 40_000
"""Characters of one tool's schema; what is longer is offered without its details."""

_DEPTH = 40


def no_server(server: str) -> str:
    """Returns the line that says that no server has that name."""
    return f"There is no MCP server {plain_line(server, 60)}."


def server_group(server: str) -> str:
    """The child rows of ``/context`` that are a server's."""
    return f"mcp:{plain_line(server, 60)}"


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
