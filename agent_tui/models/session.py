"""A session: the row that lists show, the facts that survive a restart, its branches, and what a search finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Literal

from agent_tui.models.messages import Message, Role
from agent_tui.models.requests import Effort
from agent_tui.records import dataclass
from agent_tui.text.secrets import without_keys

SessionKind = Literal["user", "run", "subagent"]
"""A chat, what ``-p`` began and nobody has opened in a chat, or the work of a subagent."""


BUDGETS = ("turn", "session", "day")
"""What can be said with ``/budget`` for a session."""


@dataclass(slots=True, frozen=True)
class AskedCompaction:
    """A compaction that the model asked for, or ``text`` that it wrote to stand for the messages ``fold``. It is made
    before a request of the conversation that has the message ``after``; ``failed`` says why it was not, until the model
    has been told."""

    after: str
    asked: float
    """Seconds since the epoch."""
    focus: str = ""
    fold: tuple[str, ...] = ()
    text: str = ""
    failed: str = ""


@dataclass(slots=True, frozen=True, kw_only=True)
class SessionState:
    """Small facts that are kept with a session; ``dataclasses.replace`` makes the next one."""

    pinned: tuple[str, ...] = ()
    """Absolute paths of the files that go with every request."""
    pinned_messages: tuple[str, ...] = ()
    """Ids of the messages whose words every compaction carries, those of other branches too."""
    drops_waiting: Mapping[str, float] = field(default_factory=dict, hash=False)
    """What is dropped once the provider's cache is cold, on other branches too: ids of messages, and of attachments as
    ``msg_1#2``, with the time at which that was asked for (seconds since the epoch)."""
    agent_drops: tuple[str, ...] = ()
    """Those of them that the model let go of by itself."""
    agent_asked: tuple[AskedCompaction, ...] = ()
    """What it asked for that is not made yet."""
    compaction_failures: int = 0
    """How often in a row the automatic compaction failed."""
    compaction_paused: bool = False
    """Since an undo."""
    compaction_off: bool = False
    compaction_near: bool = False
    """The user was told that the limit is near."""
    thinking: Effort | None = None
    """The chosen effort; None for the model's own."""
    environment: str | None = None
    """The text that the model was told at the start; None before that."""
    budget: Mapping[str, float | None] = field(default_factory=dict, hash=False)
    """The limits that the user set for this session, by name, in dollars; None is none."""
    back: str | None = None
    """The end of the branch that was left last."""
    going: str | None = None
    """The end of the one that was being gone to when files were put back; None unless the program was killed then."""
    named_hosts: tuple[str, ...] = ()
    """Those the user named; they and what was read outside tell what may leave the machine unasked."""
    read_outside: tuple[str, ...] = ()
    """What of outside the project was read, in words."""
    handed_from: str | None = None
    """The session that this one goes on from with a brief."""
    handed_to: tuple[str, ...] = ()
    """Those that go on from this one so, the newest last."""


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

    def __post_init__(self) -> None:
        """What names a session is shown in many places: no key is in it, whoever typed one."""
        self.title, self.preview = without_keys(self.title), without_keys(self.preview)

    @property
    def copied(self) -> bool:
        """True when it was begun as a copy of another, and has that one's messages and steps."""
        return self.parent_session is not None and self.kind != "subagent"


@dataclass(slots=True, frozen=True)
class Branch:
    """A way through the messages of a session that ends with the message ``end`` and is not the conversation."""

    end: str
    fork: str | None
    """Id of the last message it shares with the conversation, or with the branch ending with ``under``, off which it
    forks; None: it shares none."""
    own: Sequence[Message]
    """The messages it does not share, oldest first."""
    shared: int
    """How many it shares."""
    tokens: int
    """The estimate of what its own cost as input."""
    under: str | None = None
    depth: int = 0

    @property
    def first(self) -> Message:
        """The message of the user it begins with, or whatever it begins with."""
        return next((message for message in self.own if message.role == "user"), self.own[0])

    @property
    def updated(self) -> float:
        """Seconds since the epoch at which its newest message was made."""
        return self.own[-1].created


@dataclass(slots=True, frozen=True)
class FilesMoved:
    """``put``: files that are put as they are on the branch gone to; ``left``: a line for each that is not."""

    put: Sequence[Path] = ()
    left: Sequence[str] = ()


@dataclass(slots=True, frozen=True)
class ConversationChange:
    """The conversation has become another one: so many messages ``left`` it and so many ``came``. ``text`` is the
    message of the user's that it goes back to before; ``files`` what became of the files, None where that was not
    asked for."""

    left: int
    came: int
    text: str = ""
    files: FilesMoved | None = None


@dataclass(slots=True, frozen=True)
class SessionHit:
    """A session in which every word was found, and the newest message with most of them. ``message_id`` is None, and
    ``role`` with it, where the words are in what the session is called. ``line`` is one line for display and ``spans``
    where the words are in it; ``created`` is when it was said, in seconds since the epoch. ``left_behind``: a rewind
    left the message behind, it is not in the conversation now."""

    session: SessionInfo
    message_id: str | None = None
    role: Role | None = None
    created: float = 0.0
    line: str = ""
    spans: tuple[tuple[int, int], ...] = ()
    left_behind: bool = False
