"""A store whose writes fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from agent_tui.errors import StoreError


@contextmanager
def failing(
    part: object, method: str, error: StoreError, times: int | None = None, when: Callable[..., bool] | None = None
) -> Iterator[list[int]]:
    """Makes a write of a part of the store fail, ``times`` times or until the end; yields how often it did."""
    real, failed = getattr(part, method), [0]

    def write(*values: Any, **named: Any) -> Any:
        if (times is None or failed[0] < times) and (when is None or when(*values)):
            failed[0] += 1
            raise error
        return real(*values, **named)

    setattr(part, method, write)
    try:
        yield failed
    finally:
        setattr(part, method, real)
