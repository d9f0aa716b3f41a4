"""Counting o200k_base tokens offline, by what they consist of, whatever the text. Used in the worker only: tiktoken
takes 0.3 s, in which nothing else in its process has a turn, and 60 MB."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from agent_tui.errors import WorkerError
from agent_tui.models.calibration import KINDS
from agent_tui.providers.litellm_files import VOCABULARIES, place

if TYPE_CHECKING:
    import tiktoken

ENCODING = "o200k_base"
RUN = 5_000
"""Characters of one run (all space, or no space) that the tokenizer gets at once: its regular expression overflows
the stack on whitespace runs of a million, and older versions are quadratic in a run's length."""

PIECE = 500_000
"""Characters the tokenizer gets at once at most."""

WORDS, PIECES, CAPITALS, DIGITS, MORE, WIDE, LETTERS, SCRIPTS, SPACE, SYMBOLS, FRAGMENTS, KOREAN = range(len(KINDS))
SHORT = 2
"""Letters up to which a token that no space precedes is a piece of something that is no word."""

_BEYOND_ASCII = (
    (KOREAN, re.compile("[\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff]")),
    (WIDE, re.compile("[\u2e80-\ud7ff\uf900-\ufaff\ufe30-\uffef\U00020000-\U0003ffff]")),
    # Latin, Cyrillic, Hebrew and Arabic.
    (LETTERS, re.compile("[\u0080-\u036f\u0400-\u052f\u0590-\u08ff]")),
    # Punctuation, arrows, frames.
    (SYMBOLS, re.compile("[\u2010-\u2bff]")),
)
"""Kinds by the letters that show them, the first that does; what shows none of them is ``SCRIPTS``."""
_LONG_RUN = re.compile(rf"\s{{{RUN},}}|\S{{{RUN},}}")
_WORD = re.compile(r"(?<=\w) (?=\w)")


def use_bundled_vocabulary() -> None:
    """Points tiktoken at the vocabularies that come with LiteLLM, found without importing LiteLLM, so that nothing is
    fetched from the network. A folder the user has chosen is respected."""
    if os.environ.get("TIKTOKEN_CACHE_DIR"):
        return
    if (folder := place(*VOCABULARIES)) is not None:
        os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)


@cache
def encoding() -> tiktoken.Encoding:
    """The tokenizer. Raises WorkerError when it cannot be loaded."""
    use_bundled_vocabulary()
    try:
        import tiktoken

        found = tiktoken.get_encoding(ENCODING)
        # The vocabulary as Python has it, which is not asked for when text is encoded: 25 MB.
        getattr(found, "_mergeable_ranks", {}).clear()
        return found
    except Exception as error:
        raise WorkerError(f"No tokenizer: {error}") from error


def by_kind(text: str) -> tuple[int, ...]:
    """Tokens of ``text`` by kind (``KINDS``); special tokens in it are ordinary text. Raises WorkerError without a
    tokenizer."""
    encode, found = encoding().encode_ordinary, Counter[int]()
    for piece in pieces(text):
        found.update(encode(piece))
    counts = [0] * len(KINDS)
    for token, times in found.items():
        kind, extra, more = _KINDS_OF[token]
        counts[kind] += times
        counts[extra] += more * times
    return tuple(counts)


def count_all(texts: Sequence[str]) -> list[tuple[int, ...]]:
    return [by_kind(text) for text in texts]


class _KindsOf(dict[int, tuple[int, int, int]]):
    """By token what ``kinds_of`` says of it; each is looked at once."""

    def __missing__(self, token: int) -> tuple[int, int, int]:
        found = self[token] = kinds_of(encoding().decode_single_token_bytes(token).decode(errors="replace"))
        return found


_KINDS_OF = _KindsOf()


def kinds_of(token: str) -> tuple[int, int, int]:
    """The index among ``KINDS`` of what a token consists of, that of what is counted beside it, and how much."""
    text = token.strip()
    if not text:
        return SPACE, MORE, 0
    if text.isdigit():
        return DIGITS, MORE, len(text) - 1
    if not text.isascii():
        return next((kind for kind, letters in _BEYOND_ASCII if letters.search(text)), SCRIPTS), MORE, 0
    if not any(map(str.isalpha, text)):
        return SYMBOLS, MORE, 0
    if token[0] != " " and len(text) <= SHORT:
        return FRAGMENTS, MORE, 0
    return (WORDS if token[0] == " " else PIECES), CAPITALS, int(not text.islower())


def pieces(text: str) -> Iterator[str]:
    """The text in pieces that a tokenizer takes without trouble. Cuts fall between words, where they change nothing,
    except inside runs that are far longer than any token."""
    if len(text) <= RUN:
        yield text
        return
    position = 0
    for run in _LONG_RUN.finditer(text):
        yield from _between_words(text[position : run.start()])
        for start in range(run.start(), run.end(), RUN):
            yield text[start : min(start + RUN, run.end())]
        position = run.end()
    yield from _between_words(text[position:])


def _between_words(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > PIECE:
        gap = _WORD.search(text, start + PIECE)
        if gap is None:
            break
        yield text[start : gap.start()]
        start = gap.start()
    if start < len(text):
        yield text[start:]
