"""Unified diffs for people, in time that does not explode on large files."""

from __future__ import annotations

import difflib
from itertools import takewhile

from agent_tui.models.messages import Metadata
from agent_tui.tools.output import pictured

CONTEXT_LINES = 3
MAX_CHARACTERS = 100_000
_MATCHED_LINES = 3_000  # beyond this the changed middle is shown as removed and added whole


def diff_display(before: str, after: str, path: str) -> Metadata:
    """What changes, as ``{"kind": "diff", "text", "summary", "path", "added", "removed"}``; control
    characters are pictured."""
    lines = unified(before.splitlines(keepends=True), after.splitlines(keepends=True))
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    text = pictured("\n".join(lines))
    if len(text) > MAX_CHARACTERS:
        text = text[:MAX_CHARACTERS] + "\n[… the rest of the diff is left out]"
    summary = f"+{added} -{removed}"
    return {
        "kind": "diff",
        "text": text,
        "summary": summary,
        "path": pictured(path),
        "added": added,
        "removed": removed,
    }


def unified(before: list[str], after: list[str]) -> list[str]:
    """Hunks of a unified diff without the file header. Lines keep their ends, which decide whether they are equal.

    What both begin and end with is put aside first, so an edit of a large file costs what the edit costs.
    """
    start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
    room = min(len(before), len(after)) - start
    end = sum(
        1
        for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before[::-1][:room], after[::-1][:room], strict=False))
    )
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    if not old and not new:
        return []
    if len(old) + len(new) <= _MATCHED_LINES:
        blocks = difflib.SequenceMatcher(None, old, new).get_opcodes()
    else:
        blocks = [("replace", 0, len(old), 0, len(new))]
    lead, trail = min(start, CONTEXT_LINES), min(end, CONTEXT_LINES)
    shift = start - lead
    opcodes = [("equal", 0, lead, 0, lead)] if lead else []
    opcodes += [(tag, a + lead, b + lead, c + lead, d + lead) for tag, a, b, c, d in blocks]
    old_end, new_end = lead + len(old), lead + len(new)
    if trail:
        opcodes.append(("equal", old_end, old_end + trail, new_end, new_end + trail))
    return _hunks(before, after, opcodes, shift)


_Opcode = tuple[str, int, int, int, int]


def _hunks(before: list[str], after: list[str], opcodes: list[_Opcode], shift: int) -> list[str]:
    lines: list[str] = []
    for group in _grouped(opcodes):
        a, b = group[0][1] + shift, group[-1][2] + shift
        c, d = group[0][3] + shift, group[-1][4] + shift
        lines.append(f"@@ -{_range(a, b)} +{_range(c, d)} @@")
        for tag, i, j, k, m in group:
            if tag == "equal":
                lines += [_line(" ", text) for text in before[i + shift : j + shift]]
                continue
            lines += [_line("-", text) for text in before[i + shift : j + shift]]
            lines += [_line("+", text) for text in after[k + shift : m + shift]]
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
