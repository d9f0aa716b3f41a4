"""The tool host: the child process that holds the MCP SDK and its servers. ``python -m agent_tui.tools.mcp.host``.

It ends when its standard input ends, and takes its servers with it, so that a killed parent leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO

from agent_tui.config import McpServer
from agent_tui.hardening import hide_memory
from agent_tui.models.codec import from_dict
from agent_tui.providers.failures.secrets import redact
from agent_tui.tools.children.process import descendants
from agent_tui.tools.mcp import lines as mcp_lines
from agent_tui.tools.mcp.names import no_server

if TYPE_CHECKING:
    from agent_tui.tools.mcp.connection import Connection

log = logging.getLogger("agent_tui.host")

GRACE = 1.5
"""Seconds that servers get to end by themselves; then they are killed."""


class Host:
    """Keeps the connections that the UI process wants and answers its requests, each in a task of its own."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._connections: dict[str, Connection] = {}
        self._requests: dict[int, asyncio.Task[None]] = {}
        self._background: set[asyncio.Task[Any]] = set()

    def receive(self, data: bytes) -> None:
        """Takes one line. What cannot be understood is logged and otherwise ignored."""
        try:
            message = json.loads(data)
            op = message["op"]
            if op == "servers":
                self._configure({name: from_dict(McpServer, spec) for name, spec in message["servers"].items()})
            elif op == "reconnect":
                self._reconnect(message["server"])
            elif op == "cancel":
                if task := self._requests.get(message["id"]):
                    task.cancel()
            else:
                self._requests[message["id"]] = asyncio.create_task(self._answer(message))
        except (ValueError, KeyError, TypeError, AttributeError):
            log.warning("Ignored %d bytes that are no request", len(data))

    def _send(self, value: dict[str, Any]) -> None:
        self._write(mcp_lines.line(value))

    def _report(self, value: dict[str, Any]) -> None:
        self._send(value)
        # Should this process be killed, its parent ends the servers that are left.
        self._send({"e": "children", "pids": sorted(descendants(os.getpid()))})

    def _configure(self, wanted: dict[str, McpServer]) -> None:
        for name, connection in list(self._connections.items()):
            if wanted.get(name) != connection.server:
                del self._connections[name]
                self._spawn(connection.close())
        for name, server in wanted.items():
            if name not in self._connections:
                self._connections[name] = self._connect(name, server)

    def _connect(self, name: str, server: McpServer) -> Connection:
        from agent_tui.tools.mcp.connection import Connection

        return Connection(name, server, self._report)

    def _reconnect(self, name: str) -> None:
        old = self._connections.get(name)
        if old is None:
            return

        async def again() -> None:
            await old.close()
            if self._connections.get(name) is old:
                self._connections[name] = self._connect(name, old.server)

        self._spawn(again())

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _answer(self, message: dict[str, Any]) -> None:
        request = message["id"]
        try:
            self._send({"e": "done", "id": request, **await self._ask(request, message)})
        except asyncio.CancelledError:
            self._send({"e": "error", "id": request, "error": "cancelled"})
        except Exception as error:
            text = str(error)
            if type(error).__name__ != "CallFailed":
                log.exception("Request %s failed", message.get("op"))
                text = f"{type(error).__name__}: {error}"
            self._send({"e": "error", "id": request, "error": text})
        finally:
            self._requests.pop(request, None)

    async def _ask(self, request: int, message: dict[str, Any]) -> dict[str, Any]:
        name, op = message["server"], message["op"]
        connection = self._connections.get(name)
        if connection is None:
            return {"text": no_server(name), "is_error": True, "images": []}
        if op == "call":

            def progress(text: str) -> None:
                self._send({"e": "progress", "id": request, "text": text})

            return await connection.call(message["tool"], message["arguments"], progress)
        if op == "read":
            return await connection.read(message["uri"])
        if op == "prompt":
            return await connection.prompt(message["name"], message["arguments"])
        raise ValueError(f"unknown operation {op!r}")

    async def close(self) -> None:
        """Ends all connections."""
        await asyncio.gather(*(c.close() for c in self._connections.values()), return_exceptions=True)


def _end_children() -> None:
    """Kills every server that is left, with its group where it leads one."""
    for pid in descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getpgid(pid) == pid:
                os.killpg(pid, signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)


def _read_lines(stream: BinaryIO, loop: asyncio.AbstractEventLoop, host: Host, ended: asyncio.Event) -> None:
    """Hands lines to the loop. At the end of the input the process ends, even when the loop is blocked."""
    try:
        for data in stream:
            loop.call_soon_threadsafe(host.receive, data)
    finally:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(ended.set)
        time.sleep(GRACE * 2)
        _end_children()
        os._exit(0)


async def serve(stdin: BinaryIO, stdout: BinaryIO) -> None:
    """Answers until the input ends."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, stdout)
    host, ended = Host(transport.write), asyncio.Event()
    threading.Thread(target=_read_lines, args=(stdin, loop, host, ended), name="input", daemon=True).start()
    await ended.wait()
    closing = asyncio.create_task(host.close())
    await asyncio.wait([closing], timeout=GRACE)
    _end_children()
    for _ in range(50):
        if not descendants(os.getpid()):
            break
        await asyncio.sleep(0.01)
    os._exit(0)


def _own_the_pipe() -> tuple[BinaryIO, BinaryIO]:
    """Keeps the protocol's two ends to ourselves: whatever a library prints or reads goes elsewhere."""
    stdin = os.fdopen(os.dup(0), "rb", buffering=1 << 20)
    stdout = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        sink = os.open(
            os.environ.get(mcp_lines.LOG_VARIABLE) or os.devnull, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600
        )
    except OSError:
        sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    return stdin, stdout


class _Redacting(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


def main() -> None:
    hide_memory()
    stdin, stdout = _own_the_pipe()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Redacting("%(asctime)s host %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    asyncio.run(serve(stdin, stdout))


if __name__ == "__main__":
    main()
