from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from agent_tui.providers.client import WorkerClient
from tests.support.loopback import Loopback


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def worker() -> AsyncIterator[WorkerClient]:
    """One worker for all tests of this process: importing LiteLLM takes seconds."""
    client = WorkerClient()
    yield client
    await client.close()


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as loopback:
        yield loopback
