"""Dataclasses to JSON-able dicts and back, exactly: ``from_dict(type, to_dict(x)) == x`` for the whole vocabulary.

What a type needs is found in its fields and type hints, once; no field is named here.
"""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from agent_tui.models.messages import Part

T = TypeVar("T")
Load = Callable[[Any], Any]
Report = Callable[[str], None]
"""Is told the name (``Type.field``) of a field that a type does not have."""


def ignore(name: str) -> None:
    """The ``Report`` of what is stored: older code reads what newer code wrote."""


_PLAIN = frozenset({str, int, float, bool})


def to_dict(value: Any) -> Any:
    """A JSON-able copy of a dataclass (or of lists and dicts of them). Fields hidden from ``repr`` are left out."""
    if value is None or type(value) in _PLAIN:
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: to_dict(getattr(value, name)) for name in _public_fields(type(value))}
    if isinstance(value, (list, tuple)):
        return [to_dict(v) for v in value]
    if isinstance(value, dict):
        return {k: to_dict(v) for k, v in value.items()}
    return value


def from_dict(cls: type[T], data: Any, unknown: Report = ignore) -> T:
    """The dataclass ``cls`` from what ``to_dict`` made of one. ``unknown`` is told of keys that are no fields.
    Raises ``KeyError``/``TypeError`` when a required field is missing."""
    of: Any = cls
    built: T = decoder(of, unknown)(data)
    return built


def part_from_dict(data: dict[str, Any]) -> Part:
    """A message part by its ``type``. Raises ``KeyError`` for an unknown type."""
    part: Part = decoder(Part)(data)
    return part


def dumps(value: Any) -> str:
    """Compact JSON of a value of the vocabulary. Lone surrogates, which models do emit, survive."""
    return json.dumps(to_dict(value), ensure_ascii=True, separators=(",", ":"))


def dumps_for_pipe(value: Any) -> str:
    """The same for a process of the same version: with fields hidden from ``repr``, but without those that are at a
    default of None, True or False."""
    return _FOR_PIPE.encode(value)


def _fields_for_pipe(value: Any) -> dict[str, Any]:
    cls: Any = type(value)
    if not hasattr(cls, "__dataclass_fields__"):
        raise TypeError(f"{cls.__name__} is no part of the vocabulary")
    return {
        name: found for name, default in _travelling_defaults(cls) if (found := getattr(value, name)) is not default
    }


_FOR_PIPE = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), default=_fields_for_pipe)


@cache
def decoder(hint: Any, unknown: Report = ignore) -> Load:
    """The function that makes what a type hint says of its JSON. None is always None."""
    return _decoder(hint, unknown) or _as_it_is


@cache
def _travelling_defaults(cls: type) -> tuple[tuple[str, Any], ...]:
    """The fields that go to another process, with the default that need not be sent; MISSING where all must be."""
    fields = {f.name: f.default for f in dataclasses.fields(cls)}
    unsent = {name for name, default in fields.items() if default is None or isinstance(default, bool)}
    return tuple((name, fields[name] if name in unsent else dataclasses.MISSING) for name in fields)


@cache
def _public_fields(cls: type) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(cls) if f.repr)


@cache
def _decoder(hint: Any, unknown: Report) -> Load | None:
    """None where JSON's own value is already right."""
    origin = get_origin(hint)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _of_dataclass(hint, unknown)
    if origin in (Union, types.UnionType):
        return _of_union(get_args(hint), unknown)
    if origin is tuple:
        return _of_tuple(get_args(hint), unknown)
    item = _decoder(get_args(hint)[-1], unknown) if origin in (list, dict) else None
    if item is None:
        return None
    if origin is list:
        return lambda data: None if data is None else [item(v) for v in data]
    return lambda data: None if data is None else {k: item(v) for k, v in data.items()}


def _of_dataclass(cls: type, unknown: Report) -> Load:
    hints = get_type_hints(cls)
    names = frozenset(f.name for f in dataclasses.fields(cls))
    nested = [(name, build) for name in names if (build := _decoder(hints[name], unknown)) is not None]

    def load(data: Any) -> Any:
        if data is None:
            return None
        values = dict(data)
        if not values.keys() <= names:
            for name in sorted(values.keys() - names):
                unknown(f"{cls.__name__}.{name}")
                del values[name]
        for name, build in nested:
            if values.get(name) is not None:
                values[name] = build(values[name])
        return cls(**values)

    return load


def _of_union(options: tuple[Any, ...], unknown: Report) -> Load | None:
    """Several dataclasses are told apart by a field ``type`` that has one value each."""
    builds = {option: build for option in options if (build := _decoder(option, unknown)) is not None}
    if not builds:
        return None
    if len(builds) == 1:
        (option, only), *_ = builds.items()
        wanted = list if get_origin(option) in (list, tuple) else dict
        return lambda data: only(data) if isinstance(data, wanted) else data
    named: dict[Any, Load] = {}
    for option, one in builds.items():
        hint = get_type_hints(option).get("type")
        if get_origin(hint) is not Literal:
            raise TypeError(f"{option} has no field type to be told apart by")
        named[get_args(hint)[0]] = one
    return lambda data: named[data["type"]](data) if isinstance(data, dict) else data


def _of_tuple(items: tuple[Any, ...], unknown: Report) -> Load:
    if items[-1] is Ellipsis:
        each = _decoder(items[0], unknown) or _as_it_is
        return lambda data: None if data is None else tuple(each(v) for v in data)
    builds = [_decoder(item, unknown) or _as_it_is for item in items]
    return lambda data: None if data is None else tuple(b(v) for b, v in zip(builds, data, strict=True))


def _as_it_is(data: Any) -> Any:
    return data
