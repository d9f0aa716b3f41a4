"""What the worker says in a burst leaves the others on the loop their turn: keys are handled there."""

from __future__ import annotations

import asyncio

import pytest

from agent_tui.models.requests import Delta, Finished, ModelSpec
from agent_tui.providers.worker import client as module
from agent_tui.providers.worker.client import WorkerClient
from tests.support.model_calls import make_request

pytestmark = pytest.mark.quick

BURST = 200


class Answered:
    """A pipe to a worker that has said everything by the time it was asked."""

    def __init__(self, client: WorkerClient) -> None:
        self._client = client

    def write(self, data: bytes) -> None:
        for queue in self._client._pending.values():
            for _ in range(BURST):
                queue.put_nowait(Delta(0, "text", "word "))
            queue.put_nowait(Finished("stop"))


@pytest.mark.parametrize(("share", "least"), [(0.0, BURST), (1000.0, 0)])
async def test_a_burst_is_handled_in_slices(monkeypatch: pytest.MonkeyPatch, share: float, least: int) -> None:
    client = WorkerClient()

    async def running() -> Answered:
        return Answered(client)

    monkeypatch.setattr(module, "SLICE", share)
    monkeypatch.setattr(client, "_running", running)
    monkeypatch.setattr(client, "_look_after", lambda: asyncio.sleep(0))
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    items = [item async for item in client.stream(make_request(ModelSpec("m", "openai/local")))]
    task.cancel()
    assert len(items) == BURST + 1
    assert turns >= least
    assert least or turns < BURST // 10
