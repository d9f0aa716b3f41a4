"""The worker as the program sees it: the child process that counts, and is the gateway to LiteLLM. Imports nothing
heavy."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar, get_args

from agent_tui.errors import WorkerError
from agent_tui.pipes.pipe import BadLineError, ChildPipe, Refused, UnknownNameError
from agent_tui.pipes.start import command as command_of
from agent_tui.pipes.start import start
from agent_tui.providers.dialects.litellm import LibraryCall
from agent_tui.providers.errors import GatewayError
from agent_tui.providers.gathering import in_turns
from agent_tui.providers.net import BoundError
from agent_tui.providers.worker import protocol
from agent_tui.providers.worker.protocol import FROM_WORKER, TO_WORKER, WorkerState

log = logging.getLogger(__name__)

T = TypeVar("T")

LOG_VARIABLE = "AGENT_TUI_WORKER_LOG"
"""Environment variable naming the file that takes whatever libraries print; without it that is thrown away."""

COMMAND = command_of("agent_tui.providers.worker.serve")

START_TIMEOUT = 60.0
"""Seconds a worker may take to say its first word."""

HANG_TIMEOUT = 20.0
"""Seconds without a sign of life, while something is asked of the worker, before it is taken for hung. LiteLLM's
import holds the interpreter for up to a second at a time."""

IDLE = 10.0
"""Seconds after which a worker that only counts is let go."""

BACKOFF = (0.0, 0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds before a (re)start, by the number of deaths in a row without an answer in between."""

_PINGS = 4
_GONE = Refused("The provider worker crashed; it restarts at the next call.")


class WorkerClient:
    """A Counter and a Gateway over one worker: started when it is first asked, again after it died, and ended when
    nobody has asked it for ``idle`` seconds, unless it has the gateway's library loaded.

    ``state`` says how far it is; ``on_state`` is called with each change, on the loop. Requests are accepted in every
    state: they wait in the pipe while the worker starts. ``log_file`` takes the worker's log.
    """

    def __init__(
        self,
        *,
        log_file: Path | None = None,
        on_state: Callable[[WorkerState], None] | None = None,
        command: Sequence[str] = COMMAND,
        start_timeout: float = START_TIMEOUT,
        hang_timeout: float = HANG_TIMEOUT,
        idle: float = IDLE,
    ) -> None:
        self.state: WorkerState = "stopped"
        self.on_state = on_state
        self._log_file = log_file
        self._command = tuple(command)
        self._start_timeout, self._hang_timeout, self._idle = start_timeout, hang_timeout, idle
        self._pipe: ChildPipe | None = None
        self._starting = asyncio.Lock()
        self._pending: dict[int, asyncio.Queue[Any]] = {}
        self._next_id = 0
        self._deaths = 0
        self._died_at = 0.0
        self._closed = False
        self._watcher: asyncio.Task[None] | None = None
        self._retirement: asyncio.TimerHandle | None = None
        self._retiring: set[asyncio.Task[None]] = set()

    @property
    def pid(self) -> int | None:
        return self._pipe.pid if self._pipe is not None else None

    @property
    def running(self) -> bool:
        return self._pipe is not None and not self._pipe.dead.is_set()

    async def prepare(self) -> None:
        """Has the gateway's library imported in the background, ahead of the first call."""
        await self._ask(protocol.Prepare(), protocol.Preparing)

    async def close(self) -> None:
        """Ends the worker; what is pending fails. The client is of no use afterwards."""
        self._closed = True
        if self._retirement is not None:
            self._retirement.cancel()
        if self._pipe is not None:
            await self._pipe.close()
        await asyncio.gather(*self._retiring)
        if self._watcher is not None:
            self._watcher.cancel()

    async def events(self, call: LibraryCall) -> AsyncGenerator[dict[str, Any], None]:
        """What a call streams. Closing the generator cancels it. Raises GatewayError, BoundError, WorkerError."""
        async with self._question(call) as answers:
            async for message in in_turns(answers):
                match message:
                    case protocol.GatewayEvent(event):
                        yield event
                    case protocol.CallEnded():
                        return
                    case protocol.GatewayFailed(seen):
                        raise GatewayError(seen)
                    case protocol.BoundReached(words, way):
                        bound = BoundError(words)
                        bound.way = way
                        raise bound
                    case Refused(error):
                        raise WorkerError(error)
                    case _:
                        raise WorkerError(f"The provider worker answered with {type(message).__name__}.")

    async def count(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        """o200k_base tokens of each text by kind. Raises WorkerError."""
        if not texts:
            return []
        return (await self._ask(protocol.Count([*texts]), protocol.Counts)).counts

    async def _ask(self, question: object, kind: type[T]) -> T:
        """The answer to a message, which is of ``kind``. Raises WorkerError."""
        async with self._question(question) as answers:
            answer = await answers.get()
        if isinstance(answer, Refused):
            raise WorkerError(answer.error)
        if not isinstance(answer, kind):
            raise WorkerError(f"The provider worker answered with {type(answer).__name__}.")
        return answer

    @asynccontextmanager
    async def _question(self, message: object) -> AsyncIterator[asyncio.Queue[Any]]:
        """What is answered to a message. Leaving the context by an exception cancels it. Raises WorkerError."""
        self._next_id += 1
        call_id, answers = self._next_id, asyncio.Queue[Any]()
        self._pending[call_id] = answers
        try:
            pipe = await self._running()
            pipe.write(TO_WORKER.line(message, call_id))
            if self._watcher is None or self._watcher.done():
                self._watcher = asyncio.create_task(self._look_after(), name="worker watch")
            yield answers
        except BaseException:
            if self._pipe is not None:
                self._pipe.write(TO_WORKER.line(protocol.Cancel(), call_id))
            raise
        finally:
            del self._pending[call_id]
            if not self._pending:
                self._retire_later()

    def _retire_later(self) -> None:
        """Ends the worker when nobody has asked it anything for a while: it takes as much memory as the program."""
        if self._retirement is not None:
            self._retirement.cancel()
        self._retirement = asyncio.get_running_loop().call_later(self._idle, self._retire)

    def _retire(self) -> None:
        self._retirement, pipe = None, self._pipe
        if pipe is None or self._pending or self.state in ("litellm_loading", "litellm_ready"):
            return
        self._pipe = None
        task = asyncio.create_task(pipe.close(), name="worker's end")
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)
        self._set_state("stopped")

    async def _running(self) -> ChildPipe:
        """The worker's pipe, started when there is none. Raises WorkerError."""
        async with self._starting:
            if self._closed:
                raise WorkerError("The provider worker is closed.")
            if self._pipe is not None and not self._pipe.dead.is_set():
                return self._pipe
            wait = self._died_at + BACKOFF[min(self._deaths, len(BACKOFF) - 1)] - asyncio.get_running_loop().time()
            if self._deaths and wait > 0:
                await asyncio.sleep(wait)
            # The worker needs the keys that are in variables.
            log = {LOG_VARIABLE: str(self._log_file)} if self._log_file is not None else {}
            try:
                process = start(self._command, {**os.environ, **log})
                self._pipe = await ChildPipe.over(process, self._line, self._death)
            except OSError as error:
                raise WorkerError(f"Cannot start the provider worker: {error}") from error
            return self._pipe

    def _line(self, data: bytes) -> None:
        message: object
        try:
            call_id, message = FROM_WORKER.read(data)
        except UnknownNameError:
            raise
        except BadLineError as error:
            log.warning("The provider worker sent what is ignored: %s", error)
            call_id, message = error.id, Refused(f"The provider worker sent an unreadable message: {error}")
        if isinstance(message, protocol.State):
            if message.state in get_args(WorkerState):
                self._set_state(message.state)
        elif message is not None and (queue := self._pending.get(call_id)) is not None:
            if not isinstance(message, protocol.GatewayEvent):
                self._deaths = 0
            queue.put_nowait(message)

    def _death(self, pipe: ChildPipe) -> None:
        if pipe is not self._pipe:
            return
        self._deaths += 1
        self._died_at = asyncio.get_running_loop().time()
        if not self._closed:
            log.warning("The provider worker died")
        for queue in self._pending.values():
            queue.put_nowait(_GONE)
        self._set_state("stopped")

    def _set_state(self, state: WorkerState) -> None:
        if state != self.state:
            self.state = state
            if self.on_state is not None:
                self.on_state(state)

    async def _look_after(self) -> None:
        """Pings a silent worker and kills it when it stays silent. Counts pings, not seconds: a suspended program
        must not blame the worker for its own sleep."""
        tick = self._hang_timeout / _PINGS
        while self._pending:
            pipe = self._pipe
            await asyncio.sleep(tick)
            if pipe is None or pipe is not self._pipe or not self._pending:
                continue
            if pipe.missed * tick >= (self._hang_timeout if pipe.heard else self._start_timeout):
                log.warning("The provider worker does not answer and is killed")
                pipe.kill()
                return
            pipe.missed += 1
            pipe.write(TO_WORKER.line(protocol.Ping()))
