"""A provider that is asked for a model that no table knows: in the background, once, and whatever comes of it."""

from __future__ import annotations

import asyncio
from unittest.mock import patch

import pytest

import agent_tui.providers.server_facts
from agent_tui.models.requests import ModelInfo, ModelSpec
from agent_tui.models.usage import Limits
from agent_tui.providers.client import ModelClient
from agent_tui.providers.direct import Connections
from agent_tui.providers.limits import ServerFacts

pytestmark = pytest.mark.quick

SPEC = ModelSpec("c", "anthropic/claude-next-9", api_key="secret")


@pytest.mark.parametrize("said", [Limits(1_000_000, None, 128_000, "server"), None])
async def test_nobody_waits_for_it_and_it_is_asked_once(said: Limits | None) -> None:
    begun, answered, asked = asyncio.Event(), asyncio.Event(), list[str]()

    async def server_facts(info: ModelInfo, connections: Connections) -> ServerFacts:
        asked.append(info.spec.key)
        begun.set()
        await answered.wait()
        return ServerFacts(said)

    client = ModelClient()
    with patch.object(agent_tui.providers.server_facts, "server_facts", server_facts):
        first = await client.describe(SPEC)
        assert first.silent and (first.limits.window, first.limits.source) == (200_000, "assumed")
        waiting = asyncio.create_task(client.describe(SPEC))
        await begun.wait()
        assert asked == ["c"] and not waiting.done()
        answered.set()
        for info in (await waiting, await client.describe(SPEC)):
            assert not info.silent
            assert info.limits == (said or first.limits)
    assert asked == ["c"]
