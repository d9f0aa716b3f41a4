"""Rows to the vocabulary and back: what ``models.codec`` does, at the speed a resume of 10 000 messages needs."""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from agent_tui.models.codec import dumps, from_dict, part_from_dict, to_dict
from agent_tui.models.messages import PART_TYPES, Message, Part
from agent_tui.models.steps import CompactionRecord, FixedPart, FixedSets, Step

T = TypeVar("T")
_YEAR_9999 = 253_370_764_800
Load = Callable[[Any], Any]

MESSAGE_COLUMNS = ("id", "role", "status", "parent_id", "raw_tokens")
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
    try:
        part: Part = PART_TYPES[data["type"]](**data)
    except TypeError:
        # A newer version wrote a field this one does not know.
        part = part_from_dict(data)
    check_fields(part)
    return part


def load_message(data: dict[str, Any]) -> Message:
    message: Message = _loader(Message)(data)
    return message


def load_step(data: dict[str, Any]) -> Step:
    runs = data.get("sent_reasoning")
    if runs:
        data["sent_reasoning"] = [tuple(run) for run in runs]
    step: Step = _loader(Step)(data)
    return step


def load_record(data: dict[str, Any]) -> CompactionRecord:
    record: CompactionRecord = _loader(CompactionRecord)(data)
    return record


def require_time(seconds: float) -> None:
    """Raises ValueError for what is no time since the epoch that a calendar knows."""
    if not 0 <= seconds < _YEAR_9999:
        raise ValueError("a time that is no time")


def load_fixed(text: str, sets: FixedSets) -> tuple[FixedPart, ...]:
    """A set of fixed parts, one of ``sets`` from now on."""
    return sets.one(_loader(FixedPart)(data) for data in json.loads(text))


def dump_fixed(fixed: Sequence[FixedPart]) -> str:
    return dumps(list(fixed))


@cache
def _loader(cls: type) -> Load:
    """A function that makes ``cls`` of its dict (which it may change), doing per field only what the field needs.
    Fields that already hold instances are left alone."""
    hints = get_type_hints(cls)
    names = frozenset(f.name for f in dataclasses.fields(cls))
    check = _checker(cls)
    nested = {n: build for n in names if (build := _value_loader(hints[n])) is not None}

    def load(data: dict[str, Any]) -> Any:
        for name, build in nested.items():
            value = data.get(name)
            if isinstance(value, dict) or (isinstance(value, list) and value and isinstance(value[0], dict)):
                data[name] = build(value)
        try:
            made = cls(**data)
        except TypeError:
            made = cls(**{k: v for k, v in data.items() if k in names})
        check(made)
        return made

    return load


def check_fields(made: Any) -> None:
    """Raises TypeError for a dataclass that holds what its fields cannot hold."""
    cls: Any = type(made)
    _checker(cls)(made)


@cache
def _checker(cls: Any) -> Callable[[Any], None]:
    """A function that raises TypeError for an instance whose fields do not hold what they are declared to hold: a
    file can be damaged and still parse. Items of lists are looked at where they are read."""
    hints = get_type_hints(cls)
    names = [f.name for f in dataclasses.fields(cls) if f.init]
    allowed = tuple(_allowed(hints[name]) for name in names)
    choices = [(name, frozenset(get_args(hints[name]))) for name in names if get_origin(hints[name]) is Literal]
    values = attrgetter(*names)

    def check(made: Any) -> None:
        found = values(made)
        if not all(map(isinstance, found if len(names) > 1 else (found,), allowed)):
            raise TypeError(f"a field of {cls.__name__} holds what it cannot hold")
        for name, choice in choices:
            if getattr(made, name) not in choice:
                raise TypeError(f"{name} of {cls.__name__} is none of its values")

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


def _value_loader(hint: Any) -> Load | None:
    """None when JSON's own value is already right."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _loader(hint)
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        options = [a for a in get_args(hint) if a is not type(None)]
        loads = [load for a in options if (load := _value_loader(a)) is not None]
        if not loads:
            return None
        return loads[0] if len(options) == 1 else _through_codec(hint)
    if origin is list:
        item = _value_loader(get_args(hint)[0])
        return None if item is None else _each(item)
    if origin is tuple:
        return _through_codec(hint)
    return None


def _through_codec(hint: Any) -> Load:
    return lambda value: from_dict(hint, value)


def _each(item: Load) -> Load:
    return lambda values: [item(value) for value in values]
