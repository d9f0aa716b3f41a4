"""What every test starts from."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """A test that runs the program in this process sets its log up; the next one must not find it so."""
    logger = logging.getLogger("agent_tui")
    before = (logger.level, logger.propagate, list(logger.handlers))
    yield
    for handler in logger.handlers:
        if handler not in before[2]:
            handler.close()
    logger.level, logger.propagate, logger.handlers[:] = before
