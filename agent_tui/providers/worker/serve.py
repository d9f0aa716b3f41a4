"""The provider worker: the child process that counts with tiktoken, and is the gateway to LiteLLM.

Counting answers at once; LiteLLM is imported, in a thread, when a model is about to be used (``prepare``) or is called.
It exits hard when its standard input ends: a killed parent leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO

from agent_tui.hardening import bound_memory, hide_memory
from agent_tui.pipes.pipe import BadLineError, Refused, log_to_stderr, own_the_pipe, read_until_the_end
from agent_tui.providers.counting import count_all, use_bundled_vocabulary
from agent_tui.providers.dialects.litellm import LibraryCall
from agent_tui.providers.errors import GatewayError
from agent_tui.providers.net import BoundError
from agent_tui.providers.secrets import redact
from agent_tui.providers.worker import protocol
from agent_tui.providers.worker.client import LOG_VARIABLE
from agent_tui.providers.worker.protocol import FROM_WORKER

log = logging.getLogger("agent_tui.worker")


class Worker:
    """Answers the lines of the program, by ``write``, which takes bytes and never blocks. Every line is handled in a
    task of its own."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._litellm: asyncio.Task[Any] | None = None
        self._counter = ThreadPoolExecutor(1, "counting")

    def send(self, message: object, call_id: int = 0) -> None:
        self._write(FROM_WORKER.line(message, call_id))

    def say(self, state: protocol.WorkerState) -> None:
        self.send(protocol.State(state))

    def receive(self, data: bytes) -> None:
        """Takes one line. What cannot be understood is logged, and refused where it says whose it is."""
        try:
            call_id, message = protocol.TO_WORKER.read(data)
        except BadLineError as error:
            log.warning("Ignored a line: %s", redact(str(error)))
            self._refuse(error.id, error)
            return
        match message:
            case None:
                self._refuse(call_id, ValueError("unknown operation"))
            case protocol.Ping():
                self.send(protocol.Pong())
            case protocol.Cancel():
                if task := self._tasks.get(call_id):
                    task.cancel()
            case _:
                self._tasks[call_id] = asyncio.create_task(self._answer(call_id, message))

    def _refuse(self, call_id: int, error: Exception) -> None:
        if call_id:
            self.send(Refused(redact(f"{type(error).__name__}: {error}")), call_id)

    async def _answer(self, call_id: int, message: Any) -> None:
        try:
            match message:
                case LibraryCall():
                    await self._call(call_id, message)
                case protocol.Count(texts):
                    counts = await asyncio.get_running_loop().run_in_executor(self._counter, count_all, texts)
                    self.send(protocol.Counts(counts), call_id)
                case protocol.Prepare():
                    self.send(protocol.Preparing(), call_id)
                    self._loading()
                case _:
                    raise TypeError(f"nothing answers {type(message).__name__}")
        except Exception as error:
            log.exception("%s failed", type(message).__name__)
            self._refuse(call_id, error)
        finally:
            self._tasks.pop(call_id, None)

    async def _call(self, call_id: int, call: LibraryCall) -> None:
        from agent_tui.providers.litellm_gateway import library_events

        try:
            library = await asyncio.shield(self._loading())
        except Exception as error:
            log.exception("LiteLLM cannot be imported")
            self.send(Refused(f"Cannot load LiteLLM: {redact(str(error))}. Reinstall agent-tui."), call_id)
            return
        try:
            async for event in library_events(library, call):
                self.send(protocol.GatewayEvent(event), call_id)
            self.send(protocol.CallEnded(), call_id)
        except GatewayError as error:
            self.send(protocol.GatewayFailed(error.seen), call_id)
        except BoundError as error:
            self.send(protocol.BoundReached(str(error), error.way), call_id)

    def _loading(self) -> asyncio.Task[Any]:
        """LiteLLM's import, which is begun anew where it failed. A cancelled caller does not stop it."""
        task = self._litellm
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._litellm = asyncio.create_task(self._load())
        return task

    async def _load(self) -> Any:
        from agent_tui.providers.litellm_gateway import load_litellm

        self.say("litellm_loading")
        try:
            library = await asyncio.to_thread(load_litellm)
        except Exception:
            self.say("ready")
            raise
        self.say("litellm_ready")
        return library


async def serve(stdin: BinaryIO, stdout: BinaryIO) -> None:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, stdout)
    worker = Worker(transport.write)
    worker.say("ready")
    read_until_the_end(stdin, worker.receive)
    await asyncio.Event().wait()


def main() -> None:
    hide_memory()
    bound_memory()
    stdin, stdout = own_the_pipe(LOG_VARIABLE)
    log_to_stderr("worker", redact)
    logging.getLogger("agent_tui").setLevel(logging.INFO)
    use_bundled_vocabulary()
    asyncio.run(serve(stdin, stdout))
