"""Walks a folder the way ``git`` sees it: what .gitignore excludes and .git itself are left out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_IGNORE_BYTES = 1_000_000


@dataclass(slots=True, frozen=True)
class Entry:
    """``path`` is relative to the walked folder, with ``/``. Links are entries but are never followed."""

    path: str
    is_dir: bool


@dataclass(slots=True, frozen=True)
class _Rules:
    folder: Path
    spec: GitIgnoreSpec


@dataclass(slots=True)
class _Open:
    """A folder being walked."""

    folder: Path
    prefix: str
    entries: Iterator[os.DirEntry[str]]
    rules: list[_Rules]


def walk(base: Path, root: Path, depth: int | None = None) -> Iterator[Entry]:
    """Every file and folder below ``base`` not ignored, sorted by name within each folder, folders before what they
    hold. Ignore files from ``root`` down apply. ``base`` itself may be ignored: then only rules below it count.
    ``depth`` is the number of levels, None for all. Unreadable folders are passed over."""
    return _walk(base, _rules_above(base, root), depth)


def _walk(base: Path, rules: list[_Rules], depth: int | None) -> Iterator[Entry]:
    # A stack of our own: folders may be nested deeper than Python calls.
    stack = [_Open(base, "", _scan(base), [*rules, *_rules_of(base)])]
    while stack:
        current = stack[-1]
        entry = next(current.entries, None)
        if entry is None:
            stack.pop()
            continue
        path = current.folder / entry.name
        is_dir = entry.is_dir(follow_symlinks=False)
        if entry.name == ".git" or _ignored(path, is_dir, current.rules):
            continue
        yield Entry(current.prefix + entry.name, is_dir)
        if is_dir and (depth is None or len(stack) < depth):
            stack.append(_Open(path, f"{current.prefix}{entry.name}/", _scan(path), current.rules + _rules_of(path)))


def _scan(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return iter(sorted(found, key=lambda e: os.fsencode(e.name)))
    except OSError:
        return iter(())


def _rules_above(base: Path, root: Path) -> list[_Rules]:
    if base == root or not base.is_relative_to(root):
        return []
    rules: list[_Rules] = []
    folders = [folder for folder in reversed(base.parents) if folder.is_relative_to(root)]
    for folder, child in zip(folders, [*folders[1:], base], strict=True):
        rules += _rules_of(folder)
        if _ignored(child, True, rules):
            return []
    return rules


def _rules_of(folder: Path) -> list[_Rules]:
    lines: list[str] = []
    for name in (".git/info/exclude", ".gitignore"):
        try:
            with (folder / name).open("rb") as file:
                lines += file.read(_IGNORE_BYTES).decode("utf-8", "replace").splitlines()
        except OSError:
            continue
    if not lines:
        return []
    from pathspec import GitIgnoreSpec

    patterns = [line for line in lines if _usable(line)]
    return [_Rules(folder, GitIgnoreSpec.from_lines(patterns))] if patterns else []


def _usable(line: str) -> bool:
    if not line.strip() or line.startswith("#"):
        return False
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:  # git itself skips a pattern it cannot read
        return False
    return True


def _ignored(path: Path, is_dir: bool, rules: list[_Rules]) -> bool:
    """The innermost file with an opinion decides, as in git."""
    for rule in reversed(rules):
        relative = path.relative_to(rule.folder).as_posix() + ("/" if is_dir else "")
        verdict = rule.spec.check_file(relative).include
        if verdict is not None:
            return verdict
    return False
