"""Names of MCP servers' tools, ``mcp__server__tool``: built and taken apart here and nowhere else."""

from __future__ import annotations

import hashlib
import re

_PREFIX, _BETWEEN = "mcp__", "__"
SEARCH, CALL, READ = "tool_search", "mcp_call", "mcp_read"
"""Our own tools that stand for those of all servers."""
NAME_LIMIT = 64
"""Characters of a tool's name that every provider takes; of the kinds letters, digits, ``_`` and ``-``."""

SERVER_LIMIT = 24
_BAD = re.compile(r"[^A-Za-z0-9_-]")


def tool_name(server: str, tool: str) -> str:
    """``mcp__server__tool``; where that has to be changed or cut, a digest keeps it unique and always the same."""
    start = tool_prefix(server)
    name = _BAD.sub("_", tool)
    if name == tool and tool and len(start) + len(tool) <= NAME_LIMIT:
        return start + tool
    room = NAME_LIMIT - len(start) - 9
    return f"{start}{name[:room]}-{_digest(tool, 8)}"


def tool_prefix(server: str) -> str:
    """What the names of all tools of a server begin with, and of no other server."""
    return f"{_PREFIX}{server_part(server)}{_BETWEEN}"


def server_part(server: str) -> str:
    """The server's part of its tools' names: without ``__`` or ``_`` at its end, so that no other passes for it."""
    name = re.sub(r"_{2,}", "_", _BAD.sub("_", server)).strip("_")
    if name == server and len(name) <= SERVER_LIMIT:
        return name
    return f"{name[: SERVER_LIMIT - 7].rstrip('_')}-{_digest(server, 6)}"


def is_mcp_name(name: str) -> bool:
    """Returns whether a name, or a pattern of names, is written as that of an MCP server's tool or of a server."""
    return name.startswith(_PREFIX)


def split_tool_name(name: str) -> tuple[str, str]:
    """The server's part and the tool of ``mcp__server__tool``, or of ``server__tool`` as rules may write it; the tool
    is empty where only a server is named."""
    server, _, tool = name.removeprefix(_PREFIX).partition(_BETWEEN)
    return server, tool


def short_name(name: str) -> str:
    """``server__tool``, as rules may name ``mcp__server__tool``; any other name as it is."""
    return name.removeprefix(_PREFIX)


def with_all_tools(name: str) -> str:
    """A name as it is; one of a server alone as the pattern of all its tools."""
    return name if split_tool_name(name)[1] else f"{name.removesuffix(_BETWEEN)}{_BETWEEN}*"


def name_pattern(named: str) -> str:
    """The pattern of the names that ``mcp(…)`` means in a list of tools: ``server``, ``server.tool`` or ``*``."""
    server, _, tool = named.strip().partition(".")
    start = f"{_PREFIX}{server}{_BETWEEN}" if "*" in server else tool_prefix(server)
    return tool_name(server, tool) if tool and "*" not in named else f"{start}{tool or '*'}"


def _digest(text: str, length: int) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()[:length]
