"""One model call, straight to the provider or through LiteLLM: streamed, with limits on silence and length,
cancellable, every failure a value.

Retries inside it are off: what to try again is the engine's decision.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from agent_tui.models.failure import TEXT_KEPT, Failure
from agent_tui.models.requests import Failed, ModelInfo, ModelRequest, ModelSpec
from agent_tui.providers.calling.answer import Answer, Emit
from agent_tui.providers.calling.through_litellm import ThroughLitellm
from agent_tui.providers.catalog.called import Called, missing_key_line
from agent_tui.providers.catalog.keys import Key, resolve_key
from agent_tui.providers.direct.encode import encode, is_direct
from agent_tui.providers.direct.exchange import exchange
from agent_tui.providers.direct.http import Connections
from agent_tui.providers.wire.request import WireCall

log = logging.getLogger(__name__)


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
