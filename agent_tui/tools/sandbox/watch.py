"""Puts places back as they were before a command ran: for what a backend cannot keep read-only.

Standard library only, loaded by the supervisor, which runs outside the sandbox and calls this when nothing of the
command is left. Links are never followed on the way to a place: the command may have made them.
"""

import os
import stat
import sys
import time

MAX_ENTRIES = 20_000
MAX_BYTES = 64_000_000
"""How much is remembered of the places of one folder: where there is more no command is run, as it could not be put
back."""

_NOFOLLOW = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC

Word = tuple[str, str]
"""("kept" or "held", path)"""


class TooLarge(Exception):
    """There is more at a path, the argument, than is remembered."""


class Keeper:
    """Remembers ``names`` below ``folder``. ``held`` takes what was not there before. Raises TooLarge."""

    def __init__(self, folder: str, names: "tuple[str, ...]", held: str) -> None:
        self._folder, self._names = folder, names
        self._held = os.path.join(held, f"{time.time_ns():x}")  # noqa: PTH118
        self._entries = self._bytes = 0
        self._before = {name: self._state(os.path.join(folder, name)) for name in names}  # noqa: PTH118
        self._parents = sorted({name.split("/")[0] for name in names if "/" in name})
        paths = [os.path.join(folder, name) for name in self._parents]  # noqa: PTH118
        self._others = {path for path in paths if os.path.lexists(path) and not _is_folder(path)}
        self._ways = {path: _mode(path) for path in sorted({way for name in names for way in _ways(folder, name)})}

    def put_back(self) -> "list[Word]":
        """Undoes what changed and says so. What cannot be undone is said to be changed: ("changed", path)."""
        words: list[Word] = []
        for path, mode in self._ways.items():
            self._open_way(path, mode, words)
        for name in self._parents:
            self._clear(os.path.join(self._folder, name), words)  # noqa: PTH118
        for name, before in self._before.items():
            path = os.path.join(self._folder, name)  # noqa: PTH118
            try:
                self._mend(path, before, words)
            except OSError:
                words.append(("changed", path))
        return words

    def _open_way(self, path: str, before: "int | None", words: "list[Word]") -> None:
        """Opens a folder on the way to a place that the command closed to its owner: what is in it is not gone."""
        mode = _mode(path)
        if mode is None or mode & 0o700 == 0o700 or (before is not None and before & 0o700 != 0o700):
            return
        try:
            _chmod(path, 0o700 if before is None else before)
            words.append(("kept", path))
        except OSError:
            words.append(("changed", path))

    def _clear(self, path: str, words: "list[Word]") -> None:
        """Takes away what is no folder and stands where one with protected things belongs: a link, or git's file that
        leads to a repository elsewhere. What was such before is protected itself."""
        if path in self._others:
            return
        try:
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                self._away(path)
                words.append(("held", path))
        except FileNotFoundError:
            return
        except OSError:
            words.append(("changed", path))

    # What is there

    def _state(self, path: str) -> "tuple[object, ...] | None":
        """Returns the state of the place at ``path``; None when there is nothing or a link leads there."""
        if self._through_link(path):
            return None
        try:
            info = os.lstat(path)
        except OSError:
            return None
        self._entries += 1
        if self._entries > MAX_ENTRIES:
            raise TooLarge(path)
        kind = stat.S_IFMT(info.st_mode)
        key = (info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
        if kind == stat.S_IFLNK:
            return ("link", os.readlink(path))  # noqa: PTH115
        if kind == stat.S_IFDIR:
            try:
                names = sorted(os.listdir(path))  # noqa: PTH208
            except OSError:  # closed to its owner
                return ("folder", info.st_mode, None)
            return ("folder", info.st_mode, {name: self._state(f"{path}/{name}") for name in names})
        if kind == stat.S_IFREG:
            return ("file", info.st_mode, key, self._content(path, info.st_size))
        return ("other", key)

    def _content(self, path: str, size: int) -> "bytes | None":
        self._bytes += size
        if self._bytes > MAX_BYTES:
            raise TooLarge(path)
        try:
            with os.fdopen(os.open(path, _NOFOLLOW), "rb") as file:
                return file.read()
        except OSError:
            return None

    def _through_link(self, path: str) -> bool:
        parent = os.path.dirname(path)  # noqa: PTH120
        while len(parent) > len(self._folder):
            if os.path.islink(parent):  # noqa: PTH114
                return True
            parent = os.path.dirname(parent)  # noqa: PTH120
        return False

    # What is to be there

    def _mend(self, path: str, before: "tuple[object, ...] | None", words: "list[Word]") -> None:
        self._entries = self._bytes = 0
        try:
            after = self._state(path)
        except TooLarge:  # made by the command: all of it goes
            if before is None:
                self._away(path)
            else:
                self._restore(path, before, occupied=True)
            words.append(("held" if before is None else "kept", path))
            return
        if after == before or (after is not None and before is not None and _alike(before, after)):
            return
        if before is None:
            if after is not None:
                self._take_away(path, words)
            return
        if before[0] == "folder" and after is not None and after[0] == "folder":
            if after[1] != before[1]:
                assert isinstance(before[1], int)
                _chmod(path, stat.S_IMODE(before[1]))
                words.append(("kept", path))
                after = self._state(path) or after
            held, there = before[2], after[2]
            if not isinstance(held, dict) or not isinstance(there, dict):
                if held is not there:
                    raise OSError("not remembered")
                return
            for name in sorted({*held, *there}):
                self._mend(f"{path}/{name}", held.get(name), words)
            return
        self._restore(path, before, after is not None)
        words.append(("kept", path))

    def _restore(self, path: str, before: "tuple[object, ...]", occupied: bool) -> None:
        if self._through_link(path):
            raise OSError("a link leads there")
        kind, value = before[0], before[-1]
        if kind == "other" or (kind == "file" and value is None):
            raise OSError("not remembered")
        if occupied:
            self._away(path)
        way = self._way(path, make=True)
        try:
            self._make(path, _in(way, path), before)
        finally:
            os.close(way)

    def _make(self, path: str, place: str, before: "tuple[object, ...]") -> None:
        """Makes what was at ``path``, which is reached as ``place``."""
        kind, value = before[0], before[-1]
        if kind == "link":
            os.symlink(str(value), place)  # noqa: PTH211
        elif kind == "file":
            assert isinstance(value, bytes) and isinstance(before[1], int)
            fd = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(value)
                os.fchmod(fd, stat.S_IMODE(before[1]))
        else:
            assert isinstance(before[1], int)
            os.mkdir(place, 0o700)  # noqa: PTH102
            if isinstance(value, dict):
                for name, inner in value.items():
                    if inner is not None:
                        self._restore(f"{path}/{name}", inner, False)
            _chmod(place, stat.S_IMODE(before[1]))

    def _take_away(self, path: str, words: "list[Word]") -> None:
        """Removes what is new, unless it is what ``git init`` makes and runs nothing."""
        parent, name = os.path.split(path)
        if ".git" in parent.split("/"):
            if name in ("hooks", "info", "branches") and (_mode(path) or 0) & 0o700 == 0o700:
                for entry in sorted(os.listdir(path)):  # noqa: PTH208
                    if not entry.endswith(".sample") and not (name == "info" and entry in ("exclude", "refs")):
                        self._away(f"{path}/{entry}")
                        words.append(("held", f"{path}/{entry}"))
                return
            if name == "config" and _harmless(self._content(path, os.lstat(path).st_size)):
                return
        self._away(path)
        words.append(("held", path))

    def _away(self, path: str) -> None:
        os.makedirs(self._held, exist_ok=True, mode=0o700)  # noqa: PTH103
        target = f"{self._held}/{len(os.listdir(self._held))}-{os.path.basename(path)}"  # noqa: PTH119, PTH208
        way = self._way(path)
        path = _in(way, path)
        try:
            os.rename(path, target)  # noqa: PTH104
        except OSError:
            import shutil  # seldom needed: another file system, or a folder that is closed to its owner

            if _is_folder(path):
                _open_all(path)
            shutil.move(path, target)
        finally:
            os.close(way)

    def _way(self, path: str, make: bool = False) -> int:
        """A descriptor of the folder that ``path`` is in, as far as no link leads there: another command of the
        project may run, and put one in its place at any time. Raises OSError."""
        found = os.open(self._folder, _NOFOLLOW | os.O_DIRECTORY)
        for name in os.path.dirname(path)[len(self._folder) :].strip("/").split("/"):  # noqa: PTH120
            above = found
            try:
                if name and make and name not in os.listdir(above):  # noqa: PTH208
                    os.mkdir(name, dir_fd=above)
                found = os.open(name or ".", _NOFOLLOW | os.O_DIRECTORY, dir_fd=above)
            finally:
                os.close(above)
        return found


def _in(way: int, path: str) -> str:
    """The path by which what ``path`` names is reached in the folder ``way``, where the system has such paths."""
    name = os.path.basename(path)  # noqa: PTH119
    return f"/proc/self/fd/{way}/{name}" if sys.platform == "linux" else path


def _is_folder(path: str) -> bool:
    return stat.S_ISDIR(os.lstat(path).st_mode)


def _ways(folder: str, name: str) -> "list[str]":
    """The folders that lead to ``name``, ``folder`` first."""
    parts = name.split("/")
    return ["/".join((folder, *parts[:number])) for number in range(len(parts))]


def _mode(path: str) -> "int | None":
    """The mode of a folder; None where none is."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return None
    return stat.S_IMODE(mode) if stat.S_ISDIR(mode) else None


def _chmod(path: str, mode: int) -> None:
    """Changes the mode of a folder, never of what a link in its place leads to."""
    if os.chmod in os.supports_follow_symlinks:
        os.chmod(path, mode, follow_symlinks=False)  # noqa: PTH101
        return
    fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.chmod(f"/proc/self/fd/{fd}", mode)  # noqa: PTH101
    finally:
        os.close(fd)


def _open_all(path: str) -> None:
    """Opens a folder and those in it to their owner, so that they can be moved."""
    _chmod(path, 0o700)
    for entry in os.scandir(path):
        if entry.is_dir(follow_symlinks=False):
            _open_all(entry.path)


def _alike(before: "tuple[object, ...]", after: "tuple[object, ...]") -> bool:
    """Returns whether a file that was touched still has its content and mode."""
    return before[0] == after[0] == "file" and (before[1], before[3]) == (after[1], after[3]) and before[3] is not None


def _harmless(config: "bytes | None") -> bool:
    """Returns whether a new git configuration names no programs: it has only what git itself and a clone write."""
    if config is None or len(config) > 20_000 or b"\\" in config:
        return False
    section = b""
    for raw in config.splitlines():
        line = raw.strip().lower()
        if line.startswith(b"["):
            section = line.strip(b"[]").split(b'"')[0].strip()
            if b"]" in line[:-1] or section not in (b"core", b"remote", b"branch", b"init", b"user", b"extensions"):
                return False
        elif line and line[:1] not in b"#;" and line.partition(b"=")[0].strip() not in _PLAIN:
            return False
    return True


_PLAIN = frozenset(
    b"repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks url fetch remote "
    b"merge rebase name email defaultbranch objectformat autocrlf eol tagopt".split()
)
