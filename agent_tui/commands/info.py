"""What a command has to say that is more than a line: titled sections of rows, and what can be done with them by keys.
The screen lays it out in a dialog; where lines are all there is, it is text. Both come from ``layout``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Literal, NamedTuple, TypeAlias

from rich.cells import cell_len

from agent_tui.records import dataclass
from agent_tui.text.cells import bar_of, fit, shorten, whole_parts, wrapped
from agent_tui.text.clean import clean_line
from agent_tui.text.numbers import plural

Mark: TypeAlias = Literal["", "ok", "warn", "fail", "on"]
Look: TypeAlias = Literal["text", "title", "name", "muted", "bar", "ok", "warn", "fail", "on"]
"""What a piece of a line is; the screen has a colour for each."""

SIGNS: dict[Mark, str] = {"ok": "✓", "warn": "!", "fail": "✗", "on": "●"}
INDENT, GAP = 2, 2
"""Cells before the rows of a section, where the screen draws its cursor; and between two columns."""
LEAST_TEXT, LEAST_BAR, MOST_BAR = 24, 6, 24
LEAST_WIDTH = 40
"""Cells from which on there is room for bars."""
NO_WRAP = 1_000_000


@dataclass(slots=True, frozen=True)
class Row:
    """A name, a number, a bar and a text in columns; each may be empty. ``bar`` is its share of the longest one, 0 to
    1; beside one there is only as much of the text, in parts with `` · `` between them, as there is room for. ``key``
    is what an action is carried out on, ``keys`` are those of the actions there are for it."""

    name: str = ""
    text: str = ""
    value: str = ""
    mark: Mark = ""
    bar: float | None = None
    key: str = ""
    keys: tuple[str, ...] = ()

    @property
    def searched(self) -> str:
        return f"{self.name} {self.value} {self.text}".lower()


@dataclass(slots=True, frozen=True)
class Section:
    """Rows below a title; ``note`` stands below them. Both may be empty."""

    title: str
    rows: Sequence[Row]
    note: str = ""


@dataclass(slots=True, frozen=True)
class Action:
    """Something a key does: it runs ``command``, a slash command with ``{row}`` for the row under the cursor and
    ``{typed}`` for what is asked for. ``row`` and ``typed`` name those two; ``hint`` says what may be typed. ``whole``:
    it needs another yes for lines that were not shown; ``hidden`` says what cannot be (`` and 1 file cannot be``)."""

    key: str
    label: str
    command: str
    row: str = ""
    typed: str = ""
    hint: str = ""
    whole: bool = False
    hidden: str = ""

    @property
    def usage(self) -> str:
        """The command as one would type it: ``/permissions remove RULE``."""
        return self.command.replace("{row}", self.row).replace("{typed}", self.typed)

    def unseen(self, up: int, down: int) -> str:
        """Says that so many lines further up and down were not shown, and what cannot be; empty where all was."""
        places = [f"{plural(up, 'line')} further up"] * bool(up)
        places += [f"{down if up else plural(down, 'line')} further down"] * bool(down)
        verb = "was" if up + down == 1 else "were"
        words = f"{' and '.join(places)} {verb} not shown" if places else "All was shown"
        return f"{words}{self.hidden}." if places or self.hidden else ""


@dataclass(slots=True, frozen=True)
class Info:
    """Something to look at. ``command`` is the line that makes it again, for after an action. In what is ``foreign``
    others wrote the words."""

    title: str
    sections: Sequence[Section]
    command: str = ""
    actions: Sequence[Action] = field(default=())
    foreign: bool = False

    @property
    def text(self) -> str:
        """All of it as lines, without bars: for copying, and where lines are all there is."""
        lines = ["".join(text for text, _ in line.pieces).rstrip() for line in layout(self, NO_WRAP, bars=False)]
        usages = ", ".join(dict.fromkeys(action.usage for action in self.actions))
        return "\n".join([*lines, "", f"Change it with {usages}."] if usages else lines)

    @property
    def rows(self) -> list[Row]:
        return [row for section in self.sections for row in section.rows]

    def matching(self, search: str) -> Info:
        """Only the rows that have all words of a search in them, or in the title they stand under."""
        words = search.lower().split()
        if not words:
            return self
        sections = []
        for section in self.sections:
            title = section.title.lower()
            rows = [row for row in section.rows if all(word in title or word in row.searched for word in words)]
            if rows:
                sections.append(Section(section.title, rows))
        return replace(self, sections=sections)


class InfoLine(NamedTuple):
    """A line of text in pieces. ``row`` is the row it belongs to, ``first`` whether that begins here."""

    pieces: Sequence[tuple[str, Look]]
    row: Row | None = None
    first: bool = False


class _Columns(NamedTuple):
    """Cells of the columns, and where the text begins; ``below``: under the others, there is no room beside them."""

    mark: int
    name: int
    bar: int
    value: int
    text: int
    below: bool


def _whole(text: str, room: int) -> str:
    """The parts of a text that there is room for, the first ones."""
    found = whole_parts(text, room)
    return "" if found.endswith("…") else found


def layout(info: Info, width: int, *, bars: bool = True) -> list[InfoLine]:
    """The lines in at most ``width`` cells: what does not fit goes on below where it began. No character in them
    acts on a terminal, whoever wrote it."""
    lines: list[InfoLine] = []
    info = replace(info, sections=[_harmless(section) for section in info.sections])
    bars = bars and width >= LEAST_WIDTH
    plain = _columns([row for row in info.rows if row.bar is None or not bars], width, bars)
    for section in info.sections:
        if lines:
            lines.append(InfoLine(()))
        lines += [InfoLine(((text, "title"),)) for text in wrapped(section.title, width)]
        drawn = bars and any(row.bar is not None for row in section.rows)
        columns = _columns(section.rows, width, bars) if drawn else plain
        for row in section.rows:
            lines += _row(row, columns, width)
        if section.note:
            lines += [InfoLine(((text, "muted"),)) for text in wrapped(" " * INDENT + section.note, width)]
    return lines


def _harmless(section: Section) -> Section:
    rows = []
    for row in section.rows:
        said = (row.name, row.text, row.value)
        name, text, value = clean = tuple(map(clean_line, said))
        rows.append(row if clean == said else replace(row, name=name, text=text, value=value))
    return Section(clean_line(section.title), rows, clean_line(section.note))


def _columns(rows: Sequence[Row], width: int, bars: bool) -> _Columns:
    room = width - INDENT
    mark = 2 if any(row.mark for row in rows) else 0
    value = max((cell_len(row.value) for row in rows), default=0)
    drawn = bars and any(row.bar is not None for row in rows)
    length = max(LEAST_BAR, min(MOST_BAR, room // 5)) if drawn else 0
    beside = value + GAP if value else 0
    most = room // 3 if drawn else min(room * 2 // 5, max(0, room - mark - beside - GAP))
    # A name that is far too long stands on lines of its own, and does not make the column wide for all the others.
    names = (cell_len(row.name) for row in rows)
    name = max((min(cells, most) for cells in names if drawn or cells <= most), default=0)
    text = INDENT + mark + sum(cells + GAP for cells in (name, length, value) if cells)
    below = not drawn and width - text < min(LEAST_TEXT, max((cell_len(row.text) for row in rows), default=0))
    return _Columns(mark, name, length, value, INDENT + mark + GAP if below else text, below)


def _row(row: Row, columns: _Columns, width: int) -> Iterator[InfoLine]:
    front = " " * INDENT + (f"{SIGNS[row.mark] if row.mark else ' '} " if columns.mark else "")
    pieces: list[tuple[str, Look]] = [(front, row.mark or "text")]
    look: Look = "muted" if row.value else "text"
    own_lines = not columns.bar and cell_len(row.name) > columns.name
    lines: list[list[tuple[str, Look]]] = []
    if own_lines:
        for text in wrapped(row.name, width - cell_len(front)):
            lines.append([*pieces, (text, "name")])
            pieces = [(" " * cell_len(front), "text")]
    beside: list[tuple[str, Look]] = [
        ("" if own_lines else shorten(row.name, columns.name), "name"),
        (bar_of(row.bar or 0.0, 1.0, columns.bar), "bar"),
        (" " * (columns.value - cell_len(row.value)) + row.value, "text"),
    ]
    for (text, kind), cells in zip(beside, (columns.name, columns.bar, columns.value), strict=True):
        if cells:
            pieces.append((fit(text, cells) + " " * GAP, kind))
    room = width - columns.text
    said = [_whole(row.text, room)] if columns.bar else wrapped(row.text, max(1, room))
    if not columns.below:
        pieces.append((said.pop(0) if said else "", look))
    if not own_lines or row.value or (row.text and not columns.below):
        lines.append(pieces)
    lines += [[(" " * columns.text, "text"), (text, look)] for text in said]
    for number, line in enumerate(lines):
        yield InfoLine(line, row, number == 0)
