"""How the tests of the screen wait until all that a key or an event set off has happened."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

from agent_tui.ui import keys

SOON = 0.02
"""Seconds for which Textual's own wait sleeps at least: a timer that ends within them, or a thread that works, is
waited for."""
IN_VAIN = 10
"""After so many waits in a row that found nothing to wait for, what is waited for is another process."""


class Quiet:
    """Textual's ``wait_for_idle`` sleeps 20 ms, and again for as long as the process has used the processor meanwhile,
    twice for every key. This asks the event loop instead, and so ends as soon as there is nothing left to do."""

    def __init__(self) -> None:
        self.in_vain = 0

    async def __call__(self, min_sleep: float = SOON, max_sleep: float = 1.0) -> None:
        loop: Any = asyncio.get_running_loop()
        begun, worked = loop.time(), time.process_time()
        calm, idle = 0, True
        while calm < 3 and time.process_time() < worked + max_sleep:  # on a busy machine an hour may pass
            await asyncio.sleep(0)
            calm += 1
            if loop._ready:
                calm, idle = 0, False
            elif calm == 3 and (wait := _soon(loop, begun + SOON)) >= 0:
                calm, idle = 0, False
                await asyncio.sleep(wait)
        self.in_vain = self.in_vain + 1 if idle else 0
        if self.in_vain > IN_VAIN:
            await asyncio.sleep(SOON)


def _soon(loop: Any, until: float) -> float:
    """Seconds until the first timer that ends before ``until``, or until a thread is asked again; -1 without any."""
    now: float = loop.time()
    due = [timer.when() for timer in loop._scheduled if not timer.cancelled()]
    first = min(due, default=until)
    threads: ThreadPoolExecutor | None = loop._default_executor
    if threads is not None and now < until and threads._idle_semaphore._value < len(threads._threads):
        return min(0.001, max(0.0, first - now))
    return max(0.0, first - now) if first < until else -1


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    wait = Quiet()
    for module in ("textual.pilot", "textual.app"):
        monkeypatch.setattr(f"{module}.wait_for_idle", wait)


RULES: dict[frozenset[tuple[str, str]], dict[tuple[object, ...], list[RuleSet]]] = {}
"""Of style sheets that were parsed, by the values of their variables."""


@pytest.fixture(autouse=True)
def parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each app parses the same style sheets anew, some of them twice: a sixth of what its start costs."""
    begin, change = Stylesheet.__init__, Stylesheet.set_variables

    def shared(sheet: Stylesheet) -> None:
        known: Any = RULES.setdefault(frozenset(sheet._variables.items()), {})
        sheet._parse_cache = known

    def made(sheet: Stylesheet, *, variables: dict[str, str] | None = None) -> None:
        begin(sheet, variables=variables)
        shared(sheet)

    def changed(sheet: Stylesheet, variables: dict[str, str]) -> None:
        own: Any = {}
        sheet._parse_cache = own  # it is cleared
        change(sheet, variables)
        shared(sheet)

    monkeypatch.setattr(Stylesheet, "__init__", made)
    monkeypatch.setattr(Stylesheet, "set_variables", changed)


@pytest.fixture(autouse=True)
def looked_at_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a letter was an answer is told by the test's clock, which the program looks at every so many seconds."""
    monkeypatch.setattr(keys, "LOOK", 0.005)
