from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.compaction_bench import Make, benches


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Make]:
    with benches(tmp_path) as make:
        yield make
