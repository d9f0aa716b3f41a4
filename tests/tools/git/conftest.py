"""A project with a remote, held by each means there is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.git_remotes import World, make_world
from tests.support.sandbox_world import MEANS


@pytest.fixture(params=MEANS)
def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with make_world(request.param, monkeypatch) as found:
        yield found
