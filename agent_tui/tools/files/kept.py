"""The files of a project as they were when it was looked at last, and what has become of them since.

What ignore files leave out is not looked at, nor is ``.git``. Contents are kept in a file without a name, which is gone
with the program; later looks read only what has changed by its time, size and number.
"""

from __future__ import annotations

import os
import stat
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from agent_tui.paths import private_dir
from agent_tui.tools.files.beneath import entered, names_in, step
from agent_tui.tools.files.walk import Rules, ignored, rules_of

FILE_BYTES = 2_000_000
ALL_BYTES = 300_000_000
FILES = 50_000
FIRST_SECONDS, SECONDS = 8.0, 2.0
"""What is kept: of files up to this size, so much altogether, so many, and what can be looked at in this time, at first
and later on."""

_DEPTH = 200
_RECENT = 50_000_000  # ns in which a file may change again without another time

_Key = tuple[int, int, int, int]


class TooMuchError(Exception):
    """A project that is not kept; its text says why."""


@dataclass(slots=True, frozen=True)
class Change:
    """A file that is other than it was; ``content`` and ``mode`` are what it had, None where it was not there."""

    path: Path
    content: bytes | None
    mode: int | None


@dataclass(slots=True, frozen=True)
class _Kept:
    """``place`` and ``size`` are in the file of contents; ``place`` None: too large, only its being there is known.
    ``key`` None: it is read again at the next look."""

    key: _Key | None
    mode: int
    place: int | None
    size: int


class KeptFiles:
    """Of the project in ``root``; contents go into ``folder``. Not for several threads at once."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root = root
        self._contents = tempfile.TemporaryFile(dir=private_dir(folder), buffering=0)  # noqa: SIM115 - closed by close
        self._end = 0
        self._files: dict[str, _Kept] = {}
        self._left_out: set[str] = set()
        self._rules: dict[str, tuple[_Key | None, list[Rules]]] = {}
        self._deadline = 0.0
        self._looked = False

    def look(self) -> list[Change]:
        """Takes the files as they are; what has changed since the last look, nothing at the first one. Raises
        TooMuchError where there is more than can be kept, OSError."""
        first, self._looked = not self._looked, True
        self._deadline = time.monotonic() + (FIRST_SECONDS if first else SECONDS)
        now: dict[str, _Kept] = {}
        with entered(self._root) as folder:
            self._folder(folder, "", [], now, 0)
        before, self._files = self._files, now
        if first:
            return []
        names = (name for name in before.keys() | now.keys() if before.get(name) is not now.get(name))
        found = (self._change(name, before.get(name), now.get(name)) for name in names)
        return [change for change in found if change is not None]

    def close(self) -> None:
        self._contents.close()

    def _folder(self, folder: int, prefix: str, above: list[Rules], now: dict[str, _Kept], depth: int) -> None:
        try:
            entries = list(names_in(folder))
        except FileNotFoundError:
            return
        except OSError:  # it cannot be read now: nothing is known of what is in it
            now.update((name, kept) for name, kept in self._files.items() if name.startswith(prefix))
            return
        if time.monotonic() > self._deadline:
            raise TooMuchError("looking at its files takes too long")
        rules = [*above, *self._rules_in(folder, prefix, entries)]
        files, lstat = self._files, os.stat
        for entry in entries:
            name = prefix + entry.name
            known = files.get(name)
            if known is not None:  # of ten thousand files nearly all: nothing but what is needed
                try:
                    info = lstat(entry.name, dir_fd=folder, follow_symlinks=False)
                except OSError:
                    continue
                if known.key == (info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino):
                    now[name] = known
                    continue
            elif name in self._left_out or entry.name == ".git" or entry.is_symlink():
                continue
            is_dir = entry.is_dir(follow_symlinks=False)
            fresh = name + "/" not in self._rules if is_dir else known is None
            if fresh and ignored(self._root / name, is_dir, rules):
                self._left_out.add(name)
            elif not is_dir:
                self._file(folder, entry.name, name, now)
            elif depth < _DEPTH:
                self._rules.setdefault(name + "/", (None, []))
                self._below(folder, entry.name, name, rules, now, depth)

    def _below(self, folder: int, entry: str, name: str, rules: list[Rules], now: dict[str, _Kept], depth: int) -> None:
        try:
            inner = step(folder, entry)
        except OSError:
            return
        try:
            self._folder(inner, name + "/", rules, now, depth + 1)
        finally:
            os.close(inner)

    def _rules_in(self, folder: int, prefix: str, entries: list[os.DirEntry[str]]) -> list[Rules]:
        """What the ignore files of a folder say, read again when one of them has changed."""
        key: _Key | None = None
        if prefix == "" or any(entry.name == ".gitignore" for entry in entries):
            try:
                key = _key(os.stat(".gitignore", dir_fd=folder, follow_symlinks=False))
            except OSError:
                key = (0, 0, 0, 0) if prefix == "" else None
        known = self._rules.get(prefix)
        if known is not None and known[0] == key:
            return known[1]
        rules = rules_of(self._root / prefix) if key is not None else []
        if known is not None and (known[1] or rules):
            self._left_out = {name for name in self._left_out if not name.startswith(prefix)}
        self._rules[prefix] = (key, rules)
        return rules

    def _file(self, folder: int, entry: str, name: str, now: dict[str, _Kept]) -> None:
        known = self._files.get(name)
        try:
            info = os.stat(entry, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISREG(info.st_mode):
                now[name] = self._taken(folder, entry, info, known)
        except FileNotFoundError:
            return
        except OSError:  # it cannot be read: it is as it was, as far as is known
            if known is not None:
                now[name] = known
        if len(now) > FILES:
            raise TooMuchError(f"there are more than {FILES:,} files")

    def _taken(self, folder: int, entry: str, info: os.stat_result, known: _Kept | None) -> _Kept:
        mode = stat.S_IMODE(info.st_mode)
        if info.st_size > FILE_BYTES:
            return _Kept(_key(info), mode, None, info.st_size)
        if time.monotonic() > self._deadline:
            raise TooMuchError("reading its files takes too long")
        descriptor = os.open(entry, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        try:
            info = os.fstat(descriptor)
            content = os.read(descriptor, FILE_BYTES + 1) if stat.S_ISREG(info.st_mode) else b""
        finally:
            os.close(descriptor)
        key = None if time.time_ns() - info.st_ctime_ns < _RECENT else _key(info)
        if known is not None and known.size == len(content) and self._content(known) == content:
            return _Kept(key, mode, known.place, known.size)
        place, self._end = self._end, self._end + len(content)
        if self._end > ALL_BYTES:
            raise TooMuchError(f"its files have more than {ALL_BYTES:,} bytes")
        os.pwrite(self._contents.fileno(), content, place)
        return _Kept(key, mode, place, len(content))

    def _content(self, kept: _Kept) -> bytes | None:
        return None if kept.place is None else os.pread(self._contents.fileno(), kept.size, kept.place)

    def _change(self, name: str, before: _Kept | None, now: _Kept | None) -> Change | None:
        """None where nothing has changed, and where what was there is not kept."""
        if before is None:
            return Change(self._root / name, None, None)
        if now is not None and (before.place, before.size, before.mode) == (now.place, now.size, now.mode):
            return None
        content = self._content(before)
        return None if content is None else Change(self._root / name, content, before.mode)


def _key(info: os.stat_result) -> _Key:
    return info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino
