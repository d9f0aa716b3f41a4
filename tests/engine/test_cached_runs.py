"""The real program against providers with a true prefix cache: every miss named as it was, none told that was none.

Short forms of ``tests.benchmarks.cache``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from agent_tui.providers.catalog.keys import KEY_VARIABLES
from agent_tui.providers.worker.client import WorkerClient
from tests.support.cached_runs import cached_run
from tests.support.end_to_end import KEY_VARIABLE
from tests.support.model_calls import KEY, environment

pytestmark = pytest.mark.asyncio(loop_scope="module")

SILENT = {"waited", "model back", "resumed", "forked", "there and back"}
"""What is done without any need of a word."""


@pytest.fixture(scope="module")
def keys() -> Iterator[None]:
    unset: dict[str, str | None] = {name: None for names in KEY_VARIABLES.values() for name in names}
    with environment({**unset, KEY_VARIABLE: KEY}):
        yield


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def worker(keys: None) -> AsyncIterator[WorkerClient]:
    client = WorkerClient()
    yield client
    await client.close()


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("anthropic", ["tool went", "expired", "memory", "thinking", "schema", "dropped"]),
        ("old claude", ["pruned", "waited", "model", "model back"]),
        ("openai chat", ["memory", "expired", "dropped", "compacted", "resumed", "there and back"]),
        ("responses", ["tool went", "forked", "thinking", "schema"]),
        ("gemini", ["model", "tool went", "dropped"]),
        ("deepseek", ["memory", "evicted", "pruned"]),
        ("vllm", ["tool went", "dropped"]),
    ],
)
async def test_every_miss_has_its_name(worker: WorkerClient, name: str, kinds: list[str]) -> None:
    outcome = await cached_run(name, 2 + 3 * len(kinds), kinds, worker, every=3)
    assert outcome.wrong == []
    assert outcome.heard >= {*kinds} - SILENT
    plain, expected, read = outcome.predicted()
    assert plain > len(kinds) and abs(expected - read) <= 0.05 * read
