"""Forms of what takes long: ``-m "not slow"`` tries one of every kind, the whole suite more, the long form everything.

``AGENT_TUI_LONG_TESTS=1`` asks for the long form."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

LONG = os.environ.get("AGENT_TUI_LONG_TESTS", "") not in ("", "0")


def some(things: Sequence[T], every: int) -> Sequence[T]:
    """The first of every so many; all in the long form."""
    return things if LONG else things[::every]


def one_of(things: Iterable[Any], every: int = 1_000) -> list[Any]:
    """All of them, to parametrize a test with; only the first of every so many is not marked ``slow``."""
    return [
        pytest.param(*(thing if isinstance(thing, tuple) else (thing,)), marks=[pytest.mark.slow] if n % every else [])
        for n, thing in enumerate(things)
    ]


def only_long(*things: T) -> tuple[T, ...]:
    """What only the long form tries: one more of a kind that stands beside it."""
    return things if LONG else ()


def examples(short: int, long: int) -> int:
    """How many examples Hypothesis makes up, or how often something is tried."""
    return long if LONG else short
