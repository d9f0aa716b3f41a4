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
from agent_tui.models.messages import Message, Part
from agent_tui.models.session import SessionInfo, SessionState
from agent_tui.models.steps import CompactionRecord, FixedPart, FixedSets, Step
from agent_tui.store.database import UNREADABLE

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


def load_object(text: Any) -> dict[str, Any]:
    """A JSON object that is stored as ASCII. Raises ``ValueError`` or ``TypeError`` for anything else."""
    value = json.loads(text if text.isascii() else "")
    if not isinstance(value, dict):
        raise TypeError(f"{type(value).__name__} where an object belongs")
    return value


def load_part(data: dict[str, Any]) -> Part:
    return _checked(part_from_dict(data))


def dump_counts(counts: Sequence[int] | None) -> str | None:
    """Counts by kind for their column."""
    return None if counts is None else json.dumps(counts, separators=(",", ":"))


def load_counts(text: str | None) -> tuple[int, ...] | None:
    return None if text is None else tuple(map(int, json.loads(text)))


def load_message(data: dict[str, Any]) -> Message:
    return _checked(from_dict(Message, data))


def load_waiting(text: str) -> Message:
    """A message that is stored in one piece, with its parts."""
    message = load_message(load_object(text))
    for part in message.parts:
        check_fields(part)
    return message


def load_step(data: dict[str, Any]) -> Step:
    """``fixed`` in ``data`` are parts already."""
    step = from_dict(Step, {**data, "fixed": ()})
    step.fixed = data["fixed"]
    return _checked(step)


def load_record(data: dict[str, Any]) -> CompactionRecord:
    return _checked(from_dict(CompactionRecord, data))


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
    choices = [(name, values) for name in names if (values := _choices(hints[name]))]
    items = [(name, kinds) for name in names if (kinds := _allowed_items(hints[name])) is not None]
    inner = [name for name in names if any(map(dataclasses.is_dataclass, _allowed(hints[name])))]
    read = attrgetter(*names)

    def check(made: Any) -> None:
        found = read(made)
        if not all(map(isinstance, found if len(names) > 1 else (found,), allowed)):
            raise TypeError(f"a field of {cls.__name__} holds what it cannot hold")
        for name, choice in choices:
            if getattr(made, name) not in choice:
                raise TypeError(f"{name} of {cls.__name__} is none of its values")
        for name, kinds in items:
            value = getattr(made, name)
            if not all(isinstance(item, kinds) for item in (value.values() if isinstance(value, dict) else value)):
                raise TypeError(f"{name} of {cls.__name__} holds what it cannot hold")
        for name in inner:
            if (value := getattr(made, name)) is not None:
                check_fields(value)

    return check


def _choices(hint: Any) -> frozenset[Any]:
    """The values of a Literal, or of one that may be None; empty for anything else."""
    options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    if any(option is not type(None) and get_origin(option) is not Literal for option in options):
        return frozenset()
    return frozenset(value for option in options for value in get_args(option) or (None,))


def _allowed_items(hint: Any) -> tuple[type, ...] | None:
    """The types of the items of a tuple of any length, or of a mapping's values; None for all else, and where they are
    dataclasses."""
    items = get_args(hint)
    if get_origin(hint) is tuple and items[-1] is Ellipsis:
        allowed = _allowed(items[0])
    elif get_origin(hint) is Mapping:
        allowed = _allowed(items[1])
    else:
        return None
    return None if object in allowed or any(map(dataclasses.is_dataclass, allowed)) else allowed


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


COLUMNS = "id, project, title, model, created, updated, head_id, messages, parent_session, preview, kind, state"

_NAMES = COLUMNS.split(", ")
_TEXTS = ("project", "title", "model", "preview")


def row_of(info: SessionInfo) -> tuple[Any, ...]:
    """The values of ``COLUMNS``."""
    values = {name: getattr(info, name) for name in _NAMES}
    texts = {name: encode(values[name]) for name in _TEXTS}
    return tuple({**values, **texts, "state": dumps(info.state)}.values())


def session_of(row: Sequence[Any]) -> SessionInfo:
    """A session of a row with ``COLUMNS``. Raises one of ``database.UNREADABLE`` where it makes no sense."""
    values = dict(zip(_NAMES, row, strict=True))
    texts = {name: decode(values[name]) for name in _TEXTS}
    info = SessionInfo(**{**values, **texts, "state": _load_state(values["state"])})
    for moment in (info.created, info.updated):
        if not 0 <= moment < _YEAR_9999:
            raise ValueError("a time that is no time")
    return _checked(info)


@lru_cache(maxsize=2048)
def _load_state(text: str) -> SessionState:
    # A list of sessions is read again with every letter of a search, and most states are alike.
    state = from_dict(SessionState, load_object(text))
    for asked in state.agent_asked:
        check_fields(asked)
    return state


def infos_of(rows: Sequence[Any]) -> list[SessionInfo]:
    """Sessions of rows with ``COLUMNS``, for lists: one that makes no sense is listed as damaged."""
    try:
        return [session_of(row) for row in rows]
    except UNREADABLE:
        return [_listed(row) for row in rows]


def _listed(row: Sequence[Any]) -> SessionInfo:
    try:
        return session_of(row)
    except UNREADABLE:
        return SessionInfo(str(row[0]), "", "(damaged)")
