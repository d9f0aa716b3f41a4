"""Walks a folder the way ``git`` sees it (what .gitignore excludes and .git itself are left out), and matches path
patterns without backtracking blow-ups.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.errors import ToolError
from agent_tui.records import dataclass
from agent_tui.tools.files.beneath import at, entered, names_in

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


_IGNORE_BYTES = 1_000_000
_STAR, _FOLDERS = "[^/]*", "(?:/.+)?"
"""What ``pathspec`` makes of ``*`` and of ``**`` between folders."""


@dataclass(slots=True, frozen=True)
class FolderEntry:
    """``path`` is relative to the walked folder, with ``/``. Links are entries but are never followed."""

    path: str
    is_dir: bool


@dataclass(slots=True, frozen=True)
class IgnoreRules:
    """The rules of the ignore files of one folder."""

    folder: Path
    spec: GitIgnoreSpec


@dataclass(slots=True)
class _Open:
    """A folder being walked."""

    folder: Path
    prefix: str
    entries: Iterator[tuple[str, bool]]
    rules: list[IgnoreRules]


def walk(base: Path, root: Path, depth: int | None = None) -> Iterator[FolderEntry]:
    """Every file and folder below ``base`` not ignored, sorted by name within each folder, folders before what they
    hold. Ignore files from ``root`` down apply. ``base`` itself may be ignored: then only rules below it count.
    ``depth`` is the number of levels, None for all. Unreadable folders are passed over."""
    # A stack of our own: folders may be nested deeper than Python calls.
    stack = [_Open(base, "", _scan(base), [*_rules_above(base, root), *rules_of(base)])]
    while stack:
        current = stack[-1]
        entry = next(current.entries, None)
        if entry is None:
            stack.pop()
            continue
        name, is_dir = entry
        path = current.folder / name
        if name == ".git" or ignored(path, is_dir, current.rules):
            continue
        yield FolderEntry(current.prefix + name, is_dir)
        if is_dir and (depth is None or len(stack) < depth):
            stack.append(_Open(path, f"{current.prefix}{name}/", _scan(path), current.rules + rules_of(path)))


def _scan(folder: Path) -> Iterator[tuple[str, bool]]:
    """Names and whether they are folders, reached with no link on the way: what is walked may be moved meanwhile."""
    try:
        with entered(folder) as descriptor:
            found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in names_in(descriptor)]
    except OSError:
        return iter(())
    return iter(sorted(found, key=lambda entry: os.fsencode(entry[0])))


def _rules_above(base: Path, root: Path) -> list[IgnoreRules]:
    """Returns the ignore rules of the folders above ``base``, from ``root`` down; none where they leave it out."""
    if base == root or not base.is_relative_to(root):
        return []
    rules: list[IgnoreRules] = []
    folders = [folder for folder in reversed(base.parents) if folder.is_relative_to(root)]
    for folder, child in zip(folders, [*folders[1:], base], strict=True):
        rules += rules_of(folder)
        if ignored(child, True, rules):
            return []
    return rules


def rules_of(folder: Path) -> list[IgnoreRules]:
    """Returns the rules of the ignore files in a folder."""
    lines: list[str] = []
    for name in (".git/info/exclude", ".gitignore"):
        try:
            with at(folder / name) as place:
                lines += place.read(_IGNORE_BYTES)[0].decode("utf-8", "replace").splitlines()
        except OSError:
            continue
    if not lines:
        return []
    from pathspec import GitIgnoreSpec

    patterns = [line for line in lines if _usable(line)]
    if not patterns:
        return []
    spec = GitIgnoreSpec.from_lines(patterns)
    for pattern in spec.patterns:
        if isinstance(regex := getattr(pattern, "regex", None), re.Pattern):
            pattern.regex = linear(regex)
    return [IgnoreRules(folder, spec)]


def _usable(line: str) -> bool:
    if not line.strip() or line.startswith("#"):
        return False
    from pathspec import GitIgnoreSpec

    try:
        for pattern in GitIgnoreSpec.from_lines([line]).patterns:
            if isinstance(regex := getattr(pattern, "regex", None), re.Pattern):
                linear(regex)
    except (ValueError, re.error):  # git itself skips a pattern it cannot read
        return False
    return True


def linear(regex: re.Pattern[str]) -> re.Pattern[str]:
    """Returns the expression that ``pathspec`` made of a pattern, changed to take what a star took for good where
    another one follows: the first place where the text between them fits is as good as any. Else one line of thirty
    stars keeps the program busy for years."""
    first, *rest = regex.pattern.split(_FOLDERS)
    text = _linear_names(first)
    for piece in rest[:-1]:
        text += f"(?>(?:/.+?)??{_linear_names(piece)}(?=/|$))"
    if rest:
        text += _FOLDERS + _linear_names(rest[-1])
    return re.compile(text)


def _linear_names(text: str) -> str:
    first, *rest = text.split(_STAR)
    for piece in rest[:-1]:
        plain = re.sub(r"\\.|\[[^\]]*\]", "", piece)
        first += f"{_STAR}{piece}" if "/" in plain or "(" in plain else f"(?>[^/]*?{piece})"
    return first + (_STAR + rest[-1] if rest else "")


def ignored(path: Path, is_dir: bool, rules: list[IgnoreRules]) -> bool:
    """The innermost file with an opinion decides, as in git."""
    for rule in reversed(rules):
        relative = path.relative_to(rule.folder).as_posix() + ("/" if is_dir else "")
        verdict = rule.spec.check_file(relative).include
        if verdict is not None:
            return verdict
    return False


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
