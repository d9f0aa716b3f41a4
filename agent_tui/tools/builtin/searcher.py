"""The searcher used where ripgrep is missing: run as a child, it answers in ripgrep's JSON, one event a line.

Regular expressions are Python's. What ripgrep decides, this decides alike: sorted by path, .gitignore respected,
binary files (a NUL byte) and links left out. Files are read line by line and long lines in pieces, so that memory does
not depend on what is searched; the time an expression takes is bounded by who started this.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import sys
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO

from agent_tui.errors import ToolError
from agent_tui.records import dataclass
from agent_tui.tools.files.beneath import open_regular
from agent_tui.tools.files.walk import Glob, walk

MEMORY = 1_000_000_000
"""Bytes of memory the searcher gets: an expression may ask for any amount."""

PIECE = 1 << 20
"""Bytes of a line that are searched at once."""

WHOLE = 50_000_000
"""Bytes of a file that is searched over its lines."""

_OVERLAP = 1 << 16  # a match across two pieces is found up to this length
_MANY = 100  # lines of a match that are sent
_SHOWN = 1 << 12  # bytes around a match that are sent


def main(asked: str) -> int:
    """Searches a folder as this JSON says. Exit codes as grep's: 0 found, 1 not, 2 error."""
    import resource

    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    request: dict[str, Any] = json.loads(asked)
    try:
        flags = re.IGNORECASE if request["ignore_case"] else re.NOFLAG
        flags |= re.MULTILINE if request["over_lines"] else re.NOFLAG
        flags |= re.DOTALL if request["multiline"] else re.NOFLAG
        pattern = re.compile(request["pattern"].encode(), flags)
        glob = Glob(request["glob"]) if request["glob"] else None
    except (re.error, ToolError, OverflowError, RecursionError, MemoryError) as error:
        _send("problem", f"the pattern cannot be used: {error}")
        return 2
    folder, found = Path(request["folder"]), False
    search = partial(_over_lines if request["over_lines"] else _found, pattern)
    try:
        target, root = request["target"], Path(request["root"])
        below = (entry.path for entry in walk(folder, root) if not entry.is_dir)
        for path in below if target == "." else [target]:
            if glob is None or glob.matches(path):
                found |= _search(folder, path, partial(search, *(request[name] for name in ("context", "files_only"))))
    except (MemoryError, RecursionError):
        _send("note", "the search was cut off: the pattern needs too much memory; make it simpler")
        found = True
    return 0 if found else 1


@dataclass(slots=True, frozen=True)
class _Line:
    """``text`` is its beginning, or the part around its first match, which begins at ``start`` of the line; ``length``
    is that of the whole line, both in bytes."""

    number: int
    text: bytes
    length: int
    start: int = 0
    span: tuple[int, int] | None = None


def _search(folder: Path, path: str, found: Callable[[BinaryIO, str], bool]) -> bool:
    try:
        file = open_regular(folder / path, path)
    except ToolError:
        return False
    with file:
        try:
            return found(file, "./" + path)
        except OSError:
            return False


def _found(pattern: re.Pattern[bytes], around: int, first_only: bool, file: BinaryIO, path: str) -> bool:
    if b"\0" in file.read(PIECE):
        return False
    file.seek(0)
    before: deque[_Line] = deque(maxlen=around)
    after, found = 0, False
    for line in _lines(file, pattern):
        if line is None:  # binary after all
            break
        if line.span is None:
            if after:
                after -= 1
                _tell("context", path, line)
            else:
                before.append(line)
            continue
        if not found:
            found = True
            _send("begin", {"path": _value(os.fsencode(path))})
        if first_only:
            _tell("match", path, line)
            break
        for earlier in before:
            _tell("context", path, earlier)
        before.clear()
        _tell("match", path, line)
        after = around
    return found


def _over_lines(pattern: re.Pattern[bytes], around: int, first_only: bool, file: BinaryIO, path: str) -> bool:
    """Matches over several lines: all of a file is in memory for it. Matches that share a line are told as one."""
    data = file.read(WHOLE + 1)
    if b"\0" in data:
        return False
    if len(data) > WHOLE:
        _send("note", f"{path[2:]} is larger than {WHOLE:,} bytes: only lines of it can be searched")
        return False
    lines = data.split(b"\n")[: -1 if data.endswith(b"\n") else None]
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    spans: list[list[int]] = []
    for match in pattern.finditer(data):
        first = bisect_right(starts, min(match.start(), len(data) - 1)) - 1
        last = max(first, bisect_left(starts, match.end()) - 1)
        if spans and first <= spans[-1][1]:
            spans[-1][1] = max(last, spans[-1][1])
        elif first < len(lines):
            spans.append([first, min(last, len(lines) - 1), match.start() - starts[first]])
    told = 0
    for index, (first, last, column) in enumerate(spans[:1] if first_only else spans):
        following = spans[index + 1][0] if index + 1 < len(spans) else len(lines)
        for number in range(max(told, first - around), first if not first_only else 0):
            _tell("context", path, _cut(number + 1, lines[number], 0, len(lines[number]), None))
        text = b"\n".join(lines[first : min(last + 1, first + _MANY)])[: _MANY * _SHOWN]
        _tell("match", path, _Line(first + 1, text, len(text), span=(column, column)))
        told = min(last + 1 + around, following)
        for number in range(last + 1, told if not first_only else 0):
            _tell("context", path, _cut(number + 1, lines[number], 0, len(lines[number]), None))
    return bool(spans)


def _lines(file: BinaryIO, pattern: re.Pattern[bytes]) -> Iterator[_Line | None]:
    """The lines of a file, searched; None where it turns out to be binary."""
    number = 0
    while piece := file.readline(PIECE):
        number += 1
        if b"\0" in piece:
            yield None
            return
        if piece.endswith(b"\n") or len(piece) < PIECE:
            line = piece.removesuffix(b"\n").removesuffix(b"\r")
            yield _cut(number, line, 0, len(line), pattern.search(line))
        else:
            yield _long(file, number, piece, pattern)


def _long(file: BinaryIO, number: int, piece: bytes, pattern: re.Pattern[bytes]) -> _Line | None:
    """A line that is longer than one piece."""
    head, start, length = piece[:_SHOWN], 0, len(piece)
    found: _Line | None = None
    window = piece
    while True:
        last = window.endswith(b"\n") or not piece
        # What goes on behind or before a piece is no end and no beginning of the line.
        text = window.removesuffix(b"\n").removesuffix(b"\r") if last else window + b"\0"
        if found is None and (match := pattern.search(text, 1 if start else 0)):
            found = _cut(number, window, start, 0, match)
        if last:
            break
        start += len(window) - _OVERLAP
        piece = file.readline(PIECE)
        if b"\0" in piece:
            return None
        length += len(piece)
        window = window[-_OVERLAP:] + piece
    length -= window.endswith(b"\n")
    if found is None:
        if re.search(rb"[*+{]", pattern.pattern):
            _send("note", f"in lines of more than {PIECE:,} bytes, matches longer than {_OVERLAP:,} may be missed")
        return _Line(number, head, length)
    return _Line(number, found.text, length, found.start, found.span)


def _cut(number: int, line: bytes, start: int, length: int, match: re.Match[bytes] | None) -> _Line:
    if match is None:
        return _Line(number, line[:_SHOWN], length)
    begin = max(0, match.start() - _SHOWN // 2) if len(line) > _SHOWN else 0
    text = line[begin : begin + _SHOWN]
    return _Line(number, text, length, start + begin, (match.start() - begin, min(match.end() - begin, len(text))))


def _tell(kind: str, path: str, line: _Line) -> None:
    data: dict[str, object] = {"path": _value(os.fsencode(path)), "lines": _value(line.text + b"\n")}
    data |= {"line_number": line.number, "submatches": []}
    if line.span is not None:
        data["submatches"] = [{"start": line.span[0], "end": line.span[1]}]
    if line.length > len(line.text):
        data |= {"length": line.length, "from": line.start}
    _send(kind, data)


def _value(data: bytes) -> dict[str, str]:
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(data).decode()}


def _send(kind: str, data: object) -> None:
    sys.stdout.write(json.dumps({"type": kind, "data": data}) + "\n")
    sys.stdout.flush()
