"""What stands at the end of a row, in words: why its reasoning is not sent, what became of its file, what it holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.cells import cell_len

from agent_tui.commands.context_texts import compaction_text
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import tokens
from agent_tui.ui.screens.context.rows import Shown
from agent_tui.ui.screens.context.wrapping import wrapped

INDENT = 4


def reason(line: Shown) -> str:
    """What has to be read whole: it says why."""
    row = line.row
    if row is None:
        return ""
    parts = [part for part in (row.replay, row.detail) if part]
    if row.deferred_tokens:
        parts.append(f"{tokens(row.deferred_tokens, True)} deferred")
    return one_line(" · ".join(parts), 400) if parts else ""


def hint(line: Shown, room: int) -> str:
    """What may as well be left out: where a file is, what is the largest part. At most ``room`` cells."""
    row = line.row
    text = ""
    if row is None or room < 4:
        return text
    if row.path:
        text = one_line(row.path, 400)
        text = text if cell_len(text) <= room else text.rpartition("/")[2]
    elif line.depth == 0 and not line.open and len(row.children) > 1:
        largest = max(row.children, key=lambda child: child.tokens)
        text = f"mostly {one_line(largest.label, 60)}" if 2 * largest.tokens >= row.tokens > 0 else ""
    return text if cell_len(text) <= room else ""


def note(line: Shown, room: int) -> str:
    """What there is room for at the end of a line. A single message's reason is told in short where it does not fit:
    Enter shows it."""
    why = reason(line)
    if not why:
        return hint(line, room)
    if cell_len(why) <= room:
        return why
    short = why.partition(":")[0]
    return short if line.row is not None and line.row.message_id and cell_len(short) <= room else ""


def with_notes(lines: Iterable[Shown], room: int, width: int, now: float) -> Iterator[Shown]:
    """The lines, each reason that does not fit ``room`` cells at the end of its own wrapped below it. ``width`` cells
    are a line's."""
    for line in lines:
        row = line.row
        if row is not None:
            yield line
            if row.message_id or not (row.replay or row.detail or row.deferred_tokens):
                continue
            why = reason(line)
            if cell_len(why) > room:
                left = width - INDENT - 2 * line.depth
                yield from (Shown(line.key, "note", line.depth, text) for text in wrapped(why, left))
        elif (record := line.record) is not None:
            indent = "  " * (line.depth + 1)
            first, *more = wrapped(compaction_text(record, now), width - len(indent))
            yield Shown(line.key, line.kind, line.depth, first, record=record)
            yield from (Shown(line.key, "note", line.depth + 1, text, record=record) for text in more)
        else:
            yield line
