from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.developer import make_repository


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "project")
