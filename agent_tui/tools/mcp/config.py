"""Lists the MCP servers there are, from the configuration and from the project's ``.mcp.json``."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent_tui.config import McpServer
from agent_tui.errors import ConfigError
from agent_tui.records import dataclass
from agent_tui.tools.mcp.lines import ServerState

FILE = ".mcp.json"
MAX_FILE = 1_000_000

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class BadServer(ValueError):
    """A server's entry cannot be used; the text says why."""


@dataclass(slots=True, frozen=True)
class Plan:
    """The plan for one configured server. ``server`` is set where it is to be started (``starting``)."""

    name: str
    state: ServerState
    detail: str = ""
    server: McpServer | None = None


def plan_servers(
    configured: Mapping[str, McpServer], root: Path, trusted: bool, environ: Mapping[str, str] | None = None
) -> list[Plan]:
    """All servers by name; the configuration wins over ``.mcp.json``. Servers of a folder that is not trusted are
    named and left alone. What is wrong with an entry is its plan's detail; nothing is raised."""
    values = os.environ if environ is None else environ
    plans: dict[str, Plan] = {}
    entries, problem = _read_file(root / FILE)
    if problem:
        plans[FILE] = Plan(FILE, "failed", problem)
    for name, entry in entries.items():
        if not trusted:
            plans[name] = Plan(name, "untrusted", f"from {FILE} of a folder that is not trusted; /trust starts it")
            continue
        try:
            plans[name] = _plan(name, _parse(entry), values, root)
        except BadServer as error:
            plans[name] = Plan(name, "failed", f"{FILE}: {error}")
    for name, server in configured.items():
        plans[name] = _plan(name, server, values, root)
    return sorted(plans.values(), key=lambda plan: plan.name)


def servers_of(path: Path) -> dict[str, McpServer]:
    """The servers of a file in the format of ``.mcp.json`` that the user named themselves. Raises ConfigError."""
    entries, problem = _read_file(path)
    if problem or not path.is_file():
        raise ConfigError(f"--mcp-config {path}: {problem or 'no such file'}.")
    found: dict[str, McpServer] = {}
    for name, entry in entries.items():
        try:
            found[name] = _parse(entry)
        except BadServer as error:
            raise ConfigError(f"--mcp-config {path}: mcpServers.{name}: {error}.") from None
    return found


def _plan(name: str, server: McpServer, values: Mapping[str, str], root: Path) -> Plan:
    if not server.enabled:
        return Plan(name, "disabled", "enabled = false")
    try:
        ready = _expanded(server, values)
    except BadServer as error:
        return Plan(name, "failed", str(error))
    if not ready.command and not ready.url:
        return Plan(name, "failed", "needs command or url")
    if ready.command and ready.url:
        return Plan(name, "failed", "has both command and url")
    if ready.url and not ready.url.startswith(("http://", "https://")):
        return Plan(name, "failed", "its url must begin with http:// or https://")
    folder = root / Path(ready.cwd).expanduser() if ready.cwd else root
    return Plan(name, "starting", "", replace(ready, cwd=str(folder)))


def _read_file(path: Path) -> tuple[dict[str, Any], str]:
    try:
        if path.stat().st_size > MAX_FILE:
            return {}, "larger than 1 MB"
        data = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}, ""
    except OSError as error:
        return {}, f"cannot be read: {error.strerror or error}"
    except (ValueError, RecursionError) as error:
        return {}, f"not valid JSON: {error}"
    servers = data.get("mcpServers") if isinstance(data, dict) else None
    if not isinstance(servers, dict):
        return {}, "has no object mcpServers"
    return servers, ""


def _parse(entry: Any) -> McpServer:
    if not isinstance(entry, dict):
        raise BadServer("must be an object")
    kind = entry.get("type", "")
    if kind not in ("", "stdio", "http", "streamable-http", "streamableHttp"):
        raise BadServer(f"type {str(kind)[:40]!r} is not supported; stdio and http are")
    server = McpServer(
        command=_text(entry, "command"),
        args=_texts(entry, "args"),
        env=_table(entry, "env"),
        cwd=_text(entry, "cwd"),
        url=_text(entry, "url"),
        headers=_table(entry, "headers"),
        enabled=not entry.get("disabled", False),
    )
    for key in ("timeout", "call_timeout"):
        seconds = entry.get(key)
        if isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and seconds > 0:
            setattr(server, key, float(seconds))
    return server


def _text(entry: dict[str, Any], key: str) -> str | None:
    value = entry.get(key)
    if value is not None and not isinstance(value, str):
        raise BadServer(f"{key} must be a text")
    return value or None


def _texts(entry: dict[str, Any], key: str) -> list[str]:
    value = entry.get(key) or []
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise BadServer(f"{key} must be a list of texts")
    return value


def _table(entry: dict[str, Any], key: str) -> dict[str, str]:
    value = entry.get(key) or {}
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise BadServer(f"{key} must be an object of texts")
    return value


def _expanded(server: McpServer, values: Mapping[str, str]) -> McpServer:
    def text(value: str) -> str:
        def fill(match: re.Match[str]) -> str:
            found = values.get(match[1], match[2])
            if found is None:
                raise BadServer(f"the environment variable {match[1]} is not set")
            return found

        filled = _VARIABLE.sub(fill, value)
        if "\0" in filled:
            raise BadServer("holds a NUL character")
        return filled

    def optional(value: str | None) -> str | None:
        return text(value) if value else None

    return replace(
        server,
        command=optional(server.command),
        args=[text(v) for v in server.args],
        env={k: text(v) for k, v in server.env.items()},
        cwd=optional(server.cwd),
        url=optional(server.url),
        headers={k: text(v) for k, v in server.headers.items()},
    )
