"""What the benchmarks of the screen share: an application with a fake agent, and a clock around one act."""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

from tests.support.app import Running, running
from tests.support.fake_agent import FakeAgent


@asynccontextmanager
async def app(make: Callable[[Path], FakeAgent], size: tuple[int, int] = (120, 40)) -> AsyncIterator[Running]:
    """The application in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        async with running(Path(folder), make(Path(folder)), size) as run:
            gc.collect()
            gc.freeze()
            try:
                yield run
            finally:
                gc.unfreeze()


async def milliseconds(run: Running, act: Callable[[], Any]) -> float:
    """From the act until everything it changed is drawn."""
    await run.pilot.pause()
    begun = time.perf_counter()
    result = act()
    if inspect.isawaitable(result):
        await result
    await run.pilot.pause()
    return 1_000 * (time.perf_counter() - begun)


def medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {name: median(run[name] for run in runs) for name in runs[0]}


def report(names: tuple[str, str], many: dict[str, float], few: dict[str, float], as_json: bool) -> None:
    """Both sizes and their ratio."""
    ratio = {name: many[name] / few[name] for name in many if few.get(name)}
    if as_json:
        print(json.dumps({names[0]: many, names[1]: few, "ratio": ratio}))
        return
    print(f"{'milliseconds':22}{names[0]:>14}{names[1]:>14}{'ratio':>10}")
    for name, value in many.items():
        print(f"{name:22}{value:>14.2f}{few[name]:>14.2f}{ratio.get(name, 0):>10.2f}")


def repeat(measure: Callable[[], Any], runs: int) -> dict[str, float]:
    return medians([asyncio.run(measure()) for _ in range(runs)])
