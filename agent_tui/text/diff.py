"""A unified diff read as data: lines with their numbers, and the words that changed within a line. The screen, the
lines of the plain chat and the HTML export draw the same diff from it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

from agent_tui.text.clean import common_start

LineKind: TypeAlias = Literal["same", "added", "removed", "file", "gap", "note"]
Span: TypeAlias = tuple[int, int]
"""From and to which character of a line's text."""
Spans: TypeAlias = tuple[Span, ...]

MOST_RUN = 100
"""Lines that were removed, or added, together: where there are more, no words are marked in them."""
MOST_COMPARED = 900
"""Pairs of lines that are compared to find which line became which."""
MOST_CHARACTERS = 1_000
"""Of longer lines only what they begin and end with is compared, never their words."""
MOST_WORDS = 200
"""Of a line, that tell how much it is like another one."""
MOST_WORK = 40_000
"""Pairs of words that are compared in lines that changed together, so that no text takes long."""
LEAST_ALIKE = 0.4
"""Lines that have less of their words in common are two lines, not one that was changed."""

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@(.*)")
"""Longer numbers are of no file: they would fill the screen, or be no numbers to Python."""
_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_PATCH_FILE = re.compile(r"\*\*\* (?:Add|Update|Delete) File: *(.*)")


class DiffLine(NamedTuple):
    """``text`` is without its sign. ``old`` and ``new`` are its numbers in the file before and after, from 1; None
    where it is in none, or its place is not known. ``file`` names the file whose lines follow, ``gap`` stands for lines
    left out, ``note`` is a remark and no line of the file."""

    kind: LineKind
    text: str
    old: int | None = None
    new: int | None = None
    path: str = ""

    @property
    def number(self) -> int | None:
        """The number that is shown: in the file as it is now, of a removed line as it was."""
        return self.old if self.kind == "removed" else self.new

    @property
    def sign(self) -> str:
        """What the line begins with where there are no colours."""
        return {"added": "+", "removed": "-"}.get(self.kind, " ")


class Diff:
    """All lines of a diff, and how many of them are added and removed."""

    def __init__(self, lines: list[DiffLine], added: int = 0, removed: int = 0) -> None:
        self.lines = lines
        self.added = added
        self.removed = removed
        self._changed: dict[int, Spans] = {}

    @property
    def digits(self) -> int:
        """Cells that the widest line number takes, 0 where no numbers are known."""
        return len(str(max((line.number or 0 for line in self.lines), default=0) or ""))

    def changed(self, index: int) -> Spans:
        """Returns what of a line differs from the line it replaces or was replaced by; nothing where there is no such
        line. Looked for when it is first asked for, in time that does not grow with the length of the lines."""
        if self.lines[index].kind not in ("added", "removed"):
            return ()
        if index not in self._changed:
            start, middle, end = self._run(index)
            self._changed.update(dict.fromkeys(range(start, end), ()))
            pairs = list(self._pairs(start, middle, end))
            for old, new in pairs:
                most = MOST_WORK // len(pairs)
                before, after = changed_words(self.lines[old].text, self.lines[new].text, most)
                self._changed[old], self._changed[new] = before, after
        return self._changed[index]

    def _run(self, index: int) -> tuple[int, int, int]:
        """Returns where the removed lines around a line begin, where the added lines that follow begin and end."""
        lines = self.lines
        middle = index
        while middle > 0 and lines[middle].kind == "added" and lines[middle - 1].kind == "added":
            middle -= 1
        while middle < len(lines) and lines[middle].kind == "removed":
            middle += 1
        start = end = middle
        while start > 0 and lines[start - 1].kind == "removed":
            start -= 1
        while end < len(lines) and lines[end].kind == "added":
            end += 1
        return start, middle, end

    def _pairs(self, start: int, middle: int, end: int) -> Iterator[tuple[int, int]]:
        """Yields which removed line became which added one."""
        before, after = middle - start, end - middle
        if max(before, after) > MOST_RUN:
            return
        if before == after:
            yield from zip(range(start, middle), range(middle, end), strict=True)
        elif before * after <= MOST_COMPARED:
            bags = [_bag(_WORD.findall(line.text[:MOST_CHARACTERS])) for line in self.lines[start:end]]
            old, new = bags[:before], bags[before:]
            yield from ((start + i, middle + j) for i, j in _best_pairs(old, new))


def read_diff(text: str, path: str = "") -> Diff:
    """Reads the hunks of a unified diff, of one file or of several with their names (``---``, ``+++``), or a patch
    without line numbers. ``path`` names the file where the text does not. What is no diff is read as notes."""
    lines: list[DiffLine] = []
    added = removed = 0
    # None: the numbers of the lines are not known, and a hunk ends where something else begins.
    old: int | None = None
    new: int | None = None
    left_old = left_new = 0
    opened = False
    source = text.removesuffix("\n").split("\n")
    in_hunk = not any(line.startswith(("@@", "--- ", "*** ")) for line in source)
    at = 0
    while at < len(source):
        line = source[at]
        at += 1
        counted = old is not None
        sign = line[:1]
        if in_hunk and (left_old > 0 or left_new > 0 if counted else not line.startswith(("@@", "*** "))):
            if sign == "-":
                lines.append(DiffLine("removed", line[1:], old, None, path))
                removed += 1
            elif sign == "+":
                lines.append(DiffLine("added", line[1:], None, new, path))
                added += 1
            elif sign in ("", " "):
                lines.append(DiffLine("same", line[1:], old, new, path))
            else:
                lines.append(DiffLine("note", line.removeprefix("\\ "), path=path))
                in_hunk = sign == "\\"  # anything else stands for the rest of it
                continue
            if old is not None and new is not None:
                old, left_old = (old + 1, left_old - 1) if sign != "+" else (old, left_old)
                new, left_new = (new + 1, left_new - 1) if sign != "-" else (new, left_new)
        elif found := _HUNK.match(line):
            old, new = int(found[1]), int(found[3])
            left_old, left_new = (int(found[n]) if found[n] is not None else 1 for n in (2, 4))
            if opened:
                lines.append(DiffLine("gap", found[5].strip(), path=path))
            in_hunk = opened = True
        elif line.startswith("--- ") and source[at : at + 1] and source[at].startswith("+++ "):
            before, after = line[4:], source[at][4:]
            at += 1
            path = before if after == "/dev/null" else after
            what = "new file" if before == "/dev/null" else "deleted" if after == "/dev/null" else ""
            lines.append(DiffLine("file", f"{path} ({what})" if what else path, path=path))
            in_hunk = opened = False
        elif patched := _PATCH_FILE.match(line):
            path = patched[1].strip()
            lines.append(DiffLine("file", line.removeprefix("*** "), path=path))
            old = new = None
            in_hunk, opened = "Delete" not in line, False
        elif line.startswith("@@"):
            old = new = None
            lines.append(DiffLine("gap", line.strip("@ "), path=path))
            in_hunk = opened = True
        elif line:
            lines.append(DiffLine("note", line.removeprefix("\\ "), path=path))
    return Diff(lines, added, removed)


def changed_words(before: str, after: str, most: int = MOST_WORK) -> tuple[Spans, Spans]:
    """Returns what of two lines differs, by words; nothing for both where they have too little in common. Where that
    would take more than ``most`` comparisons, it is all between what both begin and end with."""
    if max(len(before), len(after)) > MOST_CHARACTERS:
        start = common_start(before, after)
        end = common_start(before[start:][::-1], after[start:][::-1])
        if 2 * (start + end) < LEAST_ALIKE * (len(before) + len(after)):
            return (), ()
        return _real([(start, len(before) - end)]), _real([(start, len(after) - end)])
    old, new = _WORD.findall(before), _WORD.findall(after)
    if _alike(_bag(old), _bag(new)) < LEAST_ALIKE:
        return (), ()
    old_at, new_at = _places(old), _places(new)
    first = _same_words(old, new)
    last = _same_words(old[first:][::-1], new[first:][::-1])
    old_middle, new_middle = old[first : len(old) - last], new[first : len(new) - last]
    codes: Sequence[tuple[str, int, int, int, int]] = [("replace", 0, len(old_middle), 0, len(new_middle))]
    if len(old_middle) * len(new_middle) <= most:
        codes = SequenceMatcher(None, old_middle, new_middle, autojunk=False).get_opcodes()
    left: list[Span] = []
    right: list[Span] = []
    for tag, i, j, k, m in codes:
        if tag != "equal":
            left.append((old_at[first + i], old_at[first + j]))
            right.append((new_at[first + k], new_at[first + m]))
    return _joined(_real(left), before), _joined(_real(right), after)


def _same_words(one: Sequence[str], other: Sequence[str]) -> int:
    """Returns how many words two lines begin with alike."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _bag(words: Sequence[str]) -> Counter[str]:
    return Counter(word for word in words[:MOST_WORDS] if not word.isspace())


def _places(words: list[str]) -> list[int]:
    places = [0]
    for word in words:
        places.append(places[-1] + len(word))
    return places


def _real(spans: Iterable[Span]) -> Spans:
    return tuple((start, end) for start, end in spans if end > start)


def _joined(spans: Spans, text: str) -> Spans:
    """Spans with what stands between two of them where that is only a blank: several words that changed are one."""
    out: list[Span] = []
    for start, end in spans:
        if out and text[out[-1][1] : start].isspace():
            out[-1] = (out[-1][0], end)
        else:
            out.append((start, end))
    return tuple(out)


def _alike(old: Counter[str], new: Counter[str]) -> float:
    """Returns how much of the words of two lines is the same, 0 to 1, by characters."""
    both = sum(len(word) * count for word, count in (old & new).items())
    size = sum(len(word) * count for bag in (old, new) for word, count in bag.items())
    return 2 * both / size if size else 1.0


def _best_pairs(old: list[Counter[str]], new: list[Counter[str]]) -> Iterator[tuple[int, int]]:
    """Yields the pairs of lines that are most alike together, in their order."""
    alike = [[_alike(before, after) for after in new] for before in old]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in reversed(range(len(old))):
        for j in reversed(range(len(new))):
            paired = alike[i][j] + best[i + 1][j + 1] if alike[i][j] >= LEAST_ALIKE else 0.0
            best[i][j] = max(best[i + 1][j], best[i][j + 1], paired)
    i = j = 0
    while i < len(old) and j < len(new):
        if alike[i][j] >= LEAST_ALIKE and best[i][j] == alike[i][j] + best[i + 1][j + 1]:
            yield i, j
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1


def spans_apart(spans: Spans, length: int) -> Iterator[tuple[int, int, bool]]:
    """Yields a text of that length in its parts: from, to, and whether it is one of the spans."""
    edges = [0, *(edge for span in spans for edge in span), length]
    for number, (start, end) in enumerate(pairwise(edges)):
        if end > start:
            yield start, end, bool(number % 2)
