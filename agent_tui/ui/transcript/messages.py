"""The messages that the transcript sends to the app."""

from __future__ import annotations

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
class FindChanged(Message):
    """The search went on."""

    state: FindState


@dataclass
class PictureAsked(Message):
    """A picture is to be shown on a screen of its own; ``key`` is its name there (``picture.key_of``)."""

    key: str


@dataclass
class FollowChanged(Message):
    """The view follows the end, or stopped to; ``new`` counts what has arrived below since."""

    follow: bool
    new: int
