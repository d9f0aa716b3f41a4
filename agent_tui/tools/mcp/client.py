"""The tool host as the program sees it: started when first needed, asked over its pipe, started again when it dies.

Imports neither the MCP SDK nor anything else that is heavy.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from agent_tui.config import McpServer
from agent_tui.errors import AgentError, ToolError
from agent_tui.models.messages import Metadata
from agent_tui.pipes.pipe import BadLineError, ChildPipe, Refused, UnknownNameError
from agent_tui.pipes.start import command as command_of
from agent_tui.pipes.start import start
from agent_tui.tools.mcp import protocol
from agent_tui.tools.mcp.patience import Patience

log = logging.getLogger(__name__)

A = TypeVar("A")

Ask = Callable[[protocol.Elicit], Awaitable[object]]
"""Answers a server's question, with what the protocol says. Raises ToolError, which refuses it."""

Carry = Callable[[str, Metadata], Awaitable[Metadata]]
"""Brings a message to a server inside the program that drives the run; the answer. Raises AgentError."""

COMMAND = command_of("agent_tui.tools.mcp.host")

RESTARTS = (0.0, 1.0, 5.0)
"""Seconds before the host is started again, by the number of its deaths."""

PATIENCE = 4.0
"""Seconds the host gets to end its servers before it is killed."""

_GRACE = 15.0


class HostClient:
    """``on_server`` gets the host's word on a server, ``on_down`` the reason when the host is gone for good."""

    def __init__(
        self,
        on_server: Callable[[protocol.ServerChange], None],
        on_down: Callable[[str], None],
        start_of: Callable[[str], Awaitable[object]],
        log_file: Path | None,
    ) -> None:
        self._start_of = start_of
        self._on_server, self._on_down, self._log_file = on_server, on_down, log_file
        self.answers: Ask | None = None
        """Answers what servers ask."""
        self.carry: Carry | None = None
        self._asked: dict[int, asyncio.Task[None]] = {}
        self._patience: defaultdict[str, Patience] = defaultdict(Patience)
        self._roots: list[str] = []
        self._pipe: ChildPipe | None = None
        self._servers: dict[str, McpServer] = {}
        self._pending: dict[int, tuple[asyncio.Future[object], Callable[[str], None]]] = {}
        self._children: list[int] = []
        self._next_id = 0
        self._deaths = 0
        self._closed = False
        self._task: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """The host's process id while it runs."""
        return self._pipe.pid if self._pipe is not None and not self._pipe.dead.is_set() else None

    @property
    def children(self) -> list[int]:
        """The processes the host started, as it last said."""
        return list(self._children)

    def serve(self, servers: dict[str, McpServer], roots: list[str]) -> None:
        """Has the host run exactly these servers and tell them of the folders ``roots``; it is started when there are
        any. Does not wait."""
        self._servers, self._roots = dict(servers), list(roots)
        if self.pid is not None:
            self._write(protocol.Servers(self._servers, self._roots))
        elif servers and not self._closed and (self._task is None or self._task.done()):
            self._deaths = 0
            self._task = asyncio.create_task(self._spawn(0.0), name="tool host")

    def reconnect(self, server: str) -> None:
        self._write(protocol.Reconnect(server))

    async def ask(
        self,
        question: protocol.Request,
        kind: type[A],
        timeout: float,
        progress: Callable[[str], None] = lambda text: None,
    ) -> A:
        """The answer to a request, which is of ``kind``. ``timeout`` is the host's own, in seconds; it is given a
        little longer. Raises ToolError."""
        server = question.server
        if self.pid is None:
            raise ToolError(f"The MCP server {server} is not running.")
        self._next_id += 1
        request = self._next_id
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._pending[request] = future, progress
        self._write(question, request)
        try:
            async with self._patience[server].limit(timeout + _GRACE):
                answer = await future
        except TimeoutError:
            raise ToolError(f"The MCP server {server} did not answer within {timeout:g} s.") from None
        finally:
            del self._pending[request]
            if not future.done() or future.cancelled():
                self._write(protocol.CancelRequest(), request)
        if isinstance(answer, Refused):
            raise ToolError(answer.error)
        if not isinstance(answer, kind):
            raise ToolError(f"The tool host answered with {type(answer).__name__}.")
        return answer

    def waited(self, server: str) -> float:
        """Seconds that the user was waited for, for what a server asked."""
        return self._patience[server].waited

    async def close(self) -> None:
        """Ends the host and its servers."""
        self._closed = True
        running = [*self._asked.values(), *([self._task] if self._task is not None else [])]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        if self._pipe is not None:
            await self._pipe.close(PATIENCE)

    # The process

    async def _spawn(self, delay: float) -> None:
        await asyncio.sleep(delay)
        environment = dict(os.environ)
        if self._log_file is not None:
            environment[protocol.LOG_VARIABLE] = str(self._log_file)
        try:
            self._pipe = await ChildPipe.over(start(COMMAND, environment), self._line, self._death)
        except OSError as error:
            self._on_down(f"cannot start the tool host: {error}")
            return
        self._write(protocol.Servers(self._servers, self._roots))

    def _write(self, message: object, request: int = 0) -> None:
        if self._pipe is not None:
            self._pipe.write(protocol.TO_HOST.line(message, request))

    def _line(self, data: bytes) -> None:
        message: object
        try:
            request, message = protocol.FROM_HOST.read(data)
        except UnknownNameError:
            raise
        except BadLineError as error:
            log.warning("The tool host sent what is ignored: %s", error)
            request, message = error.id, Refused(f"The tool host sent an unreadable message: {error}")
        if isinstance(message, protocol.ServerChange):
            self._on_server(message)
        elif isinstance(message, protocol.Children):
            self._children = message.pids
        elif isinstance(message, protocol.Elicit | protocol.MayStart | protocol.Relay):
            self._asked[request] = asyncio.create_task(self._answer(request, message), name=f"ask {message.server}")
        elif isinstance(message, protocol.Withdrawn):
            if (task := self._asked.get(request)) is not None:
                task.cancel()
        elif message is not None and (entry := self._pending.get(request)) is not None:
            future, progress = entry
            if isinstance(message, protocol.Progress):
                progress(message.text)
            elif not future.done():
                future.set_result(message)

    async def _answer(self, request: int, question: protocol.Elicit | protocol.MayStart | protocol.Relay) -> None:
        """Answers whether a server may start, what its own program says, or what it asks: meanwhile nothing else of
        that server runs out of time."""
        answer: object = Refused("nobody can be asked")
        try:
            if isinstance(question, protocol.MayStart):
                answer = await self._start_of(question.server)
            elif isinstance(question, protocol.Relay):
                if self.carry is not None:
                    answer = protocol.Relayed(await self.carry(question.server, question.message))
            elif self.answers is not None:
                with self._patience[question.server].paused():
                    answer = await self.answers(question)
        except AgentError as error:
            answer = Refused(str(error))
        except Exception as error:
            log.exception("A question of the MCP server %s failed", question.server)
            answer = Refused(f"{type(error).__name__}: {error}")
        finally:
            del self._asked[request]
        self._write(answer, request)

    def _death(self, pipe: ChildPipe) -> None:
        if pipe is not self._pipe:
            return
        for task in self._asked.values():
            task.cancel()
        for future, _ in self._pending.values():
            if not future.done():
                future.set_result(Refused("The tool host exited during the call."))
        if self._closed:
            return
        log.warning("The tool host died")
        self._end_children()
        if self._deaths >= len(RESTARTS):
            self._on_down("the tool host keeps exiting")
            return
        self._on_down("")
        self._task = asyncio.create_task(self._spawn(RESTARTS[self._deaths]), name="tool host")
        self._deaths += 1

    def _end_children(self) -> None:
        """Ends servers of a host that was killed, for systems where their supervisors are slow to notice."""
        children, self._children = self._children, []
        for pid in children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.getpgid(pid) == pid:
                    os.killpg(pid, signal.SIGTERM)
