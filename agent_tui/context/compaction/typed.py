"""What of a message the user typed, and what is data that came with it: pastes, what was piped in, files, quotations,
code, diffs, logs, tables. Only typed words can be a rule of the user's. Pure, and linear in the text.

A message carries where its typed words are (``TextPart.typed``, ``TextPart.pasted``). Within them, and in messages from
before that, what has the form of data is data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias

from agent_tui.models.messages import TextPart
from agent_tui.records import dataclass

PAIRS = 6
"""Names with values on so many lines in a row are a file, where some of them are indented."""

LONG_LINE, BLANKS, MANY = 300, 25, 20
"""A line of so many characters with fewer than one blank, and more than one sign of code, in so many is data."""

BLOB = 40
"""Characters of a word from which on a line is data that has not much beside it."""

SHORT_DATA = 400
"""Characters of data that stand with the user's words wherever those are kept."""

WORDS = 3
"""So many words beside it make a line a sentence."""

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_TAG = re.compile(r"^\s*<([A-Za-z][\w.-]*)(?:\s[^<>]*)?>")
_CLOSES = re.compile(r"</([A-Za-z][\w.-]*)>")
_QUOTE = re.compile(r"^\s{0,3}>")
_TABLE = re.compile(r"^\s*\|.*\|\s*$|^\s*[+|][-+=|: ]{6,}$")
_PROMPT = re.compile(
    r"^\s*(?:\$ \S|>>> |\.\.\. |(?:PS )?[A-Za-z]:\\[^>]*>|In \[\d+\]:|Out\[\d+\]:|\w+@[\w.-]+[:~/][^\s]*[$#] )"
)
_LOG = re.compile(
    r"^\s*(?:[\[(]?\d{4}[-/]\d\d[-/]\d\d[T ,]+\d\d:\d\d|[\[(]?\d\d:\d\d:\d\d\b|"
    r"(?:\d{1,3}\.){3}\d{1,3} +(?:[-\d\[]|\S+ \S+ \[)|"
    r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:|"
    r"\[?(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|TRACE|CRITICAL|NOTICE|error|warn(?:ing)?|info|debug)\]?"
    r"(?:[:\]|\[]| {2,}|\t|$)|(?:DEBUG|INFO|WARN|ERROR|FATAL|TRACE|CRITICAL) [\w-]*[\d.:\[/]|"
    r"(?:npm|yarn|pip|cargo) (?:ERR!|WARN|warning|error)|(?:error|warning)\[\w+\]:)"
)
_FRAME = re.compile(
    r"^\s*(?:File \"[^\"]*\", line \d|at \S*[A-Za-z./]\S*:\d|at [\w.$<>/]+\(|at [^()]{1,200}\([^()]{1,200}:\d+\)|"
    r"#\d+\s+0x|\d+: 0x|goroutine \d|"
    r"Traceback \(most|During handling of|Caused by:|\.{3} \d+ more|E {3}|~*\^+~*\s*$|"
    r"[A-Z][\w.]*(?:Error|Exception|Warning)(?::|$))"
)
_CODE = re.compile(
    r"(?:[{}\[\]()]+[,;]?$|[{\[].*[:,].*[}\]][,;]?$|[\"'][^\"']*[\"'](?:\s*[:=]|,?$)|[“„«»「『][^“”„«»]*[”“»«」』][.,]?$|<!--|@\w+[\w.]*(?:\(|$)|#include\s*[<\"]|#!|//|/\*|\*/|\"{3}|'{3}|"
    r"(?:def|class|function|func|fn|struct|enum|interface|impl|package|module|namespace) [\w$]+\s*(?:[(<{]|:$)|"
    r"import [\w.]+$|from [\w.]+ import |(?:else|try|finally):$|\[\[?[\w.\"-]+\]\]?$|[\w.\"'$-]+ ?[:+]?= ?\S|"
    r"resolved \"|integrity sha|version \"|</?[\w:-]+[^<>]*>$)"
)
_STATEMENT = re.compile(
    r"(?:import|from|using|require|use|export|return|const|let|var|public|private|static|async|pub) "
)
_BLOCK = re.compile(r"(?:if|for|while|elif|with|except|switch)\b")
_ITEM = re.compile(r"^\s*(?:[-*+•–]|\d{1,3}[.)])\s")
_INDENTED = re.compile(r"^(?: {4,}|\t)\s*\S")
_DIFF = re.compile(
    r"^(?:diff --git |Index: \S|@@ -\d|--- (?:a/|/dev/null|\S+\t)|\+\+\+ (?:b/|/dev/null|\S+\t)|\*{3} (?:Begin Patch|"
    r"Update File|Add File|Delete File))"
)
_IN_DIFF = re.compile(
    r"^(?:[-+ \\@]|diff |index [0-9a-f]|new file|deleted file|old mode|new mode|similarity|rename |copy |Binary |"
    r"\*{3} )"
)
_ADDED = re.compile(r"^\+[^\s+]")
_TAKEN = re.compile(r"^-[^\s-]")
_CELLS = re.compile(r"[,;\t](?=\S)")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\uac00-\ud7af]")
_SIGNS = "{}()[];=<>\"'&|,"
_CODED = re.compile(r"[A-Za-z0-9+/=_-]{40}")
_PLACE = re.compile(r"[~./]|\w+://|.*\.\w{1,8}\W*$")
_PAIR = re.compile(r"^\s*(?:- )?[\w.\"'/-]{1,60}:(?:\s+\S.*)?$|^\s*- \S+$")


@dataclass(slots=True, frozen=True)
class UserText:
    """A user's text in two: ``words`` that were typed, in pieces between the ``data``."""

    words: tuple[str, ...]
    data: tuple[str, ...]


def typed_of(part: TextPart) -> UserText:
    """What of a user's text was typed, as its marks and its form say."""
    pieces = _parts_of(part)
    words = tuple(text for text, is_words in pieces if is_words)
    return UserText(words, tuple(text for text, is_words in pieces if not is_words))


def spoken_text(part: TextPart) -> str:
    """The text as the user's own words: long data in it is only counted, where there are words beside it."""
    pieces = _parts_of(part)
    if all(len(text) <= SHORT_DATA for text, is_words in pieces if not is_words):
        return part.text
    if not any(is_words and text.strip() for text, is_words in pieces):
        return part.text
    return "\n".join(
        text if is_words or len(text) <= SHORT_DATA else f"[… {len(text):,} characters of data …]"
        for text, is_words in pieces
    )


_Marks: TypeAlias = tuple[tuple[int, int], ...]


def _marks(part: TextPart) -> tuple[_Marks, _Marks]:
    typed = [[0, len(part.text)]] if part.typed is None else part.typed
    return tuple((start, end) for start, end in typed), tuple((start, end) for start, end in part.pasted or ())


def _parts_of(part: TextPart) -> tuple[tuple[str, bool], ...]:
    return _parted(part.text, *_marks(part))


@lru_cache(maxsize=64)
def _parted(text: str, typed: _Marks, pasted: _Marks) -> tuple[tuple[str, bool], ...]:
    """The text in pieces, each with whether it is the user's words. A plan asks for those of all messages several
    times."""
    found: list[tuple[str, bool]] = []
    for piece, own in _marked(text, typed, pasted):
        found += _pieces(piece) if own else [(piece, False)]
    return tuple(found)


def _marked(text: str, typed: _Marks, pasted: _Marks) -> Iterator[tuple[str, bool]]:
    """The text in pieces, each with whether it is marked as typed."""
    size = len(text)
    places = sorted({0, size, *(min(max(0, at), size) for span in (*typed, *pasted) for at in span)})
    start, held = 0, False
    for first, _ in pairwise(places):
        own = _covers(typed, first) and not _covers(pasted, first)
        if own != held and first > start:
            yield text[start:first], held
            start = first
        held = own
    if size > start:
        yield text[start:], held


def _covers(spans: _Marks, at: int) -> bool:
    return any(start <= at < end for start, end in spans)


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """A typed text in pieces of lines that are words, and of those that are data."""
    lines = text.splitlines()
    held: list[str] = []
    held_words = True
    for line, is_words in zip(lines, _are_words(lines), strict=True):
        if not line.strip():
            held.append(line)
            continue
        if is_words != held_words and any(map(str.strip, held)):
            yield "\n".join(held), held_words
            held = []
        held_words = is_words
        held.append(line)
    if any(map(str.strip, held)):
        yield "\n".join(held), held_words


def _are_words(lines: Sequence[str]) -> list[bool]:
    found = [True] * len(lines)
    fence = tag = ""
    closed = {name: n for n, line in enumerate(lines) for name in _CLOSES.findall(line)}
    diff = False
    listed = False
    for n, line in enumerate(lines):
        if fence:
            found[n] = False
            fence = "" if line.strip().startswith(fence) and not line.strip(" `~") else fence
            continue
        if tag:
            found[n] = False
            tag = "" if f"</{tag}>" in line else tag
            continue
        if (opened := _FENCE.match(line)) is not None:
            found[n], fence = False, opened[1]
            continue
        if (opened := _TAG.match(line)) is not None and closed.get(opened[1], n) > n:
            found[n], tag = False, opened[1]
            continue
        if diff and not line.strip():
            following = next((later for later in lines[n + 1 : n + 4] if later.strip()), "")
            diff = bool(_IN_DIFF.match(following)) and not _ITEM.match(following)
            continue
        if _DIFF.match(line):
            diff = True
        elif diff:
            diff = bool(_IN_DIFF.match(line))
        found[n] = not (diff or _is_data(line, listed))
        if line.strip():
            listed = found[n] and (bool(_ITEM.match(line)) or (listed and line[:1].isspace()))
    _mark_neighbours(lines, found)
    return found


def _is_data(line: str, listed: bool) -> bool:
    if not line.strip():
        return False
    if _QUOTE.match(line) or _TABLE.match(line) or _PROMPT.match(line) or _LOG.match(line) or _FRAME.match(line):
        return True
    if _ADDED.match(line) or (_INDENTED.match(line) and not listed) or _is_code(line.strip()):
        return True
    if _UNSPACED.search(line):
        return False
    words = line.split()
    blobs = sum(len(word) for word in words if len(word) >= BLOB and _is_blob(word))
    if blobs * 2 > len(line.strip()) and sum(word.strip(",.:;!?()").isalpha() for word in words) < WORDS:
        return True
    signs = sum(map(line.count, _SIGNS)) if len(line) >= LONG_LINE else 0
    return signs * MANY > len(line) and line.count(" ") * BLANKS < len(line)


def _is_code(line: str) -> bool:
    end, signs = line[-1:], any(sign in line for sign in "()={}<>[]")
    if _CODE.match(line) or line.endswith(("{", "},", "],")) or (end == ";" and signs):
        return True
    return (end in ";({" and bool(_STATEMENT.match(line))) or (end in ":{" and signs and bool(_BLOCK.match(line)))


def _is_blob(word: str) -> bool:
    """Letters and digits that are no name of a place."""
    return not _PLACE.match(word) and bool(_CODED.search(word)) and any(map(str.isdigit, word))


def _mark_neighbours(lines: Sequence[str], found: list[bool]) -> None:
    """What stands in a row of data is data: lines taken away beside lines added, rows of the same number of cells,
    names with values, and a line between two that are."""
    cells = [len(_CELLS.findall(line)) for line in lines]
    for n, line in enumerate(lines):
        beside = [k for k in (n - 1, n + 1) if 0 <= k < len(lines)]
        if _TAKEN.match(line) and any(_ADDED.match(lines[k]) for k in beside):
            found[n] = False
        if cells[n] >= 2 and any(cells[k] == cells[n] for k in beside):
            found[n] = False
    start = 0
    for n in range(len(lines) + 1):
        if n < len(lines) and _PAIR.match(lines[n]):
            continue
        if n - start >= PAIRS and any(line[:1].isspace() for line in lines[start:n]):
            found[start:n] = [False] * (n - start)
        start = n + 1
    for n in range(1, len(lines) - 1):
        around = (lines[n - 1], lines[n + 1])
        bounds = any(not line.strip() or _FENCE.match(line) or _QUOTE.match(line) for line in around)
        if lines[n].strip() and not (bounds or found[n - 1] or found[n + 1]):
            found[n] = False
