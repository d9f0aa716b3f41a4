"""Many cases as one test: what thousands of small cases cost is that each is a test."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

import pytest

Test = TypeVar("Test", bound=Callable[..., Any])


class _Cases:
    """Runs a test for one case after the other; each has a folder and a monkeypatch of its own."""

    def __init__(self, names: Sequence[str], values: Iterable[Any]) -> None:
        self._names = names
        self._values = list(values)
        self._wrong: list[BaseException] = []
        self._skipped: list[str] = []

    def __iter__(self) -> Any:
        for number, case in enumerate(self._values):
            if isinstance(case, type(pytest.param())):
                assert not case.marks, "a case with marks is a test of its own"
                case = case.values if len(self._names) > 1 else case.values[0]
            yield number, dict(zip(self._names, case if len(self._names) > 1 else (case,), strict=True))

    def heard(self, case: dict[str, Any], error: BaseException) -> None:
        """A case has ended with this."""
        if isinstance(error, pytest.skip.Exception):
            self._skipped.append(str(error))
        else:
            error.add_note(f"case: {', '.join(f'{name}={value!r}' for name, value in case.items())}"[:2_000])
            self._wrong.append(error)

    def end(self) -> None:
        """Raises what was wrong: all of it."""
        if len(self._wrong) == 1:
            raise self._wrong[0]
        if self._wrong:
            raise BaseExceptionGroup(f"{len(self._wrong)} of {len(self._values)} cases", self._wrong)
        if self._skipped and len(self._skipped) == len(self._values):
            pytest.skip(self._skipped[0])


def _fixtures(number: int, fixtures: dict[str, Any], patch: pytest.MonkeyPatch) -> dict[str, Any]:
    given = dict(fixtures)
    if "monkeypatch" in given:
        given["monkeypatch"] = patch
    if "tmp_path" in given:
        given["tmp_path"] = fixtures["tmp_path"] / str(number)
        given["tmp_path"].mkdir()
    return given


FAULTS = (Exception, pytest.skip.Exception, pytest.fail.Exception)


def every(names: str | Sequence[str], values: Iterable[Any]) -> Callable[[Test], Test]:
    """The same as ``pytest.mark.parametrize``, but the cases are one test, which goes on after a failure and lists all
    there were. Fixtures are made once for all of them, but for ``tmp_path`` and ``monkeypatch``."""
    columns = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)

    def decorate(test: Test) -> Test:
        cases = list(values)
        assert cases, "without a case a test says nothing"

        @wraps(test)
        def run(**fixtures: Any) -> None:
            each = _Cases(columns, cases)
            for number, case in each:
                try:
                    with pytest.MonkeyPatch.context() as patch:
                        test(**_fixtures(number, fixtures, patch), **case)
                except FAULTS as error:
                    each.heard(case, error)
            each.end()

        @wraps(test)
        async def run_async(**fixtures: Any) -> None:
            each = _Cases(columns, cases)
            for number, case in each:
                try:
                    with pytest.MonkeyPatch.context() as patch:
                        await test(**_fixtures(number, fixtures, patch), **case)
                except FAULTS as error:
                    each.heard(case, error)
            each.end()

        made: Any = run_async if inspect.iscoroutinefunction(test) else run
        shape = inspect.signature(test)
        left = [each for name, each in shape.parameters.items() if name not in columns]
        made.__signature__ = shape.replace(parameters=left)
        return cast(Test, made)

    return decorate
