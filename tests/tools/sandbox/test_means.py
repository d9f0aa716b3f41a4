"""What the other tests of the sandbox are run by."""

from __future__ import annotations

import sys

import pytest

from tests.support import sandbox_world as world


@pytest.mark.skipif(sys.platform != "linux", reason="the means of Linux")
@pytest.mark.parametrize("name", world.MEANS)
def test_every_means_is_tried_or_said_to_be_missing(name: str) -> None:
    sandbox = world.held_by(name)
    assert sandbox.holds("look") and sandbox.holds("work") and not sandbox.failed
