"""What a command line is made of, once it is taken apart."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Made = Literal["job", "temporary"]
"""A process that the shell started in the background, or a temporary file or folder of its own."""


class NotUnderstoodError(Exception):
    """The command uses something whose effect is not known without running it; the text says what."""


@dataclass(slots=True)
class Word:
    """A word after quotes are removed. ``dynamic``: its value is only known when it runs. ``glob``: it holds
    unquoted ``*``, ``?`` or ``[``. ``tilde``: it begins with an unquoted ``~``. ``made`` says of a word that is one
    variable and nothing else that the line made what it names. ``written``: how it stands there, without quotes, where
    variables that are given are replaced in ``text``."""

    text: str = ""
    dynamic: bool = False
    glob: bool = False
    tilde: bool = False
    quoted: bool = False
    pipe: bool = False
    made: Made | None = None
    written: str = ""


@dataclass(slots=True)
class Redirect:
    """``write`` for anything that may change the target; descriptors duplicated (``2>&1``) are not listed."""

    kind: Literal["read", "write"]
    target: Word


@dataclass(slots=True)
class SimpleCommand:
    """One program run, or assignments alone. ``text`` is what rules are matched against: words joined by a space."""

    assignments: list[Word] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join(word.text for word in [*self.assignments, *self.words])

    @property
    def written(self) -> str:
        """The same as the user reads it, with the names of variables."""
        return " ".join(word.written or word.text for word in [*self.assignments, *self.words])

    @property
    def dynamic(self) -> bool:
        return any(word.dynamic for word in [*self.assignments, *self.words])
