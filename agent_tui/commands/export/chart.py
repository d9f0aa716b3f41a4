"""The context step by step for exports: as a drawing for a page, stacked columns below the limit with cliffs where it
was compacted, and as a table for Markdown."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from itertools import groupby

from agent_tui.commands.export.prose import escape
from agent_tui.context.accounting.next_input import budget
from agent_tui.context.chart import Scale, Slot, bands_of, fold_words, is_far_off, round_step
from agent_tui.context.past import given_again
from agent_tui.context.timeline import Column, Folded, Timeline, in_words
from agent_tui.models.rows import ROW_KINDS
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.records import dataclass
from agent_tui.text.numbers import money, percent, plural, tokens

MOST_COLUMNS = 160
"""Steps next to each other share one where there are more."""
WIDTH, HEIGHT = 10_000, 2_400
"""Of the drawing, in its own units: the page stretches it, its words stand beside it."""
GAP = 0.18
"""Of a column's place, that is free beside it."""
WIDEST = WIDTH // 16
"""A column of few stands in the middle of its place."""
MOST_MARKS = 12
"""More compactions than these are not marked one by one: the cliffs show them."""
MOST_TICKS = 5


MOST_ROWS = 40
"""The same of a table."""
BAR = 20
"""Cells of a bar of a table that reaches the limit, or of the longest where nobody knows a limit."""


@dataclass(slots=True, frozen=True)
class _Course:
    """What is shown of the steps: their columns, the limit that held for each, and all of it in a sentence. ``near``:
    the limit is not so far off that nothing else could be seen beside it."""

    columns: Sequence[Column]
    limits: Sequence[int | None]
    near: bool
    words: str

    @property
    def top(self) -> int:
        return max([column.total or 0 for column in self.columns] + [limit or 0 for limit in self.limits if self.near])

    @property
    def limit(self) -> int:
        """The last that is known, where it is shown."""
        return next((limit for limit in reversed(self.limits) if limit), 0) if self.near else 0


def _course(
    steps: Sequence[Step], records: Sequence[CompactionRecord], path: Container[str], most: int
) -> _Course | None:
    """None where fewer than two steps say how large they were. ``path`` are the ids of the conversation's messages."""
    timeline = Timeline(steps, records)
    columns = timeline.columns(most, path)
    totals = [column.total for column in columns if column.total]
    if len(totals) < 2:
        return None
    turns = [step for step in steps if step.kind == "turn"]
    limits = [_limit(turns[column.number - 1]) for column in columns]
    known = [limit for limit in limits if limit]
    near = not is_far_off(max(totals), max(known, default=None))
    words = in_words(timeline, totals[-1], path)
    if known and not near:
        words += f" The limit is {tokens(known[-1], False)}."
    return _Course(columns, limits, near, words)


def table(steps: Sequence[Step], records: Sequence[CompactionRecord], path: Container[str]) -> str:
    """The steps as Markdown: a sentence, and a table that opens; empty where ``chart`` is."""
    course = _course(steps, records, path, MOST_ROWS)
    if course is None:
        return ""
    lines = [["Step", "Context", "", "Of the limit", "From the cache", "Cost", ""]]
    lines.append(["---:" if name else "---" for name in lines[0]])
    unlimited = None if any(course.limits) else course.top
    for column, limit in zip(course.columns, course.limits, strict=True):
        total, whole = column.total or 0, limit or unlimited
        cells = [
            _numbers(column),
            tokens(total, False) if total else "",
            "█" * min(2 * BAR, max(1, round(BAR * total / whole))) if whole and total else "",
            percent(100 * total / limit, 0) if limit and total else "",
            percent(100 * column.read, 0) if column.read is not None else "",
            money(column.cost) if column.cost is not None else "",
            ", ".join([*map(_what, column.folds), *(["left by a rewind"] if column.left else [])]),
        ]
        lines.append(cells)
    if not any(column.cost for column in course.columns):
        lines = [[*cells[:5], *cells[6:]] for cells in lines]
    listed = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"{course.words}\n\n<details>\n<summary>The context step by step</summary>\n\n{listed}\n\n</details>"


def chart(steps: Sequence[Step], records: Sequence[CompactionRecord], path: Container[str]) -> str:
    """The figure; empty where there is too little to draw."""
    course = _course(steps, records, path, MOST_COLUMNS)
    if course is None:
        return ""
    columns, words = course.columns, course.words
    ticks = _ticks(course.top)
    scale = Scale(ticks[-1] / HEIGHT, 1)
    drawn = "".join(_drawn(columns, scale))
    line = _limit_line(course.limits, scale) if course.near else ""
    labels = "".join(f"<span>{tokens(tick, False)}</span>" for tick in reversed(ticks))
    last = columns[-1].last
    return (
        f'<figure class="chart"><figcaption>{escape(words)}</figcaption>\n'
        f'<div class="plot"><div class="axis">{labels}</div>'
        f'<svg role="img" aria-label="{escape(words)}" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none">'
        f"{_grid(len(ticks))}{drawn}{line}</svg></div>\n"
        f'<div class="steps"><span>step 1</span><span>step {last:,}</span></div>\n'
        f'<ul class="legend">{_legend(columns, course.limit)}</ul></figure>\n'
    )


def _numbers(column: Column) -> str:
    return f"{column.number:,}" if column.first == column.last else f"{column.first:,}–{column.last:,}"


def _limit(step: Step) -> int | None:
    """The limit that held for a step, where it would have been compacted; None where nobody knew the window."""
    if step.given is None:
        return None
    given = given_again(step.given, step)
    return budget(given["model"].limits, given["settings"]).limit


def _ticks(most: int) -> list[int]:
    """The round numbers of the axis from nothing on; the last is at least the largest that there is."""
    step = round_step(most / (MOST_TICKS - 1))
    return [step * tick for tick in range(-(-most // step) + 1)]


def _grid(ticks: int) -> str:
    places = (HEIGHT * tick // (ticks - 1) for tick in range(ticks))
    return "".join(f'<path class="grid" d="M0 {place}H{WIDTH}"/>' for place in places)


def _drawn(columns: Sequence[Column], scale: Scale) -> Iterator[str]:
    edges = _edges(len(columns))
    bands = bands_of([Slot(0, 1, column.total or 0, column.stack, column) for column in columns], scale)
    marks: list[str] = []
    crowded = sum(len(column.folds) for column in columns) > MOST_MARKS
    for number, column in enumerate(columns):
        x, place = edges[number], edges[number + 1] - edges[number]
        width = min(WIDEST, int(place * (1 - GAP)))
        left = x + (place - width) // 2
        yield f"<g{' class=left' if column.left else ''}><title>{escape(_told(column))}</title>"
        for row, start, end in bands[number]:
            yield f'<rect class="row-{row}" x="{left}" y="{HEIGHT - end}" width="{width}" height="{end - start}"/>'
        yield "</g>"
        for fold in () if crowded else column.folds:
            if not fold.undone:
                marks.append(f'<path class="mark" d="M{x} 0V{HEIGHT}"><title>{escape(_what(fold))}</title></path>')
    yield from marks


def _told(column: Column) -> str:
    told = [
        f"{'Step' if column.first == column.last else 'Steps'} {_numbers(column)}",
        f"{tokens(column.total, False)} tokens",
    ]
    told += [f"{percent(100 * column.read, 0)} from the cache"] if column.read is not None else []
    told += [money(column.cost)] if column.cost is not None else []
    told += ["left by a rewind"] if column.left else []
    return " · ".join([*told, *(_what(fold) for fold in column.folds)])


def _what(fold: Folded) -> str:
    return "".join(fold_words(fold))


def _edges(count: int) -> list[int]:
    """Where so many columns begin, and where the last of them ends."""
    return [WIDTH * number // count for number in range(count + 1)]


def _limit_line(limits: Sequence[int | None], scale: Scale) -> str:
    """The limit over the columns: another model has another one."""
    path, at = "", 0
    for limit, run in groupby(limits):
        start, at = at, at + len(list(run))
        if limit:
            edges = _edges(len(limits))
            path += f"M{edges[start]} {HEIGHT - scale.filled(limit)}H{edges[at]}"
    return f'<path class="limit" d="{path}"/>'


def _legend(columns: Sequence[Column], limit: int) -> str:
    rows = dict.fromkeys(row for column in columns for row, _ in column.stack)
    kinds = [kind for kind in ROW_KINDS.values() if kind.id in rows]
    items = [
        f'<li><i class="row-{kind.id}"></i>{escape(kind.label[:1].upper() + kind.label[1:])}</li>' for kind in kinds
    ]
    items += [f'<li><i class="limit"></i>Limit {tokens(limit, False)}</li>'] if limit else []
    items += ['<li><i class="faded"></i>Faded: left by a rewind</li>'] if any(c.left for c in columns) else []
    folds = [fold for column in columns for fold in column.folds if not fold.undone]
    if folds:
        done = {what: sum(fold.what == what for fold in folds) for what in dict.fromkeys(fold.what for fold in folds)}
        words = ", ".join(what if count == 1 else f"{what} {plural(count, 'time')}" for what, count in done.items())
        items.append(f'<li><i class="mark"></i>{escape(words[:1].upper() + words[1:])}</li>')
    return "".join(items)
