from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from agent_tui.providers.client import ModelClient
from tests.support.end_to_end import KEY_VARIABLE
from tests.support.loopback import Loopback
from tests.support.model_calls import KEY, environment, no_provider_keys


@pytest.fixture(scope="session", autouse=True)
def no_keys() -> Iterator[None]:
    """No test of this layer may find a real key and call a real provider."""
    aws = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
    with environment({**no_provider_keys(), **aws, KEY_VARIABLE: KEY}):
        yield


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def worker(no_keys: None) -> AsyncIterator[ModelClient]:
    """One worker for all tests of this process: importing LiteLLM takes seconds."""
    client = ModelClient()
    yield client
    await client.close()


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as loopback:
        yield loopback
