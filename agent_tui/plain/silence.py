"""Breaking the silence: what goes on is said now and then while nothing else is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent_tui.text.clean import one_line
from agent_tui.text.numbers import duration

if TYPE_CHECKING:
    from agent_tui.plain.voice import Voice

AFTER = (5.0, 15.0, 30.0)
"""Seconds without a word after which one is said; from then on the last of them again and again."""


class Silence:
    """``phase`` says what goes on, ``last`` its newest line, ``busy`` whether anything does. While somebody is
    ``asked`` nothing is said, and no time passes."""

    def __init__(self, voice: Voice, busy: Callable[[], bool], asked: Callable[[], bool]) -> None:
        self._voice = voice
        self._busy = busy
        self._asked = asked
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None
        self._since: float | None = None
        self._asked_since: float | None = None
        self._waited = 0.0
        self.phase = ""
        self.last = ""

    @property
    def seconds(self) -> float:
        """How long it goes on, without the time in which somebody was asked."""
        if self._since is None:
            return 0.0
        now = asyncio.get_running_loop().time()
        asking = now - self._asked_since if self._asked_since is not None else 0.0
        return now - self._since - self._waited - asking

    def begin(self, phase: str) -> None:
        """Something begins, or goes on with something else."""
        if self._since is None:
            self._since = asyncio.get_running_loop().time()
            self._waited = 0.0
        self.phase, self.last = phase, ""
        self.spoke()

    def spoke(self) -> None:
        """Something is said: the silence begins anew."""
        self._count = 0
        self._later()

    def look(self) -> None:
        """Somebody may be asked now, or not any more."""
        now = asyncio.get_running_loop().time()
        if self._asked():
            self._asked_since = now if self._asked_since is None else self._asked_since
        elif self._asked_since is not None:
            self._waited += now - self._asked_since
            self._asked_since = None
            if self._since is not None:
                self.spoke()

    def end(self) -> None:
        """Nothing goes on any more."""
        self.phase = self.last = ""
        self._since = self._asked_since = None
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
            last = f", last line: {one_line(self.last, 200)}" if self.last else ""
            self._voice.quote(f"{self.phase}, {duration(self.seconds)}{last}. Ctrl+C interrupts.")
        self._count += 1
        self._later()
