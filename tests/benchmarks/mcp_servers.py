"""MCP servers that nobody here wrote, over every transport: started, listed, a call made, a resource and a prompt read.

Usage: python tests/benchmarks/mcp_servers.py FOLDER [NAME ...] [--browser CHROMIUM]

Installs nothing. FOLDER has them:
  npm install @modelcontextprotocol/server-{everything,filesystem,memory,sequential-thinking,github} @playwright/mcp \
    @upstash/context7-mcp @notionhq/notion-mcp-server firecrawl-mcp chrome-devtools-mcp mcp-proxy
  python -m venv venv && venv/bin/pip install mcp-server-{fetch,git,time,sqlite}
A server that speaks a transport itself is asked to; mcp-proxy stands before the others.

The SQLite server does not start with version 2 of the SDK: it needs "mcp<2", in an environment of its own.

2026-11-27, server-everything, -filesystem, -memory and -sequential-thinking 2026.8.31, server-fetch 2026.10.24, -git
and -time 2026.10.19, -sqlite 2025.4.25 (mcp 1.30.0), @playwright/mcp 0.0.83, context7 4.1.1, notion 2.5.2,
firecrawl 3.22.2, server-github 2025.4.8, chrome-devtools 1.11.0, mcp-proxy 6.7.19, without a network; alike over stdio,
http and sse:
  everything           12 tools, 7 resources, 4 prompts; echo; resource; prompt; left out: one that runs only as a task
  filesystem           14 tools; list_directory
  memory               9 tools, 1 resource; read_graph; resource
  sequential-thinking  1 tool; sequentialthinking
  fetch                1 tool, 1 prompt; fetch; prompt
  git                  12 tools; git_status
  time                 2 tools; get_current_time
  sqlite               6 tools, 1 resource, 1 prompt; list_tables; resource; prompt
  playwright           25 tools; browser_navigate
  context7             2 tools; resolve-library-id answers that its service cannot be reached
  notion               24 tools; API-get-self: the same
  firecrawl            26 tools; firecrawl_scrape: the same
  github               26 tools; search_repositories: the same
  chrome-devtools      32 tools; list_pages
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import http.server
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agent_tui.config import McpServer
from agent_tui.errors import AgentError
from agent_tui.text.clean import plain_line
from agent_tui.tools.mcp.manager import McpManager
from tests.support.loopback import closed_port
from tests.support.mcp_managers import call, detail, running, states
from tests.support.tool_context import make_context

Transport = Literal["stdio", "http", "sse"]
UP, WORDS = 60.0, 60


@dataclass(frozen=True)
class Server:
    """``command`` begins with a program of the folder. ``call`` is a tool with its arguments. ``own`` are the arguments
    and the path by which it speaks a transport itself, with ``{port}``."""

    command: tuple[str, ...]
    call: tuple[str, Mapping[str, Any]]
    own: Mapping[Transport, tuple[tuple[str, ...], str]] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)


THOUGHT = {"thought": "One.", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}


def servers(place: Path, page: str, browser: str = "") -> dict[str, Server]:
    """The servers by name, working in a folder that is theirs."""
    playwright = ("--executable-path", browser, "--no-sandbox") if browser else ()
    devtools = ("--executablePath", browser, "--chromeArg=--no-sandbox") if browser else ()
    repository, database = str(place), str(place / "some.db")
    port = ("--port", "{port}")
    own_http: dict[Transport, tuple[tuple[str, ...], str]] = {"http": (("--transport", "http", *port), "/mcp")}
    return {
        "everything": Server(
            ("mcp-server-everything",),
            ("echo", {"message": "hello"}),
            {"http": (("streamableHttp",), "/mcp"), "sse": (("sse",), "/sse")},
        ),
        "filesystem": Server(("mcp-server-filesystem", repository), ("list_directory", {"path": repository})),
        "memory": Server(
            ("mcp-server-memory",), ("read_graph", {}), env={"MEMORY_FILE_PATH": str(place / "memory.json")}
        ),
        "sequential-thinking": Server(("mcp-server-sequential-thinking",), ("sequentialthinking", THOUGHT)),
        "fetch": Server(("mcp-server-fetch", "--ignore-robots-txt", "--allow-private-ips"), ("fetch", {"url": page})),
        "git": Server(("mcp-server-git", "--repository", repository), ("git_status", {"repo_path": repository})),
        "time": Server(("mcp-server-time",), ("get_current_time", {"timezone": "Europe/Berlin"})),
        "sqlite": Server(("mcp-server-sqlite", "--db-path", database), ("list_tables", {})),
        "playwright": Server(
            ("playwright-mcp", "--headless", *playwright),
            ("browser_navigate", {"url": page}),
            {"http": (port, "/mcp"), "sse": (port, "/sse")},
        ),
        "context7": Server(
            ("context7-mcp",), ("resolve-library-id", {"query": "parse", "libraryName": "pydantic"}), own_http
        ),
        "notion": Server(
            ("notion-mcp-server",),
            ("API-get-self", {}),
            {"http": ((*own_http["http"][0], "--unsafe-disable-auth"), "/mcp")},
            {"NOTION_TOKEN": "ntn_none"},
        ),
        "firecrawl": Server(("firecrawl-mcp",), ("firecrawl_scrape", {"url": page})),
        "github": Server(("mcp-server-github",), ("search_repositories", {"query": "textual"})),
        "chrome-devtools": Server(
            ("chrome-devtools-mcp", "--headless", "--no-usage-statistics", *devtools), ("list_pages", {})
        ),
    }


def program(folder: Path, name: str) -> str:
    places = (folder / "node_modules" / ".bin" / name, folder / "venv" / "bin" / name)
    return str(next((place for place in places if place.exists()), places[0]))


@asynccontextmanager
async def reached(folder: Path, server: Server, transport: Transport) -> AsyncIterator[McpServer]:
    """How the program is told of a server that is there meanwhile."""
    command = [program(folder, server.command[0]), *server.command[1:]]
    if transport == "stdio":
        yield McpServer(command=command[0], args=command[1:], env=dict(server.env), timeout=UP)
        return
    port = closed_port()
    if transport in server.own:
        arguments, path = server.own[transport]
        command += [argument.format(port=port) for argument in arguments]
    else:
        path = "/mcp" if transport == "http" else "/sse"
        command = [program(folder, "mcp-proxy"), "--port", str(port), "--", *command]
    environment = {**os.environ, **server.env, "PORT": str(port)}
    process = await asyncio.create_subprocess_exec(
        *command,
        env=environment,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        await listening(port)
        yield McpServer(url=f"http://localhost:{port}{path}", type=transport, timeout=UP)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def listening(port: int) -> None:
    async with asyncio.timeout(UP):
        while True:
            for host in ("127.0.0.1", "::1"):
                with contextlib.suppress(OSError), socket.create_connection((host, port), 1):
                    return
            await asyncio.sleep(0.1)


async def try_one(folder: Path, place: Path, name: str, server: Server, transport: Transport) -> str:
    """One line on a server over a transport."""
    try:
        async with reached(folder, server, transport) as told, running(place, {name: told}) as manager:
            await manager.settled()
            if states(manager)[name] != "connected":
                return f"refused: {detail(manager, name)}"
            done = [detail(manager, name), await called(manager, place, name, server)]
            done += [await read(manager, name), await filled(manager, name)]
            proxied = " (proxy)" if transport not in server.own and transport != "stdio" else ""
            return "; ".join(part for part in done if part) + proxied
    except TimeoutError:
        return f"refused: nothing listens within {UP:g} s"


async def called(manager: McpManager, place: Path, name: str, server: Server) -> str:
    tool, arguments = server.call
    try:
        outcome = await call(manager, make_context(place), f"mcp__{name}__{tool}", **arguments)
    except AgentError as error:
        return f"{tool} failed: {plain_line(str(error), WORDS)}"
    said = plain_line(outcome.text, WORDS)
    return f"{tool}: {'an error of its own: ' if outcome.is_error else ''}{said}"


async def read(manager: McpManager, name: str) -> str:
    for resource in manager.resources()[:1]:
        try:
            parts = await manager.read_resource(name, resource.uri)
        except AgentError as error:
            return f"resource failed: {plain_line(str(error), WORDS)}"
        return f"resource read ({len(parts)})"
    return ""


async def filled(manager: McpManager, name: str) -> str:
    for prompt in manager.prompts()[:1]:
        try:
            text = await manager.get_prompt(name, prompt.name, dict.fromkeys(prompt.required, "x"))
        except AgentError as error:
            return f"prompt failed: {plain_line(str(error), WORDS)}"
        return f"prompt filled ({len(text)} characters)"
    return ""


@contextmanager
def a_page(place: Path) -> Iterator[str]:
    """An address on this machine with something to read."""
    (place / "index.html").write_text("<title>Page</title><p>Words to be read.</p>")
    handler_class: Any = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    handler = functools.partial(handler_class, directory=str(place))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/index.html"
        server.shutdown()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--browser", default="", help="a Chromium, for playwright and chrome-devtools")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        os.environ["AGENT_TUI_HOME"] = str(place / "home")
        await (await asyncio.create_subprocess_exec("git", "init", "-q", temporary)).wait()
        with a_page(place) as page:
            for name, server in servers(place, page, options.browser).items():
                for transport in get_args(Transport) if name in (options.names or [name]) else ():
                    line = await try_one(options.folder.resolve(), place, name, server, transport)
                    print(f"{name:<20} {transport:<6} {line}", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
