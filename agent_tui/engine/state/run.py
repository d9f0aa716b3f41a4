"""What the agent is doing: one state at a time, and the changes that are legal."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class RunState(Enum):
    """``OPENING``: no session is bound yet. ``LOOKING``: a session is only read. ``TURN``: the model works, or is about
    to. ``INTERRUPTED``: the user ended that and it has not stopped yet. ``COMPACTING``: the user asked for it.
    ``WORKING``: other work that excludes turns, such as a switch of models. ``CLOSING``: nothing begins any more."""

    OPENING = "opening"
    LOOKING = "looking"
    IDLE = "idle"
    TURN = "turn"
    INTERRUPTED = "interrupted"
    COMPACTING = "compacting"
    WORKING = "working"
    CLOSING = "closing"


CHANGES: Mapping[RunState, frozenset[RunState]] = {
    RunState.OPENING: frozenset({RunState.IDLE, RunState.LOOKING, RunState.CLOSING}),
    RunState.LOOKING: frozenset({RunState.CLOSING}),
    RunState.IDLE: frozenset({RunState.TURN, RunState.COMPACTING, RunState.WORKING, RunState.CLOSING}),
    RunState.TURN: frozenset({RunState.INTERRUPTED, RunState.IDLE, RunState.CLOSING}),
    # An interrupt may come too late for its turn; then the next message follows.
    RunState.INTERRUPTED: frozenset({RunState.TURN, RunState.IDLE, RunState.CLOSING}),
    RunState.COMPACTING: frozenset({RunState.IDLE, RunState.CLOSING}),
    RunState.WORKING: frozenset({RunState.IDLE, RunState.CLOSING}),
    RunState.CLOSING: frozenset(),
}

BUSY = frozenset({RunState.TURN, RunState.INTERRUPTED, RunState.COMPACTING, RunState.WORKING})


class IllegalChangeError(RuntimeError):
    """A change of state that cannot be: a mistake in this program, never the user's."""


class RunStates:
    """The state now. Only ``change`` changes it."""

    def __init__(self) -> None:
        self._now = RunState.OPENING

    @property
    def now(self) -> RunState:
        return self._now

    @property
    def busy(self) -> bool:
        """Whether something runs that excludes a turn, or is one."""
        return self._now in BUSY

    @property
    def in_turn(self) -> bool:
        """Whether the model works, or is about to."""
        return self._now in (RunState.TURN, RunState.INTERRUPTED)

    def change(self, to: RunState) -> None:
        """Raises IllegalChangeError for a change that is not in ``CHANGES``."""
        if to not in CHANGES[self._now]:
            raise IllegalChangeError(f"{self._now.value} → {to.value}")
        self._now = to
