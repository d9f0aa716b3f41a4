"""The answers of commands. Whoever ran one, the screen or a script, decides how to show that."""

from __future__ import annotations

from typing import Literal, TypeAlias

from agent_tui.records import dataclass

ScreenName: TypeAlias = Literal[
    "context", "sessions", "models", "rewind", "help", "themes", "jobs", "queue", "vim", "efforts", "picture"
]
"""``vim`` is none: it changes the keys of the main one."""


@dataclass(slots=True, frozen=True)
class Text:
    """Something to read. It never becomes part of the conversation. ``error`` says the command did not work; of what
    is ``foreign``, others wrote the words: where lines are all there is, it must not look like the program's own."""

    text: str
    markdown: bool = False
    error: bool = False
    foreign: bool = False


@dataclass(slots=True, frozen=True)
class OpenScreen:
    """A screen to open, by name. ``data`` is what the screen wants to know, e.g. a search text."""

    name: ScreenName
    data: str = ""


@dataclass(slots=True, frozen=True)
class Submit:
    """A message to send as if the user had typed it."""

    text: str


@dataclass(slots=True, frozen=True)
class Copy:
    """Text for the clipboard, and what it is, for the line that says so."""

    text: str
    what: str


@dataclass(slots=True, frozen=True)
class Quit:
    """The user wants to leave."""


@dataclass(slots=True, frozen=True)
class Nothing:
    """Done; what there is to see arrives as events."""


CommandResult: TypeAlias = Text | OpenScreen | Submit | Copy | Quit | Nothing
