"""``dataclass`` for the program's own records: as the standard library's, but nothing is compiled when one is defined.

The standard one writes and compiles up to seven methods for each class, whether they are ever called or not: with four
hundred classes that was a third of the start. Here the constructor is compiled at a class's first instance, and the
other methods are shared by all classes. Type checkers see the standard library's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, fields
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        cls: type | None = None,
        /,
        *,
        slots: bool = False,
        frozen: bool = False,
        kw_only: bool = False,
        eq: bool = True,
    ):
        """Makes a class a dataclass with ``__init__``, ``__eq__``, ``__repr__`` and, where ``frozen``, ``__hash__``."""

        def make(cls: type) -> type:
            own = vars(cls)
            cls.__doc__ = cls.__doc__ or cls.__name__  # else the standard one writes the signature into it
            made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
            if "__init__" not in own:
                made.__init__ = _first_init(made, frozen)
            if "__repr__" not in own:
                made.__repr__ = _repr
            if eq:
                if "__hash__" not in own or ("__eq__" in own and own["__hash__"] is None):  # None: Python's, for __eq__
                    made.__hash__ = _hash if frozen else None
                made.__eq__ = own.get("__eq__", _eq)
            if frozen:
                made.__setattr__ = made.__delattr__ = _refuse
                made.__setstate__ = _restore
            return made

        return make if cls is None else make(cls)


def _first_init(cls: type, frozen: bool) -> Callable[..., None]:
    def __init__(self: Any, /, *args: Any, **kwargs: Any) -> None:
        init = _compiled_init(cls, frozen)
        cls.__init__ = init  # type: ignore[misc]
        init(self, *args, **kwargs)

    return __init__


def _compiled_init(cls: Any, frozen: bool) -> Callable[..., None]:
    names: dict[str, Any] = {"_set": object.__setattr__, "_MISSING": MISSING}
    positional: list[str] = []
    keyword: list[str] = []
    body: list[str] = []
    for field in fields(cls):
        name, default = field.name, f"_default_{field.name}"
        parameter = value = name
        if field.default_factory is not MISSING:
            names[default] = field.default_factory
            parameter = f"{name}=_MISSING"
            value = f"{default}() if {name} is _MISSING else {name}" if field.init else f"{default}()"
        elif field.default is not MISSING:
            names[default] = field.default
            parameter, value = f"{name}={default}", name if field.init else default
        if field.init:
            (keyword if field.kw_only else positional).append(parameter)
        elif value == name:
            continue  # set by __post_init__
        body.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ", ".join(["self", *positional, *(["*", *keyword] if keyword else [])])
    exec(f"def __init__({parameters}):\n  " + "\n  ".join(body or ["pass"]), names)
    init: Callable[..., None] = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


@cache
def _reader(cls: type, hashing: bool = False) -> Callable[[Any], Any]:
    """What reads the fields that equality, or the hash, looks at."""
    names = [f.name for f in fields(cls) if (f.compare if f.hash is None or not hashing else f.hash)]
    return attrgetter(*names) if names else lambda _: ()


def _eq(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    read = _reader(self.__class__)
    return read(self) == read(other)


def _hash(self: Any) -> int:
    return hash(_reader(self.__class__, True)(self))


@recursive_repr()
def _repr(self: Any) -> str:
    shown = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
    return f"{type(self).__qualname__}({shown})"


def _restore(self: Any, state: Any) -> None:
    """What copies and pickles are made by."""
    for part in state if isinstance(state, tuple) else (state,):
        for name, value in (part or {}).items():
            object.__setattr__(self, name, value)


def _refuse(self: Any, name: str, *_: object) -> None:
    raise FrozenInstanceError(f"cannot change field {name!r}")
