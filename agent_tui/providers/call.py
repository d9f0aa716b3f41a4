"""One model call, straight to the provider or through LiteLLM: streamed, with a limit on silence, cancellable, every
failure a value.

The only place that calls LiteLLM. Retries inside it are off: what to try again is the engine's decision.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from agent_tui.models.failure import TEXT_KEPT, Failure, FailureKind
from agent_tui.models.requests import (
    Delta,
    Failed,
    Finished,
    ModelInfo,
    ModelRequest,
    ModelSpec,
    Started,
    StreamItem,
    Target,
    UsageReport,
)
from agent_tui.providers.catalog.keys import Key, resolve_key
from agent_tui.providers.catalog.naming import Called, missing_key_line
from agent_tui.providers.dialects import dialect_of
from agent_tui.providers.direct.address import AZURE_PATH, VERSION, NoAddressError
from agent_tui.providers.direct.encode import encode, is_direct
from agent_tui.providers.direct.exchange import exchange
from agent_tui.providers.direct.http import Connections, NetworkSettingsError
from agent_tui.providers.failures.errors import NotAnAnswerError, StreamError, classify
from agent_tui.providers.failures.wording import bound_failure, failure
from agent_tui.providers.litellm.setup import lean_arguments
from agent_tui.providers.net.bounds import DEFAULT_TOKENS, BoundError, SilenceError, answer_limit, stream_limit
from agent_tui.providers.streams.accumulate import Accumulator
from agent_tui.providers.streams.tap import listen
from agent_tui.providers.wire.request import WireCall, build_call

log = logging.getLogger(__name__)

YIELD_EVERY = 0.01
"""Seconds of buffered chunks after which the loop gets a turn: LiteLLM's stream hands them out without one."""

LINGER = 3.0
"""Seconds of silence after the reason why an answer ended: what may still come is usage. Some gateways keep the
connection open then."""

_CALL_SIZE = 64
"""Characters of an answer that one tool call stands for, empty as it may be."""

Emit = Callable[[StreamItem], None]
Way = Callable[[WireCall, asyncio.Timeout], Awaitable[None]]
"""Sends a call and has its answer read into the accumulator."""


async def run(
    request: ModelRequest,
    info: ModelInfo,
    emit: Emit,
    load: Callable[[], Awaitable[Any]],
    connections: Connections | None = None,
) -> None:
    """Streams one answer into ``emit``, ending with exactly one Finished or Failed. ``load`` gives LiteLLM, once it is
    imported: it is only called for a model that is not called directly. Only cancellation is raised; it closes the
    connection."""
    target, spec = info.target, request.spec
    key = resolve_key(spec, target.provider)
    if (early := _early_failure(request.spec, info, key)) is not None:
        emit(Failed(early))
        return
    call = _Call(request, info, emit, key)
    if is_direct(spec, target):
        own = Connections() if connections is None else connections
        try:
            await call.stream(call.directly(own))
        finally:
            if connections is None:
                await own.close()
        return
    try:
        litellm = await load()
    except Exception as error:
        log.exception("LiteLLM cannot be imported")
        emit(Failed(Failure("worker", f"LiteLLM cannot be loaded: {error}. {TEXT_KEPT} Reinstall agent-tui.")))
        return
    await call.stream(call.through(litellm))


class _Call:
    def __init__(self, request: ModelRequest, info: ModelInfo, emit: Emit, key: Key) -> None:
        self.request, self.info, self.emit, self.key = request, info, emit, key
        asked = max(_named_limits(request.spec), default=0)
        asked = asked or request.max_output or info.limits.max_output or DEFAULT_TOKENS
        self.accumulator = Accumulator(info.target, info.limits.window, info.prices, stream_limit(asked))
        self.source: Any = None
        self.started = False
        self.asked, self.room = asked, answer_limit(asked)
        self.content_at = asyncio.get_running_loop().time()
        self.broken: BoundError | None = None

    def directly(self, connections: Connections) -> Way:
        """The answer's way without LiteLLM."""

        async def read(wire: WireCall, clock: asyncio.Timeout) -> None:
            call = encode(wire, self.request.spec, self.info.target, self.key.value)
            await exchange(connections, call, self.accumulator.tap)

        return read

    def through(self, litellm: Any) -> Way:
        """The answer's way through LiteLLM."""

        async def read(wire: WireCall, clock: asyncio.Timeout) -> None:
            arguments = {**wire.kwargs, **connection(self.request, self.info.target, self.key)}
            if wire.method == "acompletion":
                arguments |= lean_arguments(litellm)
            with listen(self.accumulator.tap):
                self.source = await getattr(litellm, wire.method)(**arguments)
                await self._read(clock)

        return read

    async def stream(self, read: Way) -> None:
        clock: asyncio.Timeout | None = None
        try:
            wire = build_call(self.request, self.info)
            self.emit(Started(self.info.target, wire.notes))
            self.content_at = asyncio.get_running_loop().time()
            async with asyncio.timeout(self._patience()) as clock:
                self.accumulator.tap.on_data = functools.partial(self._arrived, clock)
                await read(wire, clock)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            silent = clock is not None and clock.expired()
            if not (silent and self.accumulator.complete) and (silent or not await self._read_on(error)):
                self._fail(error, silent)
                return
        finally:
            await _close(self.source)
        self._end()

    def _arrived(self, clock: asyncio.Timeout) -> None:
        """Bytes came, whatever LiteLLM makes of them: not silence, and worth showing at once."""
        self._emit_content(self.accumulator.pump())
        self._wait_on(clock)

    def _patience(self) -> float:
        """Seconds from now that nothing may come, and nothing of the answer."""
        left = self.content_at + self.request.content_timeout - asyncio.get_running_loop().time()
        most = min(self.request.timeout, LINGER) if self.accumulator.complete else self.request.timeout
        return min(most, max(0.0, left))

    def _wait_on(self, clock: asyncio.Timeout) -> None:
        if not clock.expired():
            clock.reschedule(asyncio.get_running_loop().time() + self._patience())

    async def _read(self, clock: asyncio.Timeout) -> None:
        loop = asyncio.get_running_loop()
        turn = loop.time()
        async for chunk in self.source:
            now = loop.time()
            self._emit_content(self.accumulator.feed(chunk))
            self._wait_on(clock)
            if now - turn > YIELD_EVERY:
                await asyncio.sleep(0)
                turn = loop.time()

    async def _read_on(self, error: Exception) -> bool:
        """LiteLLM failed over an answer that we understand ourselves: the rest is read without it. False when there
        is no such answer, or it does not end as it should."""
        if not self.accumulator.independent or self.accumulator.raw_error is not None or self._bound() is not None:
            return False
        try:
            async with asyncio.timeout(self._patience()) as clock:
                self.accumulator.tap.on_data = functools.partial(self._arrived, clock)
                await self.accumulator.tap.drain()
        except Exception:
            log.debug("The rest of the answer cannot be read", exc_info=True)
        if self._bound() is None:
            with contextlib.suppress(BoundError):
                self._emit_content(self.accumulator.pump())
        if self._bound() is not None or self.accumulator.truncated or self.accumulator.raw_error is not None:
            return False
        log.info("LiteLLM could not read the answer of %s: %s", self.info.target.provider, type(error).__name__)
        return True

    def _end(self) -> None:
        """A stream that ends without saying why was cut off, whatever LiteLLM makes of it."""
        try:
            last = self.accumulator.finish(self.source)
            self._emit_content(last)
        except Exception as error:
            self._fail(error, silent=False)
            return
        if (bound := self._bound()) is not None:
            self._fail(bound, silent=False)
            return
        ends = [item for item in last if isinstance(item, Finished)]
        if (said := self.accumulator.raw_error) is not None:
            self._emit_failure(StreamError(said))
        elif (odd := self._no_answer()) is not None:
            self._emit_failure(odd)
        elif ends and self._said_why():
            self.emit(ends[-1])
        else:
            target = self.info.target
            kind: FailureKind = "interrupted_stream" if self.started else "empty_answer"
            address = self.request.spec.api_base
            self.emit(Failed(failure(kind, provider=target.provider, model=target.model, address=address)))

    def _said_why(self) -> bool:
        """LiteLLM makes up a finish reason where none came; believe it only if there were events to take it from."""
        if self.accumulator.truncated:
            return False
        return self.accumulator.tap.seen or any(
            getattr(self.source, name, None) for name in ("received_finish_reason", "intermittent_finish_reason")
        )

    def _fail(self, error: BaseException, silent: bool) -> None:
        target, address = self.info.target, self.request.spec.api_base
        log.info("Call to %s failed: %s", target.provider, type(error).__name__)
        if isinstance(error, BoundError):
            self.broken = self.broken or error
        # Asked before what remains is taken, which ends the body whether it came to its end or was cut off.
        odd = self._no_answer()
        with contextlib.suppress(BoundError):
            self._emit_content(self._remains())
        if (bound := self._bound()) is not None:
            self.emit(Failed(bound_failure(bound, target.provider, self.started, address)))
            return
        if silent:
            if self._patience() <= 0:
                self.emit(Failed(bound_failure(self._silence(), target.provider, self.started, address)))
                return
            seconds = f"{self.request.timeout:g} s without a byte"
            told = failure("timeout", provider=target.provider, model=target.model, detail=seconds, address=address)
            self.emit(Failed(told))
            return
        said = self.accumulator.raw_error
        self._emit_failure(StreamError(said) if said is not None else odd or error)

    def _no_answer(self) -> NotAnAnswerError | None:
        """What came with status 200 and is nothing that a model's API sends."""
        known = self.started or self.accumulator.independent
        found = None if known else self.accumulator.tap.no_answer()
        return NotAnAnswerError(*found) if found is not None else None

    def _emit_failure(self, error: BaseException) -> None:
        target = self.info.target
        if isinstance(error, (NoAddressError, NetworkSettingsError)):
            self.emit(Failed(Failure("invalid_request", f"{error} Nothing was sent. {TEXT_KEPT}")))
            return
        known = [self.key.value] if self.key.value else []
        found = classify(
            error,
            provider=target.provider,
            model=target.model,
            started=self.started,
            secrets=known,
            address=self.request.spec.api_base,
            key_env=self.request.spec.api_key_env,
        )
        self.emit(Failed(found))

    def _bound(self) -> BoundError | None:
        """The bound that this call reached, whatever LiteLLM made of it."""
        return self.broken or self.accumulator.tap.broken

    def _silence(self) -> SilenceError:
        seconds = self.request.content_timeout
        return SilenceError(
            f"The connection lives, but nothing of the answer came for {seconds:g} s. "
            "Try again, or raise agent.content_timeout."
        )

    def _emit_content(self, items: list[StreamItem]) -> None:
        """Passes on what arrived, up to the length an answer may have. Raises BoundError there."""
        for item in items:
            if isinstance(item, (Finished, Failed)):
                continue
            if isinstance(item, Delta):
                self.started = True
                if (short := self._within(item)) is None:
                    continue
                item = short
                if item.text or item.name or item.metadata:
                    self.content_at = asyncio.get_running_loop().time()
            self.emit(item)
        if self.room < 0 and self.broken is None:
            self.broken = BoundError(
                f"The answer is longer than the {self.asked:,} tokens asked for can be "
                f"(over {answer_limit(self.asked):,} characters), so it was stopped."
            )
            raise self.broken

    def _within(self, delta: Delta) -> Delta | None:
        """The delta, cut to what there is still room for; None when there is none."""
        if self.room < 0:
            return delta if delta.closed and not delta.text else None
        before, self.room = self.room, self.room - len(delta.text)
        if delta.call_id is not None:
            # Calls without end are an answer without end, too.
            self.room -= _CALL_SIZE + len(delta.name or "")
        return delta if self.room >= 0 else replace(delta, text=delta.text[:before])

    def _remains(self) -> list[StreamItem]:
        """What the accumulator still holds of a broken stream: usage reported at its start, open parts."""
        if self.source is None and not self.accumulator.tap.seen:
            return []
        try:
            items = self.accumulator.finish(self.source)
        except Exception:
            log.debug("Nothing could be saved of the broken stream", exc_info=True)
            return []
        invented = [i for i in items if isinstance(i, UsageReport) and i.usage.source == "estimated"]
        return [item for item in items if item not in invented]


def connection(request: ModelRequest, target: Target, key: Key) -> dict[str, Any]:
    """LiteLLM arguments that say where to and how: address, key, time limits, streaming, no retries."""
    arguments: dict[str, Any] = {
        "stream": True,
        "max_retries": 0,
        "num_retries": 0,
        "timeout": request.timeout + 30,
    }
    if key.value:
        arguments["api_key"] = key.value
    if base := api_base(request.spec, target):
        arguments["api_base"] = base
    return arguments


def api_base(spec: ModelSpec, target: Target) -> str | None:
    """The configured address as LiteLLM wants it for this provider. It appends ``/chat/completions`` to OpenAI-like
    ones, ``/v1/messages`` to Anthropic's, ``/models/NAME:METHOD`` to Gemini's,
    ``/openai/…`` to Azure's, and nothing to Cohere's."""
    if not spec.api_base:
        return None
    parts = urlsplit(spec.api_base.rstrip("/"))
    path = parts.path
    dialect = dialect_of(target.provider)
    if dialect.wire == "anthropic":
        path = path.removesuffix("/v1/messages").removesuffix("/v1")
    elif dialect.deployments:
        path = AZURE_PATH.sub("", path)
    elif dialect.wire == "cohere":
        path = path if path.endswith("/chat") else f"{path}/chat" if VERSION.search(path) else f"{path}/v2/chat"
    elif not path:
        path = dialect.host_path
    elif target.api == "chat" and path.endswith("/chat/completions"):
        path = path.removesuffix("/chat/completions")
    elif target.api == "responses" and path.endswith("/responses"):
        path = path.removesuffix("/responses")
    elif dialect.wire == "gemini":
        path = path.partition("/models")[0]
    return urlunsplit(parts._replace(path=path))


def _early_failure(spec: ModelSpec, info: ModelInfo, key: Key) -> Failure | None:
    """What is wrong before anything is sent, without waiting for LiteLLM's import."""
    provider = info.target.provider
    if key.missing:
        return Failure("auth", f"{missing_key_line(spec, provider, key.missing)} {TEXT_KEPT}")
    if key.unfit:
        called = Called(provider, spec.api_base, spec.api_key_env)
        what = f"The key for {called.name} has characters that are in no key (control characters, or none of ASCII)"
        return Failure("auth", f"{what}. Nothing was sent. {TEXT_KEPT} {called.give_key}")
    if info.problem:
        return Failure("not_found", f"{info.problem} {TEXT_KEPT} Choose another with /model.")
    return None


def _named_limits(spec: ModelSpec) -> list[int]:
    """Limits of the answer that the model's own settings send instead of ours."""
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens")
    return [value for name in names if isinstance(value := spec.extra.get(name), int) and value > 0]


async def _close(source: Any) -> None:
    """Closes the connection of a stream that was not read to its end; ``break`` alone leaves it open."""
    close = getattr(source, "aclose", None)
    if close is None:
        return
    try:
        await close()
    except Exception:
        log.debug("A finished stream did not close cleanly", exc_info=True)
