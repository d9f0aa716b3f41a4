"""Guards what httpx reads: no redirects, no bombs, errors cut short. Worker only; the one door of LiteLLM's and the
OpenAI SDK's calls, whatever transport lies below."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from agent_tui.providers.net import httpx_private
from agent_tui.providers.net.bounds import BODY_LIMIT, ERROR_LIMIT, BoundError, RedirectError, Unpacker
from agent_tui.text.numbers import size

REDIRECTS = frozenset({301, 302, 303, 307, 308})


def prepare(request: Any) -> None:
    """Asks only for encodings that can be unpacked piece by piece. A header that was signed stays."""
    if "accept-encoding" not in request.headers.get("authorization", "").lower():
        request.headers["accept-encoding"] = Unpacker.ACCEPTED


def redirect(response: Any) -> RedirectError | None:
    """The error for a response that leads elsewhere."""
    target = response.headers.get("location")
    if response.status_code not in REDIRECTS or not target:
        return None
    return RedirectError(str(response.request.url), target)


async def body(response: Any, limit: int = BODY_LIMIT) -> AsyncIterator[bytes]:
    """The body of an unread response, unpacked, in small pieces, at most ``limit`` bytes. Raises BoundError for more.
    With an error status it simply ends at ``ERROR_LIMIT``: the status must be told, not our limit."""
    failed = response.status_code >= 400
    got = 0
    try:
        unpacker = Unpacker(response.headers.get("content-encoding", ""))
        async for raw in response.aiter_raw():
            for piece in unpacker.feed(raw):
                got += len(piece)
                if failed and got >= ERROR_LIMIT:
                    yield piece[: len(piece) - (got - ERROR_LIMIT)]
                    return
                if got > limit:
                    raise BoundError(f"The answer is longer than {size(limit)}; it was not read on.")
                yield piece
    except BoundError:
        if not failed:
            raise
    finally:
        await response.aclose()


def guard_body(response: Any, limit: int = BODY_LIMIT) -> None:
    """Makes every way of reading ``response`` go through ``body``."""

    async def aiter_bytes(chunk_size: int | None = None) -> AsyncIterator[bytes]:
        async for piece in body(response, limit):
            yield piece

    httpx_private.replace_body(response, aiter_bytes)
