"""What the variables of a line hold, where that is certain: a text they are set to once and in any case, one of those
that a loop goes over, or what the shell starts with. The others are only known when it runs.
"""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from agent_tui.tools.judge.words import NotUnderstoodError, SimpleCommand, Word
from agent_tui.tools.sandbox.environment import CACHES, ONLINE_CACHES, QUIET
from agent_tui.tools.word_sets import word_set

MAX_VARIANTS = 64
MAX_TEXT = 4_096
MAX_ITEMS = 8
"""Of loops over more words nothing is known."""

_NAME = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})", re.ASCII)
_PLAIN = re.compile(r"[\w./@%+:,=-]+|\$!")

_ELSEWHERE = re.compile(
    r"(?:^|[;&|({`!\n]|\b(?:do|then|else|if|while|until|time|command|builtin))\s*\.\s"
    r"|(?<![\w./-])(?:source|eval|declare|typeset|local|export|readonly|unset|mapfile|readarray|getopts|let|trap|alias"
    r"|enable|shopt|IFS|coproc|printf\s+-v|set\s+[-+]\w*a|set\s+--|wait\s[^;&|\n]*-\w*p)(?![\w./-])"
)
"""Words in a source with which a variable may be changed by a name that is not seen."""

_MOVES = re.compile(r"\b(?:cd|pushd|popd|chdir)\b")
_PLACE = re.compile(r"(?<![\w$./-])(?<!\$\{)[^\W\d]\w*")
"""A name that may be set. What a dash, a dot or a slash stands before is none: an option, a part of a path."""

Values = Mapping[str, Sequence[Word]]


class Variables:
    """Those of a line ``source``. ``given`` are the ones that the shell starts with."""

    def __init__(self, source: str, given: Mapping[str, str]) -> None:
        self._source, self._fixed = source, not _ELSEWHERE.search(source)
        self._counts: Counter[str] | None = None
        self.certain: Values = {name: [Word(text)] for name, text in given.items() if self._is_as_given(name)}
        self._settled = {*self.certain}

    def _is_as_given(self, name: str) -> bool:
        """Returns whether nothing here names a variable but to use it."""
        moved = name == "PWD" and _MOVES.search(self._source) is not None
        return self._fixed and not moved and self._places(name) == 0

    def _places(self, name: str) -> int:
        if self._counts is None:
            self._counts = Counter(_PLACE.findall(self._source))
        return self._counts[name]

    def may_change(self, commands: Sequence[SimpleCommand]) -> bool:
        """Returns whether one of ``commands`` may set what is settled by a name that the source does not show: one
        with quotes in it, or made of braces, patterns and other variables."""
        return bool(self._settled) and any(
            _ELSEWHERE.search(text := " ".join(word.text for word in command.words))
            or ("PWD" in self._settled and _MOVES.search(text))
            or _sets_unseen(command.words)
            or not self._settled.isdisjoint(_PLACE.findall(text))
            for command in commands
        )

    def settle(self, name: str, words: Sequence[Word]) -> None:
        """``name`` holds one of ``words`` from here on, if it is set nowhere else."""
        known = [word for one in words for word in ([*_word_variants(one, self.certain)] or [one])]
        plain = all(word.text and (not word.dynamic or word.text == "$!") and not word.pipe for word in known)
        once = self._fixed and own_variable(name) and self._places(name) == 1
        if (
            once
            and plain
            and len(known) <= MAX_ITEMS
            and not any(word.tilde or (word.glob and word.quoted) for word in known)
        ):
            self.certain = {**self.certain, name: known}
            self._settled.add(name)


def _sets_unseen(words: Sequence[Word]) -> bool:
    """Returns whether a builtin may set a variable whose name is not among its words."""
    for at, word in enumerate(words):
        rest = words[at + 1 :]
        if word.text == "printf" and rest and (rest[0].dynamic or rest[0].glob):
            return True  # a format sets some with %n, and may be an option
        if word.text in ("read", "wait") and any(
            one.glob or (one.dynamic and one.text != "$!") or re.match("-[^r]", one.text) for one in rest
        ):
            return True
    return False


def with_values(command: SimpleCommand, values: Values) -> list[SimpleCommand]:
    """The command with what its variables hold in their places, for every text they may. Raises NotUnderstoodError
    for very many."""
    words = [*command.assignments, *command.words, *(redirect.target for redirect in command.redirects)]
    first, second = len(command.assignments), len(command.assignments) + len(command.words)
    found: list[SimpleCommand] = []
    for every in _all_variants(words, values):
        redirects = [replace(r, target=target) for r, target in zip(command.redirects, every[second:], strict=True)]
        one = SimpleCommand(every[:first], every[first:second], redirects)
        found += [one] * (one not in found)
    return found or [command]


def _word_variants(word: Word, values: Values) -> Iterator[Word]:
    return (found[0] for found in _all_variants([word], values))


def _all_variants(words: list[Word], values: Values) -> Iterator[list[Word]]:
    names = dict.fromkeys(match[1] or match[2] for word in words if word.dynamic for match in _NAME.finditer(word.text))
    known = [(name, values[name]) for name in names if values.get(name)]
    if not known:
        return
    for count, chosen in enumerate(itertools.product(*(held for _, held in known))):
        if count >= MAX_VARIANTS:
            raise NotUnderstoodError("its variables may hold very many values")
        held = dict(zip((name for name, _ in known), chosen, strict=True))
        yield [_put(word, held) if word.dynamic else word for word in words]


def _put(word: Word, held: Mapping[str, Word]) -> Word:
    def text(match: re.Match[str]) -> str:
        value = held.get(match[1] or match[2])
        # Without quotes the shell takes a text with blanks or patterns apart.
        usable = value is not None and not value.glob and (word.quoted or _PLAIN.fullmatch(value.text))
        return value.text if value is not None and usable else match[0]

    whole = _NAME.fullmatch(word.text)
    if whole is not None and word.quoted and (value := held.get(whole[1] or whole[2])) is not None and value.glob:
        return replace(value, written=word.text)
    found = _NAME.sub(text, word.text)
    if len(found) > MAX_TEXT:
        raise NotUnderstoodError("its variables may hold very long values")
    return replace(word, text=found, dynamic="$" in found or "`" in found, written=word.text)


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
