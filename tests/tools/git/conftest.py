"""A project with a remote, held by one means of each kind, of which the first is not ``slow``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from zlib import crc32

import pytest

from tests.support.forms import one_of
from tests.support.git import World, make_world
from tests.support.sandbox_world import in_turn


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    every = 1 if os.environ.get("AGENT_TUI_TEST_MEANS") == "all" else 1_000
    if "world" in metafunc.fixturenames:
        here = in_turn(test := metafunc.function.__name__)
        first = crc32(test.encode()) % len(here)
        metafunc.parametrize("world", one_of(here[first:] + here[:first], every), indirect=True)


@pytest.fixture
def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with make_world(request.param, monkeypatch) as found:
        yield found
