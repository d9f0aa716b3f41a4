"""The files of a project as they were when it was looked at last, and what has become of them since.

What ignore files leave out is not looked at, nor is ``.git``. Contents are kept in a file without a name, which is gone
with the program; later looks read only what has changed by its time, size and number.
"""

from __future__ import annotations

import os
import stat
import tempfile
import time
from pathlib import Path

from agent_tui.paths import private_dir
from agent_tui.records import dataclass
from agent_tui.tools.files.beneath import entered
from agent_tui.tools.files.walk import IgnoreRules, ignored, rules_of

FILE_BYTES = 2_000_000
ALL_BYTES = 300_000_000
FILES = 50_000
FIRST_SECONDS, SECONDS = 8.0, 2.0
"""What is kept: of files up to this size, so much altogether, so many, and what can be looked at in this time, at first
and later on."""

_DEPTH = 200
_RECENT = 50_000_000  # ns in which a file may change again without another time

_Key = tuple[int, int, int]


class ProjectTooLargeError(Exception):
    """A project, or a repository's history, that is not kept; its text says why."""


@dataclass(slots=True, frozen=True)
class FileChange:
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


_Folders = dict[str, dict[str, _Kept]]
"""Files by name, by folder: relative, with a slash at its end."""


class KeptFiles:
    """Of the project in ``root``; contents go into ``folder``. Not for several threads at once."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root = root
        self._where = private_dir(folder)
        self._contents = tempfile.TemporaryFile(dir=self._where, buffering=0)  # noqa: SIM115 - closed by close
        self._end = 0
        self._files: _Folders = {}
        self._left_out: set[str] = set()
        self._rules: dict[str, tuple[_Key | None, list[IgnoreRules]]] = {}
        self._deadline = 0.0
        self._count = 0
        self._looked = False

    def look(self) -> list[FileChange]:
        """Takes the files as they are; what has changed since the last look, nothing at the first one. Raises
        TooMuchError where there is more than can be kept, OSError."""
        first, self._looked = not self._looked, True
        self._deadline = time.monotonic() + (FIRST_SECONDS if first else SECONDS)
        self._count = 0
        now: _Folders = {}
        with entered(self._root) as folder:
            self._below(folder, ".", "", [], now, 0)
        before, self._files = self._files, now
        found: list[FileChange] = []
        if not first:
            for prefix in before.keys() | now.keys():
                old, new = before.get(prefix, {}), now.get(prefix, {})
                if old is not new:
                    names = sorted(old.keys() | new.keys())
                    changes = (self._change(prefix + name, old.get(name), new.get(name)) for name in names)
                    found += [change for change in changes if change is not None]
        if self._end > ALL_BYTES // 2:
            self._without_what_is_gone()
        return found

    def close(self) -> None:
        self._contents.close()

    def _below(self, folder: int, entry: str, prefix: str, rules: list[IgnoreRules], now: _Folders, depth: int) -> None:
        try:
            inner = os.open(entry, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError:  # it cannot be read now: what is in it is as it was, as far as is known
            now.update((name, files) for name, files in self._files.items() if name.startswith(prefix))
            return
        try:
            self._folder(inner, prefix, rules, now, depth)
        finally:
            os.close(inner)

    def _folder(self, folder: int, prefix: str, above: list[IgnoreRules], now: _Folders, depth: int) -> None:
        names = os.listdir(folder)
        rules = [*above, *self._rules_in(folder, prefix, names)]
        known = self._files.get(prefix, {})
        files: dict[str, _Kept] = {}
        same, lstat = True, os.stat
        for name in names:
            if time.monotonic() > self._deadline:
                raise ProjectTooLargeError("scanning its files takes too long")
            kept = known.get(name)
            if kept is None and (prefix + name in self._left_out or name == ".git"):
                continue
            try:
                info = lstat(name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                continue
            except OSError:
                same = False
                continue
            # Of ten thousand files nearly all end here: nothing is done that is not needed.
            if kept is not None and kept.key == (info.st_ctime_ns, info.st_size, info.st_ino):
                files[name] = kept
            elif stat.S_ISDIR(info.st_mode):
                if depth < _DEPTH and self._wanted(prefix + name, True, f"{prefix}{name}/" in self._rules, rules):
                    self._rules.setdefault(f"{prefix}{name}/", (None, []))
                    self._below(folder, name, f"{prefix}{name}/", rules, now, depth + 1)
            elif stat.S_ISREG(info.st_mode) and self._wanted(prefix + name, False, kept is not None, rules):
                same = False
                self._file(folder, name, info, kept, files)
        now[prefix] = known if same and len(files) == len(known) else files
        self._count += len(files)
        if self._count > FILES:
            raise ProjectTooLargeError(f"there are more than {FILES:,} files")

    def _wanted(self, name: str, is_dir: bool, known: bool, rules: list[IgnoreRules]) -> bool:
        if known or not ignored(self._root / name, is_dir, rules):
            return True
        self._left_out.add(name)
        return False

    def _rules_in(self, folder: int, prefix: str, names: list[str]) -> list[IgnoreRules]:
        """Returns the rules of the ignore files of a folder, read again when one of them has changed."""
        key: _Key | None = None
        if prefix == "" or ".gitignore" in names:
            try:
                key = _key(os.stat(".gitignore", dir_fd=folder, follow_symlinks=False))
            except OSError:
                key = (0, 0, 0) if prefix == "" else None
        known = self._rules.get(prefix)
        if known is not None and known[0] == key:
            return known[1]
        rules = rules_of(self._root / prefix) if key is not None else []
        if known is not None and (known[1] or rules):
            self._left_out = {name for name in self._left_out if not name.startswith(prefix)}
        self._rules[prefix] = (key, rules)
        return rules

    def _file(self, folder: int, name: str, info: os.stat_result, known: _Kept | None, files: dict[str, _Kept]) -> None:
        try:
            files[name] = self._taken(folder, name, info, known)
        except FileNotFoundError:
            return
        except OSError:  # it cannot be read: it is as it was, as far as is known
            if known is not None:
                files[name] = known

    def _taken(self, folder: int, entry: str, info: os.stat_result, known: _Kept | None) -> _Kept:
        mode = stat.S_IMODE(info.st_mode)
        if info.st_size > FILE_BYTES:
            return _Kept(_key(info), mode, None, info.st_size)
        if time.monotonic() > self._deadline:
            raise ProjectTooLargeError("reading its files takes too long")
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
            raise ProjectTooLargeError(f"its files have more than {ALL_BYTES:,} bytes")
        os.pwrite(self._contents.fileno(), content, place)
        return _Kept(key, mode, place, len(content))

    def _content(self, kept: _Kept) -> bytes | None:
        return None if kept.place is None else os.pread(self._contents.fileno(), kept.size, kept.place)

    def _without_what_is_gone(self) -> None:
        """Gives the contents a new file where half of the old one is of files that have become others."""
        all_kept = (kept for files in self._files.values() for kept in files.values())
        if sum(kept.size for kept in all_kept if kept.place is not None) > self._end // 2:
            return
        old, self._end = self._contents, 0
        self._contents = tempfile.TemporaryFile(dir=self._where, buffering=0)  # noqa: SIM115 - closed by close
        with old:
            for prefix, files in self._files.items():
                moved: dict[str, _Kept] = {}
                for name, kept in files.items():
                    moved[name] = kept
                    if kept.place is not None:
                        content = os.pread(old.fileno(), kept.size, kept.place)
                        os.pwrite(self._contents.fileno(), content, self._end)
                        moved[name] = _Kept(kept.key, kept.mode, self._end, kept.size)
                        self._end += kept.size
                self._files[prefix] = moved

    def _change(self, name: str, before: _Kept | None, now: _Kept | None) -> FileChange | None:
        """None where nothing has changed, and where what was there is not kept."""
        if before is None:
            return FileChange(self._root / name, None, None)
        if now is not None and (before.place, before.size, before.mode) == (now.place, now.size, now.mode):
            return None
        content = self._content(before)
        return None if content is None else FileChange(self._root / name, content, before.mode)


def _key(info: os.stat_result) -> _Key:
    return info.st_ctime_ns, info.st_size, info.st_ino
