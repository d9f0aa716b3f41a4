"""``SessionState`` as the JSON object that is stored and exported, and back: the one place that knows its keys."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import get_args

from agent_tui.models.messages import JSON, Metadata
from agent_tui.models.requests import Effort
from agent_tui.models.session import BUDGETS, SessionState

_TYPES: Mapping[str, tuple[type, ...]] = {
    "pinned": (list,),
    "compaction_failures": (int,),
    "compaction_paused": (bool,),
    "compaction_off": (bool,),
    "thinking": (str, type(None)),
    "environment": (str, type(None)),
    "budget": (dict,),
    "back": (str, type(None)),
    "going": (str, type(None)),
    "named_hosts": (list,),
    "read_outside": (list,),
}
"""Every key with the types its value may have; each is a field of ``SessionState``."""

_EFFORTS = get_args(Effort)


@lru_cache(maxsize=2048)
def parse_state(text: str) -> tuple[SessionState, tuple[str, ...]]:
    """``load_state`` of a text; raises what ``json.loads`` does. A list of sessions is read again with every letter of
    a search, and most states are alike."""
    return load_state(json.loads(text))


def dump_state(state: SessionState) -> Metadata:
    """All keys, those of a newer version behind those of this one."""
    known = ((key, getattr(state, key)) for key in _TYPES)
    return {**{key: _plain(value) for key, value in known}, **state.newer}


def _plain(value: object) -> JSON:
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def load_state(data: JSON) -> tuple[SessionState, tuple[str, ...]]:
    """The state, and the names of what in it cannot be read: that is as in a new session. A key that is not there, as
    in databases of older versions, is no damage; one that is not known is kept."""
    if not isinstance(data, dict):
        return SessionState(), ("state",)
    known: Metadata = {}
    newer: Metadata = {}
    lost: list[str] = []
    for key, value in data.items():
        if key not in _TYPES:
            newer[key] = value
        elif _fits(key, value):
            known[key] = tuple(value) if isinstance(value, list) else value
        else:
            lost.append(key)
    return SessionState(**known, newer=newer), tuple(lost)


def _fits(key: str, value: JSON) -> bool:
    if type(value) not in _TYPES[key]:
        return False
    match key:
        case "pinned" | "named_hosts" | "read_outside":
            return all(isinstance(text, str) for text in value)
        case "compaction_failures":
            return bool(value >= 0)
        case "budget":
            return all(name in BUDGETS and (limit is None or _positive(limit)) for name, limit in value.items())
        case "thinking":
            return value is None or value in _EFFORTS
    return True


def _positive(limit: JSON) -> bool:
    return type(limit) in (int, float) and 0 < limit < float("inf")
