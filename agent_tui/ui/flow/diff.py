"""A diff as rows: line numbers, signs, bands of colour, the code in its colours, the words that changed marked.

The transcript and the question before an edit draw the same rows; ``text/diff.py`` has the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from agent_tui.text.code import coloured, language_of_file
from agent_tui.text.diff import Diff, DiffLine, read_diff, spans_apart
from agent_tui.ui.flow.layout import Decoration, Flow, Run, runs_in, shown_line

ROWS = 50
"""Lines that are made together: their code is coloured when one of them is looked at."""
MOST_SHOWN, CHARS_SHOWN = 20, 1_600
"""Lines of a folded diff, and characters: fewer lines where they are long."""
LONG = 300
"""Characters of one line of a folded diff."""


def shown_diff(text: str, path: str, clean: Callable[[str], str], *, whole: bool = False) -> Diff:
    """Reads the text of a diff to be drawn; ``clean`` makes foreign text harmless, and lines of any length stay
    ``whole``. The name of its only file is left out: it stands in the line above."""
    diff = read_diff(clean(text), clean(path))
    lines = [line._replace(text=line.text.expandtabs(4) if whole else shown_line(line.text)) for line in diff.lines]
    alone = sum(line.kind == "file" for line in lines) == 1
    if alone and lines[0].kind == "file" and lines[0].text == lines[0].path:
        del lines[0]
    return Diff(lines, diff.added, diff.removed)


def beginning(diff: Diff) -> tuple[Diff, int]:
    """The first lines of a diff, as many as are seen at a glance, and how many are left out."""
    chars = count = 0
    for line in diff.lines[:MOST_SHOWN]:
        chars += min(LONG, max(40, len(line.text)))
        if count and chars > CHARS_SHOWN:
            break
        count += 1
    # One line less would be no shorter with a line that says so.
    count = len(diff.lines) if len(diff.lines) == MOST_SHOWN + 1 and count == MOST_SHOWN else count
    lines = [line._replace(text=_short(line.text)) for line in diff.lines[:count]]
    return Diff(lines, diff.added, diff.removed), len(diff.lines) - count


def _short(text: str) -> str:
    return text if len(text) <= LONG else f"{text[:LONG]}…"


def diff_flows(diff: Diff, start: int, end: int, margin: Decoration, *, colored: bool = True) -> list[Flow]:
    """The rows of some lines of a diff. Without ``colored`` they are as high, but their code has no colours."""
    lines = diff.lines[start:end]
    runs = _runs(lines) if colored else [[] for _ in lines]
    digits = diff.digits
    return [
        _flow(line, _marked(line, styles, diff.changed(start + number)) if colored else styles, digits, margin)
        for number, (line, styles) in enumerate(zip(lines, runs, strict=True))
    ]


def _flow(line: DiffLine, runs: Sequence[Run], digits: int, margin: Decoration) -> Flow:
    blank = " " * (digits + 1 if digits else 0)
    if line.kind == "file":
        return Flow(line.text, base="title", first=margin, wrap="char", wide=True)
    if line.kind in ("gap", "note"):
        text = line.text if line.kind == "note" else f"⋮ {line.text}".rstrip()
        return Flow(text, base="faint", first=(*margin, (blank, "")), wrap="char", wide=True, silent=line.kind == "gap")
    fill, sign = {"added": ("added", "add"), "removed": ("removed", "remove")}.get(line.kind, ("", "muted"))
    number = "" if line.number is None else str(line.number)
    return Flow(
        line.text,
        runs,
        first=(*margin, (f"{number:>{digits}} " if digits else "", "muted"), (f"{line.sign} ", f"strong {sign}")),
        rest=(*margin, (f"{blank}  ", "")),
        fill=fill,
        bare=len(margin),
        wrap="char",
        wide=True,
        lead=line.sign,
    )


def _runs(lines: Sequence[DiffLine]) -> list[list[Run]]:
    """The colours of the code, the old and the new one by themselves: each is whole."""
    found: list[list[Run]] = [[] for _ in lines]
    code = [(number, line) for number, line in enumerate(lines) if line.kind in ("same", "added", "removed")]
    for path, group in groupby(code, key=lambda item: item[1].path):
        if not (language := language_of_file(path)):
            continue
        members = list(group)
        for left_out in ("added", "removed"):
            side = [(number, line.text) for number, line in members if line.kind != left_out]
            # What stays is coloured with the new code.
            if left_out == "added" and all(lines[number].kind == "same" for number, _ in side):
                continue
            for (number, _), runs in zip(side, coloured("\n".join(t for _, t in side), language), strict=True):
                found[number] = [(end, style, None) for end, style in runs]
    return found


def _marked(line: DiffLine, runs: Sequence[Run], changed: tuple[tuple[int, int], ...]) -> Sequence[Run]:
    """The runs of a line with the words that changed marked."""
    if not changed:
        return runs
    return list(_cut(runs or [(len(line.text), "", None)], len(line.text), changed, f"{line.kind}_word"))


def _cut(runs: Sequence[Run], length: int, changed: tuple[tuple[int, int], ...], style: str) -> Iterator[Run]:
    whole = [*runs, (length, "", None)] if runs[-1][0] < length else runs
    for start, end, marked in spans_apart(changed, length):
        for _, stop, names, link in runs_in(whole, start, end):
            yield stop, f"{names} {style}" if marked else names, link
