"""A session: the row that lists show, and the facts of it that survive a restart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from agent_tui.models.messages import JSON
from agent_tui.models.requests import Effort

SessionKind = Literal["user", "subagent"]


_NOTHING: Mapping[str, JSON] = MappingProxyType({})
_NO_LIMITS: Mapping[str, float | None] = MappingProxyType({})

BUDGETS = ("turn", "session", "day", "tokens")
"""What can be said with ``/budget`` for a session."""


@dataclass(slots=True, frozen=True, kw_only=True)
class SessionState:
    """Small facts that are kept with a session; ``dataclasses.replace`` makes the next one.

    ``pinned`` are absolute paths of the files that go with every request. The automatic compaction failed
    ``compaction_failures`` times in a row, pauses since an undo, or is off for good. ``thinking`` is the chosen effort,
    None for the model's own; ``environment`` the text the model was told at the start, None before that.
    ``budget`` are the limits that the user set for this session, by name: dollars, of ``tokens`` tokens; None is none.
    ``back`` is the end of the branch that was left last, ``going`` the end of the one that was being gone to when files
    were put back; it is None unless the program was killed meanwhile.
    ``named_hosts`` are those the user named, ``read_outside`` what of outside the project was read, in words: by them
    is known what may leave the machine unasked.
    ``newer`` holds what a later version keeps beside these, written back as it was found.
    """

    pinned: tuple[str, ...] = ()
    compaction_failures: int = 0
    compaction_paused: bool = False
    compaction_off: bool = False
    thinking: Effort | None = None
    environment: str | None = None
    budget: Mapping[str, float | None] = field(default_factory=lambda: _NO_LIMITS, hash=False)
    back: str | None = None
    going: str | None = None
    named_hosts: tuple[str, ...] = ()
    read_outside: tuple[str, ...] = ()
    newer: Mapping[str, JSON] = field(default_factory=lambda: _NOTHING, hash=False)


@dataclass(slots=True)
class SessionInfo:
    """A session's row. ``project`` is the project root's path; times are seconds since the epoch. ``parent_session``
    is the session it was forked from, or, where the ``kind`` is ``subagent``, the one whose tool call it worked for."""

    id: str
    project: str
    title: str = ""
    model: str = ""
    created: float = 0.0
    updated: float = 0.0
    head_id: str | None = None
    messages: int = 0
    parent_session: str | None = None
    preview: str = ""
    state: SessionState = field(default_factory=SessionState)
    kind: SessionKind = "user"

    @property
    def copied(self) -> bool:
        """Whether it was begun as a copy of another, and has that one's messages and steps."""
        return self.parent_session is not None and self.kind == "user"
