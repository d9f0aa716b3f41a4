"""How the tool host reaches a server: the SDK's transports, watched, and errors said in one line."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import re
import shutil
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
from mcp.client import stdio
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT

from agent_tui.config import McpServer
from agent_tui.providers import net
from agent_tui.providers.net import BoundError, LineBuffer, Unpacker
from agent_tui.providers.secrets import redact
from agent_tui.tools.mcp.lenient import read_leniently
from agent_tui.tools.sandbox.start import starter

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

STAND_INS = frozenset({"Server returned an error response", "Session terminated", "Not Found"})
"""What the SDK says where a server answered with an HTTP error alone."""

CLOSED = (
    "Connection closed",
    "SSE stream ended without a response",
    "SSE stream ended and reconnection attempts were exhausted",
    "SSE stream failed: ",
)
"""What the SDK says where the connection ended before an answer: which of it is seen first is the system's choice. What
ends with a colon goes on."""

_TIMED_OUT = re.compile(r"Request '[^']*' timed out")


def was_closed(error: MCPError) -> bool:
    """Whether the SDK says that the connection ended. Servers use the same code for errors of their own, so that only
    the SDK's words tell."""
    words = error.message
    return error.code == CONNECTION_CLOSED and (
        words in (*CLOSED, ENDED) or any(said.endswith(": ") and words.startswith(said) for said in CLOSED)
    )


def timed_out(error: MCPError) -> bool:
    """Whether the SDK says that no answer came in time; servers use this code for other things too."""
    return error.code == REQUEST_TIMEOUT and _TIMED_OUT.fullmatch(error.message) is not None


ENDED = "ended"
"""What we say ourselves where a connection ended without an error."""

MESSAGE_LIMIT = 64_000_000
"""Bytes of one message of a server: several pictures fit."""

HTTP_PATIENCE, HTTP_READ_PATIENCE = 30.0, 300.0
"""Seconds to connect or write, and to read: a server may hold a stream of answers open. As the SDK has them."""

_TAIL = 4_000

log = logging.getLogger(__name__)


class WholeLines:
    """A server's output as text of whole lines: the SDK, which cuts it, takes the square of a line's length else, and
    knows no limit. A line longer than ``MESSAGE_LIMIT`` ends the connection."""

    def __init__(self, stream: Any, encoding: str, errors: str) -> None:
        self._stream, self._encoding, self._errors = stream, encoding, errors
        self._lines = LineBuffer(MESSAGE_LIMIT)

    def __aiter__(self) -> WholeLines:
        return self

    async def __anext__(self) -> str:
        while True:
            try:
                whole = self._lines.feed(await self._stream.receive())
            except anyio.EndOfStream:
                whole = self._lines.close()
                if not whole:
                    raise StopAsyncIteration from None
            except BoundError as error:
                log.warning("%s", error)
                raise anyio.BrokenResourceError from error
            if whole:
                return whole.decode(self._encoding, self._errors)


def bound_lines() -> None:
    """Has the SDK read its servers through ``WholeLines``. Idempotent. An SDK without the name reads in its own way:
    slower where lines are long, and without a limit."""
    if hasattr(stdio, "TextReceiveStream"):
        stdio.TextReceiveStream = WholeLines
    else:
        log.warning("This version of the MCP SDK reads lines in its own way: long ones are slow, and of any length")


class ErrorOutput(asyncio.Protocol):
    """What a server writes to its stderr: the end of it is kept, for the line that says why it failed."""

    def __init__(self) -> None:
        self._tail = b""
        self._transport: asyncio.BaseTransport | None = None

    async def open(self) -> io.TextIOWrapper:
        """The end to give to the child; close it once the child runs."""
        read_end, write_end = os.pipe()
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.connect_read_pipe(lambda: self, os.fdopen(read_end, "rb", buffering=0))
        return os.fdopen(write_end, "w", encoding="utf-8")

    def data_received(self, data: bytes) -> None:
        self._tail = (self._tail + data)[-_TAIL:]

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    @property
    def last_line(self) -> str:
        lines = [line.strip() for line in self._tail.decode("utf-8", "replace").splitlines()]
        return next((line for line in reversed(lines) if line), "")


class Link:
    """The way to one server. ``status`` is the HTTP status of the newest answer, where there is one."""

    def __init__(self, server: McpServer, ended: Callable[[], None]) -> None:
        self._server = server
        self._ended = ended
        self.errors = ErrorOutput()
        self.status: int | None = None

    def transport(self) -> AbstractAsyncContextManager[TransportStreams]:
        read_leniently()
        return self._http() if self._server.url else self._stdio()

    @asynccontextmanager
    async def _stdio(self) -> AsyncGenerator[TransportStreams, None]:
        server = self._server
        # A folder that does not exist and a program that is not there are told as what they are.
        program = shutil.which(server.command or "", path=server.env.get("PATH"))
        if program is None and server.cwd is not None and "/" in (server.command or ""):
            program = shutil.which(str(Path(server.cwd) / (server.command or "")))
        if program is None:
            there = Path(server.cwd or "", server.command or "").is_file()
            raise PermissionError(server.command) if there else FileNotFoundError(server.command)
        command = starter("supervise", {"quiet": True}, [server.command or "", *server.args])
        parameters = StdioServerParameters(
            command=command[0],
            args=command[1:],
            env=server.env,
            cwd=server.cwd,
            encoding_error_handler="replace",
        )
        stderr = await self.errors.open()
        bound_lines()
        try:
            async with stdio_client(parameters, stderr) as (read, write):
                stderr.close()
                forward, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)

                async def pump() -> None:
                    # The SDK tells nobody that an idle server died; the end of its messages does.
                    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                        async with forward:
                            async for message in read:
                                await forward.send(message)
                    self._ended()

                async with messages, anyio.create_task_group() as group:
                    group.start_soon(pump)
                    yield messages, write
                    group.cancel_scope.cancel()
        finally:
            stderr.close()
            self.errors.close()

    @asynccontextmanager
    async def _http(self) -> AsyncGenerator[TransportStreams, None]:
        async def remember(response: Any) -> None:
            # A GET may be refused by servers that have nothing to push; that is no failure.
            if response.request.method == "POST":
                self.status = response.status_code
            # Streams are bounded by the SDK, event by event; whole bodies by nobody.
            if "event-stream" not in response.headers.get("content-type", ""):
                net.guard_body(response, MESSAGE_LIMIT)

        headers = {"Accept-Encoding": Unpacker.ACCEPTED, **self._server.headers}
        patience = httpx2.Timeout(HTTP_PATIENCE, read=HTTP_READ_PATIENCE)
        async with httpx2.AsyncClient(headers=headers, timeout=patience) as client:
            client.event_hooks["response"].append(remember)
            async with streamable_http_client(self._server.url or "", http_client=client) as streams:
                yield streams

    def reason(self, error: BaseException) -> str:
        """Why connecting or calling failed, in one line, without the secrets the server was given."""
        server = self._server
        secrets = [*server.env.values(), *server.headers.values()]
        return redact(self._reason(error), [word for value in secrets for word in (value, *value.split())])

    def _reason(self, error: BaseException) -> str:
        error = _first(error)
        server = self._server
        if isinstance(error, FileNotFoundError):
            missing = server.cwd if server.cwd is not None and not Path(server.cwd).is_dir() else server.command
            return f"{missing}: no such program or folder"
        if isinstance(error, PermissionError):
            return f"{server.command} may not be run"
        if isinstance(error, TimeoutError) or (isinstance(error, MCPError) and timed_out(error)):
            return f"no answer within {server.timeout:g} s (its `timeout` gives it longer){self._said()}"
        if server.url:
            if self.status in (401, 403):
                return f"it wants authorization (HTTP {self.status}); set its headers, e.g. Authorization"
            if self.status is not None and self.status >= 400:
                said = f": {error}" if isinstance(error, MCPError) and error.message not in STAND_INS else ""
                return f"it answered HTTP {self.status}{said}"
        if isinstance(error, MCPError) and was_closed(error):
            return f"the connection ended{self._said()}" if server.url else f"the server ended{self._said()}"
        return f"{type(error).__name__}: {error}"

    def _said(self) -> str:
        last = self.errors.last_line
        return f", saying: {last}" if last else ""


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error
