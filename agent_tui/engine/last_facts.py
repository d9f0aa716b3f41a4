"""What a model's server said last of it, kept for when it does not answer: a session is not shown with a window of
nobody's, or with tools that the model never got."""

from __future__ import annotations

import json
import logging
import time
from dataclasses import replace

from agent_tui.errors import StoreError
from agent_tui.models.codec import dumps, from_dict
from agent_tui.models.requests import ModelInfo
from agent_tui.models.usage import Limits
from agent_tui.records import dataclass
from agent_tui.store.store import Store

log = logging.getLogger(__name__)

_DAY = 86_400


@dataclass(slots=True, frozen=True)
class LastFacts:
    """The facts that a running server stated of a model; None was not said."""

    window: int | None = None
    max_output: int | None = None
    images: bool | None = None
    tools: bool | None = None
    parallel: bool = True


def with_last_facts(store: Store, info: ModelInfo) -> ModelInfo:
    """The model as it is where its server has said so; where that does not answer, with what it said last. The user's
    configuration still wins."""
    model, server = info.spec.model, info.spec.api_base or ""
    try:
        kept = store.learned.server_facts(model, server)
        if not info.silent:
            _keep(store, info, kept)
            return info
        if kept is None:
            return info
        last = from_dict(LastFacts, json.loads(kept[0]))
    except (StoreError, ValueError, TypeError) as error:
        log.warning("What the server of %s said last cannot be kept or read: %s", info.spec.key, error)
        return info
    limits = info.limits
    if limits.source in ("unknown", "assumed") and last.window is not None:
        limits = Limits(last.window, None, last.max_output or limits.max_output, "last", learned_at=kept[1])
    return replace(
        info,
        limits=limits,
        images=last.images if info.images is None else info.images,
        tools=last.tools if info.tools is None else info.tools,
        parallel=last.parallel,
    )


def _keep(store: Store, info: ModelInfo, kept: tuple[str, float] | None) -> None:
    """Stores what the server says, where it says something; a day old at most where that stays the same."""
    limits = info.limits
    stated = limits.window if limits.source in ("server", "chosen") else None
    if stated is None and info.tools is None:
        return
    data, now = dumps(LastFacts(stated, limits.max_output, info.images, info.tools, info.parallel)), time.time()
    if kept is None or kept[0] != data or now - kept[1] > _DAY:
        store.learned.put_server_facts(info.spec.model, info.spec.api_base or "", data, now)
