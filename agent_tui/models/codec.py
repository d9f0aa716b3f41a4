"""Dataclasses to JSON-able dicts and back, exactly: ``from_dict(type, to_dict(x)) == x`` for the whole vocabulary."""

from __future__ import annotations

import dataclasses
import json
import types
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from agent_tui.models.messages import PART_TYPES, Message, Part

T = TypeVar("T")


def to_dict(value: Any) -> Any:
    """A JSON-able copy of a dataclass (or of lists and dicts of them). Fields hidden from ``repr`` are left out."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: to_dict(getattr(value, name)) for name in _public_fields(type(value))}
    if isinstance(value, (list, tuple)):
        return [to_dict(v) for v in value]
    if isinstance(value, dict):
        return {k: to_dict(v) for k, v in value.items()}
    return value


def from_dict(cls: type[T], data: Any) -> T:
    """The dataclass ``cls`` from what ``to_dict`` made of one; unknown keys are ignored, so older code reads newer
    rows. Raises ``KeyError``/``TypeError`` when a required field is missing."""
    built: T = _build(cls, data)
    return built


def part_from_dict(data: dict[str, Any]) -> Part:
    """A message part by its ``type``. Raises ``KeyError`` for an unknown type."""
    cls: type[Any] = PART_TYPES[data["type"]]
    part: Part = _build(cls, data)
    return part


def message_from_dict(data: dict[str, Any]) -> Message:
    return from_dict(Message, data)


def dumps(value: Any) -> str:
    """Compact JSON of a value of the vocabulary. Lone surrogates, which models do emit, survive."""
    return json.dumps(to_dict(value), ensure_ascii=True, separators=(",", ":"))


@cache
def _public_fields(cls: type) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(cls) if f.repr)


@cache
def _hints(cls: type) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {f.name: hints[f.name] for f in dataclasses.fields(cls)}


def _build(hint: Any, data: Any) -> Any:
    if data is None or hint is Any:
        return data
    if hint == Part:
        hint = PART_TYPES[data["type"]]
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _build_union(get_args(hint), data)
    if origin is list:
        (item,) = get_args(hint)
        return [_build(item, v) for v in data]
    if origin is tuple:
        item = get_args(hint)[0]
        return tuple(_build(item, v) for v in data)
    if origin in (dict, Literal):
        return data
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        hints = _hints(hint)
        return hint(**{k: _build(hints[k], v) for k, v in data.items() if k in hints})
    return data


def _build_union(options: tuple[Any, ...], data: Any) -> Any:
    if isinstance(data, dict):
        kind = data.get("type")
        for option in options:
            if PART_TYPES.get(str(kind)) is option:
                return _build(option, data)
        for option in options:
            if isinstance(option, type) and dataclasses.is_dataclass(option):
                return _build(option, data)
    return data
