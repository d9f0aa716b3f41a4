"""Reaches a server for the tool host: the SDK's transports, watched, and errors said in one line.

What a server says against the protocol is the fault of that answer, or of that entry of a list, alone: the SDK drops an
answer that it cannot read, so that its request waits until its time is over, and refuses a whole list for one entry
that is wrong.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import mcp_types as types
from mcp.client import stdio, streamable_http
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT
from pydantic import ValidationError

from agent_tui.config import McpServer
from agent_tui.paths import user_paths
from agent_tui.pipes.pipe import Refused
from agent_tui.providers import net
from agent_tui.providers.net import BoundError, LineBuffer, Unpacker
from agent_tui.providers.secrets import redact
from agent_tui.tools.mcp.config import may_sign_in
from agent_tui.tools.mcp.oauth import Bearer
from agent_tui.tools.mcp.protocol import MayStart, Relay, Relayed, ServerStart
from agent_tui.tools.mcp.tokens import Tokens
from agent_tui.tools.sandbox.start import starter

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams


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
    """Returns whether the SDK says that the connection ended. Servers use the same code for errors of their own, so
    that only the SDK's words tell."""
    words = error.message
    return error.code == CONNECTION_CLOSED and (
        words in (*CLOSED, ENDED) or any(said.endswith(": ") and words.startswith(said) for said in CLOSED)
    )


def timed_out(error: MCPError) -> bool:
    """Returns whether the SDK says that no answer came in time; servers use this code for other things too."""
    return error.code == REQUEST_TIMEOUT and _TIMED_OUT.fullmatch(error.message) is not None


ENDED = "ended"
"""What we say ourselves where a connection ended without an error."""

MESSAGE_LIMIT = 64_000_000
"""Bytes of one message of a server: several pictures fit."""

HTTP_PATIENCE, HTTP_READ_PATIENCE = 30.0, 300.0
"""Seconds to connect or write, and to read: a server may hold a stream of answers open. As the SDK has them."""

_TAIL = 4_000

log = logging.getLogger(__name__)


_bounded: ContextVar[Callable[[], None]] = ContextVar("bounded", default=lambda: None)
"""Ends the connection whose output is read: the SDK goes on reading for nobody."""


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
                _bounded.get()()
                raise anyio.BrokenResourceError from error
            if whole:
                return whole.decode(self._encoding, self._errors)


def bound_lines() -> None:
    """Has the SDK read its servers through ``WholeLines``. Idempotent. An SDK without the name reads in its own way:
    slower where lines are long, and without a limit."""
    if hasattr(stdio, "TextReceiveStream"):
        stdio.TextReceiveStream = WholeLines
    else:
        log.warning("This version of the MCP SDK cannot be given a limit: long lines of its servers are slow to read")


class ErrorOutput(asyncio.Protocol):
    """The output of a server to its stderr: the end of it is kept, for the line that says why it failed."""

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


class NotStartedError(Exception):
    """The program does not let a server start; the text says why."""


class Link:
    """The way to one server, by ``sse`` where that is so; ``ask`` says whether its program may start.
    ``status`` is the HTTP status of the newest answer, where there is one."""

    def __init__(
        self, name: str, server: McpServer, ended: Callable[[], None], sse: bool, ask: Callable[[MayStart | Relay], Any]
    ) -> None:
        self._ask = ask
        self._name, self._server, self._ended, self._by_sse = name, server, ended, sse
        self._bearer = Bearer.of(Tokens(user_paths().data), name, server) if may_sign_in(server) else None
        self.errors = ErrorOutput()
        self.status: int | None = None
        self._bound = False

    def transport(self) -> AbstractAsyncContextManager[TransportStreams]:
        read_leniently()
        if self.is_carried:
            return self._carried()
        if not self._server.url:
            return self._stdio()
        return self._sse(self._server.url) if self._by_sse else self._http(self._server.url)

    @property
    def is_carried(self) -> bool:
        """True for a server inside the program that drives the run. It speaks the older protocol: of its notifications
        none comes back."""
        return not (self._server.url or self._server.command)

    @property
    def asks_to_sign_in(self) -> bool:
        return self._bearer is not None and self.status == 401

    @property
    def tokens(self) -> list[str]:
        """What came of a sign-in, and must not be repeated by anybody."""
        return self._bearer.secrets if self._bearer is not None else []

    @property
    def knows_no_http(self) -> bool:
        """True when the server answered as one that knows only the older SSE does."""
        return self.status in (400, 404, 405) and not self._by_sse

    @asynccontextmanager
    async def _stdio(self) -> AsyncGenerator[TransportStreams, None]:
        server = self._server
        start = await self._ask(MayStart(self._name))
        if not isinstance(start, ServerStart):
            raise NotStartedError(start.error if isinstance(start, Refused) else "nobody says that it may start")
        supervisor, *arguments = starter("supervise", {"quiet": True}, [start.program, *server.args])
        parameters = StdioServerParameters(
            command=supervisor, args=arguments, env=start.environment, cwd=server.cwd, encoding_error_handler="replace"
        )
        stderr = await self.errors.open()
        bound_lines()
        _bounded.set(self._too_long)
        try:
            async with stdio_client(parameters, stderr) as (read, write):
                stderr.close()
                async with self._watched(read) as messages:
                    yield messages, write
        finally:
            stderr.close()
            self.errors.close()

    @asynccontextmanager
    async def _carried(self) -> AsyncGenerator[TransportStreams, None]:
        answers, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, messages = anyio.create_memory_object_stream[SessionMessage](0)
        waiting: dict[Any, anyio.CancelScope] = {}

        async def carry(message: Any) -> None:
            said = message.model_dump(by_alias=True, mode="json", exclude_none=True)
            answer = await self._ask(Relay(self._name, said))
            if "id" not in said or "method" not in said:
                return
            if isinstance(answer, Relayed):
                whole = {"jsonrpc": "2.0", "id": said["id"]}
                whole |= {key: answer.message[key] for key in ("result", "error") if key in answer.message}
                back = _Reader().validate_json(json.dumps(whole))
            else:
                why = answer.error if isinstance(answer, Refused) else "no answer"
                error = types.ErrorData(code=types.INTERNAL_ERROR, message=why)
                back = types.JSONRPCError(jsonrpc="2.0", id=said["id"], error=error)
            await answers.send(SessionMessage(back))

        async def request(message: types.JSONRPCRequest) -> None:
            with anyio.CancelScope() as scope:
                waiting[message.id] = scope
                await carry(message)
            del waiting[message.id]

        async def pump() -> None:
            async for item in messages:
                match item.message:
                    case types.JSONRPCRequest() as asked:
                        group.start_soon(request, asked)
                    case types.JSONRPCNotification(method="notifications/cancelled", params=dict(params)) as told:
                        # The server hears it before the program hears that nobody waits.
                        group.start_soon(carry, told)
                        if (scope := waiting.get(params.get("requestId"))) is not None:
                            scope.cancel()
                    case other:
                        await carry(other)

        async with read, write, messages, answers, anyio.create_task_group() as group:
            group.start_soon(pump)
            yield read, write
            group.cancel_scope.cancel()

    def _too_long(self) -> None:
        self._bound = True
        self._ended()

    @asynccontextmanager
    async def _watched(self, read: Any) -> AsyncGenerator[Any, None]:
        """The messages of a server. The SDK tells nobody that an idle server died; the end of its messages does."""
        forward, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)

        async def pump() -> None:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                async with forward:
                    async for message in read:
                        await forward.send(message)
            self._ended()

        async with messages, anyio.create_task_group() as group:
            group.start_soon(pump)
            yield messages
            group.cancel_scope.cancel()

    @asynccontextmanager
    async def _sse(self, url: str) -> AsyncGenerator[TransportStreams, None]:
        # Its one stream is silent while there is nothing to say.
        client = self._client(read_patience=None)
        async with (
            sse_client(url, httpx_client_factory=lambda *args, **kwargs: client) as (read, write),
            self._watched(read) as messages,
        ):
            yield messages, write

    @asynccontextmanager
    async def _http(self, url: str) -> AsyncGenerator[TransportStreams, None]:
        async with (
            self._client(HTTP_READ_PATIENCE) as client,
            streamable_http_client(url, http_client=client) as streams,
        ):
            yield streams

    def _client(self, read_patience: float | None) -> httpx2.AsyncClient:
        async def remember(response: Any) -> None:
            # A GET may be refused by servers that have nothing to push; that is no failure.
            if response.request.method == "POST":
                self.status = response.status_code
                if self._by_sse and response.status_code >= 400:
                    self._ended()  # the SDK lets the request wait for an answer that cannot come
            elif self._by_sse and response.status_code >= 400:
                self.status = response.status_code
            # Streams are bounded by the SDK, event by event; whole bodies by nobody.
            if "event-stream" not in response.headers.get("content-type", ""):
                net.guard_body(response, MESSAGE_LIMIT)

        headers = {"Accept-Encoding": Unpacker.ACCEPTED, **self._server.headers}
        patience = httpx2.Timeout(HTTP_PATIENCE, read=read_patience)
        client = httpx2.AsyncClient(headers=headers, timeout=patience, auth=self._bearer)
        client.event_hooks["response"].append(remember)
        return client

    def reason(self, error: BaseException) -> str:
        """Returns why connecting or calling failed, in one line, without the secrets the server was given."""
        server = self._server
        secrets = [*server.env.values(), *server.headers.values(), *self.tokens]
        return redact(self._reason(error), [word for value in secrets for word in (value, *value.split())])

    def _reason(self, error: BaseException) -> str:
        error = _first(error)
        server = self._server
        if isinstance(error, NotStartedError):
            return str(error)
        if isinstance(error, TimeoutError) or (isinstance(error, MCPError) and timed_out(error)):
            return f"no answer within {server.timeout:g} s (raise its `timeout` to wait longer){self._said()}"
        if server.url:
            if self._bearer is not None and self._bearer.problem:
                return self._bearer.problem
            if self.asks_to_sign_in:
                return f"it asks you to sign in: /mcp login {self._name} (in a shell: agent-tui mcp login {self._name})"
            if self._bearer is not None and self._bearer.wanted and self.status == 403:
                return f"it wants more rights than you gave it: sign in again with /mcp login {self._name}"
            if self.status in (401, 403):
                return f"it needs authorization (HTTP {self.status}); set its headers, e.g. Authorization"
            if self.status is not None and self.status >= 400:
                said = f": {error}" if isinstance(error, MCPError) and error.message not in STAND_INS else ""
                return f"it answered HTTP {self.status}{said}"
        if self._bound:
            return f"it sent a message of more than {MESSAGE_LIMIT // 1_000_000} MB"
        if isinstance(error, MCPError) and was_closed(error):
            return f"the connection ended{self._said()}" if server.url else f"the server exited{self._said()}"
        if server.url and isinstance(error, httpx2.ConnectError):
            return net.unreached(server.url, error)
        return f"{type(error).__name__}: {error}"

    def _said(self) -> str:
        last = self.errors.last_line
        return f", saying: {last}" if last else ""


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error
