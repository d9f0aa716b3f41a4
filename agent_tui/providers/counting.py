"""Counting o200k_base tokens offline, whatever the text. Used in the worker only: tiktoken takes 0.3 s and 60 MB."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from agent_tui.errors import WorkerError
from agent_tui.providers.litellm import VOCABULARIES, place

if TYPE_CHECKING:
    import tiktoken

ENCODING = "o200k_base"
RUN = 5_000
"""Characters of one run (all space, or no space) that the tokenizer gets at once: its regular expression overflows
the stack on whitespace runs of a million, and older versions are quadratic in a run's length."""

PIECE = 500_000
"""Characters the tokenizer gets at once at most."""

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


def count(text: str) -> int:
    """Tokens of ``text``; special tokens in it are ordinary text. Raises WorkerError without a tokenizer."""
    encode = encoding().encode_ordinary
    return sum(len(encode(piece)) for piece in pieces(text))


def count_all(texts: Sequence[str]) -> list[int]:
    return [count(text) for text in texts]


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
