from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.tool_context import Make, make_project, maker


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_project(tmp_path)


@pytest.fixture
def make(root: Path) -> Make:
    return maker(root)
