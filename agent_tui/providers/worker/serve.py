"""The provider worker: the child process that counts with tiktoken, and calls through LiteLLM the models that need it.

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
from agent_tui.models.failure import make_failure
from agent_tui.models.requests import Failed, ModelInfo, ModelRequest, ModelSpec, StreamItem
from agent_tui.pipes.pipe import BadLineError, Refused, log_to_stderr, own_the_pipe, read_until_the_end
from agent_tui.providers.counting import count_all, use_bundled_vocabulary
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
        self._warmed: set[tuple[str, str]] = set()
        self._background: asyncio.Task[None] | None = None

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
                case protocol.Stream(request, info):
                    await self._stream(call_id, request, info)
                case protocol.Count(texts):
                    counts = await asyncio.get_running_loop().run_in_executor(self._counter, count_all, texts)
                    self.send(protocol.Counts(counts), call_id)
                case protocol.Prepare(spec):
                    self.send(protocol.Preparing(), call_id)
                    self._prepare(spec)
                case _:
                    raise TypeError(f"nothing answers {type(message).__name__}")
        except Exception as error:
            log.exception("%s failed", type(message).__name__)
            self._refuse(call_id, error)
        finally:
            self._tasks.pop(call_id, None)

    async def _stream(self, call_id: int, request: ModelRequest, info: ModelInfo) -> None:
        from agent_tui.providers.gathering import DeltaGatherer
        from agent_tui.providers.litellm_call import LiteLLMAnswer

        def emit(item: StreamItem) -> None:
            self.send(item, call_id)

        try:
            litellm = await self.litellm()
        except Exception as error:
            log.exception("LiteLLM cannot be imported")
            emit(Failed(make_failure("worker", f"Cannot load LiteLLM: {error}.", "Reinstall agent-tui.")))
            return
        gatherer = DeltaGatherer(emit)
        try:
            await LiteLLMAnswer(request, info, gatherer.put, litellm).stream()
        finally:
            gatherer.drop()

    def _prepare(self, spec: ModelSpec) -> None:
        """Loads LiteLLM; where it is loaded, makes a first call of the model's kind."""
        from agent_tui.providers.catalog import resolve_target

        target = resolve_target(spec)
        if (kind := (target.provider, target.api)) not in self._warmed:
            self._warmed.add(kind)
            before = self._litellm
            if before is self._loading(spec):
                # It was loaded for another model.
                self._background = asyncio.create_task(self._warm_later(spec))

    def _loading(self, spec: ModelSpec | None) -> asyncio.Task[Any]:
        """LiteLLM's import, which is begun anew where it failed."""
        task = self._litellm
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._litellm = asyncio.create_task(self._load_litellm(spec))
        return task

    async def litellm(self) -> Any:
        """LiteLLM, imported when it is not yet. A cancelled caller does not stop the import."""
        return await asyncio.shield(self._loading(None))

    async def _load_litellm(self, spec: ModelSpec | None) -> Any:
        from agent_tui.providers.litellm_call import load_litellm
        from agent_tui.providers.worker.warm_up import warm_up

        self.say("litellm_loading")
        try:
            litellm = await asyncio.to_thread(load_litellm)
            await warm_up(litellm, spec)
        except Exception:
            self.say("ready")
            raise
        self.say("litellm_ready")
        return litellm

    async def _warm_later(self, spec: ModelSpec) -> None:
        from agent_tui.providers.worker.warm_up import warm_up

        await warm_up(await self.litellm(), spec)


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
