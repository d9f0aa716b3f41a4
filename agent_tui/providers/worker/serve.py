"""The provider worker: the child process that holds tiktoken and LiteLLM.

Two stages: counting and descriptions answer at once; LiteLLM is imported, in a thread, when a real model is about to
be used (``prepare``) or is called. It exits hard when its standard input ends: a killed parent leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, BinaryIO

from agent_tui.hardening import bound_memory, hide_memory
from agent_tui.models.messages import user_message
from agent_tui.models.requests import (
    Failed,
    ModelInfo,
    ModelRequest,
    ModelSpec,
    SentMessage,
    Started,
    StreamItem,
    SystemBlock,
    ToolSchema,
)
from agent_tui.pipes.pipe import BadLineError, Refused, log_to_stderr, own_the_pipe, read_until_the_end
from agent_tui.providers.catalog import DUMMY_KEY, dialect_of
from agent_tui.providers.counting import count_all, encoding, use_bundled_vocabulary
from agent_tui.providers.limits import describe
from agent_tui.providers.litellm import prepare_environment
from agent_tui.providers.secrets import redact
from agent_tui.providers.worker import protocol
from agent_tui.providers.worker.protocol import Outbox
from agent_tui.providers.worker.start import LOG_VARIABLE

if TYPE_CHECKING:
    from agent_tui.providers.direct import Connections


log = logging.getLogger("agent_tui.worker")

TOKENIZER_PATIENCE = 0.6
"""Seconds that loading the tokenizer waits for a first request to be answered."""

LONG_TEXTS = 40_000
"""Characters from which on a count is not kept waiting for that."""


class Worker:
    """Answers the lines of the UI process. Every line is handled in a task of its own."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self.out = Outbox(write)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._infos: dict[str, ModelInfo] = {}
        self._litellm: asyncio.Task[Any] | None = None
        self._counter = ThreadPoolExecutor(1, "counting")
        self._warmed: set[tuple[str, str]] = set()
        self._background: asyncio.Task[None] | None = None
        self._tokenizer: asyncio.Task[None] | None = None
        self._answered = asyncio.Event()
        self._direct: Connections | None = None

    def start(self) -> None:
        """Says that it is ready; the tokenizer is loaded a little later."""
        self._tokenizer = asyncio.create_task(self._load_tokenizer())
        self.state("ready")

    async def _load_tokenizer(self) -> None:
        """Loads the tokenizer once a first request is answered, or nobody makes one: both want the interpreter for
        themselves for a third of a second, and only the request is waited for."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TOKENIZER_PATIENCE):
                await self._answered.wait()
        await asyncio.get_running_loop().run_in_executor(self._counter, _load_tokenizer)

    def state(self, state: protocol.WorkerState) -> None:
        self.out.send(protocol.State(state))

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
                self.out.send(protocol.Pong())
            case protocol.Cancel():
                self.out.drop(call_id)
                if task := self._tasks.get(call_id):
                    task.cancel()
            case _:
                self._tasks[call_id] = asyncio.create_task(self._answer(call_id, message))

    def _refuse(self, call_id: int, error: Exception) -> None:
        if call_id:
            self.out.send(Refused(redact(f"{type(error).__name__}: {error}")), call_id)

    async def _answer(self, call_id: int, message: Any) -> None:
        try:
            match message:
                case protocol.Stream(request):
                    await self._stream(call_id, request)
                case protocol.Describe(spec):
                    self.out.send(await self._info(spec, ask_server=True), call_id)
                case protocol.Count(texts):
                    self.out.send(protocol.Counts(await self._count(texts)), call_id)
                case protocol.CountExactly(request):
                    self.out.send(protocol.ExactCount(await self._count_exactly(request)), call_id)
                case protocol.Prepare(spec):
                    self.out.send(protocol.Preparing(), call_id)
                    self._prepare(spec)
                case _:
                    raise TypeError(f"nothing answers {type(message).__name__}")
        except asyncio.CancelledError:
            self.out.drop(call_id)
        except Exception as error:
            log.exception("%s failed", type(message).__name__)
            self._refuse(call_id, error)
        finally:
            self._tasks.pop(call_id, None)

    async def _stream(self, call_id: int, request: ModelRequest) -> None:
        from agent_tui.providers import calling

        info = await self._info(request.spec, ask_server=False)

        def emit(item: StreamItem) -> None:
            if not isinstance(item, Started):
                self._answered.set()
            self.out.item(call_id, item)

        await calling.run(request, info, emit, self.litellm, self._connections())
        self.out.end(call_id)

    def _connections(self) -> Connections:
        """The connections of direct calls; the library below them is imported with the first."""
        from agent_tui.providers.direct import Connections

        if self._direct is None:
            self._direct = Connections()
        return self._direct

    async def _count(self, texts: list[str]) -> list[int]:
        if sum(map(len, texts)) > LONG_TEXTS:
            # Whether to compact may hang on it.
            self._answered.set()
        if self._tokenizer is not None:
            await asyncio.shield(self._tokenizer)
        return await asyncio.get_running_loop().run_in_executor(self._counter, count_all, texts)

    async def _count_exactly(self, request: ModelRequest) -> int | None:
        from agent_tui.providers.direct import count

        info = await self._info(request.spec, ask_server=False)
        return await count(request, info, self._connections())

    def _prepare(self, spec: ModelSpec | None) -> None:
        if spec is None:
            self._begin_litellm(None)
        else:
            self._warm(spec)

    async def _info(self, spec: ModelSpec, ask_server: bool) -> ModelInfo:
        """The model's description. Asking a local server takes time, so a call uses what was learnt before."""
        from agent_tui.providers.limits import describe, is_local
        from agent_tui.providers.local_servers import server_limits

        name = repr(spec)
        info = describe(spec)
        if ask_server and spec.context_window is None and is_local(spec, info.target):
            limits = await server_limits(spec, info.target)
            if limits is not None:
                info = describe(spec, limits)
                self._infos[name] = info
        elif not ask_server and (known := self._infos.get(name)) is not None:
            info.limits = known.limits
        return info

    def _warm(self, spec: ModelSpec) -> None:
        """Loads LiteLLM for a model; where it is loaded, makes a first call of the model's kind."""
        from agent_tui.providers.catalog import is_direct, resolve_target

        target = resolve_target(spec)
        if is_direct(spec, target):
            # What a first call imports; the connection itself opens with the call.
            asyncio.get_running_loop().run_in_executor(None, self._connections().warm, spec.api_base)
            return
        if (kind := (target.provider, target.api)) in self._warmed:
            return
        self._warmed.add(kind)
        if self._litellm is None or self._failed():
            self._begin_litellm(spec)
        else:
            self._background = asyncio.create_task(self._warm_later(spec))

    def _failed(self) -> bool:
        task = self._litellm
        return task is not None and task.done() and (task.cancelled() or task.exception() is not None)

    def _begin_litellm(self, spec: ModelSpec | None) -> asyncio.Task[Any]:
        if self._litellm is None or self._failed():
            self._litellm = asyncio.create_task(self._load_litellm(spec))
        return self._litellm

    async def litellm(self) -> Any:
        """LiteLLM, imported when it is not yet. A cancelled caller does not stop the import."""
        return await asyncio.shield(self._begin_litellm(None))

    async def _load_litellm(self, spec: ModelSpec | None) -> Any:
        from agent_tui.providers.calling import load_litellm

        self.state("litellm_loading")
        try:
            litellm = await asyncio.to_thread(load_litellm)
            await warm_up(litellm, spec)
        except Exception:
            self.state("ready")
            raise
        self.state("litellm_ready")
        return litellm

    async def _warm_later(self, spec: ModelSpec) -> None:

        await warm_up(await self.litellm(), spec)


def _load_tokenizer() -> None:
    try:
        encoding()
    except Exception:
        log.exception("The tokenizer cannot be loaded")


async def serve(stdin: BinaryIO, stdout: BinaryIO) -> None:
    """Answers until the input ends, which ends the process."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, stdout)
    worker = Worker(transport.write)
    worker.start()
    read_until_the_end(stdin, worker.receive)
    await asyncio.Event().wait()


def main() -> None:
    hide_memory()
    bound_memory()
    stdin, stdout = own_the_pipe(LOG_VARIABLE)
    log_to_stderr("worker", redact)
    logging.getLogger("agent_tui").setLevel(logging.INFO)
    prepare_environment(os.environ)
    use_bundled_vocabulary()
    asyncio.run(serve(stdin, stdout))


if __name__ == "__main__":
    main()


TIMEOUT = 10.0
_PLAIN = ModelSpec("warm", "openai/warm")
_TOOL = ToolSchema("noop", "Does nothing.", {"type": "object", "properties": {}})
_USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


async def warm_up(litellm: Any, spec: ModelSpec | None = None) -> None:
    """Makes one call as for ``spec`` (without one: to an OpenAI-compatible server). A failure costs only the warmth."""
    from agent_tui.providers import calling

    if spec is None or dialect_of(describe(spec).target.provider).credentials_elsewhere:
        spec = _PLAIN
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    request = _request(spec, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    info = describe(request.spec)
    info.problem = None
    ends: list[StreamItem] = []

    async def load() -> Any:
        return litellm

    try:
        await calling.run(request, info, ends.append, load)
        if ends and isinstance(ends[-1], Failed):
            log.info("Warm-up of %s failed: %s", info.target.provider, ends[-1].failure.detail[:300])
    except Exception as error:
        log.warning("Warm-up failed: %s", error)
    finally:
        server.close()


def _request(spec: ModelSpec, base: str) -> ModelRequest:
    api: Any = describe(spec).target.api
    own = dataclasses.replace(
        spec,
        api_base=base,
        api_key=DUMMY_KEY,
        api=api,
        extra={},
    )
    return ModelRequest(
        id="warm",
        spec=own,
        session_id="warm",
        system=[SystemBlock("system", "Be brief.")],
        messages=[SentMessage(user_message("hi"), "warm")],
        tools=[_TOOL],
        max_output=1024,
        effort="off",
        timeout=TIMEOUT,
    )


async def read_request(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    """Path and body of an HTTP request that says how long it is. Raises EOFError when the client leaves."""
    head = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
    fields = [line.lower() for line in head]
    length = next((int(line.partition(b":")[2]) for line in fields if line.startswith(b"content-length:")), 0)
    return head[0].split(b" ")[1].decode("latin-1"), await reader.readexactly(length)


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        path, _ = await read_request(reader)
        body = b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in _answer(path.partition("?")[0]))
        head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n\r\n"
        writer.write(head.format(len(body)).encode() + body)
        await writer.drain()
    except (OSError, EOFError):
        log.debug("A warm-up call broke off", exc_info=True)
    finally:
        writer.close()


def _answer(path: str) -> Sequence[dict[str, Any]]:
    """The shortest complete answer in the protocol that the path belongs to."""
    if path.endswith("/messages"):
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": "m", "type": "message", "role": "assistant", "model": "warm", "content": [], "usage": usage}
        return [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ok"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
            {"type": "message_stop"},
        ]
    if path.endswith("GenerateContent"):
        candidate = {"content": {"role": "model", "parts": [{"text": "ok"}]}, "finishReason": "STOP"}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        return [{"candidates": [candidate], "usageMetadata": usage}]
    if path.endswith("/responses"):
        response = {"id": "r", "object": "response", "created_at": 1, "model": "warm", "output": []}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        return [
            {"type": "response.created", "response": {**response, "status": "in_progress"}},
            {"type": "response.completed", "response": {**response, "status": "completed", "usage": usage}},
        ]
    chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "warm"}
    text = {"index": 0, "delta": {"role": "assistant", "content": "ok"}, "finish_reason": None}
    return [
        {**chunk, "choices": [text]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {**chunk, "choices": [], "usage": _USAGE},
    ]
