"""Changes as text: unified diffs for people, in time that does not explode on large files, and the patch format that
some models are trained on (V4A), read and applied to text.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import field
from itertools import islice
from typing import Literal, cast

from agent_tui.errors import ToolError
from agent_tui.models.messages import Metadata
from agent_tui.records import dataclass
from agent_tui.text.clean import common_start, pictured
from agent_tui.text.numbers import lines_in
from agent_tui.tools.files.near import VARIANTS

CONTEXT_LINES = 3
MAX_CHARACTERS = 100_000
_MATCHED_LINES = 1_000  # beyond this the changed middle is shown as removed and added whole
_MATCHED_CHARACTERS = 200_000
_LINE = re.compile(r"[^\n]*\n|[^\n]+")  # with its newline, where it has one


def diff_display(before: str, after: str, path: str) -> Metadata:
    """Returns the changes from ``before`` to ``after``, as ``{"kind": "diff", "text", "path", "added", "removed"}``;
    control characters are pictured."""
    lines, added, removed = unified(before, after)
    text = "\n".join(lines)
    if len(text) > MAX_CHARACTERS:
        text = text[:MAX_CHARACTERS] + "\n[… the rest of the diff is left out]"
    return {
        "kind": "diff",
        "text": pictured(text),
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
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    above = [f"{line}\n" for line in before[:start].rsplit("\n", CONTEXT_LINES + 1)[-CONTEXT_LINES - 1 : -1]]
    below = [line.group() for line in islice(_LINE.finditer(before, len(before) - end), CONTEXT_LINES)]
    shift = before.count("\n", 0, start) - len(above)
    added, removed = lines_in(new), lines_in(old)
    if added + removed <= _MATCHED_LINES and len(old) + len(new) <= _MATCHED_CHARACTERS:
        old_lines, new_lines = _LINE.findall(old), _LINE.findall(new)
        blocks = difflib.SequenceMatcher(None, old_lines, new_lines).get_opcodes()
        added = sum(m - k for tag, _, _, k, m in blocks if tag != "equal")
        removed = sum(j - i for tag, i, j, _, _ in blocks if tag != "equal")
    else:
        old_lines, new_lines = _LINE.findall(old[:MAX_CHARACTERS]), _LINE.findall(new[:MAX_CHARACTERS])
        blocks = [("replace", 0, len(old_lines), 0, len(new_lines))]
    a, b = len(above), len(below)
    opcodes = [("equal", 0, a, 0, a)] if a else []
    opcodes += [(tag, i + a, j + a, k + a, m + a) for tag, i, j, k, m in blocks]
    if b:
        i, k = a + len(old_lines), a + len(new_lines)
        opcodes.append(("equal", i, i + b, k, k + b))
    return _hunks([*above, *old_lines, *below], [*above, *new_lines, *below], opcodes, shift), added, removed


def _same(before: str, after: str) -> tuple[int, int]:
    """Returns how many characters both have in common at the beginning and at the end, whole lines only."""
    start = before.rfind("\n", 0, common_start(before, after)) + 1
    end = common_start(before[start:][::-1], after[start:][::-1])
    # What is put aside at the end begins a line, in both.
    while end and not (_begins(before, len(before) - end) and _begins(after, len(after) - end)):
        newline = before.find("\n", len(before) - end)
        end = 0 if newline < 0 else len(before) - newline - 1
    return start, end


def _begins(text: str, position: int) -> bool:
    return position == 0 or text[position - 1] == "\n"


_Opcode = tuple[str, int, int, int, int]


def _hunks(before: list[str], after: list[str], opcodes: list[_Opcode], shift: int) -> list[str]:
    lines: list[str] = []
    for group in _grouped(opcodes):
        a, b = group[0][1] + shift, group[-1][2] + shift
        c, d = group[0][3] + shift, group[-1][4] + shift
        lines.append(f"@@ -{_range(a, b)} +{_range(c, d)} @@")
        for tag, i, j, k, m in group:
            same = tag == "equal"
            lines += [_line(" " if same else "-", text) for text in before[i:j]]
            lines += [_line("+", text) for text in after[k:m] if not same]
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


BEGIN, END = "*** Begin Patch", "*** End Patch"
ADD, DELETE, UPDATE = "*** Add File:", "*** Delete File:", "*** Update File:"
MOVE, END_OF_FILE = "*** Move to:", "*** End of File"
SHAPE = (
    f"It is: {BEGIN}, then {UPDATE} path, @@ and lines that begin with a space, - or +; or {ADD} path and lines that "
    f"begin with +; or {DELETE} path; then {END}."
)

Sign = Literal[" ", "-", "+"]
_SIGNS: tuple[Sign, ...] = (" ", "-", "+")
PatchKind = Literal["add", "delete", "update"]


@dataclass(slots=True)
class Chunk:
    """``above`` are the lines after ``@@``; ``lines`` what follows, each with its sign. ``at_end``: they are the last
    of the file. ``line`` is where the chunk begins in the patch, from 1."""

    line: int
    above: list[str] = field(default_factory=list)
    lines: list[tuple[Sign, str]] = field(default_factory=list)
    at_end: bool = False

    @property
    def old(self) -> list[str]:
        """The lines that are there."""
        return [line for sign, line in self.lines if sign != "+"]

    def new(self, there: Sequence[str]) -> list[str]:
        """Returns the lines that take the place of the lines ``there``; those that stay are as they are in the file."""
        own = iter(there)
        new: list[str] = []
        for sign, line in self.lines:
            found = line if sign == "+" else next(own)
            if sign != "-":
                new.append(found)
        return new


@dataclass(slots=True)
class FilePatch:
    """The change that a patch makes to one file. ``content`` is that of a file that is added."""

    kind: PatchKind
    path: str
    content: str = ""
    move_to: str | None = None
    chunks: list[Chunk] = field(default_factory=list)


def parse_patch(text: str) -> list[FilePatch]:
    """The files of a patch, in its order. Raises ToolError naming the line that does not belong there."""
    lines = text.replace("\r\n", "\n").strip("\n").split("\n")
    # As it is written for a shell: <<'EOF' … EOF. And fences of Markdown.
    if len(lines) > 2 and lines[0].strip().startswith(("<<", "```", "apply_patch")):
        lines = ["", *lines[1:-1], ""] if lines[-1].strip() != END else ["", *lines[1:]]
    start = next((i for i, line in enumerate(lines) if line.strip()), 0)
    if lines[start].strip() != BEGIN:
        raise _wrong(start, lines[start], f"a patch begins with {BEGIN}")
    end = next((i for i in range(len(lines) - 1, start, -1) if lines[i].strip()), start)
    if lines[end].strip() != END:
        raise _wrong(end, lines[end], f"a patch ends with {END}; perhaps it was cut off")
    patches: list[FilePatch] = []
    at = start + 1
    while at < end:
        line = lines[at].strip()
        if not line:
            at += 1
            continue
        for mark, kind in _MARKS:
            if line.startswith(mark):
                patch = FilePatch(kind, line.removeprefix(mark).strip())
                break
        else:
            raise _wrong(at, lines[at], "a file begins here, with its *** line")
        if not patch.path:
            raise _wrong(at, lines[at], "the path is missing")
        at = _body(patch, lines, at + 1, end)
        patches.append(patch)
    if not patches:
        raise ToolError(f"The patch changes no file. {SHAPE}")
    return patches


_MARKS: tuple[tuple[str, PatchKind], ...] = ((ADD, "add"), (DELETE, "delete"), (UPDATE, "update"))


def _body(patch: FilePatch, lines: Sequence[str], at: int, end: int) -> int:
    def over() -> bool:
        return at >= end or lines[at].startswith((ADD, DELETE, UPDATE))

    if patch.kind == "delete":
        return at
    if patch.kind == "add":
        added: list[str] = []
        empty = 0
        while not over():
            if not lines[at].strip():
                empty += 1
            elif lines[at].startswith("+"):
                # Between two lines an empty one without its sign is one, too; around them it is none.
                added += [""] * (empty if added else 0) + [lines[at][1:]]
                empty = 0
            else:
                raise _wrong(at, lines[at], "every line of a new file begins with +")
            at += 1
        patch.content = "".join(f"{line}\n" for line in added)
        return at
    if not over() and lines[at].startswith(MOVE):
        patch.move_to = lines[at].removeprefix(MOVE).strip()
        at += 1
    chunk: Chunk | None = None
    while not over():
        line = lines[at]
        if line.startswith("@@"):
            if chunk is None or chunk.lines:
                chunk = Chunk(at + 1)
                patch.chunks.append(chunk)
            header = _NUMBERS.sub("", line[2:].removeprefix(" ").removesuffix("@@").rstrip())
            if header.strip():
                chunk.above.append(header)
            at += 1
            continue
        if chunk is None or (chunk.at_end and line.strip()):
            chunk = Chunk(at + 1)
            patch.chunks.append(chunk)
        if line.strip() == END_OF_FILE:
            chunk.at_end = True
        elif line.startswith(_SIGNS):
            chunk.lines.append((cast(Sign, line[0]), line[1:]))
        elif not line:
            chunk.lines += [] if _trailing(lines, at, end) else [(" ", "")]
        elif not line.startswith(_NO_NEWLINE):
            raise _wrong(at, line, "lines of a chunk begin with a space, - or +")
        at += 1
    patch.chunks = [chunk for chunk in patch.chunks if chunk.lines]
    if not patch.chunks and patch.move_to is None:
        raise ToolError(f"The patch changes nothing in {pictured(patch.path)[:200]}. {SHAPE}")
    return at


_NO_NEWLINE = "\\ No newline"  # of a unified diff: the file's last line ends as it did

_NUMBERS = re.compile(r"^-\d+(?:,\d+)? \+\d+(?:,\d+)?(?: @@.*)?$")  # of a unified diff: they say nothing here


def _trailing(lines: Sequence[str], at: int, end: int) -> bool:
    """Returns whether only empty lines follow in the part of the patch for this file: they are not context."""
    following = next((lines[i] for i in range(at, end) if lines[i]), END)
    return following.startswith(("@@", "*** "))


def _wrong(index: int, line: str, rule: str) -> ToolError:
    return ToolError(f"Line {index + 1} of the patch, {pictured(line)[:80]!r}: {rule}. {SHAPE}")


@dataclass(slots=True, frozen=True)
class Patched:
    """``notes`` say where the context was not found exactly as it was written, or in several places."""

    text: str
    notes: list[str]


def apply_chunks(text: str, chunks: Sequence[Chunk], name: str) -> Patched:
    """``text`` (its lines end with a newline) with all chunks applied. What the context says is only looked for: lines
    that stay are the file's own. Raises ToolError with the nearest lines where a chunk finds no place."""
    ended = text.endswith("\n") or not text
    lines = text.removesuffix("\n").split("\n") if text else []
    replaced: list[tuple[int, int, list[str]]] = []
    notes: list[str] = []
    at = 0
    for chunk in chunks:
        for header in chunk.above:
            place = _seek(lines, [header], at, False)
            if place is None:
                raise _lost(text, chunk, [header], name, "the line after @@", at)
            at = place.index + 1
        old = chunk.old
        if not old:
            at = at if chunk.above else len(lines)
            replaced.append((at, 0, chunk.new([])))
            continue
        # The header may itself be the first line of the context.
        place = _seek(lines, old, at, chunk.at_end)
        if place is None and chunk.above:
            place = _seek(lines, old, at - 1, chunk.at_end)
        if place is None:
            raise _lost(text, chunk, old, name, "the first of the lines", at)
        if place.how:
            notes.append(f"line {place.index + 1}: {place.how}")
        if place.others and not chunk.above:
            notes.append(
                f"line {place.index + 1}: the context also stands at line {place.others + 1}; the first was taken"
            )
        at = place.index + len(old)
        replaced.append((place.index, len(old), chunk.new(lines[place.index : at])))
    for index, count, new in reversed(replaced):
        lines[index : index + count] = new
    joined = "\n".join(lines)
    return Patched(joined + "\n" if ended and lines else joined, notes)


@dataclass(slots=True, frozen=True)
class _Place:
    index: int
    how: str = ""
    others: int = 0


_WAYS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("", lambda line: line),
    ("white space at the end of lines differs", str.rstrip),
    ("quotes, dashes or spaces differ", lambda line: line.rstrip().translate(VARIANTS)),
    ("indentation differs", lambda line: line.strip().translate(VARIANTS)),
)


def _seek(lines: Sequence[str], wanted: Sequence[str], start: int, at_end: bool) -> _Place | None:
    """The first place at or after ``start`` where ``wanted`` stands, the strictest way of comparing first."""
    last = len(lines) - len(wanted)
    if last < start:
        return None
    for how, level in _WAYS:
        looked = [level(line) for line in wanted]
        if not any(looked) and how:
            continue
        here = [level(line) for line in lines[start:]]

        def fits(index: int, here: list[str] = here, looked: list[str] = looked) -> bool:
            return here[index - start : index - start + len(looked)] == looked

        if at_end and fits(last):
            return _Place(last, how)
        places = (index for index in range(start, last + 1) if fits(index))
        first = next(places, None)
        if first is not None:
            return _Place(first, how, next(places, 0))
    return None


def _lost(text: str, chunk: Chunk, wanted: Sequence[str], name: str, what: str, at: int) -> ToolError:
    """``at``: how many lines of the file lie before the place where the chunk was looked for."""
    first = pictured(next((line for line in wanted if line.strip()), ""))[:120]
    what = f"{name}: {what} of the chunk in line {chunk.line} of the patch, {first!r},"
    if at and (above := _seek(text.split("\n"), wanted, 0, False)) is not None:
        return ToolError(
            f"{what} stands in line {above.index + 1} of the file, above the place of the chunk or @@ line before it. "
            "Nothing was changed. Put the chunks in the order of the file."
        )
    return ToolError(f"{what} is not in the file. Nothing was changed. Read it again.")
