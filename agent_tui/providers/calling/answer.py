"""The answer of one call as it is passed on: what came of it, when, how much, and how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Callable
from typing import Any, Protocol

from agent_tui.models.failure import TEXT_KEPT, Failure, FailureKind
from agent_tui.models.requests import (
    Delta,
    Failed,
    Finished,
    ModelInfo,
    ModelRequest,
    Started,
    StreamItem,
    UsageReport,
)
from agent_tui.providers.calling.length import Length
from agent_tui.providers.calling.silence import Silence
from agent_tui.providers.catalog.keys import Key
from agent_tui.providers.direct.address import NoAddressError
from agent_tui.providers.direct.http import NetworkSettingsError
from agent_tui.providers.failures.errors import NotAnAnswerError, StreamError, classify
from agent_tui.providers.failures.user_lines import bound_failure, failure
from agent_tui.providers.litellm.private import said_why
from agent_tui.providers.net.bounds import BoundError
from agent_tui.providers.streams.accumulate import Accumulator
from agent_tui.providers.wire.request import WireCall, build_call

log = logging.getLogger(__name__)

Emit = Callable[[StreamItem], None]


class Way(Protocol):
    """How a call goes out and its answer comes back."""

    async def read(self, wire: WireCall, clock: asyncio.Timeout) -> None:
        """Sends a call and has its answer read into the accumulator."""
        ...

    async def close(self) -> None:
        """Closes the connection of an answer that was not read to its end."""
        ...


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

    async def stream(self, way: Way) -> None:
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
