"""Whatever is pressed, and whenever the end comes: nothing that was sent is lost, nothing hangs, nothing is left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.plain.storm import ENDINGS, Storm
from tests.support.forms import examples, one_of

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a pseudo terminal")


SEEDS = range(examples(4, 198))


@pytest.mark.slow
@pytest.mark.parametrize("seed", one_of(SEEDS), ids=lambda seed: f"{ENDINGS[seed % len(ENDINGS)]}-{seed}")
def test_nothing_is_lost_and_nothing_hangs(tmp_path: Path, seed: int) -> None:
    Storm(tmp_path, seed).run()
