"""The models, as the program calls them: direct ones by tasks of its own, the others through the gateway."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_tui.models.requests import Failed, Finished, ModelInfo, ModelRequest, ModelSpec, StreamItem
from agent_tui.providers.catalog import is_direct, resolve_target
from agent_tui.providers.gathering import DeltaGatherer, in_turns
from agent_tui.providers.limits import ServerFacts, describe
from agent_tui.providers.worker.client import WorkerClient
from agent_tui.providers.worker.protocol import WorkerState

if TYPE_CHECKING:
    from agent_tui.providers.calling import Emit
    from agent_tui.providers.direct import Connections

log = logging.getLogger(__name__)

END_PATIENCE = 1.0
"""Seconds that closing the connection of an answer that nobody waits for may take."""


class ModelClient:
    """Implements Provider, Counter and Backend. ``worker`` is the child process that counts, and calls what is not
    called directly: it is started when one of both is needed."""

    def __init__(self, *, log_file: Path | None = None, on_state: Callable[[WorkerState], None] | None = None) -> None:
        self.worker = WorkerClient(log_file=log_file, on_state=on_state)
        self._kept: Connections | None = None
        self._facts: dict[str, ServerFacts] = {}
        self._looking_up: dict[str, asyncio.Task[ServerFacts | None]] = {}

    async def _connections(self) -> Connections:
        """The connections. For the first ones all is imported that calls models: in a thread, as it takes a tenth of a
        second."""
        if self._kept is None:
            made = await asyncio.to_thread(_first_connections)
            self._kept = self._kept or made
        return self._kept

    async def prepare(self, spec: ModelSpec) -> None:
        """Has all imported that a first call of a model needs. Raises WorkerError."""
        if is_direct(spec, resolve_target(spec)):
            await (await self._connections()).warm(spec.api_base)
        else:
            await self.worker.prepare()

    async def close(self) -> None:
        """Ends the worker and closes the connections."""
        for task in self._looking_up.values():
            task.cancel()
        await self.worker.close()
        if self._kept is not None:
            await self._kept.aclose()

    @property
    def running(self) -> bool:
        """Whether a count is answered at once, without a process that has to be started."""
        return self.worker.running

    async def count(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        """o200k_base tokens of each text by kind. Raises WorkerError."""
        return await self.worker.count(texts)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """The answer as it arrives, ending with exactly one Finished or Failed. Closing the generator cancels it."""
        connections = await self._connections()
        info = await self._asked(request)
        arrived: asyncio.Queue[StreamItem] = asyncio.Queue()
        gatherer = DeltaGatherer(arrived.put_nowait)
        call = asyncio.create_task(self._call(request, info, gatherer.put, connections), name="model call")
        try:
            async for item in in_turns(arrived):
                yield item
                if isinstance(item, (Finished, Failed)):
                    return
        finally:
            gatherer.drop()
            call.cancel()
            await asyncio.wait([call], timeout=END_PATIENCE)

    async def _call(self, request: ModelRequest, info: ModelInfo, emit: Emit, connections: Connections) -> None:
        from agent_tui.providers.calling import run, run_answer

        if is_direct(request.spec, info.target):
            await run(request, info, emit, connections)
            return
        from agent_tui.providers.litellm_gateway import GatewayAnswer

        await run_answer(request, info, emit, lambda key: GatewayAnswer(request, info, emit, key, self.worker))

    async def describe(self, spec: ModelSpec) -> ModelInfo:
        """The model's description, with what its server says. What one has said holds until it says something else.

        A provider that is looked up what it says of a model is not waited for: the model counts as ``silent`` until it
        is asked for again, which waits for the answer. There is one question, whatever came of it.
        """
        connections = await self._connections()
        from agent_tui.providers.server_facts import is_looked_up, server_facts

        info, name = await asyncio.to_thread(describe, spec), repr(spec)
        if is_looked_up(info):
            if name not in self._looking_up:
                self._looking_up[name] = asyncio.create_task(_facts_if_any(server_facts(info, connections)))
                return replace(info, silent=True)
            facts = await asyncio.shield(self._looking_up[name])
        else:
            facts = await server_facts(info, connections)
        if facts is not None and facts.silent and (known := self._facts.get(name)) is not None:
            gone = replace(known, silent=True, unreachable=facts.unreachable)
            return await asyncio.to_thread(describe, spec, gone)
        if facts is not None:
            self._facts[name] = facts
        return await self._info(spec)

    async def count_exact(self, request: ModelRequest) -> int | None:
        """The provider's own count of the request's input; None where there is none or it failed."""
        connections = await self._connections()
        from agent_tui.providers.direct import count

        return await count(request, await self._asked(request), connections)

    async def _asked(self, request: ModelRequest) -> ModelInfo:
        """The facts of the model, and what the request knows of them."""
        info, media = await self._info(request.spec), request.media
        return replace(info, images=info.images if media.images else False, files=media.files)

    async def _info(self, spec: ModelSpec) -> ModelInfo:
        """The model's description for a call: asking a server takes time, so what it said before is used."""
        return await asyncio.to_thread(describe, spec, self._facts.get(repr(spec)))


def _first_connections() -> Connections:
    from agent_tui.providers import calling, server_facts  # noqa: F401
    from agent_tui.providers.direct import Connections

    return Connections()


async def _facts_if_any(question: Coroutine[Any, Any, ServerFacts | None]) -> ServerFacts | None:
    """The answer; None where the question fails by a fault of this program: nobody may be there to hear of it."""
    try:
        return await question
    except Exception:
        log.exception("A server's facts could not be read")
        return None
