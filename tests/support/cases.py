"""Many cases of one rule on values in one test: every one is tried, and those that fail are told together.

An item of pytest's own for each costs more than most rules do, in every worker's collection, too. What a case could
leave behind for the next (a file, a patch) is parametrized as usual.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from functools import wraps
from typing import Any, TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., Any])


def cases(names: str | tuple[str, ...], values: Iterable[Any]) -> Callable[[Test], Test]:
    """As ``pytest.mark.parametrize``, in one test; several of them try each with each."""
    named = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else names
    rows = [value if len(named) > 1 else (value,) for value in values]
    assert rows, "a test of no cases finds nothing"

    def told(row: tuple[Any, ...], error: BaseException) -> str:
        shown = ", ".join(f"{name}={value!r:.200}" for name, value in zip(named, row, strict=True))
        return f"{shown}: {type(error).__name__} {error}"

    def of(test: Test) -> Test:
        signature = inspect.signature(test)
        rest = [field for name, field in signature.parameters.items() if name not in named]
        assert len(rest) == len(signature.parameters) - len(named), f"{test.__name__} takes {named}"

        async def tried(fixtures: dict[str, Any]) -> None:
            failed: list[tuple[str, BaseException]] = []
            for row in rows:
                try:
                    done = test(**fixtures, **dict(zip(named, row, strict=True)))
                    if isinstance(done, Awaitable):
                        await done
                except (Exception, pytest.fail.Exception) as error:
                    failed.append((told(row, error), error))
            if failed:
                lines = "\n".join(line for line, _ in failed)
                raise AssertionError(f"{len(failed)} of {len(rows)} cases:\n{lines}") from failed[0][1]

        @wraps(test)
        async def waited(**fixtures: Any) -> None:
            await tried(fixtures)

        @wraps(test)
        def called(**fixtures: Any) -> None:
            with_nothing_to_wait_for = tried(fixtures)
            try:
                with_nothing_to_wait_for.send(None)
            except StopIteration:
                return

        made: Any = waited if inspect.iscoroutinefunction(test) else called
        made.__signature__ = signature.replace(parameters=rest)
        return made  # type: ignore[no-any-return]

    return of
