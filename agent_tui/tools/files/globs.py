"""Path patterns with ``*``, ``?``, ``[…]``, ``**`` and ``{a,b}``, matched without backtracking blow-ups."""

from __future__ import annotations

import fnmatch
import re
from functools import cache

from agent_tui.errors import ToolError

_MAX_ALTERNATIVES = 64


def expand_braces(pattern: str) -> list[str]:
    """``a{b,c}`` → ``ab``, ``ac``. Raises ToolError for more than 64 alternatives."""
    found = re.search(r"\{([^{}]*,[^{}]*)\}", pattern)
    if not found:
        return [pattern]
    head, tail = pattern[: found.start()], pattern[found.end() :]
    expanded: list[str] = []
    for item in found.group(1).split(","):
        expanded += expand_braces(head + item + tail)
        if len(expanded) > _MAX_ALTERNATIVES:
            raise ToolError(f"The pattern has more than {_MAX_ALTERNATIVES} alternatives.")
    return expanded


class Glob:
    """A pattern for relative paths. Without ``/`` it matches a name at any depth, like a line of .gitignore; with one
    it matches from the top; ``**`` is any number of folders."""

    def __init__(self, pattern: str) -> None:
        if len(pattern) > 1_000:
            raise ToolError("The pattern is longer than 1,000 characters.")
        self._alternatives: list[list[str]] = []
        for one in expand_braces(pattern):
            pieces = [piece for piece in one.split("/") if piece not in ("", ".")]
            if "/" not in one.strip("/") and not one.startswith("/"):
                pieces.insert(0, "**")
            self._alternatives.append(pieces)

    def matches(self, path: str) -> bool:
        names = path.split("/")
        return any(_match(pieces, names) for pieces in self._alternatives)


def _match(pieces: list[str], names: list[str]) -> bool:
    """Dynamic programming over segments: ``reached`` holds how many names the pieces so far may have taken."""
    reached = {0}
    for piece in pieces:
        if piece == "**":
            reached = set(range(min(reached), len(names) + 1))
        else:
            match = _segment(piece)
            reached = {n + 1 for n in reached if n < len(names) and match.match(names[n])}
        if not reached:
            return False
    return len(names) in reached


@cache
def _segment(piece: str) -> re.Pattern[str]:
    # fnmatch's translation uses atomic groups since 3.11: linear, whatever the pattern.
    return re.compile(fnmatch.translate(piece))
