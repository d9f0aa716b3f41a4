"""The provider worker: the child process that holds tiktoken and LiteLLM.

Two stages: counting and descriptions answer at once; LiteLLM is imported, in a thread, when a real model is about to
be used (``prepare``) or is called. It exits hard when its standard input ends: a killed parent leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO

from agent_tui.errors import WorkerError
from agent_tui.hardening import bound_memory, hide_memory
from agent_tui.models.messages import user_message
from agent_tui.models.requests import (
    Delta,
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
from agent_tui.providers.catalog import DUMMY_KEY, dialect_of, is_direct, resolve_target
from agent_tui.providers.counting import count_all, encoding, use_bundled_vocabulary
from agent_tui.providers.limits import ServerFacts, describe
from agent_tui.providers.litellm import prepare_environment
from agent_tui.providers.secrets import redact
from agent_tui.providers.worker import protocol
from agent_tui.providers.worker.protocol import FROM_WORKER
from agent_tui.providers.worker.start import LOG_VARIABLE

if TYPE_CHECKING:
    from agent_tui.providers.direct import Connections

log = logging.getLogger("agent_tui.worker")

TEXT_LIMIT = 64_000
"""Characters of one delta in one line: a huge chunk becomes several lines, so that reading one never stalls."""

DELAY = 0.03
"""Seconds that deltas wait for company: about the time between two frames of the screen, which is woken for each line.
The first delta of a stream does not wait."""

TOKENIZER_PATIENCE = 0.6
"""Seconds that loading the tokenizer waits for a first request to be answered."""

LONG_TEXTS = 40_000
"""Characters from which on a count is not kept waiting for that."""


def item_lines(call_id: int, item: StreamItem) -> Iterator[bytes]:
    """A stream item as lines, the longest deltas cut in pieces that append to the same part."""
    if not isinstance(item, Delta) or len(item.text) <= TEXT_LIMIT:
        yield FROM_WORKER.line(item, call_id)
        return
    text = item.text
    for start in range(0, len(text), TEXT_LIMIT):
        piece = replace(item, text=text[start : start + TEXT_LIMIT])
        if start > 0:
            piece = replace(piece, call_id=None, name=None)
        if start + TEXT_LIMIT < len(text):
            piece = replace(piece, metadata=None, closed=False)
        yield FROM_WORKER.line(piece, call_id)


def merge(first: Delta, second: Delta) -> Delta | None:
    """Two deltas as one that does the same to the answer, or None when they have to stay apart."""
    if first.index != second.index or first.kind != second.kind or first.closed:
        return None
    if second.call_id is not None:
        return None
    return Delta(
        first.index,
        first.kind,
        first.text + second.text,
        second.metadata if second.metadata is not None else first.metadata,
        second.closed,
        first.call_id,
        first.name if first.name is not None else second.name,
    )


class Outbox:
    """Orders and gathers lines for ``write``, which takes bytes and never blocks."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._waiting: dict[int, list[Delta]] = {}
        self._begun: set[int] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._last = 0.0

    def send(self, message: object, call_id: int = 0) -> None:
        """Writes a message that is not part of a stream's content."""
        self.flush()
        self._write(FROM_WORKER.line(message, call_id))

    def item(self, call_id: int, item: StreamItem) -> None:
        """Adds a stream item; a delta waits up to ``DELAY`` to be joined with the next ones."""
        if not isinstance(item, Delta):
            self.flush()
            self._put(call_id, item)
            return
        waiting = self._waiting.setdefault(call_id, [])
        joined = merge(waiting[-1], item) if waiting else None
        if joined is not None:
            waiting[-1] = joined
        else:
            waiting.append(item)
        loop = asyncio.get_running_loop()
        if call_id not in self._begun:
            self._begun.add(call_id)
            self.flush()
        elif self._timer is None:
            self._timer = loop.call_later(DELAY, self.flush)
        elif loop.time() - self._last >= DELAY:
            self.flush()

    def end(self, call_id: int) -> None:
        """Forgets a stream; what of it still waits is written."""
        self.flush()
        self._begun.discard(call_id)

    def drop(self, call_id: int) -> None:
        """Forgets a stream that nobody listens to any more."""
        self._waiting.pop(call_id, None)
        self._begun.discard(call_id)

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._last = asyncio.get_running_loop().time()
        waiting, self._waiting = self._waiting, {}
        for call_id, deltas in waiting.items():
            for delta in deltas:
                self._put(call_id, delta)

    def _put(self, call_id: int, item: StreamItem) -> None:
        for data in item_lines(call_id, item):
            self._write(data)


class Worker:
    """Answers the lines of the program. Every line is handled in a task of its own."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self.out = Outbox(write)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._facts: dict[str, ServerFacts] = {}
        self._looking_up: dict[str, asyncio.Task[ServerFacts | None]] = {}
        self._litellm: asyncio.Task[Any] | None = None
        self._counter = ThreadPoolExecutor(1, "counting")
        self._warmed: set[tuple[str, str]] = set()
        self._background: asyncio.Task[None] | None = None
        self._tokenizer: asyncio.Task[None] | None = None
        self._answered = asyncio.Event()
        self._model_asked = False

    @cached_property
    def _connections(self) -> Connections:
        from agent_tui.providers.direct import Connections

        return Connections()

    def start(self) -> None:
        """Says that it is ready; the tokenizer is loaded a little later."""
        self._tokenizer = asyncio.create_task(self._load_tokenizer())
        self._say("ready")

    async def _load_tokenizer(self) -> None:
        """Loads the tokenizer once a first request is answered, or nobody makes one: both want the interpreter for
        themselves for a third of a second, and only the request is waited for."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TOKENIZER_PATIENCE):
                await self._answered.wait()
        try:
            await asyncio.get_running_loop().run_in_executor(self._counter, encoding)
        except WorkerError:
            log.exception("The tokenizer cannot be loaded")

    def _say(self, state: protocol.WorkerState) -> None:
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
                    self.out.send(await self._described(spec), call_id)
                case protocol.Count(texts):
                    self.out.send(protocol.Counts(await self._count(texts)), call_id)
                case protocol.CountExactly(request):
                    from agent_tui.providers.direct import count

                    tokens = await count(request, self._asked(request), self._connections)
                    self.out.send(protocol.ExactCount(tokens), call_id)
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

        self._model_asked = True

        def emit(item: StreamItem) -> None:
            if not isinstance(item, Started):
                self._answered.set()
            self.out.item(call_id, item)

        await calling.run(request, self._asked(request), emit, self.litellm, self._connections)
        self.out.end(call_id)

    async def _count(self, texts: list[str]) -> list[tuple[int, ...]]:
        if sum(map(len, texts)) > LONG_TEXTS or not self._model_asked:
            # Whether to compact may hang on it; and where no model is asked (the demo), only counts are waited for.
            self._answered.set()
        if self._tokenizer is not None:
            await asyncio.shield(self._tokenizer)
        return await asyncio.get_running_loop().run_in_executor(self._counter, count_all, texts)

    async def _described(self, spec: ModelSpec) -> ModelInfo:
        """The model's description, with what its server says. What one has said holds until it says something else.

        A provider that is looked up what it says of a model is not waited for: the model counts as ``silent`` until it
        is asked for again, which waits for the answer. There is one question, whatever came of it.
        """
        from agent_tui.providers.server_facts import is_looked_up, server_facts

        info, name = describe(spec), repr(spec)
        if is_looked_up(info):
            if name not in self._looking_up:
                self._looking_up[name] = asyncio.create_task(server_facts(info, self._connections))
                return replace(info, silent=True)
            facts = await asyncio.shield(self._looking_up[name])
        else:
            facts = await server_facts(info, self._connections)
        if facts is not None and facts.silent and (known := self._facts.get(name)) is not None:
            return describe(spec, replace(known, silent=True, unreachable=facts.unreachable))
        if facts is not None:
            self._facts[name] = facts
        return self._info(spec)

    def _asked(self, request: ModelRequest) -> ModelInfo:
        """The facts of the model, and what the request knows of them."""
        info = self._info(request.spec)
        media = request.media
        return replace(info, images=info.images if media.images else False, files=media.files)

    def _info(self, spec: ModelSpec) -> ModelInfo:
        """The model's description for a call: asking a server takes time, so what it said before is used."""
        return describe(spec, self._facts.get(repr(spec)))

    def _prepare(self, spec: ModelSpec | None) -> None:
        """Loads LiteLLM where the model needs it (None: in any case); where it is loaded, makes a first call of the
        model's kind."""
        if spec is None:
            self._loading(None)
            return
        self._model_asked = True
        target = resolve_target(spec)
        if is_direct(spec, target):
            # What a first call imports; the connection itself opens with the call.
            asyncio.get_running_loop().run_in_executor(None, self._connections.warm, spec.api_base)
        elif (kind := (target.provider, target.api)) not in self._warmed:
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
        from agent_tui.providers.calling import load_litellm

        self._say("litellm_loading")
        try:
            litellm = await asyncio.to_thread(load_litellm)
            await warm_up(litellm, spec)
        except Exception:
            self._say("ready")
            raise
        self._say("litellm_ready")
        return litellm

    async def _warm_later(self, spec: ModelSpec) -> None:
        await warm_up(await self.litellm(), spec)


async def serve(stdin: BinaryIO, stdout: BinaryIO) -> None:
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


WARM_UP_TIMEOUT = 10.0
_PLAIN = ModelSpec("warm", "openai/warm")
_TOOL = ToolSchema("noop", "Does nothing.", {"type": "object", "properties": {}})


async def warm_up(litellm: Any, spec: ModelSpec | None) -> None:
    """Makes one call as for ``spec`` (without one: to an OpenAI-compatible server). A failure costs only the warmth."""
    from agent_tui.providers import calling, direct

    if spec is None or dialect_of(resolve_target(spec).provider).credentials_elsewhere:
        spec = _PLAIN
    server = await asyncio.start_server(_answer_shortly, "127.0.0.1", 0)
    api: Any = resolve_target(spec).api
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    # What of ``extra`` speaks to the library is left out with the rest of it, so the way has to be said.
    spec = replace(spec, api_base=address, api_key=DUMMY_KEY, api=api, extra={}, via="litellm")
    request = ModelRequest(
        id="warm",
        spec=spec,
        session_id="warm",
        system=[SystemBlock("system", "Be brief.")],
        messages=[SentMessage(user_message("hi"), "warm")],
        tools=[_TOOL],
        max_output=1024,
        effort="off",
        timeout=WARM_UP_TIMEOUT,
    )
    info = describe(spec)
    info.problem = None
    ends: list[StreamItem] = []

    async def load() -> Any:
        return litellm

    try:
        await calling.run(request, info, ends.append, load, direct.Connections())
        if ends and isinstance(ends[-1], Failed):
            log.info("Warm-up of %s failed: %s", info.target.provider, ends[-1].failure.detail[:300])
    except Exception as error:
        log.warning("Warm-up failed: %s", error)
    finally:
        server.close()


async def _answer_shortly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "warm"}
    text = {"index": 0, "delta": {"role": "assistant", "content": "ok"}, "finish_reason": None}
    events = (
        {**chunk, "choices": [text]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {**chunk, "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}},
    )
    head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n\r\n"
    body = b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events)
    try:
        asked = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(asked.partition(b"content-length:")[2].split()[0]))
        writer.write(head.format(len(body)).encode() + body)
        await writer.drain()
    except (OSError, EOFError, IndexError, ValueError):
        log.debug("A warm-up call broke off", exc_info=True)
    finally:
        writer.close()
