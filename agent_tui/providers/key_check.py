"""Asks a provider whether it takes a key, by a list of its models: nothing is paid for it, and nothing said."""

from __future__ import annotations

import asyncio
import re
from typing import Literal

from agent_tui.models.requests import ModelSpec
from agent_tui.providers.catalog import Called, is_direct, resolve_target
from agent_tui.providers.dialects.outgoing import extra_headers
from agent_tui.providers.direct import Connections, NetworkSettingsError, headers_of
from agent_tui.providers.errors import classify
from agent_tui.providers.net import BoundError, is_of_httpx
from agent_tui.providers.server_facts import api_root
from agent_tui.records import dataclass
from agent_tui.text.secrets import MASK

PATIENCE = 8.0
"""Seconds that it may take."""
_HIDDEN = re.compile(r"[^\s\"']*(?:\*{3,}|\.{3,}|…)[^\s\"']*")
"""A key with its middle hidden, as providers repeat it."""


@dataclass(slots=True, frozen=True)
class KeyCheck:
    """``words`` are a sentence on it. ``unknown``: nobody could be asked, or the answer says nothing of the key."""

    result: Literal["accepted", "refused", "unknown"]
    words: str


async def check_key(spec: ModelSpec, key: str) -> KeyCheck:
    """Asks where calls of the model go. Never raises for what the network or a server does."""
    target = resolve_target(spec)
    called = Called(target.provider, spec.api_base, spec.api_key_env)
    root = api_root(spec, target) if is_direct(spec, target) else ""
    if not root:
        return KeyCheck("unknown", f"The key was not checked: {called.name} has no list of models to ask for.")
    extra, connections = extra_headers(spec.extra), Connections()
    headers = headers_of(target, key, extra)
    try:
        async with asyncio.timeout(PATIENCE):
            refused = await _refusal(connections, f"{root}/models", headers, called, key)
            if refused is not None:
                return refused
            # A list that anybody may read says nothing of a key.
            public = await _refusal(connections, f"{root}/models", headers_of(target, None, extra), called, key)
    except TimeoutError:
        return KeyCheck("unknown", f"The key could not be checked: {called.name} did not answer in time.")
    finally:
        await connections.aclose()
    if public is None:
        return KeyCheck("unknown", f"The key could not be checked: {called.name} lists its models for anybody.")
    return KeyCheck("accepted", f"{called.first} accepted the key.")


async def _refusal(
    connections: Connections, url: str, headers: dict[str, str], called: Called, key: str
) -> KeyCheck | None:
    """What became of a request that was not answered with a list; None where it was."""
    try:
        async with connections.post(url, headers, None):
            return None
    except (BoundError, NetworkSettingsError) as error:
        return KeyCheck("unknown", f"The key could not be checked: {error}")
    except Exception as error:
        if not (isinstance(error, OSError) or is_of_httpx(error) or hasattr(error, "status_code")):
            raise
        failure = classify(error, called, "", False, [key])
    said = _HIDDEN.sub(MASK, failure.cause)
    # 403: the key is known, and may not list models. 429 and no credit say nothing against it either.
    if failure.kind == "auth" and failure.status in (400, 401):
        return KeyCheck("refused", said)
    if failure.kind in ("rate_limit", "auth"):
        return KeyCheck("unknown", f"The key may still be right. {said}")
    if failure.kind == "connection":
        return KeyCheck("unknown", f"The key could not be checked. {said}")
    return KeyCheck("unknown", f"The key could not be checked: {called.name} does not list its models.")
