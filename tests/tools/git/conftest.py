"""A project with a remote, held by one means of each kind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.git import World, make_world
from tests.support.sandbox_world import in_turn


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "world" in metafunc.fixturenames:
        metafunc.parametrize("world", in_turn(metafunc.function.__name__), indirect=True)


@pytest.fixture
def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with make_world(request.param, monkeypatch) as found:
        yield found
