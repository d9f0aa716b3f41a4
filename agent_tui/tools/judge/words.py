"""The parts of a command line once it is taken apart."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from agent_tui.records import dataclass


class NotUnderstoodError(Exception):
    """The command uses something whose effect is not known without running it; the text says what."""


@dataclass(slots=True)
class Word:
    """A word after quotes are removed. ``dynamic``: its value is only known when it runs; ``text`` is then as it stands
    there. ``glob``: it holds unquoted ``*``, ``?`` or ``[``. ``tilde``: it begins with an unquoted ``~``. ``pipe``: it
    is a process substitution. ``written``: how it stands there, where a variable in it was replaced."""

    text: str = ""
    dynamic: bool = False
    glob: bool = False
    tilde: bool = False
    quoted: bool = False
    pipe: bool = False
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
