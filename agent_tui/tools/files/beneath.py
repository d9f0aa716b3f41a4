"""Files reached from the root folder down, one descriptor after the other, with no link on the way.

A path is judged once its links are resolved. Whoever may write in the project can put a link in the place of one of
its folders before the path is opened; here that is an error, so that what is opened is what was judged. A folder that
is held open stays the one it is, whatever takes its name.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Where it exists: a folder that may be entered need not be readable.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True, frozen=True)
class Place:
    """A name in a folder that is held open as ``folder``. All raise OSError; a link at the name is never followed."""

    folder: int
    path: Path

    @property
    def name(self) -> str:
        return self.path.name or "."

    def beside(self, name: str) -> Place:
        """Another name in the same folder."""
        return Place(self.folder, self.path.with_name(name))

    def info(self) -> os.stat_result:
        return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)

    def open(self, flags: int, mode: int = 0o600) -> int:
        """A descriptor; a pipe or device is opened without waiting."""
        return os.open(self.name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode, dir_fd=self.folder)

    def read(self, limit: int = -1) -> tuple[bytes, os.stat_result]:
        """Up to ``limit`` bytes of a regular file, and its state."""
        descriptor = self.open(os.O_RDONLY)
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            os.close(descriptor)
            raise OSError(errno.EINVAL, "not a regular file")
        with os.fdopen(descriptor, "rb") as file:
            return file.read(limit), info

    def unlink(self) -> None:
        os.unlink(self.name, dir_fd=self.folder)

    def rename(self, to: Place) -> None:
        os.replace(self.name, to.name, src_dir_fd=self.folder, dst_dir_fd=to.folder)


def enter(folder: Path, make: bool = False, change: bool = False) -> int:
    """A descriptor of an absolute folder whose links are resolved, by which to reach what is in it; the caller closes
    it. ``make``: missing folders are made. ``change``: something is to be changed there, which must not be git's own
    folder under another name. Raises OSError, also where a link lies in the way."""
    if not folder.is_absolute() or ".." in folder.parts:
        raise OSError(errno.EINVAL, "not a resolved path")
    descriptor = os.open(folder.anchor, _FOLDER)
    for name in folder.parts[1:]:
        try:
            following = _step(descriptor, name, make)
        finally:
            os.close(descriptor)
        descriptor = following
        if change and _is_git(descriptor) and ".git" not in map(str.casefold, folder.parts):
            # Judged was a name that means nothing to git, and a command has moved the repository there.
            os.close(descriptor)
            raise OSError(errno.EACCES, "it belongs to a repository of git, which is changed by git alone")
    return descriptor


def _is_git(folder: int) -> bool:
    try:
        return all(
            stat.S_IFMT(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode) == kind
            for name, kind in (("HEAD", stat.S_IFREG), ("objects", stat.S_IFDIR), ("refs", stat.S_IFDIR))
        )
    except OSError:
        return False


def _step(folder: int, name: str, make: bool) -> int:
    try:
        return step(folder, name)
    except FileNotFoundError:
        if not make:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
    return step(folder, name)


def step(folder: int, name: str) -> int:
    """A descriptor of the folder ``name`` in another. Raises OSError, also for a link."""
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, "a link was put in its way") from None
        raise


@contextlib.contextmanager
def entered(folder: Path, make: bool = False, change: bool = False) -> Iterator[int]:
    """``enter``, closed at the end."""
    descriptor = enter(folder, make, change)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def at(path: Path, make: bool = False, change: bool = False) -> Iterator[Place]:
    """The place of an absolute path whose links are resolved; ``make`` and ``change`` as for ``enter``, of its folder.
    Raises OSError."""
    with entered(path.parent, make, change) as folder:
        yield Place(folder, path)


def info_of(path: Path) -> os.stat_result | None:
    """The state of what is at a resolved path; None where nothing can be reached."""
    try:
        with at(path) as place:
            return place.info()
    except OSError:
        return None


def is_read_only(path: Path) -> bool:
    """Whether a file is one that its owner may not write: somebody meant it to stay as it is."""
    info = info_of(path)
    return info is not None and stat.S_ISREG(info.st_mode) and not info.st_mode & stat.S_IWUSR


def has_other_names(path: Path) -> bool:
    """Whether a file has further names (hard links), which nobody judged: one may be of what decides what runs."""
    info = info_of(path)
    return info is not None and stat.S_ISREG(info.st_mode) and info.st_nlink > 1


def names_in(folder: int) -> Iterator[os.DirEntry[str]]:
    """What a folder holds, of which the caller holds a descriptor. Raises OSError."""
    readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        with os.scandir(readable) as found:
            yield from found
    finally:
        os.close(readable)
