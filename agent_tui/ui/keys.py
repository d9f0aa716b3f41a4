"""Keys of the main screen (the prompt has its own on top), and telling an answer from typing it got in the way of."""

from __future__ import annotations

from collections.abc import Callable

from textual.binding import Binding, BindingType

TWICE = 2.0
"""Seconds in which a second Ctrl+C quits, and a second Esc opens the rewind picker."""

APP_BINDINGS: list[BindingType] = [
    Binding("ctrl+c", "cancel", "Copy, interrupt, clear, quit", show=False, priority=True, id="cancel"),
    Binding("escape", "escape", "Interrupt or close", show=False),
    Binding("shift+tab", "next_mode", "Permission mode", show=False, priority=True, id="mode"),
    Binding("ctrl+o", "toggle_tools", "Expand tool output", show=False, id="tools"),
    Binding("ctrl+b", "to_background", "Move a command to the background", show=False, id="background"),
    Binding("ctrl+t", "toggle_reasoning", "Show reasoning", show=False, id="reasoning"),
    Binding("ctrl+f", "find", "Find in the transcript", show=False, id="find"),
    Binding("ctrl+l", "redraw", "Redraw", show=False, id="redraw"),
    Binding("ctrl+p", "palette", "Command palette", show=False, id="palette"),
    Binding("ctrl+z", "suspend_process", "Suspend", show=False),
    Binding("ctrl+up", "jump(-1)", "Previous question", show=False, id="previous_question"),
    Binding("ctrl+down", "jump(1)", "Next question", show=False, id="next_question"),
]


PAUSE = 0.4
"""Seconds without a key before a key can be an answer: nobody sees a question and decides in less."""


ALONE = 0.6
"""Seconds without another key after which a letter was an answer and not the beginning of words: who types slowly takes
half of that between two letters."""
LOOK = 0.05
"""Seconds between two looks at the clock."""
BURST = 0.03
"""Seconds within which no finger presses two keys: what comes so was pasted."""


class LoneKey:
    """Does what a letter means once nothing has followed it for ``ALONE`` seconds. ``later`` calls after some
    seconds."""

    def __init__(self, clock: Callable[[], float], later: Callable[[float, Callable[[], None]], object]) -> None:
        self._clock, self._later = clock, later
        self._since = 0.0
        self._then: Callable[[], object] | None = None
        self._looking = False

    def wait(self, then: Callable[[], object]) -> None:
        """The letter was typed now; what was waited for before is forgotten."""
        self._since, self._then = self._clock(), then
        if not self._looking:
            self._looking = True
            self._later(LOOK, self._look)

    def forget(self) -> None:
        self._then = None

    @property
    def age(self) -> float:
        """Seconds since the letter."""
        return self._clock() - self._since

    def _look(self) -> None:
        then, self._looking = self._then, False
        if then is None:
            return
        if self.age < ALONE:
            self._looking = True
            self._later(LOOK, self._look)
        else:
            self._then = None
            then()


class TypingGuard:
    """Knows when something was typed last, and since when a question is to be seen.

    Keys (and clicks) are typing, not an answer, until one comes ``PAUSE`` seconds after the question appeared and
    after the key before it.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = self._clock = clock
        self._typed: float | None = None
        self._shown: float | None = None

    def typed(self) -> None:
        self._typed = self._clock()

    def sent(self) -> None:
        """Notes that what was typed is complete: the next key begins something new."""
        self._typed = None

    @property
    def typing(self) -> bool:
        """True when a word may not be finished yet."""
        return self._within(self._typed)

    def appeared(self) -> None:
        """A question is to be seen from now on, or was just typed over: the next keys belong to the same word."""
        self._shown = self._clock()

    def accidental(self) -> bool:
        """Returns whether a key (or click) that comes now is no answer; it counts as typing then."""
        if self._shown is None:
            return False
        if self._within(self._shown) or self.typing:
            self.typed()
            return True
        self._shown = None
        return False

    def _within(self, since: float | None) -> bool:
        return since is not None and self._clock() - since < PAUSE
