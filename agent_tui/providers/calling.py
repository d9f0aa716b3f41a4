"""One model call, straight to the provider or through LiteLLM: streamed, with limits on silence and length,
cancellable, every failure a value.

Retries inside it are off: what to try again is the engine's decision.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

from agent_tui.errors import WorkerError
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
from agent_tui.providers.accumulate import Accumulator
from agent_tui.providers.catalog import Called, Key, dialect_of, is_direct, missing_key_line, resolve_key
from agent_tui.providers.counting import encoding
from agent_tui.providers.dialects.chat import WIRE as CHAT
from agent_tui.providers.direct import Connections, NetworkSettingsError, NoAddressError, encode, exchange
from agent_tui.providers.errors import NotAnAnswerError, StreamError, classify
from agent_tui.providers.failure_lines import bound_failure, failure
from agent_tui.providers.litellm import import_quietly, lean_arguments, said_why
from agent_tui.providers.net import DEFAULT_TOKENS, BoundError, SilenceError, answer_limit, stream_limit
from agent_tui.providers.request import WireCall, build_call
from agent_tui.providers.tap import install_tap, listen

_CALL_SIZE = 64
"""Characters of an answer that one tool call stands for, empty as it may be."""


class Length:
    """Counts the characters of an answer against the tokens that were asked for. ``stream_limit`` is the most bytes the
    provider may send for them."""

    def __init__(self, request: ModelRequest, info: ModelInfo) -> None:
        asked = max(_named_limits(request.spec), default=0)
        self._asked = asked or request.max_output or info.limits.max_output or DEFAULT_TOKENS
        self._room = answer_limit(self._asked)
        self.stream_limit = stream_limit(self._asked)

    @property
    def exceeded(self) -> bool:
        return self._room < 0

    def within(self, delta: Delta) -> Delta | None:
        """The delta, cut to what there is still room for; None when there is none."""
        if self._room < 0:
            return delta if delta.closed and not delta.text else None
        before, self._room = self._room, self._room - len(delta.text)
        if delta.call_id is not None:
            # Calls without end are an answer without end, too.
            self._room -= _CALL_SIZE + len(delta.name or "")
        return delta if self._room >= 0 else replace(delta, text=delta.text[:before])

    def error(self) -> BoundError:
        return BoundError(
            f"The answer is longer than the {self._asked:,} tokens asked for can be "
            f"(over {answer_limit(self._asked):,} characters), so it was stopped."
        )


def _named_limits(spec: ModelSpec) -> list[int]:
    """Limits of the answer that the model's own settings send instead of ours."""
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens")
    return [value for name in names if isinstance(value := spec.extra.get(name), int) and value > 0]


LINGER = 3.0
"""Seconds of silence after the reason why an answer ended: what may still come is usage. Some gateways keep the
connection open then."""


class Silence:
    """``complete`` says whether the provider has told how its answer ended."""

    def __init__(self, request: ModelRequest, complete: Callable[[], bool]) -> None:
        self._request, self._complete = request, complete
        self._content_at = self._began = asyncio.get_running_loop().time()

    def broken(self) -> None:
        """Something of the answer came, or the call begins."""
        self._content_at = asyncio.get_running_loop().time()

    def patience(self) -> float:
        """Seconds from now that nothing may come, and nothing of the answer."""
        left = self._content_at + self._request.content_timeout - asyncio.get_running_loop().time()
        if self._request.answer_timeout:
            left = min(left, self._left_of_all())
        most = min(self._request.timeout, LINGER) if self._complete() else self._request.timeout
        return min(most, max(0.0, left))

    def wait_on(self, clock: asyncio.Timeout) -> None:
        """Bytes came: the clock begins anew, unless it has run out."""
        if not clock.expired():
            clock.reschedule(asyncio.get_running_loop().time() + self.patience())

    def _left_of_all(self) -> float:
        return self._began + self._request.answer_timeout - asyncio.get_running_loop().time()

    def error(self) -> SilenceError:
        """Why there is no patience left."""
        if self._request.answer_timeout and self._left_of_all() <= 0:
            return SilenceError(
                f"The answer was not complete after {self._request.answer_timeout:g} s. "
                "Try again, or raise agent.answer_timeout."
            )
        return SilenceError(
            f"The connection lives, but nothing of the answer came for {self._request.content_timeout:g} s. "
            "Try again, or raise agent.content_timeout."
        )


log = logging.getLogger(__name__)

Emit = Callable[[StreamItem], None]

YIELD_EVERY = 0.01
"""Seconds of buffered chunks after which the loop gets a turn: LiteLLM's stream hands them out without one."""


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
    answer = Answer(request, info, emit, key)
    if is_direct(spec, target):
        own = Connections() if connections is None else connections
        try:
            await answer.stream(_Straight(own, answer))
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
    await answer.stream(ThroughLitellm(litellm, answer))


def _early_failure(spec: ModelSpec, info: ModelInfo, key: Key) -> Failure | None:
    """Returns what is wrong before anything is sent, without waiting for LiteLLM's import."""
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


class Transport(Protocol):
    """The way in which a call goes out and its answer comes back."""

    async def read(self, wire: WireCall, clock: asyncio.Timeout) -> None:
        """Sends a call and has its answer read into the accumulator."""
        ...

    async def close(self) -> None:
        """Closes the connection of an answer that was not read to its end."""
        ...


class _Straight:
    """The answer's way without LiteLLM."""

    def __init__(self, connections: Connections, answer: Answer) -> None:
        self._connections, self._answer = connections, answer

    async def read(self, wire: WireCall, clock: asyncio.Timeout) -> None:
        answer = self._answer
        call = encode(wire, answer.request.spec, answer.info.target, answer.key.value)
        await exchange(self._connections, call, answer.accumulator.tap)

    async def close(self) -> None:
        """Nothing is left open: the connection is closed where it is read."""


class ThroughLitellm:
    def __init__(self, litellm: Any, answer: Answer) -> None:
        self._litellm, self._answer = litellm, answer

    async def read(self, wire: WireCall, clock: asyncio.Timeout) -> None:
        """Sends the call and feeds LiteLLM's chunks to the answer, beside the provider's own bytes."""
        answer = self._answer
        arguments = {**wire.kwargs, **connection(answer.request, answer.info.target, answer.key)}
        if wire.method == "acompletion":
            arguments |= lean_arguments(self._litellm)
        with listen(answer.accumulator.tap):
            answer.source = await getattr(self._litellm, wire.method)(**arguments)
            await self._feed(clock)

    async def close(self) -> None:
        """``break`` alone leaves the connection of a stream open."""
        close = getattr(self._answer.source, "aclose", None)
        if close is None:
            return
        try:
            await close()
        except Exception:
            log.debug("A finished stream did not close cleanly", exc_info=True)

    async def _feed(self, clock: asyncio.Timeout) -> None:
        loop = asyncio.get_running_loop()
        turn = loop.time()
        async for chunk in self._answer.source:
            now = loop.time()
            self._answer.take(chunk, clock)
            if now - turn > YIELD_EVERY:
                await asyncio.sleep(0)
                turn = loop.time()


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
    """Returns the configured address as LiteLLM wants it for this provider, which appends to it."""
    if not spec.api_base:
        return None
    parts = urlsplit(spec.api_base.rstrip("/"))
    dialect = dialect_of(target.provider)
    return urlunsplit(parts._replace(path=(dialect.wire or CHAT).litellm_path(parts.path, target, dialect)))


def load_litellm() -> Any:
    """Imports LiteLLM. Blocks for seconds; run it in a thread. Raises ImportError."""
    try:
        tokenizer = encoding()
    except WorkerError:
        tokenizer = None
    litellm = import_quietly(tokenizer)
    install_tap()
    return litellm


class Answer:
    """``source`` is LiteLLM's stream, where there is one. What is emitted ends with exactly one Finished or Failed."""

    def __init__(self, request: ModelRequest, info: ModelInfo, emit: Emit, key: Key) -> None:
        self.request, self.info, self.emit, self.key = request, info, emit, key
        self.length = Length(request, info)
        self.accumulator = Accumulator(info.target, info.limits.window, info.prices, self.length.stream_limit)
        self.silence = Silence(request, lambda: self.accumulator.complete)
        self.source: Any = None
        self.started = False
        self.broken: BoundError | None = None

    async def stream(self, way: Transport) -> None:
        """Sends the call this way, emits what comes, and how it ends. Only cancellation is raised."""
        clock: asyncio.Timeout | None = None
        try:
            wire = build_call(self.request, self.info)
            self.emit(Started(self.info.target, wire.notes))
            self.silence.broken()
            async with asyncio.timeout(self.silence.patience()) as clock:
                self.accumulator.tap.on_data = functools.partial(self._arrived, clock)
                await way.read(wire, clock)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            silent = clock is not None and clock.expired()
            if not (silent and self.accumulator.complete) and (silent or not await self._read_on(error)):
                self._fail(error, silent)
                return
        finally:
            await way.close()
        self._end()

    def take(self, chunk: Any, clock: asyncio.Timeout) -> None:
        """A chunk of LiteLLM's came."""
        self._emit_content(self.accumulator.feed(chunk))
        self.silence.wait_on(clock)

    def _arrived(self, clock: asyncio.Timeout) -> None:
        """Bytes came, whatever LiteLLM makes of them: not silence, and worth showing at once."""
        self._emit_content(self.accumulator.pump())
        self.silence.wait_on(clock)

    async def _read_on(self, error: Exception) -> bool:
        """LiteLLM failed over an answer that we understand ourselves: the rest is read without it. False when there
        is no such answer, or it does not end as it should."""
        if not self.accumulator.independent or self.accumulator.raw_error is not None or self._bound() is not None:
            return False
        try:
            async with asyncio.timeout(self.silence.patience()) as clock:
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
        return self.accumulator.tap.seen or said_why(self.source)

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
            if self.silence.patience() <= 0:
                self.emit(Failed(bound_failure(self.silence.error(), target.provider, self.started, address)))
                return
            seconds = f"{self.request.timeout:g} s without a byte"
            told = failure("timeout", provider=target.provider, model=target.model, detail=seconds, address=address)
            self.emit(Failed(told))
            return
        said = self.accumulator.raw_error
        self._emit_failure(StreamError(said) if said is not None else odd or error)

    def _no_answer(self) -> NotAnAnswerError | None:
        """Returns the error for an answer that came with status 200 and is nothing that a model's API sends; None for
        any other."""
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

    def _emit_content(self, items: list[StreamItem]) -> None:
        """Passes on what arrived, up to the length an answer may have. Raises BoundError there."""
        for item in items:
            if isinstance(item, (Finished, Failed)):
                continue
            if isinstance(item, Delta):
                self.started = True
                if (short := self.length.within(item)) is None:
                    continue
                item = short
                if item.text or item.name or item.metadata:
                    self.silence.broken()
            self.emit(item)
        if self.length.exceeded and self.broken is None:
            self.broken = self.length.error()
            raise self.broken

    def _remains(self) -> list[StreamItem]:
        """Returns the items that the accumulator still holds of a broken stream: usage reported at its start, open
        parts."""
        if self.source is None and not self.accumulator.tap.seen:
            return []
        try:
            items = self.accumulator.finish(self.source)
        except Exception:
            log.debug("Nothing could be saved of the broken stream", exc_info=True)
            return []
        invented = [i for i in items if isinstance(i, UsageReport) and i.usage.source == "estimated"]
        return [item for item in items if item not in invented]
