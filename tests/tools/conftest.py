"""A project to judge commands in."""

from __future__ import annotations

import pytest

from tests.support.commands import World, make_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"))
