"""Rows to the vocabulary and back: what ``models.codec`` does, at the speed a resume of 10 000 messages needs;
sessions and their stored state, whose keys are known here alone.
"""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from agent_tui.models.codec import dumps, from_dict, part_from_dict, to_dict
from agent_tui.models.messages import JSON, Message, Metadata, Part
from agent_tui.models.requests import Effort
from agent_tui.models.session import BUDGETS, SessionInfo, SessionKind, SessionState
from agent_tui.models.steps import CompactionRecord, FixedPart, FixedSets, Step

T = TypeVar("T")
_YEAR_9999 = 253_370_764_800

MESSAGE_COLUMNS = ("id", "role", "status", "parent_id", "raw_tokens", "counts")
STEP_COLUMNS = ("id", "status", "message_id")
RECORD_COLUMNS = ("id", "operation_id", "active")


def encode(text: str) -> bytes:
    """Any Python string as bytes for a BLOB column; SQLite's own text cannot hold lone surrogates."""
    return text.encode("utf-8", "surrogatepass")


def decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def dump_rest(value: Any, columns: Sequence[str]) -> str:
    """JSON of the fields of a dataclass that have no column of their own."""
    names = [f.name for f in dataclasses.fields(value) if f.repr and f.name not in columns]
    return json.dumps({n: to_dict(getattr(value, n)) for n in names}, separators=(",", ":"))


def dump_message(message: Message) -> str:
    return dump_rest(message, (*MESSAGE_COLUMNS, "parts"))


def dump_step(step: Step) -> str:
    return dump_rest(step, (*STEP_COLUMNS, "fixed"))


def dump_record(record: CompactionRecord) -> str:
    return dump_rest(record, RECORD_COLUMNS)


def load_json(texts: Iterable[str]) -> list[Any]:
    """Many JSON texts parsed in one go: a fifth of the time of one call for each."""
    values: list[Any] = json.loads(f"[{','.join(texts)}]")
    return values


def load_part(data: dict[str, Any]) -> Part:
    return _checked(part_from_dict(data))


def dump_counts(counts: Sequence[int] | None) -> str | None:
    """Counts by kind for their column."""
    return None if counts is None else json.dumps(counts, separators=(",", ":"))


def load_counts(text: str | None) -> tuple[int, ...] | None:
    return None if text is None else tuple(map(int, json.loads(text)))


def load_message(data: dict[str, Any]) -> Message:
    return _checked(from_dict(Message, data))


def load_step(data: dict[str, Any]) -> Step:
    """``fixed`` in ``data`` are parts already."""
    step = from_dict(Step, {**data, "fixed": ()})
    step.fixed = data["fixed"]
    return _checked(step)


def load_record(data: dict[str, Any]) -> CompactionRecord:
    return _checked(from_dict(CompactionRecord, data))


def require_time(seconds: float) -> None:
    """Raises ValueError for what is no time since the epoch that a calendar knows."""
    if not 0 <= seconds < _YEAR_9999:
        raise ValueError("a time that is no time")


def load_fixed(text: str, sets: FixedSets) -> tuple[FixedPart, ...]:
    """A set of fixed parts, one of ``sets`` from now on."""
    return sets.one(_checked(from_dict(FixedPart, data)) for data in json.loads(text))


def dump_fixed(fixed: Sequence[FixedPart]) -> str:
    return dumps(list(fixed))


def check_fields(made: Any) -> None:
    """Raises TypeError for a dataclass that holds, itself or in another, what its fields cannot hold."""
    cls: Any = type(made)
    _checker(cls)(made)


def _checked(made: T) -> T:
    check_fields(made)
    return made


@cache
def _checker(cls: Any) -> Callable[[Any], None]:
    """A function that raises TypeError for an instance whose fields do not hold what they are declared to hold: a
    file can be damaged and still parse. Items of lists are looked at where they are read."""
    hints = get_type_hints(cls)
    names = [f.name for f in dataclasses.fields(cls) if f.init]
    allowed = tuple(_allowed(hints[name]) for name in names)
    choices = [(name, frozenset(get_args(hints[name]))) for name in names if get_origin(hints[name]) is Literal]
    inner = [name for name in names if any(map(dataclasses.is_dataclass, _allowed(hints[name])))]
    values = attrgetter(*names)

    def check(made: Any) -> None:
        found = values(made)
        if not all(map(isinstance, found if len(names) > 1 else (found,), allowed)):
            raise TypeError(f"a field of {cls.__name__} holds what it cannot hold")
        for name, choice in choices:
            if getattr(made, name) not in choice:
                raise TypeError(f"{name} of {cls.__name__} is none of its values")
        for name in inner:
            if (value := getattr(made, name)) is not None:
                check_fields(value)

    return check


def _allowed(hint: Any) -> tuple[type, ...]:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return tuple(t for option in get_args(hint) for t in _allowed(option))
    if origin is Literal:
        return tuple({type(value) for value in get_args(hint)})
    if hint is float:
        return (float, int)
    found = origin or hint
    return (found,) if isinstance(found, type) else (object,)


_TYPES: Mapping[str, tuple[type, ...]] = {
    "pinned": (list,),
    "pinned_messages": (list,),
    "drops_waiting": (dict,),
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
    "handed_from": (str, type(None)),
    "handed_to": (list,),
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
        case "pinned" | "pinned_messages" | "named_hosts" | "read_outside" | "handed_to":
            return all(isinstance(text, str) for text in value)
        case "compaction_failures":
            return bool(value >= 0)
        case "drops_waiting":
            return all(type(asked) in (int, float) and asked >= 0 for asked in value.values())
        case "budget":
            return all(name in BUDGETS and (limit is None or _positive(limit)) for name, limit in value.items())
        case "thinking":
            return value is None or value in _EFFORTS
    return True


def _positive(limit: JSON) -> bool:
    return type(limit) in (int, float) and 0 < limit < float("inf")


COLUMNS = "id, project, title, model, created, updated, head_id, messages, parent_session, preview, kind, state"

_NAMES = COLUMNS.split(", ")
_TEXTS = ("project", "title", "model", "preview")

_KINDS: tuple[SessionKind, ...] = get_args(SessionKind)

_SENSELESS = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)


def row_of(info: SessionInfo) -> tuple[Any, ...]:
    """The values of ``COLUMNS``."""
    values = {name: getattr(info, name) for name in _NAMES}
    texts = {name: encode(values[name]) for name in _TEXTS}
    return tuple({**values, **texts, "state": state_text(info.state)}.values())


def state_text(state: SessionState) -> str:
    return json.dumps(dump_state(state), separators=(",", ":"))


def infos_of(rows: Sequence[Any]) -> list[SessionInfo]:
    """Sessions of rows with ``COLUMNS``. Facts that make no sense are replaced by what says nothing: a session whose
    row is damaged is listed and can be opened like any other; ``read_row`` says what it lacks."""
    try:
        return [_info(row) for row in rows]
    except _SENSELESS:
        return [read_row(row)[0] for row in rows]


def _info(row: Any) -> SessionInfo:
    values = dict(zip(_NAMES, row, strict=True))
    texts = {name: decode(values[name]) for name in _TEXTS}
    info = SessionInfo(**{**values, **texts, "state": parse_state(values["state"])[0]})
    check_fields(info)
    require_time(info.created)
    require_time(info.updated)
    return info


def read_row(row: Any) -> tuple[SessionInfo, list[str]]:
    """A session of one row as far as it can be read, and the names of the facts that cannot."""
    lost: list[str] = []

    def text(name: str, value: Any) -> str:
        if isinstance(value, str):
            return value
        try:
            return decode(value)
        except _SENSELESS:
            lost.append(name)
            return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")

    def identity(name: str, value: Any) -> str | None:
        return None if value is None else text(name, value)

    def time(name: str, value: Any) -> float:
        try:
            require_time(value)
            return float(value)
        except _SENSELESS:
            lost.append(name)
            return 0.0

    def count(name: str, value: Any) -> int:
        if isinstance(value, int) and value >= 0:
            return value
        lost.append(name)
        return 0

    def kind(name: str, value: Any) -> SessionKind:
        if value not in _KINDS:
            lost.append(name)
        return value if value in _KINDS else "user"

    def state(name: str, value: Any) -> SessionState:
        try:
            found, unreadable = parse_state(value)
        except _SENSELESS:
            found, unreadable = SessionState(), (name,)
        lost.extend(unreadable)
        return found

    reads: dict[str, Callable[[str, Any], Any]] = {"created": time, "updated": time, "messages": count}
    reads |= {"head_id": identity, "parent_session": identity, "kind": kind, "state": state}
    reads = {field.name: reads.get(field.name) or text for field in dataclasses.fields(SessionInfo)}
    values = dict(zip(_NAMES, row, strict=True))
    info = SessionInfo(**{name: read(name, values[name]) for name, read in reads.items()})
    return info, [name.replace("_", " ") for name in lost]
