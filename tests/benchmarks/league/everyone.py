"""All who take part, by name, in the order of the tables."""

from __future__ import annotations

from tests.benchmarks.league.more_rivals import MORE
from tests.benchmarks.league.rivals import FIRST, Rival

RIVALS: dict[str, Rival] = {one.name: one for one in (*FIRST, *MORE)}
