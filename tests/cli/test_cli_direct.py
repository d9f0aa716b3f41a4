"""A model that is called directly, on the command line: no process beside the program."""

from __future__ import annotations

import pytest

from agent_tui.providers.worker.client import WorkerClient
from tests.support.cli import Cli
from tests.support.loopback import Loopback, chat_stream

pytestmark = pytest.mark.quick

CONFIG = """default_model = "m"
[models.m]
model = "openai/local"
api_base = "{url}/v1"
context_window = {window}
"""


@pytest.mark.parametrize(("window", "asked"), [(128_000, 0), (6_000, 1)])
def test_a_short_answer_is_not_counted(cli: Cli, monkeypatch: pytest.MonkeyPatch, window: int, asked: int) -> None:
    """It is where the window is so small that compaction may hang on the count."""
    started: list[WorkerClient] = []
    running = WorkerClient._running

    async def note(self: WorkerClient) -> object:
        started.append(self)
        return await running(self)

    monkeypatch.setattr(WorkerClient, "_running", note)
    with Loopback() as server:
        server.serve("/v1/chat/completions", chat_stream(["hello there"]))
        cli.config(CONFIG.format(url=server.url, window=window))
        outcome = cli.run("-p", "hello")
    assert (outcome.code, outcome.out) == (0, "hello there\n"), outcome.err
    assert len(started[:1]) == asked
