"""The parts of a command line, once it is taken apart, and the values its variables are known to hold: those that it
sets itself, once, where nothing can keep it from that, and those that the shell is started with. The others are only
known when it runs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Literal

from agent_tui.records import dataclass
from agent_tui.tools.sandbox.environment import CACHES, ONLINE_CACHES, QUIET
from agent_tui.tools.word_sets import word_set

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


MAX_ROUNDS = 8
"""The words of a loop that are gone through one by one; with more of them its variable is not known."""

_ELSEWHERE = re.compile(
    r"(?:^|[;&|({`!\n]|\b(?:do|then|else|if|while|until|time|command|builtin))\s*\.\s"
    r"|(?<![\w./-])(?:source|eval|declare|typeset|local|export|readonly|unset|mapfile|readarray|getopts|let|trap|alias"
    r"|enable|shopt|IFS|coproc|printf\s+-v|set\s+[-+]\w*a|set\s+--|wait\s+-\w*p)(?![\w./-])"
)
"""Words in a source with which a variable may be changed by a name that is not seen."""

_PLAIN = re.compile(r"[\w./@%+:,=-]+")
_TEMPORARY = re.compile(r"\$\(mktemp(?: -d)?(?: -t)?(?: [\w./-]*X{3,}[\w.]*)?\)")
_SHELLS_OWN = word_set(
    "PATH IFS ENV PS0 PS1 PS2 PS3 PS4 CDPATH HOME PWD OLDPWD GLOBIGNORE GLOBSORT FIGNORE EXECIGNORE FUNCNEST HISTFILE "
    "HISTCONTROL HISTSIZE HISTFILESIZE HISTTIMEFORMAT HOSTFILE INPUTRC LANG LINENO MAIL MAILPATH MAILCHECK OPTARG "
    "OPTERR OPTIND POSIXLY_CORRECT PROMPT_COMMAND PROMPT_DIRTRIM RANDOM SRANDOM SECONDS SHELL SHELLOPTS SHLVL "
    "TIMEFORMAT TMOUT TMPDIR UID EUID PPID GROUPS DIRSTACK PIPESTATUS FUNCNAME REPLY COLUMNS LINES EPOCHSECONDS "
    "EPOCHREALTIME auto_resume histchars"
)
_SET_BY_US = frozenset({*QUIET, *CACHES, *ONLINE_CACHES, "GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME", "XDG_STATE_HOME"})


def own_variable(name: str) -> bool:
    """Returns whether a variable is the line's own: it means nothing to the shell, and no program gets to see it."""
    if name in _SHELLS_OWN or name.startswith(("BASH", "LC_", "COMP_", "READLINE_")):
        return False
    return name not in os.environ and name not in _SET_BY_US


_MOVES = re.compile(r"\b(?:cd|pushd|popd|chdir)\b")
NOTHING: Mapping[str, str] = MappingProxyType({})


class Values:
    """Of one command line. Every part of it asks the same object. ``given`` is what the shell starts with, by name."""

    def __init__(self, source: str, given: Mapping[str, str] = NOTHING) -> None:
        self._source = source
        self._given = given
        self._fixed = not _ELSEWHERE.search(source)
        self._known: dict[str, Word] = {}
        self._made: dict[str, Made] = {}

    def note(self, name: str, value: Word) -> None:
        """``name`` is set to ``value`` here, whatever happened before."""
        if self.usable(value) and self._set_once(name):
            self._known[name] = value

    def note_made(self, name: str, value: str) -> None:
        """``name`` is set to ``value``, a text known when it runs; set nowhere else, it is that or nothing."""
        if not self._set_once(name):
            return
        if value == "$!":
            self._made[name] = "job"
        elif _TEMPORARY.fullmatch(value):
            self._made[name] = "temporary"

    def made(self, name: str) -> Made | None:
        """Returns what ``$name`` stands for, where the line made that itself."""
        return self._made.get(name)

    def forget(self, name: str) -> None:
        self._known.pop(name, None)

    def text(self, name: str, quoted: bool) -> str | None:
        """The text that ``$name`` stands for as a part of a word; None when that is not known."""
        value = self._known.get(name) or self._as_given(name)
        if value is None or value.glob or not (quoted or _PLAIN.fullmatch(value.text)):
            return None
        return value.text

    def _as_given(self, name: str) -> Word | None:
        """A variable that the shell is started with and that nothing here names but to use it."""
        moved = name == "PWD" and _MOVES.search(self._source)
        if name not in self._given or not self._fixed or self._named(name) or moved:
            return None
        return Word(self._given[name])

    def given(self, name: str) -> bool:
        """Returns whether ``$name`` stands here for the value that the shell is started with."""
        return name not in self._known and self._as_given(name) is not None

    def pattern(self, name: str) -> Word | None:
        """Returns the word that ``"$name"`` as a whole stands for, where that is one of the files a pattern matches."""
        value = self._known.get(name)
        return replace(value) if value is not None and value.glob else None

    def counts(self, expression: str) -> bool:
        """Returns whether an arithmetic expression is of numbers alone: of digits and of variables that are never set
        to anything else. The value of another might hold a subscript, and that a command."""
        if not re.fullmatch(r"[\w\s+*/%()<>=!&|-]*", expression) or re.search(r"(?<![<>=!])=(?!=)|\+\+|--", expression):
            return False
        sums = re.sub(r"\$\(\([^()]*\)\)", "\0", self._source)
        for name in set(re.findall(r"[A-Za-z_]\w*", expression)):
            places = re.findall(rf"(?<![\w$])(?<!\$\{{){name}\b(=(?:\d+|\0)(?![^\s;&|)]))?", sums)
            if not self._fixed or not own_variable(name) or not places or not all(places):
                return False
        return True

    def _set_once(self, name: str) -> bool:
        """Returns whether a variable of the line's own is set in one place alone."""
        if not self._fixed or not own_variable(name):
            return False
        # What a dash, a dot or a slash stands before is no name that is set: an option, a part of a path.
        return len(re.findall(rf"(?<![\w$./-])(?<!\$\{{){re.escape(name)}(?!\w)", self._source)) == 1

    def _named(self, name: str) -> bool:
        """Returns whether a variable may be named other than by a plain use of it."""
        return re.search(rf"(?<![\w$])(?<!\$\{{){re.escape(name)}(?!\w)", self._source) is not None

    @staticmethod
    def usable(value: Word) -> bool:
        """Returns whether the value that a variable gets from a word can be seen in it."""
        return not (value.dynamic or value.tilde or value.pipe or not value.text or (value.glob and value.quoted))
