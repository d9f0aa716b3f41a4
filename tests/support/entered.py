"""Which files of the program are entered: from a message to the model that is asked, and by one call."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from agent_tui import records
from agent_tui.models.messages import user_message
from agent_tui.models.requests import Counter, Finished, ModelRequest, ModelSpec, Provider, StreamItem
from agent_tui.providers.client import ModelClient
from agent_tui.providers.demo import DemoProvider
from tests.support.agents import parts_for, running
from tests.support.anthropic_stream import answer, text
from tests.support.loopback import Loopback
from tests.support.recorded import request_for
from tests.support.waiting import PATIENCE

RECORDS = records.__file__  # what the standard library's dataclasses would do in no file
PRODUCT = str(Path(RECORDS).parent) + "/"
FUNCTION = 0x1
"""Of a code object's flags: the body of a module or a class is without it."""


class Entered:
    """Notes the files whose functions are called while ``noting`` is true, on every thread."""

    def __init__(self) -> None:
        self.noting = False
        self.files: set[str] = set()

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        own = code.co_filename.startswith(PRODUCT) and code.co_filename != RECORDS
        if self.noting and own and event == "call" and code.co_flags & FUNCTION:
            self.files.add(code.co_filename.removeprefix(PRODUCT))


@contextmanager
def watched() -> Iterator[Entered]:
    """Threads that are started inside are watched, too."""
    entered = Entered()
    before = sys.getprofile()
    threading.setprofile(entered)
    sys.setprofile(entered)
    try:
        yield entered
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


class Marked(DemoProvider):
    """The demo model, which ends the noting when it is asked."""

    def __init__(self, counter: Counter, entered: Entered) -> None:
        super().__init__(counter, None, 0.0)
        self._entered = entered

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        self._entered.noting = False
        async for item in super().stream(request):
            yield item


def to_the_provider(folder: Path) -> set[str]:
    """Files entered from ``Agent.submit`` until the provider is asked, in a first turn."""

    async def turn(entered: Entered, home: Path) -> None:
        def provider(counter: Counter) -> Provider:
            return Marked(counter, entered)

        async with running(parts_for(home, home / "project", provider=provider)) as (agent, _):
            async with asyncio.timeout(PATIENCE):
                await agent.events.settled()
                entered.files.clear()
                entered.noting = True
                agent.turns.submit("hello")
                await agent.turns.join()

    with watched() as entered:
        # What is imported and remembered by the first of a process is no part of it: the second is counted.
        for name in ("first", "second"):
            asyncio.run(turn(entered, folder / name))
    return entered.files


def in_a_call() -> set[str]:
    """Files entered by one call of an Anthropic model, from the request to the end of its answer."""

    async def call(entered: Entered, url: str) -> None:
        client = ModelClient()
        spec = ModelSpec("claude", "anthropic/claude-sonnet-4-5", api_base=url, api_key="k")
        request = request_for(spec, [user_message("hello")])
        entered.files.clear()
        entered.noting = True
        async with asyncio.timeout(PATIENCE):
            items = [item async for item in client.stream(request)]
        entered.noting = False
        assert isinstance(items[-1], Finished), items
        await client.close()

    with Loopback() as server, watched() as entered:
        server.serve("*", answer(text("Hello.")))
        for _ in range(2):
            asyncio.run(call(entered, server.url))
    return entered.files
