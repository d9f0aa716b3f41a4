"""Breaking the silence: what goes on is said now and then while nothing else is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent_tui.text.numbers import duration

if TYPE_CHECKING:
    from agent_tui.plain.voice import Voice

AFTER = (5.0, 15.0, 30.0)
"""Seconds without a word after which one is said; from then on the last of them again and again."""


class Silence:
    """``phase`` says what goes on, ``busy`` whether anything does. While somebody is ``asked`` nothing is said."""

    def __init__(self, voice: Voice, busy: Callable[[], bool], asked: Callable[[], bool]) -> None:
        self._voice = voice
        self._busy = busy
        self._asked = asked
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None
        self._since = 0.0
        self.phase = ""

    def begin(self, phase: str) -> None:
        """Something begins."""
        self.phase = phase
        self._since = asyncio.get_running_loop().time()
        self.spoke()

    def spoke(self) -> None:
        """Something is said: the silence begins anew."""
        self._count = 0
        self._later()

    def end(self) -> None:
        """Nothing goes on any more."""
        self.phase = ""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        wait = AFTER[min(self._count, len(AFTER) - 1)]
        self._timer = asyncio.get_running_loop().call_later(wait, self._break)

    def _break(self) -> None:
        if not self._busy():
            self.end()
            return
        if not self._asked():
            lasted = asyncio.get_running_loop().time() - self._since
            self._voice.quote(f"{self.phase}, {duration(lasted)}. Ctrl+C interrupts.")
        self._count += 1
        self._later()
