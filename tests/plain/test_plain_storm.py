"""Whatever is pressed, and whenever the end comes: nothing that was sent is lost, nothing hangs, nothing is left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.plain.storm import ENDINGS, Storm
from tests.support.forms import examples

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a pseudo terminal")


@pytest.mark.parametrize("seed", range(examples(4, 198)), ids=lambda seed: f"{ENDINGS[seed % len(ENDINGS)]}-{seed}")
def test_nothing_is_lost_and_nothing_hangs(tmp_path: Path, seed: int) -> None:
    Storm(tmp_path, seed).run()
