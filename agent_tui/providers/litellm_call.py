"""One model call through LiteLLM. For the worker process: importing LiteLLM takes seconds and 165 MB."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

from agent_tui.errors import WorkerError
from agent_tui.models.requests import ModelInfo, ModelRequest, ModelSpec, Target
from agent_tui.providers.calling import Emit, StreamedAnswer
from agent_tui.providers.catalog import Key, dialect_of, resolve_key
from agent_tui.providers.counting import encoding
from agent_tui.providers.dialects.litellm import arguments, path_for_litellm
from agent_tui.providers.dialects.outgoing import OutgoingRequest
from agent_tui.providers.direct import NoAddressError
from agent_tui.providers.litellm import import_quietly, lean_arguments, listen
from agent_tui.text.strict_json import DEEPEST_WHOLE, strict
from agent_tui.urls import AddressError, parse_url

log = logging.getLogger(__name__)

YIELD_EVERY = 0.01
"""Seconds of buffered chunks after which the loop gets a turn: LiteLLM's stream hands them out without one."""


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
    try:
        base = parse_url(spec.api_base.strip().rstrip("/"), login=True)
    except AddressError as error:
        raise NoAddressError(f"api_base of the model is not the address of an API. {error}") from None
    return replace(base, path=path_for_litellm(base.path, target, dialect_of(target.provider))).text


def load_litellm() -> Any:
    """Imports LiteLLM. Blocks for seconds; run it in a thread. Raises ImportError."""
    try:
        tokenizer = encoding()
    except WorkerError:
        tokenizer = None
    return import_quietly(tokenizer)


class LiteLLMAnswer(StreamedAnswer):
    """The answer that LiteLLM's stream brings, beside the provider's own bytes."""

    def __init__(self, request: ModelRequest, info: ModelInfo, emit: Emit, litellm: Any) -> None:
        super().__init__(request, info, emit, resolve_key(request.spec, info.target.provider))
        self._litellm = litellm

    async def _send(self, made: OutgoingRequest) -> None:
        litellm = self._litellm
        method, asked = arguments(made, self._request.spec)
        asked = {**strict(asked, DEEPEST_WHOLE), **connection(self._request, self._info.target, self._key)}
        if method == "acompletion":
            asked |= lean_arguments(litellm)
        loop = asyncio.get_running_loop()
        with listen(self.accumulator.tap):
            self._source = await getattr(litellm, method)(**asked)
            turn = loop.time()
            async for chunk in self._source:
                now = loop.time()
                self._take(self.accumulator.feed(chunk))
                if now - turn > YIELD_EVERY:
                    await asyncio.sleep(0)
                    turn = loop.time()

    async def _close(self) -> None:
        """``break`` alone leaves the connection of LiteLLM's stream open."""
        if (close := getattr(self._source, "aclose", None)) is not None:
            try:
                await close()
            except Exception:
                log.debug("A finished stream did not close cleanly", exc_info=True)
