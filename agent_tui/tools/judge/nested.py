"""Command lines that are given to a shell as a word: ``bash -c 'git push'``, ``eval 'git push'``."""

from __future__ import annotations

import re

from agent_tui.tools.judge.line.syntax import SimpleCommand, Word
from agent_tui.tools.word_sets import word_set

_SHELLS = word_set("bash sh dash zsh ksh ash")
_WITH_TEXT = re.compile(r"-[a-zA-Z]*c[a-zA-Z]*")
_OPTION = re.compile(r"[-+].*")


def given_text(command: SimpleCommand) -> str | None:
    """The command line that a shell is given, where it is written out; None where there is none."""
    if not command.words:
        return None
    name, rest = command.words[0].text.rpartition("/")[2], command.words[1:]
    if name == "eval":
        return None if any(_unclear(word) for word in rest) else " ".join(word.text for word in rest)
    if name not in _SHELLS or not any(_WITH_TEXT.fullmatch(word.text) for word in rest):
        return None
    # Whatever comes behind the options: `-o` takes a value, which is no command line worth a rule.
    text = next((word for word in rest if not _OPTION.fullmatch(word.text) and any(map(str.isspace, word.text))), None)
    text = text or next((word for word in rest if not _OPTION.fullmatch(word.text)), None)
    return None if text is None or _unclear(text) else text.text


def is_that_text(command: SimpleCommand) -> bool:
    """Whether bash runs the text it is given and nothing else: no settings, no other options, no arguments. Other
    shells read some of it otherwise."""
    words = [word.text for word in command.words]
    return words[:1] == ["bash"] and len(words) == 3 and words[1] in ("-c", "-lc") and not command.assignments


def _unclear(word: Word) -> bool:
    return word.dynamic or word.glob or word.tilde or word.pipe
