"""One direct call: the request goes out, what comes back goes into the tap."""

from __future__ import annotations

from agent_tui.providers import http_guard
from agent_tui.providers.direct.encode import HttpCall
from agent_tui.providers.direct.http import Connections
from agent_tui.providers.tap import Tap

SHOWN = 200
"""Characters of an answer that is no stream of a model, for the line that says so."""


class NotAnAnswerError(Exception):
    """Status 200, and yet nothing that a model's API sends: a login page, another program's words."""

    status_code = 200

    def __init__(self, content_type: str, head: bytes) -> None:
        self.content_type = content_type.partition(";")[0].strip()
        self.head = head.decode("utf-8", "replace").strip()[:SHOWN]
        what = self.content_type or "no content type"
        super().__init__(f"the answer is no model's ({what}): {self.head or 'nothing'}")


async def exchange(connections: Connections, call: HttpCall, tap: Tap) -> None:
    """Sends a call and reads its answer to the end into ``tap``, whose ``on_data`` is called for each piece. Raises
    what ``Connections.post`` raises, and NotAnAnswerError."""
    async with connections.post(call.url, call.headers, call.content) as response:
        content_type = response.headers.get("content-type", "")
        tap.begin(content_type)
        head = b""
        async for data in http_guard.body(response, tap.limit):
            if len(head) < SHOWN:
                head += data[:SHOWN]
            tap.feed(data)
            if tap.on_data is not None:
                tap.on_data()
        tap.close()
        if not tap.seen:
            raise NotAnAnswerError(content_type, head)
