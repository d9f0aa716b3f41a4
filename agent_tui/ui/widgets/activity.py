"""The line above the prompt: what goes on now and which key ends it, or a short hint. Idle, it has no timer."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from textual.timer import Timer

from agent_tui.text.cells import shorten, whole_parts
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import duration
from agent_tui.ui.draw import Piece
from agent_tui.ui.theme import Paint
from agent_tui.ui.widgets.lines import Lines

HINT_SECONDS = 2.0
"""How long a hint stands in front of what goes on."""
IDLE_SECONDS, PER_CHARACTER = 3.0, 0.06
"""How long a hint stands where nothing goes on: time to look there, and to read it."""
LEAST_DETAIL = 8
"""Cells below which a detail says nothing."""
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Activity(Lines):
    """``begin`` a phase, ``end`` it; ``hint`` shows a line until the next key or phase, or until it has been read."""

    DEFAULT_CSS = """
    Activity { padding: 0 1; }
    """

    def __init__(self, reduced_motion: bool, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(id="activity", height=1)
        self.reduced_motion = reduced_motion
        self.clock = clock
        self.phase = ""
        self.key_hint = ""
        self.detail = ""
        self.hint_text = ""
        self.until: float | None = None
        self._since = 0.0
        self._waits_since: float | None = None
        self._timer: Timer | None = None
        self._hint_timer: Timer | None = None

    def begin(
        self,
        phase: str,
        key_hint: str = "Esc to interrupt",
        *,
        seconds: float | None = None,
        detail: str = "",
        waits: bool = False,
    ) -> None:
        """Shows a phase; ``seconds`` makes it a countdown, ``detail`` takes the room that is left.

        A phase that follows another keeps its clock, which stands still while the user is waited for (``waits``).
        """
        if not self.phase:
            self._since, self._waits_since = self.clock(), None
        if self._waits_since is not None and not waits:
            self._since += self.clock() - self._waits_since
            self._waits_since = None
        elif waits and self._waits_since is None:
            self._waits_since = self.clock()
        self.phase, self.key_hint, self.detail = phase, key_hint, one_line(detail)
        self.until = None if seconds is None else self.clock() + seconds
        self.hint_text = ""
        if self._timer is None and self.is_attached:
            self._timer = self.set_interval(1.0 if self.reduced_motion else 0.1, self.refresh)
        self.refresh()

    def end(self) -> None:
        self.phase = ""
        self.until = None
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self.refresh()

    def hint(self, text: str, seconds: float | None = None) -> None:
        """Shows a line for ``seconds``, or as long as reading it takes; empty takes it away."""
        self.hint_text = one_line(text)
        if self._hint_timer is not None:
            self._hint_timer.stop()
            self._hint_timer = None
        if text and self.is_attached:
            reading = HINT_SECONDS if self.phase else IDLE_SECONDS + PER_CHARACTER * len(self.hint_text)
            self._hint_timer = self.set_timer(reading if seconds is None else seconds, self._hint_over)
        self.refresh()

    def _hint_over(self) -> None:
        """It was read: what stays there for ever is no news."""
        self._hint_timer = None
        self.hint_text = ""
        self.refresh()

    @property
    def waits(self) -> bool:
        """Whether the user is waited for."""
        return bool(self.phase) and self._waits_since is not None

    @property
    def seconds(self) -> float:
        """How long the current phases have lasted, without what the user was waited for; 0 when nothing goes on."""
        now = self.clock() if self._waits_since is None else self._waits_since
        return now - self._since if self.phase else 0.0

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        if self.hint_text:
            return [(whole_parts(self.hint_text, width), paint("accent"))]
        if not self.phase:
            return []
        elapsed = self.seconds
        if self.reduced_motion:
            frame = "●"
        else:
            frame = FRAMES[int(elapsed * 10) % len(FRAMES)]
        if self.until is not None:
            clock = f" in {max(0, math.ceil(self.until - self.clock()))} s"
        else:
            clock = f" {duration(math.floor(elapsed))}" if elapsed >= 1 and not self.waits else ""
        phase = shorten(self.phase + clock, max(1, width - 2))
        room = width - 2 - len(phase) - 3
        tail = f" · {self.key_hint}" if self.key_hint and room >= len(self.key_hint) else ""
        room -= len(tail)
        if self.detail and room >= LEAST_DETAIL:
            tail += f" · {shorten(self.detail, room)}"
        return [(f"{frame} ", paint("primary")), (phase, paint("foreground")), (tail, paint("muted"))]
