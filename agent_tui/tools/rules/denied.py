"""Finds the files that rules deny reading, before each command, so that they can be kept from programs.

A folder that is the same as when it was last read is not read again: in a big project the first search takes a second,
each later one a few milliseconds.
"""

from __future__ import annotations

import os
import re
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from fnmatch import translate
from pathlib import Path

from agent_tui.paths import with_home
from agent_tui.records import dataclass
from agent_tui.tools.files.walk import expand_braces
from agent_tui.tools.rules.rule import plain_start
from agent_tui.tools.sandbox.policy import NO_MASKS, Masks

MAX_SECONDS = 2.0
MAX_FOLDERS = 100_000
MAX_MASKS = 400
"""What one search may take, and find. Where there is more, commands are asked about."""

_SETTLED = 3_000_000_000
"""Nanoseconds after which no further change can bear the time of the last one."""

_ELSEWHERE = "\x01"
"""A folder's name that no rule has."""


@dataclass(slots=True, frozen=True)
class _Search:
    """A folder in which something may match, and how many levels down; None: all."""

    base: Path
    depth: int | None


@dataclass(slots=True, frozen=True)
class _Listing:
    """What is in a folder: the folders in it, and the names that may match. ``known`` tells whether it is the same."""

    known: tuple[int, int, int]
    folders: tuple[str, ...]
    likely: tuple[str, ...]


class DeniedFiles:
    """The files that rules keep from being read. ``patterns`` are those of the rules, as they are now, and ``denies``
    says of a path whether any of them means it; relative patterns are about ``root``."""

    def __init__(self, root: Path, patterns: Callable[[], Sequence[str]], denies: Callable[[Path], bool]) -> None:
        self._root, self._patterns, self._denies = root, patterns, denies
        self._listings: dict[str, _Listing] = {}
        self._for: tuple[str, ...] = ()
        self._names = re.compile("(?!)")
        self._git = False
        self._found: dict[tuple[Path, ...] | None, Masks] = {}
        self._searching = threading.Lock()

    def look_again(self) -> None:
        """Has the next search look at the disk: files may have come into being."""
        with self._searching:
            self._found.clear()

    def find(self, trees: Sequence[Path] | None) -> Masks:
        """What there is of them below ``trees``, the folders that a command can see; None: anywhere."""
        patterns = tuple(self._patterns())
        if not patterns:
            return NO_MASKS
        with self._searching:
            return self._find(patterns, trees)

    def _find(self, patterns: tuple[str, ...], trees: Sequence[Path] | None) -> Masks:
        if patterns != self._for:
            self._for, self._names = patterns, _likely_names(patterns)
            self._git = any(".git" in pattern.split("/") for pattern in patterns)
            self._listings.clear()
            self._found.clear()
        key = tuple(trees) if trees is not None else None
        if key not in self._found:
            self._found[key] = self._search(patterns, trees)
        return self._found[key]

    def _search(self, patterns: Sequence[str], trees: Sequence[Path] | None) -> Masks:
        hits: dict[Path, None] = {}
        end, folders = time.monotonic() + MAX_SECONDS, 0
        for search in _searches(patterns, self._root, trees):
            for found in self._below(search):
                folders += found is None
                if found is not None:
                    hits[found] = None
                if folders > MAX_FOLDERS or len(hits) > MAX_MASKS or time.monotonic() > end:
                    return Masks(tuple(hits), frozenset(hits), f"there is too much in {search.base} to look through")
        paths = list(dict.fromkeys(target for hit in hits if (target := _target(hit)) is not None))
        known = {(info.st_dev, info.st_ino) for path in paths if (info := _info(path)) is not None and _linked(info)}
        fixed = frozenset(path for path in paths if self._is_fixed(path))
        if not known:
            return Masks(tuple(paths), fixed)
        around = [tree for tree in trees or () if any(path.is_relative_to(tree) for path in paths)]
        others, incomplete = _other_names(known, [self._root, *around], end)
        return Masks(tuple(dict.fromkeys([*paths, *others])), fixed, incomplete)

    def _below(self, search: _Search) -> Iterator[Path | None]:
        """Yields what matches, and None for each folder that was looked through."""
        if self._denies(search.base) and search.base != self._root:
            if os.path.lexists(search.base):
                yield search.base
            return
        todo = [(str(search.base), search.depth)]
        while todo:
            folder, depth = todo.pop()
            yield None
            listing = self._listing(folder)
            if listing is None:
                continue
            matching = [name for name in listing.likely if self._denies(Path(folder, name))]
            yield from (Path(folder, name) for name in matching)
            if depth is None or depth > 1:
                further = [name for name in listing.folders if name not in matching and (name != ".git" or self._git)]
                todo += [(f"{folder}/{name}", depth and depth - 1) for name in further]

    def _listing(self, folder: str) -> _Listing | None:
        try:
            info = os.lstat(folder)
            # The time of the last change to what it holds, which nobody can set.
            known = (info.st_dev, info.st_ino, info.st_ctime_ns)
            before = self._listings.get(folder)
            if before is not None and before.known == known:
                return before
            folders: list[str] = []
            likely: list[str] = []
            with os.scandir(folder) as entries:
                for entry in entries:
                    if self._names.match(entry.name):
                        likely.append(entry.name)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.name)
        except OSError:
            self._listings.pop(folder, None)
            return None
        found = _Listing(known, tuple(folders), tuple(likely))
        if time.time_ns() - info.st_ctime_ns > _SETTLED:
            self._listings[folder] = found
        return found

    def _is_fixed(self, path: Path) -> bool:
        """Returns whether a rule means a path for the folders around it: moved with one of them, it would not be
        meant any more."""
        if not path.is_relative_to(self._root):
            return True
        elsewhere = (self._root / path.name, self._root.joinpath(_ELSEWHERE, _ELSEWHERE, _ELSEWHERE, path.name))
        return not all(map(self._denies, elsewhere))


def _likely_names(patterns: Sequence[str]) -> re.Pattern[str]:
    """The names that what a pattern means can have."""
    ends: set[str] = set()
    for pattern in patterns:
        for one in expand_braces(pattern):
            pieces = [piece for piece in one.split("/") if piece not in ("", ".", "**")]
            ends.add(pieces[-1] if pieces else "*")
    return re.compile("|".join(translate(end) for end in sorted(ends)))


def _searches(patterns: Sequence[str], root: Path, trees: Sequence[Path] | None) -> list[_Search]:
    """The folders to look through, none of them twice."""
    wanted: dict[Path, int | None] = {}
    for pattern in (one for braced in patterns for one in expand_braces(braced)):
        absolute = pattern.startswith(("/", "~"))
        text = str(with_home(pattern)).strip("/") if absolute else pattern.removeprefix("./")
        anchored = absolute or pattern.startswith("./") or "/" in pattern.strip("/")
        start = plain_start(text) if anchored else ""
        top = Path("/") if absolute else root
        base = Path(os.path.realpath(top / start)) if start else top
        rest = [piece for piece in text[len(start) :].split("/") if piece]
        depth = None if not anchored or "**" in rest else max(1, len(rest))
        for place in [base] if not absolute else _seen(base, trees):
            before = wanted.get(place, 0)
            wanted[place] = None if depth is None or before is None else max(before, depth)
    whole = [place for place, depth in wanted.items() if depth is None]
    return [
        _Search(place, depth)
        for place, depth in wanted.items()
        if not any(place != other and place.is_relative_to(other) for other in whole)
    ]


def _seen(base: Path, trees: Sequence[Path] | None) -> list[Path]:
    """The parts of ``base`` that are to be seen."""
    if trees is None or any(base.is_relative_to(tree) for tree in trees):
        return [base]
    return [tree for tree in trees if tree.is_relative_to(base)]


def _target(path: Path) -> Path | None:
    """A link is kept from programs by what it leads to."""
    if not path.is_symlink():
        return path
    try:
        return path.resolve(strict=True)
    except (OSError, RuntimeError):
        return None


def _info(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None


def _linked(info: os.stat_result) -> bool:
    return stat.S_ISREG(info.st_mode) and info.st_nlink > 1


def _other_names(known: set[tuple[int, int]], trees: Sequence[Path], end: float) -> tuple[list[Path], str]:
    """The names that files have below ``trees`` (hard links), and why some may be missing."""
    inodes = {inode for _, inode in known}
    found: list[Path] = []
    todo = [str(tree) for tree in trees if not any(tree != other and tree.is_relative_to(other) for other in trees)]
    while todo:
        if time.monotonic() > end + MAX_SECONDS:
            return found, f"there is too much in {trees[0]} to look for other names of what a rule denies"
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                    elif entry.inode() in inodes and (info := _info(Path(entry.path))) is not None:
                        found += [Path(entry.path)] if (info.st_dev, info.st_ino) in known else []
        except OSError:
            continue
    return found, ""
