"""A provider that calls loopback servers in this process, without a worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from agent_tui.models.requests import ModelInfo, ModelRequest, ModelSpec, StreamItem
from agent_tui.models.usage import Limits, Prices
from agent_tui.providers.catalog import resolve_target
from agent_tui.providers.direct import Connections
from tests.support import recorded


class InProcess:
    """Calls directly where the program does, else through LiteLLM. ``window`` is what is known of every model."""

    def __init__(self, window: int = 200_000, *, reasoning: bool | None = True) -> None:
        self._limits = Limits(window, None, 8_000, "config")
        self._reasoning = reasoning
        self.connections = Connections()

    def info(self, spec: ModelSpec) -> ModelInfo:
        return ModelInfo(spec, resolve_target(spec), self._limits, Prices(), self._reasoning, True)

    async def describe(self, spec: ModelSpec) -> ModelInfo:
        return self.info(spec)

    async def count_exact(self, request: ModelRequest) -> int | None:
        return None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        items: asyncio.Queue[StreamItem | None] = asyncio.Queue()

        async def run() -> None:
            await recorded.ask(request, self.info(request.spec), items.put_nowait, self.connections)
            items.put_nowait(None)

        task = asyncio.create_task(run())
        try:
            while (item := await items.get()) is not None:
                yield item
            await task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
