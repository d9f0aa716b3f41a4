"""Texts as the index has them: every run of three characters of a word, and what remains at its end.

So any part of a word is found, of one character or a hundred, in scripts with blanks between words and without. What an
index of runs gives is looked at once more in the text itself: all runs of a word do not make the word.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent_tui.text.search import fold

_SIZE = 3
_MOST = 8
"""Runs of one word that are asked for."""

PUNCTUATION = "".join(chr(code) for code in range(0x21, 0x7F) if not chr(code).isalnum())
"""Characters that SQLite's ``ascii`` tokenizer would part tokens at."""


def grams(text: str) -> str:
    """What is put into the index for a text."""
    flat = " ".join(fold(text).split())
    runs = {flat[at : at + _SIZE] for at in range(len(flat))}
    return " ".join({run.partition(" ")[0] for run in runs})


def match(words: Sequence[str]) -> str:
    """The query, in FTS5's language, for texts that may have all of the folded ``words`` in them."""
    wanted: dict[str, None] = {}
    for word in words:
        for part in word.split():
            wanted.update(dict.fromkeys(_runs(part)))
    return " ".join(wanted)


def _runs(word: str) -> list[str]:
    if len(word) < _SIZE:
        return [f"{_quoted(word)}*"]
    last = len(word) - _SIZE
    step = max(1, -(-last // (_MOST - 1)))
    return [_quoted(word[at : at + _SIZE]) for at in {*range(0, last, step), last}]


def _quoted(run: str) -> str:
    return '"' + run.replace('"', '""') + '"'
