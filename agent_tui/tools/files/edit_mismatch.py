"""Explains why a text that should stand in a file is not found there, and shows what stands there instead.

Pure: works on strings. Everything it says of a file is pictured, so that nothing in it acts.
"""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable

from agent_tui.records import dataclass
from agent_tui.text.clean import pictured

SEARCHED = 300_000
"""Characters of a file that are looked through for something near: some tenths of a second at most."""

OFFERED = 2_000
"""Characters up to which the exact text is offered for the next try; of longer ones the lines are named."""

LINES = 12
"""Lines of a file that are shown."""

ALIKE = 0.6
"""How much of two texts must agree (difflib's ratio) to be called near."""

_LOOKED = 4  # places compared in full
_COMPARED = 800  # characters of each, which keeps that to some hundredths of a second
_GRAMMED = 100_000  # characters of a file in which single lines are compared

VARIANTS = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2009\u200a\u202f\u205f\u3000", " "),
    }
)
"""Quotes, dashes and spaces that look alike, one character for one."""

_NUMBERED = re.compile(r"^[ \t]*\d+(?:\t|: |\||→)")
_ESCAPES = {"\\n": "\n", "\\t": "\t", '\\"': '"', "\\'": "'", "\\\\": "\\"}


@dataclass(slots=True, frozen=True)
class _Level:
    """Something that may differ. ``flat`` takes it out of a text; ``pieces`` finds the parts that come out as one
    character, None where every character stays one. ``mends``: only the text that was looked for is mended.
    ``spaces``: white space is among it, also in front."""

    reason: str
    flat: Callable[[str], str]
    pieces: re.Pattern[str] | None = None
    mends: bool = False
    spaces: bool = False

    def span(self, text: str, start: int, length: int) -> tuple[int, int]:
        """Returns the place in ``text`` of a part of its flat form."""
        if self.pieces is None:
            return start, start + length
        places = [match.span() for match in self.pieces.finditer(text)]
        return places[start][0], places[start + length - 1][1]


def why_missing(text: str, wanted: str, name: str = "old_string") -> str:
    """Sentences, each on its own line, on what differs between ``wanted`` and the nearest place in ``text``, with its
    lines numbered as ``read`` shows them and the exact text to use. ``name`` is what the model called ``wanted``."""
    if len(text) > SEARCHED:
        text = text[:SEARCHED]
    if (bare := wanted.strip("\n")) and bare != wanted and (at := text.find(bare)) >= 0:
        return _told(text, at, at + len(bare), "The line breaks around it differ.", name)
    for level in _LEVELS:
        if (found := _found(text, wanted, level)) is not None:
            start, end = found
            detail = _detail(text[start:end], wanted) if not level.mends else ""
            return _told(text, start, end, level.reason.format(name=name) + detail, name)
    if (lines := _nearest(text, wanted)) is not None:
        first, last = lines
        starts = _starts(text)
        start = starts[first]
        end = starts[last + 1] - 1 if last + 1 < len(starts) else len(text)
        end += wanted.endswith("\n") and text[end : end + 1] == "\n"
        there = text[start:end]
        return _told(text, start, end, f"The nearest lines differ.{_detail(there, wanted)}", name)
    return f"Nothing like it is in the file: read it again, then copy {name} from it exactly."


def nearest_lines(text: str, wanted: str) -> str:
    """The numbered lines of ``text`` nearest to ``wanted``; empty where none is near."""
    text = text[:SEARCHED]
    lines = _nearest(text, wanted)
    return _numbered(text, *lines) if lines is not None else ""


# What differs


def _lower(text: str) -> str:
    lower = text.lower()
    return lower if len(lower) == len(text) else text


def _unnumbered(wanted: str) -> str:
    lines = wanted.split("\n")
    filled = [line for line in lines if line.strip()]
    if not filled or not all(_NUMBERED.match(line) for line in filled):
        return wanted
    return "\n".join(_NUMBERED.sub("", line) for line in lines)


def _unescaped(wanted: str) -> str:
    return re.sub(r"\\[nt\"'\\]", lambda m: _ESCAPES[m.group()], wanted)


_ENDS = re.compile(r"[ \t\r]+(?=\n|\Z)")
_SPACES = re.compile(r"\s+")
_LEVELS = (
    _Level("{name} carries the line numbers that read shows: leave them out.", _unnumbered, mends=True),
    _Level("{name} is escaped once too often: send quotes, tabs and line breaks as they are.", _unescaped, mends=True),
    _Level(
        "The line ends differ (carriage returns or white space at the end of lines).",
        lambda text: _ENDS.sub("", text),
        # A character with nothing left out before it; what is left out belongs to none.
        re.compile(r"(?![ \t\r]+(?:\n|\Z))[\s\S]"),
    ),
    _Level("Quotes, dashes or spaces differ.", lambda text: text.translate(VARIANTS)),
    _Level(
        "Accents are encoded differently.",
        lambda text: unicodedata.normalize("NFC", text),
        re.compile(r"[\s\S][\u0300-\u036f]*"),
    ),
    _Level("Only white space differs.", lambda text: _SPACES.sub(" ", text), re.compile(r"\s+|\S"), spaces=True),
    _Level(
        "White space, quotes, dashes or case differ.",
        lambda text: _lower(_SPACES.sub(" ", text).translate(VARIANTS)),
        re.compile(r"\s+|\S"),
        spaces=True,
    ),
)


def _found(text: str, wanted: str, level: _Level) -> tuple[int, int] | None:
    """Returns the place of ``wanted`` in ``text`` once both are levelled; None where it has none."""
    flat = level.flat(wanted.strip("\n"))
    if level.mends:
        if flat == wanted.strip("\n"):
            return None
        if flat not in text:  # numbered lines are also often wrong in white space
            spaces = next(one for one in _LEVELS if one.reason.startswith("Only white space"))
            return _found(text, flat, spaces)
        at, look = text.find(flat), flat
    else:
        look = flat.strip() if level.spaces else flat
        at = level.flat(text).find(look) if look else -1
    if at < 0 or not look:
        return None
    start, end = level.span(text, at, len(look))
    there = level.flat(text[start:end])
    if level.pieces is not None and (there.strip() if level.spaces else there) != look:
        return None  # a rare composition: its places are not these
    # The indentation belongs to it where the text that was looked for begins a line.
    line = text.rfind("\n", 0, start) + 1
    if not text[line:start].strip() and ("\n" in wanted or wanted[:1].isspace()):
        start = line
    if wanted.endswith("\n") and (newline := re.compile(r"[ \t\r]*\n").match(text, end)):
        end = newline.end()
    return start, end


def _detail(there: str, wanted: str) -> str:
    """The first character at which both part."""
    if len(there) > 20_000 or len(wanted) > 20_000:
        return ""
    for number, (one, other) in enumerate(zip(there.split("\n"), wanted.split("\n"), strict=False), 1):
        if one == other:
            continue
        at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
        where = f" in its line {number}" if "\n" in wanted else ""
        return f" First{where}: the file has {_quoted(one, at)}, you sent {_quoted(other, at)}."
    return ""


def _quoted(line: str, at: int) -> str:
    piece = line[max(0, at - 12) : at + 24]
    if not piece:
        return "the end of the line" if at else "an empty line"
    char = line[at : at + 1]
    odd = bool(char) and (not char.isascii() or (char.isspace() and char != " "))
    return _json(piece) + (f" (U+{ord(char):04X})" if odd else "")


# What is near


def _nearest(text: str, wanted: str) -> tuple[int, int] | None:
    """The first and the last index of the lines most like ``wanted``; None where nothing is."""
    mended = _unnumbered(wanted).strip("\n")
    looked = [line.strip() for line in mended.split("\n")]
    lines = [line.strip() for line in text.split("\n")]
    size = min(len(looked), len(lines))
    best, place = 0.0, 0
    for index in dict.fromkeys([*_voted(lines, looked)[:_LOOKED], *_overlapping(lines, mended, size)[:_LOOKED]]):
        index = max(0, min(index, len(lines) - size))
        ratio = _alike(lines[index : index + size], looked)
        if size == 1:  # it may be a part of a longer line
            grams = _grams(mended)
            ratio = max(ratio, len(grams & _grams(lines[index])) / max(1, len(grams)) * 0.9)
        if ratio > best:
            best, place = ratio, index
    return (place, place + size - 1) if best >= ALIKE else None


def _voted(lines: list[str], looked: list[str]) -> list[int]:
    """Returns where the text would begin by its lines that are in the file; rare and long ones count most."""
    wanted = {line: number for number, line in enumerate(looked) if line}
    often = Counter(line for line in lines if line in wanted)
    votes: Counter[int] = Counter()
    for index, line in enumerate(lines):
        if line in often:
            votes[index - wanted[line]] += len(line) // often[line] + 1
    return [index for index, _ in sorted(votes.items(), key=lambda item: (-item[1], item[0]))]


def _overlapping(lines: list[str], mended: str, size: int) -> list[int]:
    """The same by the runs of three characters that they share; only in files where that is quick."""
    grams = _grams(mended)
    if not grams or sum(map(len, lines)) > _GRAMMED:
        return []
    scores = [len(grams & _grams(line)) for line in lines]
    window = sum(scores[:size])
    ranked = [(window, 0)]
    for index in range(1, len(lines) - size + 1):
        window += scores[index + size - 1] - scores[index - 1]
        ranked.append((window, index))
    ranked.sort(key=lambda item: (-item[0], item[1]))
    return [index for window, index in ranked if window]


def _alike(one: list[str], other: list[str]) -> float:
    """Returns how much two pieces agree, by their lines or by the characters of their beginnings."""
    begin, start = "\n".join(one)[:_COMPARED], "\n".join(other)[:_COMPARED]
    by_characters = difflib.SequenceMatcher(None, begin, start, autojunk=False).ratio()
    return max(by_characters, difflib.SequenceMatcher(None, one, other, autojunk=False).ratio())


def _grams(text: str) -> set[str]:
    squeezed = " ".join(text.split()).casefold()
    return {squeezed[i : i + 3] for i in range(len(squeezed) - 2)} or ({squeezed} if squeezed else set())


# What is said


def _told(text: str, start: int, end: int, reason: str, name: str) -> str:
    starts = _starts(text)
    first = bisect_right(starts, start) - 1
    last = bisect_right(starts, max(start, end - 1)) - 1
    said = [reason, "The file has:", _numbered(text, first, last)]
    exact = text[start:end]
    times = text.count(exact)
    if not _sendable(exact):
        said.append(f"Some of its bytes are not UTF-8: send as {name} a part without them.")
    elif len(exact) <= OFFERED:
        said.append(f"To change this, send as {name} exactly: {_json(exact)}")
    else:
        said.append(f"Read lines {first + 1}-{last + 1} and copy {name} from there exactly, or a smaller part of it.")
    if times > 1:
        said.append(f"It occurs {times} times: add lines around it, or set replace_all.")
    return "\n".join(said)


def _numbered(text: str, first: int, last: int) -> str:
    lines = text.split("\n")[first : last + 1]
    out = [f"{first + 1 + i}\t{_drawn(line.removesuffix(chr(13)))}" for i, line in enumerate(lines[:LINES])]
    if len(lines) > LINES:
        out.append(f"[… to line {last + 1}]")
    return "\n".join(out)


def _drawn(line: str) -> str:
    return pictured(line[:500]).encode("utf-8", "replace").decode()


def _sendable(text: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in text)


def _starts(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer("\n", text))]


def _json(text: str) -> str:
    """A text as JSON, the form in which it is to be sent; what would act on a terminal is escaped."""
    written = json.dumps(text, ensure_ascii=False)
    if pictured(written) != written or not _sendable(written):
        return json.dumps(text)
    composed = unicodedata.normalize("NFC", written) == written
    return "".join(json.dumps(c)[1:-1] if _unseen(c, composed) else c for c in written)


def _unseen(char: str, composed: bool) -> bool:
    """Returns whether nobody can tell this character from another, or from none, by looking at it."""
    kind = "" if char.isascii() else unicodedata.category(char)
    return kind in ("Zs", "Zl", "Zp", "Cf") or (kind == "Mn" and not composed)
