"""Text in the cells of a terminal, where one character takes none, one or two."""

from __future__ import annotations

from rich.cells import cell_len, chop_cells, set_cell_size


def fit(text: str, width: int, *, right: bool = False) -> str:
    """Text in exactly ``width`` cells, cut with ``…`` or padded; ``right`` aligns it to the right."""
    if width <= 0:
        return ""
    blank = width - cell_len(text)
    if blank < 0:
        return set_cell_size(text, width - 1) + "…"
    return " " * blank + text if right else text + " " * blank


def shorten_path(path: str, width: int) -> str:
    """A path in at most ``width`` cells; ``…`` stands for its beginning, because its end says which file it is."""
    if cell_len(path) <= width:
        return path
    return "…" + path[tail_of(path, width - 1) :] if width > 0 else ""


def tail_of(text: str, width: int) -> int:
    """Returns the index at which the last characters begin that fit into ``width`` cells."""
    at, left = len(text), width
    while at and (left := left - cell_len(text[at - 1])) >= 0:
        at -= 1
    return at


def whole_parts(text: str, width: int) -> str:
    """A line of parts with `` · `` between them in at most ``width`` cells: parts are left out whole from its end; one
    alone is cut."""
    while cell_len(text) > width and " · " in text:
        text = text.rpartition(" · ")[0]
    return shorten(text, width)


def shorten(text: str, width: int) -> str:
    """Text in at most ``width`` cells, cut with ``…``."""
    return text if cell_len(text) <= width else fit(text, width)


def wrapped(line: str, width: int) -> list[str]:
    """A line in lines of at most ``width`` cells, broken at blanks where possible; what goes on stands below where it
    began. None of an empty one."""
    if not line:
        return []
    if cell_len(line) <= width:
        return [line]
    rest = line.lstrip(" ")
    indent = line[: len(line) - len(rest)][: width // 2]
    lines: list[str] = []
    current = indent
    for word in rest.split(" "):
        joined = f"{current} {word}" if current.strip() else current + word
        if cell_len(joined) <= width:
            current = joined
            continue
        if current.strip():
            lines.append(current)
        *full, last = chop_cells(word, max(1, width - len(indent))) or [""]
        lines += [indent + piece for piece in full]
        current = indent + last
    return [*lines, current]


EIGHTHS = " ▏▎▍▌▋▊▉█"


def bar_of(part: float, whole: float, cells: int) -> str:
    """``part`` of ``whole`` as a bar of at most ``cells`` cells, to the eighth of one; what is not nothing is seen."""
    eighths = min(8 * cells, max(1 if part > 0 else 0, round(8 * cells * part / whole))) if whole > 0 else 0
    full, rest = divmod(max(0, eighths), 8)
    return EIGHTHS[8] * full + (EIGHTHS[rest] if rest else "")
