"""One direct call: the request goes out, what comes back goes into the tap."""

from __future__ import annotations

from agent_tui.providers.direct.encode import HttpCall
from agent_tui.providers.direct.http import Connections
from agent_tui.providers.net import guard as http_guard
from agent_tui.providers.streams.tap import Tap


async def exchange(connections: Connections, call: HttpCall, tap: Tap) -> None:
    """Sends a call and reads its answer to the end into ``tap``, whose ``on_data`` is called for each piece. Raises
    what ``Connections.post`` raises."""
    async with connections.post(call.url, call.headers, call.content) as response:
        tap.begin(response.headers.get("content-type", ""))
        async for data in http_guard.body(response, tap.limit):
            tap.feed(data)
            if tap.on_data is not None:
                tap.on_data()
        tap.close()
