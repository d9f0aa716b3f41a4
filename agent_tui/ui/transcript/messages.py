"""The messages that the transcript sends to the app."""

from __future__ import annotations

from typing import Literal

from textual.message import Message

from agent_tui.records import dataclass
from agent_tui.ui.transcript.find import FindState


@dataclass
class LinkClicked(Message):
    """A link was clicked; ``url`` is http, https or mailto."""

    url: str


@dataclass
class CopyRequested(Message):
    """``text`` is to go to the clipboard; ``what`` is one word for the notice: code, selection, message."""

    text: str
    what: str


@dataclass
class PinAsked(Message):
    """The message ``message_id`` is to be pinned; empty: none of the user's is in view and no words are selected."""

    message_id: str


@dataclass
class Pressed(Message):
    """A line of the empty chat was clicked: the number of a first step, or nothing for the last session."""

    step: str


@dataclass
class FindChanged(Message):
    """The search went on."""

    state: FindState


@dataclass
class ScreenAsked(Message):
    """A screen is to be opened: of a picture (``key`` is ``picture.key_of``), or of a compaction (its record's id)."""

    name: Literal["picture", "compact"]
    key: str


@dataclass
class FollowChanged(Message):
    """The view follows the end, or stopped to; ``new`` counts what has arrived below since."""

    follow: bool
    new: int
