"""Everything of httpx that it does not promise: methods put in the place of its own, names of events and modules.

LiteLLM and the OpenAI SDK below it make clients of their own, so the class is the only door to all of them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

OPENING = ".connect_"
"""In the names of the events of a connection that is being opened."""


def replace_send(make: Callable[[Any], Any], make_blocking: Callable[[Any], Any]) -> None:
    """Puts what is made of the two clients' own ``send`` in its place, for all clients there are and will be.
    Idempotent."""
    import httpx

    if getattr(httpx.AsyncClient.send, "_replaced", False):
        return
    send, blocking = make(httpx.AsyncClient.send), make_blocking(httpx.Client.send)
    send._replaced = True
    httpx.AsyncClient.send = send  # type: ignore[method-assign]
    httpx.Client.send = blocking  # type: ignore[method-assign]


def replace_body(response: Any, read: Callable[..., AsyncIterator[bytes]]) -> None:
    """Has one response read through ``read``: every other way of reading it goes through this method."""
    response.aiter_bytes = read


def note_openings(request: Any) -> list[str]:
    """A list that is filled when a connection is opened for a request, and stays empty when it takes a kept one."""
    opened: list[str] = []

    async def trace(event: str, info: Any) -> None:
        if OPENING in event:
            opened.append(event)

    request.extensions["trace"] = trace
    return opened


def is_of_httpx(error: BaseException) -> bool:
    """Whether httpx raised it, without importing httpx."""
    return type(error).__module__.startswith("httpx")
