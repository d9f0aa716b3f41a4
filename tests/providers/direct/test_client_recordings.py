"""Recorded streams of every provider through the whole way: loopback and client."""

from __future__ import annotations

import pytest

from agent_tui.models.requests import Delta
from agent_tui.providers.client import ModelClient
from tests.recordings import needs_recordings
from tests.support import recorded
from tests.support.forms import one_of
from tests.support.loopback import Loopback, Reply
from tests.support.model_calls import collect

pytestmark = [needs_recordings, pytest.mark.asyncio(loop_scope="session")]

FORMS = [
    form
    for family in sorted({recorded.load(name)["family"] for name in recorded.names()})
    for form in one_of(name for name in recorded.names() if recorded.load(name)["family"] == family)
]
"""One recording of each API: what the other ones say is asked of ``tests/providers/streams/test_recordings.py``."""


@pytest.mark.forms(5)
@pytest.mark.parametrize("name", FORMS or ["none"])
async def test_the_client_receives_what_the_provider_said(worker: ModelClient, server: Loopback, name: str) -> None:
    recording = recorded.load(name)
    server.serve("*", Reply(recorded.body(name), content_type=recording["content_type"]))
    spec = recorded.spec_for(recording, server.url)
    answer = await collect(worker.stream(recorded.request_for(spec, [recorded.question()])))
    expected = recording["expected"]
    assert answer.text == expected["text"]
    assert answer.ends == 1
    reasoning = "".join(i.text for i in answer.items if isinstance(i, Delta) and i.kind == "reasoning")
    assert reasoning == recorded.reasoning_of(name)
    assert answer.finish.reason in ("stop", "tool_calls", "length")
    assert answer.usage is not None
    assert answer.usage.usage.input == expected["usage"]["input"]
