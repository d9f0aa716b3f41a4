"""One model call: streamed, with limits on silence and length, cancellable, every failure a value.

Retries inside it are off: what to try again is the engine's decision.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from agent_tui.errors import WorkerError
from agent_tui.models.failure import Failure, FailureKind, make_failure
from agent_tui.models.requests import (
    Delta,
    Failed,
    Finished,
    ModelInfo,
    ModelRequest,
    ModelSpec,
    Started,
    StreamItem,
    UsageReport,
)
from agent_tui.providers.accumulate import Accumulator
from agent_tui.providers.catalog import Called, Key, missing_key_line, own_limit, resolve_key
from agent_tui.providers.dialects.outgoing import OutgoingRequest
from agent_tui.providers.direct import Connections, HttpCall, NetworkSettingsError, NoAddressError, encode, exchange
from agent_tui.providers.errors import NotAnAnswerError, StreamError, bad_end_failure, classify
from agent_tui.providers.failure_lines import bound_failure, failure, worker_failure
from agent_tui.providers.net import BODY_LIMIT, BoundError
from agent_tui.providers.request import build_call
from agent_tui.text.strict_json import strict

log = logging.getLogger(__name__)

BODY_PER_TOKEN = 2_048
"""Bytes of stream for each token asked for: providers wrap every token in 200 to 700 bytes of JSON."""

ANSWER_PER_TOKEN = 32
"""Characters of answer for each token asked for. Text has 3 to 5; only long runs of spaces come near this."""

ANSWER_SLACK = 65_536
"""Characters an answer may have whatever was asked for."""

DEFAULT_TOKENS = 131_072
"""Tokens an answer is taken to have been asked for where neither the request nor the model says: larger than any
model's usual limit."""

_CALL_SIZE = 64
"""Characters of an answer that one tool call stands for, empty as it may be."""


def answer_limit(tokens: int) -> int:
    return ANSWER_SLACK + ANSWER_PER_TOKEN * tokens


class Length:
    """Counts the characters of an answer against the tokens that were asked for. ``stream_limit`` is the most bytes the
    provider may send for them."""

    def __init__(self, request: ModelRequest, info: ModelInfo) -> None:
        named = None if request.capped else own_limit(request.spec, info.target)
        self._asked = named or request.max_output or info.limits.max_output or DEFAULT_TOKENS
        self._room = answer_limit(self._asked)
        self.stream_limit = BODY_LIMIT + BODY_PER_TOKEN * self._asked

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
            f"The answer was stopped: with over {answer_limit(self._asked):,} characters it is longer than the "
            f"{self._asked:,} tokens that were requested."
        )


class SilenceError(BoundError):
    """The connection lives but nothing of the answer comes."""

    kind: FailureKind = "timeout"
    way = "Try again, or raise that limit."


class TooSlowError(SilenceError):
    """The answer took longer than the user lets it: it would the next time, too."""

    again = False


LINGER = 3.0
"""Seconds of silence after the reason why an answer ended: what may still come is usage. Some gateways keep the
connection open then."""


class Silence:
    """``complete`` says whether the provider has told how its answer ended."""

    def __init__(self, request: ModelRequest, complete: Callable[[], bool]) -> None:
        self._request, self._complete = request, complete
        self._now = asyncio.get_running_loop().time
        self._content_at = self._began = self._now()

    def broken(self) -> None:
        """Something of the answer came, or the call begins."""
        self._content_at = self._now()

    def patience(self) -> float:
        """Seconds from now that nothing may come, and nothing of the answer."""
        left = self._content_at + self._request.content_timeout - self._now()
        if self._request.answer_timeout:
            left = min(left, self._left_of_all())
        most = min(self._request.timeout, LINGER) if self._complete() else self._request.timeout
        return min(most, max(0.0, left))

    def wait_on(self, clock: asyncio.Timeout) -> None:
        """Bytes came: the clock begins anew, unless it has run out."""
        if not clock.expired():
            clock.reschedule(self._now() + self.patience())

    def _left_of_all(self) -> float:
        return self._began + self._request.answer_timeout - self._now()

    def error(self) -> SilenceError:
        """Why there is no patience left."""
        if self._request.answer_timeout and self._left_of_all() <= 0:
            return TooSlowError(
                f"The answer was not complete after {self._request.answer_timeout:g} s (agent.answer_timeout)."
            )
        return SilenceError(
            f"The connection is open, but no part of the answer arrived for {self._request.content_timeout:g} s "
            "(agent.content_timeout)."
        )


Emit = Callable[[StreamItem], None]


async def run(request: ModelRequest, info: ModelInfo, emit: Emit, connections: Connections) -> None:
    """``run_answer`` of a provider that is called directly."""
    await run_answer(request, info, emit, lambda key: DirectAnswer(request, info, emit, key, connections))


async def run_answer(request: ModelRequest, info: ModelInfo, emit: Emit, make: Callable[[Key], ModelAnswer]) -> None:
    """Streams one answer into ``emit``, ending with exactly one Finished or Failed. Only cancellation is raised; it
    closes the connection."""
    secrets: list[str] = []
    try:
        key = resolve_key(request.spec, info.target.provider)
        secrets = [key.value] if key.value else []
        if (early := early_failure(request.spec, info, key)) is not None:
            emit(Failed(early))
            return
        await make(key).stream()
    except Exception as error:
        log.exception("A call ended with a fault of this program")
        called = Called(info.target.provider, request.spec.api_base, request.spec.api_key_env)
        emit(Failed(classify(error, called, info.target.model, True, secrets)))


def early_failure(spec: ModelSpec, info: ModelInfo, key: Key) -> Failure | None:
    """Returns what is wrong before anything is sent; None where nothing is."""
    provider = info.target.provider
    if key.missing:
        return make_failure("auth", missing_key_line(spec, provider, key.missing))
    if key.unfit:
        called = Called(provider, spec.api_base, spec.api_key_env)
        what = f"The key for {called.name} contains control or non-ASCII characters"
        return make_failure("auth", f"{what}. Nothing was sent.", called.give_key)
    if info.problem:
        return make_failure("not_found", info.problem, "Choose another with /model.")
    return None


class ModelAnswer:
    """What is emitted ends with exactly one Finished or Failed. How a call is made and sent is said by subclasses:
    ``_send`` has the answer read into the accumulator."""

    def __init__(self, request: ModelRequest, info: ModelInfo, emit: Emit, key: Key) -> None:
        self._request, self._info, self._emit, self._key = request, info, emit, key
        self._called = Called(info.target.provider, request.spec.api_base, request.spec.api_key_env)
        self._length = Length(request, info)
        names, limit = [tool.name for tool in request.tools], self._length.stream_limit
        self.accumulator = Accumulator(info.target, info.limits.window, info.prices, limit, names)
        self.accumulator.tap.on_data = self._arrived
        self._silence = Silence(request, lambda: self.accumulator.complete)
        self._clock = asyncio.timeout(None)
        self._names: Mapping[str, str] = {}
        self._started = False
        self._broken: BoundError | None = None

    async def stream(self) -> None:
        """Sends the call, emits what comes, and how it ends. Only cancellation is raised."""
        try:
            # A long conversation takes a while, in which others on the loop have their turn.
            made = await asyncio.to_thread(self._build)
            self._names = made.renamed
            self._emit(Started(self._info.target, made.notes))
            self._silence.broken()
            async with asyncio.timeout(self._silence.patience()) as self._clock:
                await self._send()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            silent = self._clock.expired()
            if not self._is_whole(error):
                self._fail(error, silent)
                return
        self._end()

    def _build(self) -> OutgoingRequest:
        return build_call(self._request, self._info)

    async def _send(self) -> None:
        raise NotImplementedError

    def _arrived(self) -> None:
        """Bytes came: not silence, and worth showing at once."""
        self._take(self.accumulator.pump())

    def _take(self, items: list[StreamItem]) -> None:
        self._emit_content(items)
        self._silence.wait_on(self._clock)

    def _is_whole(self, error: Exception) -> bool:
        """Returns whether an answer came to its end, though what came behind that could not be read."""
        if self.accumulator.known and self._bound() is None and not isinstance(error, BoundError):
            with contextlib.suppress(BoundError):
                self.accumulator.tap.close()
                self._emit_content(self.accumulator.pump())
        if self._bound() is not None or not self.accumulator.complete or self.accumulator.raw_error is not None:
            return False
        log.info("The end of the answer of %s could not be read: %s", self._info.target.provider, type(error).__name__)
        return True

    def _end(self) -> None:
        """A stream that ends without saying why was cut off."""
        try:
            last = self.accumulator.finish()
            self._emit_content(last)
        except Exception as error:
            self._fail(error)
            return
        end = next((item for item in last if isinstance(item, Finished)), None)
        if (bound := self._bound()) is not None:
            self._fail(bound)
        elif (said := self.accumulator.raw_error) is not None:
            self._emit_failure(StreamError(said))
        elif (odd := self._no_answer()) is not None:
            self._emit_failure(odd)
        elif (bad := self.accumulator.bad_end) is not None:
            self._emit(Failed(bad_end_failure(bad, self._called, self._info.target.model, self._started)))
        elif end is not None:
            self._emit(end)
        else:
            kind: FailureKind = "interrupted_stream" if self._started else "empty_answer"
            self._emit(Failed(failure(kind, self._called, self._info.target.model)))

    def _fail(self, error: BaseException, silent: bool = False) -> None:
        log.info("Call to %s failed: %s", self._called.provider, type(error).__name__)
        if isinstance(error, BoundError):
            self._broken = self._broken or error
        # Asked before what remains is taken, which ends the body whether it came to its end or was cut off.
        odd = self._no_answer()
        with contextlib.suppress(BoundError):
            self._emit_content(self._remains())
        bound = self._bound()
        if bound is None and silent and self._silence.patience() <= 0:
            bound = self._silence.error()
        if bound is not None:
            self._emit(Failed(bound_failure(bound, self._called, self._started)))
        elif silent:
            detail = f"{self._request.timeout:g} s without data"
            self._emit(Failed(failure("timeout", self._called, self._info.target.model, detail, started=self._started)))
        else:
            said = self.accumulator.raw_error
            self._emit_failure(StreamError(said) if said is not None else odd or error)

    def _no_answer(self) -> NotAnAnswerError | None:
        """Returns the error for an answer that came with status 200 and is nothing that a model's API sends; None for
        any other."""
        known = self._started or self.accumulator.known
        found = None if known else self.accumulator.tap.no_answer()
        return NotAnAnswerError(*found) if found is not None else None

    def _emit_failure(self, error: BaseException) -> None:
        if isinstance(error, WorkerError):
            found = worker_failure(str(error))
        elif isinstance(error, (NoAddressError, NetworkSettingsError)):
            found = make_failure("invalid_request", f"{error} Nothing was sent.")
        else:
            secrets = [self._key.value] if self._key.value else []
            found = classify(error, self._called, self._info.target.model, self._started, secrets)
        self._emit(Failed(found))

    def _bound(self) -> BoundError | None:
        return self._broken or self.accumulator.tap.broken

    def _emit_content(self, items: list[StreamItem]) -> None:
        """Passes on what arrived, up to the length an answer may have. Raises BoundError there."""
        for item in items:
            if isinstance(item, (Finished, Failed)):
                continue
            if isinstance(item, Delta):
                self._started = True
                if (short := self._length.within(item)) is None:
                    continue
                item = self._named(short)
                if item.text or item.name or item.metadata:
                    self._silence.broken()
            self._emit(item)
        if self._length.exceeded and self._broken is None:
            self._broken = self._length.error()
            raise self._broken

    def _named(self, delta: Delta) -> Delta:
        """The delta with the tool's own name, which may have been sent under another, and with metadata that can be
        stored and sent back."""
        name = self._names.get(delta.name, delta.name) if delta.name is not None else None
        metadata = strict(delta.metadata)
        if name == delta.name and metadata is delta.metadata:
            return delta
        return replace(delta, name=name, metadata=metadata)

    def _remains(self) -> list[StreamItem]:
        """Returns the items that the accumulator still holds of a broken stream: usage reported at its start, open
        parts."""
        if not self.accumulator.known:
            return []
        try:
            items = self.accumulator.finish()
        except Exception:
            log.debug("Nothing could be saved of the broken stream", exc_info=True)
            return []
        return [i for i in items if not (isinstance(i, UsageReport) and i.usage.source == "estimated")]


class DirectAnswer(ModelAnswer):
    """The answer to a call straight to the provider."""

    def __init__(self, request: ModelRequest, info: ModelInfo, emit: Emit, key: Key, connections: Connections) -> None:
        super().__init__(request, info, emit, key)
        self._connections = connections
        self._call: HttpCall | None = None
        self._content = b""

    def _build(self) -> OutgoingRequest:
        made = super()._build()
        self._call = encode(made, self._request.spec, self._key.value)
        self._content = self._call.content
        return made

    async def _send(self) -> None:
        assert self._call is not None, "it is built before it is sent"
        await exchange(self._connections, self._call, self._content, self.accumulator.tap)
