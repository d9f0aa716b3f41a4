"""One provider for the engine: the demo model in this process, everything else in the worker."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

from agent_tui.models.requests import ModelInfo, ModelRequest, ModelSpec, Provider, StreamItem

DEMO_MODEL = "demo"


class RoutedProvider:
    """Sends requests for the demo model to ``demo`` and all others to ``remote``."""

    def __init__(self, demo: Provider, remote: Provider) -> None:
        self._demo = demo
        self._remote = remote

    def _for(self, spec: ModelSpec) -> Provider:
        return self._demo if spec.model == DEMO_MODEL else self._remote

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        async with aclosing(self._for(request.spec).stream(request)) as items:
            async for item in items:
                yield item

    async def describe(self, spec: ModelSpec) -> ModelInfo:
        return await self._for(spec).describe(spec)

    async def count_exact(self, request: ModelRequest) -> int | None:
        return await self._for(request.spec).count_exact(request)


if TYPE_CHECKING:

    def _conforms(provider: RoutedProvider) -> Provider:
        return provider
