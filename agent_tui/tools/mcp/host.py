"""The tool host: the child process that holds the MCP SDK and its servers. ``python -m agent_tui.tools.mcp.host``.

It ends when its standard input ends, and takes its servers with it, so that a killed parent leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO

from agent_tui.config import McpServer
from agent_tui.errors import AgentError
from agent_tui.hardening import bound_memory, hide_memory
from agent_tui.paths import user_paths
from agent_tui.pipes.pipe import BadLineError, Refused, log_to_stderr, own_the_pipe, read_until_the_end
from agent_tui.providers.secrets import mask, redact
from agent_tui.tools.mcp import protocol
from agent_tui.tools.mcp.names import no_server
from agent_tui.tools.mcp.tokens import Tokens
from agent_tui.tools.sandbox.processes import descendants

if TYPE_CHECKING:
    from agent_tui.tools.mcp.connection import Connection
    from agent_tui.tools.mcp.oauth import SignIn

log = logging.getLogger("agent_tui.host")

GRACE = 1.5
"""Seconds that servers get to end by themselves; then they are killed."""


class Host:
    """Keeps the connections that the program wants and answers its requests, each in a task of its own. What servers
    ask is put to the program."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._connections: dict[str, Connection] = {}
        self._requests: dict[int, asyncio.Task[None]] = {}
        self._background: set[asyncio.Task[Any]] = set()
        self._roots: list[str] = []
        self._asked: dict[int, asyncio.Future[object]] = {}
        self._questions = 0
        self._sign_ins: dict[str, tuple[int, SignIn]] = {}

    def receive(self, data: bytes) -> None:
        """Takes one line. What cannot be understood is logged, and refused where it says whose it is."""
        try:
            request, message = protocol.TO_HOST.read(data)
        except BadLineError as error:
            log.warning("Ignored a line: %s", redact(str(error)))
            self._refuse(error.id, str(error))
            return
        match message:
            case None:
                self._refuse(request, "unknown operation")
            case protocol.Servers(servers, roots):
                self._roots = roots
                self._configure(servers)
            case protocol.Elicited() | protocol.ServerStart() | protocol.Relayed() | Refused():
                if (future := self._asked.get(request)) is not None and not future.done():
                    future.set_result(message)
            case protocol.Reconnect(server):
                self._reconnect(server)
            case protocol.CancelRequest():
                if task := self._requests.get(request):
                    task.cancel()
            case _:
                self._requests[request] = asyncio.create_task(self._answer(request, message))

    def _send(self, message: object, request: int = 0, of: Connection | None = None) -> None:
        """Sends what comes ``of`` a server without its tokens: it may repeat what it was sent, and much of that is
        stored."""
        tokens = of.tokens if of is not None else []
        self._write(protocol.FROM_HOST.line(_masked(message, tokens) if tokens else message, request))

    def _refuse(self, request: int, error: str, of: Connection | None = None) -> None:
        if request:
            self._send(Refused(error), request, of)

    def _report(self, change: protocol.ServerChange) -> None:
        self._send(change, of=self._connections.get(change.server))
        # Should this process be killed, its parent ends the servers that are left.
        self._send(protocol.Children(sorted(descendants(os.getpid()))))

    def _configure(self, wanted: dict[str, McpServer]) -> None:
        for name, connection in list(self._connections.items()):
            if wanted.get(name) != connection.server:
                del self._connections[name]
                self._spawn(connection.close())
        for name, server in wanted.items():
            if name in self._connections:
                self._connections[name].tell_roots(self._roots)
            else:
                self._connections[name] = self._connect(name, server)

    def _connect(self, name: str, server: McpServer) -> Connection:
        from agent_tui.tools.mcp.connection import Connection

        return Connection(name, server, self._report, self._put, self._roots)

    async def _put(self, question: protocol.Elicit | protocol.MayStart | protocol.Relay) -> object:
        """What the program answers to a server's question, to ours before a start, or to what it passes on; one that
        nobody waits for any more is withdrawn."""
        self._questions += 1
        number = self._questions
        future = self._asked[number] = asyncio.get_running_loop().create_future()
        self._send(question, number, self._connections.get(question.server))
        try:
            return await future
        finally:
            del self._asked[number]
            if future.cancelled():
                self._send(protocol.Withdrawn(), number)

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

    async def _answer(self, request: int, message: protocol.Request) -> None:
        connection = self._connections.get(message.server)
        try:
            self._send(await self._ask(request, message, connection), request, connection)
        except asyncio.CancelledError:
            self._refuse(request, "cancelled")
        except Exception as error:
            text = str(error)
            if type(error).__name__ != "CallFailed" and not isinstance(error, AgentError):
                log.exception("%s failed", type(message).__name__)
                text = f"{type(error).__name__}: {error}"
            self._refuse(request, text, connection)
        finally:
            self._requests.pop(request, None)

    async def _ask(self, request: int, message: protocol.Request, connection: Connection | None) -> object:
        if connection is None:
            return Refused(no_server(message.server))
        match message:
            case protocol.CallTool(_, tool, arguments):
                return await connection.call(
                    tool, arguments, lambda text: self._send(protocol.Progress(text), request, connection)
                )
            case protocol.ReadResource(_, uri):
                return await connection.read(uri)
            case protocol.FillPrompt(_, name, filled):
                return await connection.prompt(name, filled)
            case protocol.SignInRequest(name):
                return protocol.Told(await self._sign_in(request, name, connection.server))
            case protocol.Paste(name, address):
                if (waiting := self._sign_ins.get(name)) is None:
                    return Refused(f"No sign-in to {name} waits for an address.")
                waiting[1].take(address)
                return protocol.Told("")
            case protocol.SignOut(name):
                from agent_tui.tools.mcp.oauth import sign_out

                return protocol.Told(await sign_out(Tokens(user_paths().data), name, connection.server))

    async def _sign_in(self, request: int, name: str, server: McpServer) -> str:
        from agent_tui.tools.mcp.oauth import SignIn

        def show(address: str) -> None:
            self._send(protocol.Progress(address), request, self._connections.get(name))

        if (earlier := self._sign_ins.get(name)) is not None:
            self._requests[earlier[0]].cancel()
        one = SignIn(Tokens(user_paths().data), name, server, show)
        self._sign_ins[name] = request, one
        try:
            return await one.run()
        finally:
            if self._sign_ins.get(name) == (request, one):
                del self._sign_ins[name]

    async def close(self) -> None:
        """Ends all connections."""
        await asyncio.gather(*(c.close() for c in self._connections.values()), return_exceptions=True)


_NOT_MASKED = ("server", "state", "role", "media_type", "data")
"""Fields that are no text of the server's."""


def _masked(value: Any, tokens: list[str]) -> Any:
    match value:
        case str():
            return mask(value, tokens)
        case dict():
            return {_masked(name, tokens): _masked(each, tokens) for name, each in value.items()}
        case list():
            return [_masked(each, tokens) for each in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            texts = [field.name for field in fields(value) if field.name not in _NOT_MASKED]
            return replace(value, **{name: _masked(getattr(value, name), tokens) for name in texts})
    return value


def _end_children() -> None:
    """Kills every server that is left, with its group where it leads one."""
    for pid in descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getpgid(pid) == pid:
                os.killpg(pid, signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)


async def serve(stdin: BinaryIO, stdout: BinaryIO) -> None:
    """Answers until the input ends."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, stdout)
    host, ended = Host(transport.write), asyncio.Event()

    def last() -> None:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(ended.set)
        time.sleep(GRACE * 2)
        _end_children()

    read_until_the_end(stdin, host.receive, last)
    await ended.wait()
    closing = asyncio.create_task(host.close())
    await asyncio.wait([closing], timeout=GRACE)
    _end_children()
    for _ in range(50):
        if not descendants(os.getpid()):
            break
        await asyncio.sleep(0.01)
    os._exit(0)


def main() -> None:
    hide_memory()
    bound_memory()
    stdin, stdout = own_the_pipe(protocol.LOG_VARIABLE)
    log_to_stderr("host", redact)
    asyncio.run(serve(stdin, stdout))


if __name__ == "__main__":
    main()
