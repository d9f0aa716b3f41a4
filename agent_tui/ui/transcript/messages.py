"""The messages that the transcript sends to the app."""

from __future__ import annotations

from textual.message import Message

from agent_tui.ui.transcript.find import FindState


class LinkClicked(Message):
    """A link was clicked; ``url`` is http, https or mailto."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url


class CopyRequested(Message):
    """``text`` is to go to the clipboard; ``what`` is one word for the notice: code, selection, message."""

    def __init__(self, text: str, what: str) -> None:
        super().__init__()
        self.text = text
        self.what = what


class FindChanged(Message):
    """The search went on."""

    def __init__(self, state: FindState) -> None:
        super().__init__()
        self.state = state


class PictureAsked(Message):
    """A picture is to be shown on a screen of its own; ``key`` is its name there (``picture.key_of``)."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key


class FollowChanged(Message):
    """The view follows the end, or stopped to; ``new`` counts what has arrived below since."""

    def __init__(self, follow: bool, new: int) -> None:
        super().__init__()
        self.follow = follow
        self.new = new
