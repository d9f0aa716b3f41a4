"""Values of a dataclass with every field other than its default, made from the type hints: a field that is added is
covered by the tests that use this without being named in them."""

from __future__ import annotations

import dataclasses
import itertools
import types
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_numbers = itertools.count(7)


def filled(cls: type[Any]) -> Iterator[Any]:
    """Instances with every field at a value that is not its default; enough of them that every member of every union
    and every value of every Literal in it is there once. Raises AssertionError for a field this cannot fill."""
    hints = get_type_hints(cls)
    fields = [f for f in dataclasses.fields(cls) if f.init]
    choices = {f.name: _of_field(cls, f, hints[f.name]) for f in fields}
    for turn in range(max((len(values) for values in choices.values()), default=1)):
        yield cls(**{name: values[turn % len(values)] for name, values in choices.items()})


def _of_field(cls: type[Any], field: dataclasses.Field[Any], hint: Any) -> list[Any]:
    default = _default(field)
    values = [value for value in _values(hint) if value != default]
    if not values and get_origin(hint) is Literal and len(get_args(hint)) == 1:
        return list(get_args(hint))
    assert values, f"{cls.__name__}.{field.name} cannot be filled with anything but its default"
    return values


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not dataclasses.MISSING else dataclasses.MISSING


def _values(hint: Any) -> list[Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    number = next(_numbers)
    if hint is bool:
        return [True, False]
    if hint is int:
        return [number]
    if hint is float:
        return [number + 0.25]
    if hint is str:
        return [f"text {number} \ud800\u2028\n"]
    if hint is Any:
        return [{"any": [number, None, {"deep": "\u00e9"}]}]
    if origin is Literal:
        return list(arguments)
    if origin in (Union, types.UnionType):
        return [value for option in arguments if option is not type(None) for value in _values(option)]
    if origin is list:
        return [_values(arguments[0])]
    if origin is dict:
        return [{f"key {number}": value for value in _values(arguments[1])}]
    if origin is tuple and arguments[-1] is Ellipsis:
        return [tuple(_values(arguments[0]))]
    if origin is tuple:
        return [tuple(_values(item)[0] for item in arguments)]
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return list(filled(hint))
    raise AssertionError(f"no values are known for {hint}")


def every_field(value: Any) -> Any:
    """All that a value holds, fields left out of comparisons included, for ``==``."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return type(value).__name__, {f.name: every_field(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [every_field(v) for v in value]
    return {k: every_field(v) for k, v in value.items()} if isinstance(value, dict) else value
