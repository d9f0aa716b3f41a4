"""Two forms of what takes long: the suite tries one of every kind, the long form everything.

``AGENT_TUI_LONG_TESTS=1`` asks for the long form."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

LONG = os.environ.get("AGENT_TUI_LONG_TESTS", "") not in ("", "0")


def some(things: Sequence[T], every: int) -> Sequence[T]:
    """The first of every so many; all in the long form."""
    return things if LONG else things[::every]


def examples(short: int, long: int) -> int:
    """How many examples Hypothesis makes up, or how often something is tried."""
    return long if LONG else short
