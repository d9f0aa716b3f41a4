"""An answer's way through LiteLLM."""

from __future__ import annotations

import asyncio
import logging
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from agent_tui.models.requests import ModelRequest, ModelSpec, Target
from agent_tui.providers.calling.answer import Answer
from agent_tui.providers.catalog.keys import Key
from agent_tui.providers.dialects import dialect_of
from agent_tui.providers.direct.address import AZURE_PATH, VERSION
from agent_tui.providers.litellm.private import lean_arguments
from agent_tui.providers.streams.tap import listen
from agent_tui.providers.wire.request import WireCall

log = logging.getLogger(__name__)

YIELD_EVERY = 0.01
"""Seconds of buffered chunks after which the loop gets a turn: LiteLLM's stream hands them out without one."""


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
