"""Unified diffs for people, in time that does not explode on large files."""

from __future__ import annotations

import difflib

from agent_tui.models.messages import Metadata
from agent_tui.text.clean import pictured
from agent_tui.text.numbers import lines_in

CONTEXT_LINES = 3
MAX_CHARACTERS = 100_000
_MATCHED_LINES = 1_000  # beyond this the changed middle is shown as removed and added whole
_MATCHED_CHARACTERS = 200_000


def diff_display(before: str, after: str, path: str) -> Metadata:
    """What changes, as ``{"kind": "diff", "text", "summary", "path", "added", "removed"}``; control
    characters are pictured."""
    lines, added, removed = unified(before, after)
    text = "\n".join(lines)
    if len(text) > MAX_CHARACTERS:
        text = text[:MAX_CHARACTERS] + "\n[… the rest of the diff is left out]"
    return {
        "kind": "diff",
        "text": pictured(text),
        "summary": f"+{added} -{removed}",
        "path": pictured(path),
        "added": added,
        "removed": removed,
    }


def unified(before: str, after: str) -> tuple[list[str], int, int]:
    """Hunks of a unified diff without the file header, and how many lines are added and removed in all.

    Lines end with a newline and nothing else, as tools count them. What both begin and end with is put aside first,
    so an edit of a large file costs what the edit costs; of a huge change only the lines that can be shown are made.
    """
    if before == after:
        return [], 0, 0
    start, end = _same(before, after)
    head = _last_lines(before[:start])
    tail = _first_lines(before[len(before) - end :])
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    shift = before.count("\n", 0, start - len(head))
    added, removed = lines_in(new), lines_in(old)
    context_before, context_after = _lines(head), _lines(tail)
    if added + removed <= _MATCHED_LINES and len(old) + len(new) <= _MATCHED_CHARACTERS:
        old_lines, new_lines = _lines(old), _lines(new)
        blocks = difflib.SequenceMatcher(None, old_lines, new_lines).get_opcodes()
        added = sum(m - k for tag, _, _, k, m in blocks if tag != "equal")
        removed = sum(j - i for tag, i, j, _, _ in blocks if tag != "equal")
    else:
        old_lines, new_lines = _lines(old[:MAX_CHARACTERS]), _lines(new[:MAX_CHARACTERS])
        blocks = [("replace", 0, len(old_lines), 0, len(new_lines))]
    a, b = len(context_before), len(context_after)
    opcodes = [("equal", 0, a, 0, a)] if a else []
    opcodes += [(tag, i + a, j + a, k + a, m + a) for tag, i, j, k, m in blocks]
    if b:
        i, k = a + len(old_lines), a + len(new_lines)
        opcodes.append(("equal", i, i + b, k, k + b))
    whole_old = [*context_before, *old_lines, *context_after]
    return _hunks(whole_old, [*context_before, *new_lines, *context_after], opcodes, shift), added, removed


def _same(before: str, after: str) -> tuple[int, int]:
    """How many characters both have in common at the beginning and at the end, whole lines only."""
    start = _prefix(before, after)
    start = before.rfind("\n", 0, start) + 1
    room = min(len(before), len(after)) - start
    end = _suffix(before, after, room)
    # What is put aside at the end begins a line, in both.
    while end and not (_begins(before, len(before) - end) and _begins(after, len(after) - end)):
        newline = before.find("\n", len(before) - end)
        end = 0 if newline < 0 else len(before) - newline - 1
    return start, end


def _begins(text: str, position: int) -> bool:
    return position == 0 or text[position - 1] == "\n"


def _prefix(one: str, other: str) -> int:
    """The length of the common beginning, by comparing ever smaller pieces: no loop over characters."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _suffix(one: str, other: str, room: int) -> int:
    """The length of the common end, at most ``room``."""
    low, high, a, b = 0, room, len(one), len(other)
    while low < high:
        middle = (low + high + 1) // 2
        if one[a - middle : a - low] == other[b - middle : b - low]:
            low = middle
        else:
            high = middle - 1
    return low


def _last_lines(text: str) -> str:
    position = len(text)
    for _ in range(CONTEXT_LINES):
        position = text.rfind("\n", 0, max(0, position - 1)) + 1
    return text[position:]


def _first_lines(text: str) -> str:
    position = 0
    for _ in range(CONTEXT_LINES):
        newline = text.find("\n", position)
        if newline < 0:
            return text
        position = newline + 1
    return text[:position]


def _lines(text: str) -> list[str]:
    """Lines with their newlines."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


_Opcode = tuple[str, int, int, int, int]


def _hunks(before: list[str], after: list[str], opcodes: list[_Opcode], shift: int) -> list[str]:
    lines: list[str] = []
    for group in _grouped(opcodes):
        a, b = group[0][1] + shift, group[-1][2] + shift
        c, d = group[0][3] + shift, group[-1][4] + shift
        lines.append(f"@@ -{_range(a, b)} +{_range(c, d)} @@")
        for tag, i, j, k, m in group:
            if tag == "equal":
                lines += [_line(" ", text) for text in before[i:j]]
                continue
            lines += [_line("-", text) for text in before[i:j]]
            lines += [_line("+", text) for text in after[k:m]]
    return lines


def _grouped(opcodes: list[_Opcode]) -> list[list[_Opcode]]:
    groups: list[list[_Opcode]] = [[]]
    for index, (tag, a, b, c, d) in enumerate(opcodes):
        inner = 0 < index < len(opcodes) - 1
        if tag == "equal" and inner and b - a > 2 * CONTEXT_LINES:
            groups[-1].append((tag, a, a + CONTEXT_LINES, c, c + CONTEXT_LINES))
            groups.append([(tag, b - CONTEXT_LINES, b, d - CONTEXT_LINES, d)])
        else:
            groups[-1].append((tag, a, b, c, d))
    return groups


def _range(start: int, stop: int) -> str:
    length = stop - start
    first = start if length == 0 else start + 1
    return f"{first}" if length == 1 else f"{first},{length}"


def _line(sign: str, text: str) -> str:
    if text.endswith("\n"):
        return sign + text[:-1]
    return f"{sign}{text}\n\\ No newline at end of file"
