"""Which files a simple command names, as far as its words tell: resolved through links, globs expanded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.tools.files.beneath import resolve_from
from agent_tui.tools.judge.line.syntax import NotUnderstoodError, Word

_MAX_EXPANDED = 2_000
_HARMLESS = frozenset(["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/fd/1", "/dev/fd/2"])


def named_paths(word: Word, folders: Iterable[Path]) -> Iterator[Path]:
    """Every path ``word`` may mean in any of ``folders``. A word that is no path gives a harmless one below the
    folder. Raises NotUnderstoodError for a value known only when it runs."""
    if word.pipe or word.text in _HARMLESS:
        return
    if word.dynamic:
        raise NotUnderstoodError(f"the value of {word.text[:60]!r} is only known when it runs")
    if word.tilde and word.text[:2] not in ("~", "~/"):
        raise NotUnderstoodError("it names another user's home")
    for folder in folders:
        if word.glob:
            yield from _expanded(word, folder)
        for candidate in _candidates(word):
            try:
                yield resolve_from(candidate, folder)
            except ToolError:
                raise NotUnderstoodError("a path cannot be resolved") from None


def _candidates(word: Word) -> Iterator[str]:
    text = word.text
    if not text:
        return
    # `~` inside quotes is a plain character; only expand where the shell does.
    yield text if word.tilde or not text.startswith("~") else f"./{text}"
    if "=" in text:
        yield text.partition("=")[2] or "."
    if text.startswith("@") and len(text) > 1:
        yield text[1:]
    if text.startswith("-"):
        if len(text) > 2:
            yield text[2:]
        for start in (text.find("/"), text.find("../")):
            if start > 0:
                yield text[start:]


def _expanded(word: Word, folder: Path) -> Iterator[Path]:
    """At least every name the pattern may become. ``[…]`` means other things to a shell than to Python, so it counts
    as anything up to the next slash."""
    if word.quoted:
        raise NotUnderstoodError("quotes and a file pattern are mixed in one word")
    text = re.sub(r"\[[^/]*", "*", word.text)
    first = min(position for position in (text.find(char) for char in "*?") if position >= 0)
    if "/.." in text[first:]:
        raise NotUnderstoodError("a file pattern goes up again")
    start = text[:first].rpartition("/")
    prefix = start[0] + start[1]
    if prefix:
        yield resolve_from(prefix, folder)
    if prefix.startswith(("/", "~")) or ".." in prefix:
        return  # what the prefix leads to is judged as a whole, by the path just given
    for name in _names(text, folder):
        yield resolve_from(name, folder)


def _names(text: str, folder: Path) -> Iterator[str]:
    from glob import iglob

    for count, name in enumerate(iglob(text, root_dir=folder)):  # noqa: PTH207 - as the shell: hidden files left out
        if count >= _MAX_EXPANDED:
            raise NotUnderstoodError("a file pattern matches very many files")
        yield name


def option_like(words: Iterable[Word], folders: Iterable[Path]) -> bool:
    """Whether a file pattern among ``words`` may become a word that begins with a dash."""
    patterns = [re.sub(r"\[[^/]*", "*", word.text) for word in words if word.glob and word.text[:1] in "*?["]
    return any(name.startswith("-") for text in patterns for folder in folders for name in _names(text, folder))
