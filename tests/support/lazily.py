"""Modules that are imported when something of them is first used: collecting the tests does not pay for them."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LazyModule:
    """Stands for a module. One that is heavy and used by few tests is imported by the first of them that runs."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # pytest asks everything that a test file has whether it is a test
            raise AttributeError(name)
        return getattr(import_module(self._name), name)
