from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from agent_tui.providers.client import ModelClient
from tests.support.end_to_end import KEY_VARIABLE
from tests.support.model_calls import KEY, environment, no_provider_keys
from tests.support.nursery import WORKER, forked


@pytest.fixture(scope="module")
def keys() -> Iterator[None]:
    """No test may find a real key and call a real provider."""
    with environment({**no_provider_keys(), KEY_VARIABLE: KEY}):
        yield


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def worker(keys: None, worker_nursery: str) -> AsyncIterator[ModelClient]:
    """One worker for the tests of a file."""
    with forked({WORKER: worker_nursery}):
        client = ModelClient()
        yield client
        await client.close()
