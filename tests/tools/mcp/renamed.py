"""A library in which a name was renamed, as its next version may have it: in all of its code, and nowhere else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest


def rename(monkeypatch: pytest.MonkeyPatch, library: str, name: str) -> None:
    """Renames every definition of ``name`` in a library, and every use of it there."""
    new = f"{name}_renamed"
    modules = [each for key, each in list(sys.modules.items()) if each and key.split(".")[0] == library]
    seen: set[int] = set()
    for module in modules:
        for owner in _owners(module, library, seen):
            for value in list(vars(owner).values()):
                for function in _functions(value):
                    if (code := _renamed(function.__code__, name, new)) is not function.__code__:
                        monkeypatch.setattr(function, "__code__", code)
            if name in vars(owner):
                value = vars(owner)[name]
                monkeypatch.delattr(owner, name)
                monkeypatch.setattr(owner, new, value, raising=False)


def _owners(module: ModuleType, library: str, seen: set[int]) -> Iterator[ModuleType | type]:
    yield module
    waiting: list[Any] = list(vars(module).values())
    while waiting:
        each = waiting.pop()
        if isinstance(each, type) and each.__module__.split(".")[0] == library and id(each) not in seen:
            seen.add(id(each))
            yield each
            waiting += vars(each).values()


def _functions(value: object) -> Iterator[FunctionType]:
    """The functions in a method, a property or what wraps one."""
    while value is not None:
        if isinstance(value, FunctionType):
            yield value
        for inner in ("fget", "fset", "__func__"):
            if isinstance(found := getattr(value, inner, None), FunctionType):
                yield found
        value = getattr(value, "__wrapped__", None)


def _renamed(code: CodeType, name: str, new: str) -> CodeType:
    names = tuple(new if each == name else each for each in code.co_names)
    constants = tuple(_renamed(each, name, new) if isinstance(each, CodeType) else each for each in code.co_consts)
    same = names == code.co_names and all(a is b for a, b in zip(constants, code.co_consts, strict=True))
    return code if same else code.replace(co_names=names, co_consts=constants)
