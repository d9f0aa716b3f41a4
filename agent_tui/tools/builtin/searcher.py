"""The searcher used where ripgrep is missing: run as a child, it answers in ripgrep's JSON, one event a line.

Regular expressions are Python's. What ripgrep decides, this decides alike: sorted by path, .gitignore respected,
binary files (a NUL byte) and links left out.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent_tui.errors import ToolError
from agent_tui.tools.files.globs import Glob
from agent_tui.tools.files.walk import walk

_MAX_FILE = 100_000_000


def main() -> int:
    """Searches the working directory as the JSON in ``argv[1]`` says. Exit codes as grep's: 0 found, 1 not, 2 error."""
    request: dict[str, Any] = json.loads(sys.argv[1])
    try:
        pattern = re.compile(request["pattern"].encode(), re.IGNORECASE if request["ignore_case"] else 0)
        glob = Glob(request["glob"]) if request["glob"] else None
    except (re.error, ToolError, OverflowError, RecursionError) as error:
        _send("problem", f"the pattern cannot be used: {error}")
        return 2
    found = False
    for path in _files(request["target"], Path(request["root"])):
        if glob is not None and not glob.matches(path.removeprefix("./")):
            continue
        found |= _search(path, pattern, request["context"], request["files_only"])
    return 0 if found else 1


def _files(target: str, root: Path) -> Iterator[str]:
    if target != ".":
        yield "./" + target
        return
    for entry in walk(Path.cwd(), root):
        if not entry.is_dir:
            yield "./" + entry.path


def _search(path: str, pattern: re.Pattern[bytes], around: int, first_only: bool) -> bool:
    if not os.path.isfile(path) or os.path.islink(path):  # noqa: PTH113, PTH114 - paths may not be UTF-8
        return False
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            data = file.read(_MAX_FILE)
    except OSError:
        return False
    if b"\0" in data:
        return False
    lines = data.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    shown_to = -1
    begun = False
    for index, line in enumerate(lines):
        match = pattern.search(line.removesuffix(b"\r"))
        if match is None:
            continue
        if not begun:
            begun = True
            _send("begin", {"path": _value(os.fsencode(path))})
        for before in range(max(shown_to + 1, index - around), index):
            _line("context", path, before, lines[before], [])
        _line("match", path, index, line, [{"start": match.start(), "end": match.end()}])
        shown_to = index
        if first_only:
            return True
        for after in range(index + 1, min(index + 1 + around, len(lines))):
            if pattern.search(lines[after].removesuffix(b"\r")):
                break
            _line("context", path, after, lines[after], [])
            shown_to = after
    return begun


def _line(kind: str, path: str, index: int, line: bytes, spans: list[dict[str, int]]) -> None:
    number = index + 1
    data = {"path": _value(os.fsencode(path)), "lines": _value(line + b"\n"), "line_number": number}
    _send(kind, {**data, "submatches": spans})


def _value(data: bytes) -> dict[str, str]:
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(data).decode()}


def _send(kind: str, data: object) -> None:
    sys.stdout.write(json.dumps({"type": kind, "data": data}) + "\n")
    sys.stdout.flush()
