"""``every``: many cases as one test lose nothing of what each would have said."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.every import every


def run(test: Callable[..., Any], **fixtures: Any) -> Any:
    """Calls a test as pytest does: the cases bring what is not given."""
    return test(**fixtures)


def test_all_that_is_wrong_is_said_with_its_case(tmp_path: Path) -> None:
    seen: list[int] = []

    @every("number, even", [(1, False), pytest.param(2, False, id="two"), (3, False), (5, True)])
    def parity(number: int, even: bool) -> None:
        seen.append(number)
        assert (number % 2 == 0) is even

    with pytest.raises(BaseExceptionGroup, match="2 of 4 cases") as raised:
        run(parity)
    assert seen == [1, 2, 3, 5]
    notes = [note for error in raised.value.exceptions for note in error.__notes__]
    assert notes == ["case: number=2, even=False", "case: number=5, even=True"]


def test_each_case_has_its_own_folder_and_patches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @every(("name",), ["a", "b"])
    async def alone(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert not list(tmp_path.iterdir()) and not hasattr(seen, "was")
        (tmp_path / name).touch()
        monkeypatch.setattr(seen, "was", name, raising=False)

    class seen: ...

    asyncio.run(run(alone, tmp_path=tmp_path, monkeypatch=monkeypatch))
    assert sorted(path.name for path in tmp_path.glob("*/*")) == ["a", "b"]


def test_a_table_that_has_become_empty_is_an_error() -> None:
    with pytest.raises(AssertionError, match="without a case"):
        every("number", [number for number in (1, 2) if number > 2])(lambda number: None)


def test_it_is_skipped_where_all_of_it_is() -> None:
    @every("number", [1, 2])
    def skipped(number: int) -> None:
        if number in left:
            pytest.skip("not here")

    left = {1}
    run(skipped)
    left = {1, 2}
    with pytest.raises(pytest.skip.Exception, match="not here"):
        run(skipped)
