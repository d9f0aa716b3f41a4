"""Lists the MCP servers there are, from the configuration and from the project's ``.mcp.json``."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from agent_tui.config import McpServer
from agent_tui.errors import ConfigError
from agent_tui.paths import with_home
from agent_tui.records import dataclass
from agent_tui.tools.files.beneath import read_bounded
from agent_tui.tools.files.named_files import with_environment
from agent_tui.tools.mcp.protocol import ServerState
from agent_tui.urls import AddressError, parse_url

FILE = ".mcp.json"
MAX_FILE = 1_000_000

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class BadServer(ValueError):
    """A server's entry cannot be used; the text says why."""


@dataclass(slots=True)
class Unusable(McpServer):
    """Stands for an entry that cannot be used, and says ``why``."""

    why: str = ""


@dataclass(slots=True)
class ServerInside(McpServer):
    """A server inside the program that drives the run: messages are carried there. Nothing can be configured as one."""


@dataclass(slots=True, frozen=True)
class Plan:
    """The plan for one configured server. ``server`` is set where it is to be started (``starting``)."""

    name: str
    state: ServerState
    detail: str = ""
    server: McpServer | None = None
    required: bool = False


class ProjectServers(NamedTuple):
    """What a project's ``.mcp.json`` says. ``waits`` are those that the user has not accepted, with why they cannot,
    where that is so; ``problem`` is what is wrong with the file."""

    entries: Mapping[str, Any] = {}
    waits: Mapping[str, str] = {}
    problem: str = ""


def plan_servers(
    configured: Mapping[str, McpServer], root: Path, brought: ProjectServers, values: Mapping[str, str] = os.environ
) -> list[Plan]:
    """All servers by name; the configuration wins over ``.mcp.json``. Servers that were not accepted are named and left
    alone. What is wrong with an entry is its plan's detail; nothing is raised."""
    plans: dict[str, Plan] = {}
    if brought.problem:
        plans[FILE] = Plan(FILE, "failed", brought.problem)
    for name, entry in brought.entries.items():
        if name in brought.waits:
            why = brought.waits[name] or "you have not accepted it; run /trust to see and start it"
            plans[name] = Plan(name, "untrusted", f"from {FILE}: {why}")
            continue
        try:
            plans[name] = _plan(name, _parse(entry), values, root)
        except BadServer as error:
            plans[name] = Plan(name, "failed", f"{FILE}: {error}")
    for name, server in configured.items():
        plans[name] = _plan(name, server, values, root)
    return sorted(plans.values(), key=lambda plan: plan.name)


def servers_of(path: Path) -> dict[str, McpServer]:
    """The servers of a file in the format of ``.mcp.json`` that the user named themselves. An entry that is wrong is a
    server that failed; raises ConfigError for a file that is."""
    entries, problem = _read_file(path)
    if problem or not path.is_file():
        raise ConfigError(f"--mcp-config {path}: {problem or 'no such file'}.")
    return checked_servers(entries, path.name)


def checked_servers(entries: Mapping[str, Any], where: str) -> dict[str, McpServer]:
    """The servers of entries as in ``.mcp.json``; one that is wrong is a server that failed, which says ``where``."""
    found: dict[str, McpServer] = {}
    for name, entry in entries.items():
        try:
            found[name] = _parse(entry)
        except BadServer as error:
            required = isinstance(entry, dict) and entry.get("required") is True
            found[name] = Unusable(required=required, why=f"{where}: {error}")
    return found


def _plan(name: str, server: McpServer, values: Mapping[str, str], root: Path) -> Plan:
    if isinstance(server, Unusable):
        return Plan(name, "failed", server.why, required=server.required)
    if not server.enabled:
        return Plan(name, "disabled", "enabled = false")
    try:
        ready = _expanded(server, values)
    except BadServer as error:
        return Plan(name, "failed", str(error), required=server.required)
    if problem := _contradiction(ready):
        return Plan(name, "failed", problem, required=server.required)
    folder = root / with_home(ready.cwd) if ready.cwd else root
    url = parse_url(ready.url).text if ready.url else ""
    return Plan(name, "starting", "", replace(ready, cwd=str(folder), url=url), server.required)


def started_by(entry: Any, root: Path) -> tuple[list[str], Path]:
    """What an entry of ``.mcp.json`` or of the configuration starts: the program with its arguments and the values of
    its environment, all of which may name files; and the folder it starts in. Nothing where it starts nothing."""
    try:
        server = _expanded(_parse(entry), os.environ)
    except BadServer:
        return [], root
    words = with_environment(server.env, server.command, *server.args) if server.command else []
    return words, root / with_home(server.cwd) if server.cwd else root


def may_sign_in(server: McpServer) -> bool:
    """Returns whether a server is reached by an address, and is given no Authorization already."""
    return bool(server.url) and not any(name.lower() == "authorization" for name in server.headers)


def _contradiction(server: McpServer) -> str:
    """Returns why a server can be reached in no way, or in two; else empty."""
    if isinstance(server, ServerInside):
        return ""
    if not server.command and not server.url:
        return "needs command or url"
    if server.command and server.url:
        return "has both command and url"
    try:
        parse_url(server.url or "https://none")
    except AddressError as error:
        return f"its url is not used. {error}"
    if server.type and (server.type == "stdio") != bool(server.command):
        return f"its type {server.type} needs a {'command' if server.type == 'stdio' else 'url'}"
    return ""


def _read_file(path: Path) -> tuple[dict[str, Any], str]:
    try:
        content = read_bounded(path.resolve(), MAX_FILE + 1)
        if len(content) > MAX_FILE:
            return {}, "larger than 1 MB"
        return servers_in(content.decode("utf-8"))
    except FileNotFoundError:
        return {}, ""
    except OSError as error:
        return {}, f"cannot be read: {error.strerror or error}"
    except UnicodeDecodeError as error:
        return {}, f"not valid JSON: {error}"


def servers_in(text: str) -> tuple[dict[str, Any], str]:
    """The entries of a text in the format of ``.mcp.json``, or what is wrong with it."""
    try:
        data = json.loads(text)
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
    if not isinstance(kind, str) or kind not in _TRANSPORTS:
        raise BadServer(f"type {str(kind)[:40]!r} is not supported; stdio, http and sse are")
    server = McpServer(enabled=not entry.get("disabled", False), required=entry.get("required") is True)
    server.type = _TRANSPORTS[kind]
    for key, (kind, what) in _KINDS.items():
        value = entry.get(key)
        if (value or (kind is str and value is not None)) and not _is_of_texts(value, kind):
            raise BadServer(f"{key} must be {what}")
        if value:
            setattr(server, key, value)
    _take_oauth(server, entry.get("oauth", entry))
    for key in ("timeout", "call_timeout"):
        seconds = entry.get(key)
        if isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and seconds > 0:
            setattr(server, key, float(seconds))
    return server


def _take_oauth(server: McpServer, entry: Any) -> None:
    """As Claude Code writes it, ``"oauth": {"clientId": …, "callbackPort": …}``, or with the names of our
    configuration."""
    if not isinstance(entry, dict):
        raise BadServer("oauth must be an object")
    for key, ours in (("clientId", "client_id"), ("clientSecret", "client_secret"), ("callbackPort", "callback_port")):
        value = entry.get(key, entry.get(ours))
        if value is None:
            continue
        if type(value) is not type(getattr(server, ours)) or (isinstance(value, int) and not 0 <= value < 65_536):
            raise BadServer(f"{key} must be {'a port' if ours == 'callback_port' else 'a text'}")
        setattr(server, ours, value)


_TRANSPORTS: Mapping[str, Literal["", "stdio", "http", "sse"]] = {
    "": "",
    "stdio": "stdio",
    "sse": "sse",
    **dict.fromkeys(("http", "streamable-http", "streamableHttp", "streamable_http"), "http"),
}

_KINDS: Mapping[str, tuple[type, str]] = {
    **dict.fromkeys(("command", "cwd", "url"), (str, "a text")),
    "args": (list, "a list of strings"),
    **dict.fromkeys(("env", "headers"), (dict, "an object of strings")),
}


def _is_of_texts(value: Any, kind: type) -> bool:
    parts = value.values() if isinstance(value, dict) else value
    return isinstance(value, kind) and all(isinstance(part, str) for part in parts)


def _expanded(server: McpServer, values: Mapping[str, str]) -> McpServer:
    def fill(match: re.Match[str]) -> str:
        found = values.get(match[1], match[2])
        if found is None:
            raise BadServer(f"the environment variable {match[1]} is not set")
        return found

    def filled(value: Any) -> Any:
        match value:
            case str():
                text = _VARIABLE.sub(fill, value)
                if "\0" in text:
                    raise BadServer("contains a NUL character")
                return text
            case list():
                return [filled(part) for part in value]
            case dict():
                return {key: filled(part) for key, part in value.items()}
            case _:
                return value

    return replace(server, **{key: filled(getattr(server, key)) for key in (*_KINDS, "client_id", "client_secret")})
