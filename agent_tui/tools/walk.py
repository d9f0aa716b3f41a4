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


def walk(base: Path, root: Path, depth: int | None = None) -> Iterator[Entry]:
    """Every file and folder below ``base`` not ignored, sorted by name within each folder, folders before what they
    hold. Ignore files from ``root`` down apply. ``base`` itself may be ignored: then only rules below it count.
    ``depth`` is the number of levels, None for all. Unreadable folders are passed over."""
    rules = _rules_above(base, root)
    yield from _walk(base, "", rules, depth)


def _walk(folder: Path, prefix: str, rules: list[_Rules], depth: int | None) -> Iterator[Entry]:
    own = _rules_of(folder)
    rules = [*rules, *own]
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda e: os.fsencode(e.name))
    except OSError:
        return
    for entry in entries:
        is_dir = entry.is_dir(follow_symlinks=False)
        if entry.name == ".git" or _ignored(folder / entry.name, is_dir, rules):
            continue
        yield Entry(prefix + entry.name, is_dir)
        if is_dir and depth != 1:
            yield from _walk(folder / entry.name, f"{prefix}{entry.name}/", rules, None if depth is None else depth - 1)


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
