"""Finds the one place of a file that a text means which stands there almost: white space, quotes or dashes differ.

Pure: works on strings.
"""

from __future__ import annotations

import re
from itertools import islice

from agent_tui.records import dataclass

VARIANTS = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2009\u200a\u202f\u205f\u3000", " "),
    }
)
"""Quotes, dashes and spaces that look alike, one character for one."""

_NUMBERED = re.compile(r"[ \t]*\d+(?:\t|: |\||→)")
_BLANK = r"[^\S\n]"
_MOST = 100_000
"""Characters of a text that is looked for."""


@dataclass(slots=True, frozen=True)
class NearMatch:
    """The place from ``start`` to ``end``, what is put there, and what differed, in words."""

    start: int
    end: int
    new: str
    differs: str


def near_matches(text: str, old: str, new: str) -> list[NearMatch]:
    """Returns where ``old``, which does not stand in ``text``, fits all the same, and ``new`` as it fits there: with
    the indentation of the place. The strictest way of comparing that finds something; at most two places."""
    differs = []
    if (plain := _unnumbered(old)) != old:
        old, new, differs = plain, _unnumbered(new), ["the line numbers of read"]
        if exact := list(islice(re.finditer(re.escape(old), text), 2)):
            return [NearMatch(*place.span(), new, differs[0]) for place in exact]
    if not old.strip() or len(old) > _MOST:
        return []
    looked, wanted = text.translate(VARIANTS), old.translate(VARIANTS)
    ways = (("quotes or dashes", re.escape(wanted)), ("white space", _lines(wanted)), ("white space", _words(wanted)))
    for name, pattern in ways:
        if places := list(islice(re.finditer(pattern, looked, re.MULTILINE), 2)):
            said = " and ".join(dict.fromkeys([*differs, name]))
            found = [(*place.span(), _indented(old, text[slice(*place.span())], new)) for place in places]
            return [NearMatch(start, end, fitting, said) for start, end, fitting in found if fitting is not None]
    return []


def _unnumbered(text: str) -> str:
    lines = text.split("\n")
    filled = [line for line in lines if line.strip()]
    if not filled or not all(_NUMBERED.match(line) for line in filled):
        return text
    return "\n".join(_NUMBERED.sub("", line, count=1) for line in lines)


def _lines(wanted: str) -> str:
    """A pattern for the same lines with other white space at their ends."""
    return rf"{_BLANK}*\n".join(re.escape(line.rstrip()) for line in wanted.split("\n"))


def _words(wanted: str) -> str:
    """A pattern for the same words with other white space between them, on as many lines, but for empty ones."""
    pieces = re.split(r"(\s+)", wanted.strip())
    between = [rf"{_BLANK}*\n\s*" if "\n" in piece else rf"{_BLANK}+" for piece in pieces[1::2]]
    body = re.escape(pieces[0]) + "".join(
        gap + re.escape(word) for gap, word in zip(between, pieces[2::2], strict=True)
    )
    # Indentation belongs to it where the text begins a line, and the end of the line where it has that.
    before = rf"^{_BLANK}*" if wanted[:1].isspace() or "\n" in wanted.strip() else ""
    return before + body + (rf"{_BLANK}*\n" if wanted.endswith("\n") else "")


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _indented(old: str, there: str, new: str) -> str | None:
    """``new`` with the indentation that the lines of ``old`` have in the file; None where that is not one for one."""
    theirs = [line for line in there.split("\n") if line.strip()]
    known: dict[str, str] = {}
    for sent, has in zip([line for line in old.split("\n") if line.strip()], theirs, strict=False):
        if known.setdefault(_indent(sent), _indent(has)) != _indent(has):
            return None
    if all(sent == has for sent, has in known.items()):
        return new
    # One that is not known is only clear where all of it is further in, or further out, by the same.
    sent, has = next(iter(known.items()))
    more, less = has.removesuffix(sent), sent.removesuffix(has)
    inward = all(has == more + sent for sent, has in known.items())
    outward = all(sent == less + has for sent, has in known.items())
    lines = []
    for line in new.split("\n"):
        indent = _indent(line)
        if line.strip() and indent in known:
            line = known[indent] + line[len(indent) :]
        elif line.strip() and inward:
            line = more + line
        elif line.strip() and outward and line.startswith(less):
            line = line.removeprefix(less)
        elif line.strip():
            return None
        lines.append(line)
    return "\n".join(lines)
