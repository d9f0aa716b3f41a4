"""A copy of a repository as it was when the session began to run commands, in a folder that no command reaches: what a
command destroys of ``.git`` is fetched from there by hand.

Objects never change once they are written, so the copy of an earlier session is only added to. What is too much to be
copied gets a second name, which survives removal but not damage.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import stat
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from agent_tui.paths import private_dir
from agent_tui.tools.files.beneath import entered
from agent_tui.tools.files.kept import ProjectTooLargeError
from agent_tui.tools.git.repository import read_small

OBJECT_BYTES = 500_000_000
SMALL_BYTES = 20_000_000
ENTRIES = 100_000
SECONDS = 3.0
"""Copied are objects up to so many bytes altogether, of the other files those up to this size, of a folder of so many
entries, in so much time at once."""

_LEFT_OUT = frozenset({"modules", "lfs", "annex"})


class RepositoryCopy:
    """Of one repository: ``git`` is its own folder with objects and references, links resolved; ``folder`` takes the
    copy. Not for several threads at once."""

    def __init__(self, git: Path, folder: Path) -> None:
        self._git, self._folder = git, folder
        self._there: dict[str, int] = {}
        self._bytes = 0
        self._taken = False

    def take(self) -> None:
        """Copies the repository, once; what there was no time for at the next call. Raises OSError, and
        ProjectTooLargeError where not all of it is copied."""
        if self._taken or self.is_gone():
            return
        for name in ("objects", "refs"):
            private_dir(self._folder / name)
        self._there = dict(_files(self._folder))
        self._bytes = sum(self._there.values())
        deadline, seen = time.monotonic() + SECONDS, set[str]()
        # Objects first: what names them is only copied once they are there.
        for wanted in (True, False):
            for folder, name, path, info in self._walk():
                if path.startswith("objects/") == wanted and (wanted or info.st_size <= SMALL_BYTES):
                    seen.add(path)
                    if len(seen) > ENTRIES:
                        raise ProjectTooLargeError(f"it has more than {ENTRIES:,} files")
                    if time.monotonic() > deadline:
                        raise ProjectTooLargeError("copying it takes too long; the rest follows")
                    self._copy(folder, name, path, info)
        self._taken = True
        lost = self._there.keys() - seen
        packed = {path for path in lost if path.startswith("objects/")}
        # Objects that git has packed or dropped are only let go where they are many: others may have removed them.
        for path in lost if sum(self._there[path] for path in packed) > OBJECT_BYTES // 2 else lost - packed:
            (self._folder / path).unlink(missing_ok=True)

    def is_gone(self) -> bool:
        """Returns whether the folder is no repository any more, or one that names nothing."""
        try:
            with entered(self._git) as folder:
                for name in ("objects", "refs"):
                    if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                        return True
        except OSError:
            return True
        head = read_small(self._git / "HEAD", self._git).strip()
        names = head.startswith("ref: ") or len(head) in (40, 64)
        return not names or (self._has_references(self._folder) and not self._has_references(self._git))

    def way_back(self) -> str:
        """The line of shell that brings the copy back; empty where there is none."""
        if not self._taken or not (self._folder / "HEAD").exists():
            return ""
        git = shlex.quote(str(self._git))
        return f"rm -rf {git} && cp -a {shlex.quote(str(self._folder))} {git}"

    @staticmethod
    def _has_references(git: Path) -> bool:
        return os.path.lexists(git / "packed-refs") or any(True for _ in _files(git / "refs"))

    def _walk(self) -> Iterator[tuple[int, str, str, os.stat_result]]:
        """Yields the files of the repository: the folder that one is in, held open, its name and its path."""
        with entered(self._git) as top:
            for base, folders, names, folder in os.fwalk(".", dir_fd=top):
                prefix = "" if base == "." else base.removeprefix("./") + "/"
                folders[:] = [name for name in folders if prefix + name not in _LEFT_OUT]
                for name in names:
                    if name.endswith(".lock") or name.startswith("tmp_"):
                        continue
                    with contextlib.suppress(FileNotFoundError):
                        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
                        if stat.S_ISREG(info.st_mode):
                            yield folder, name, prefix + name, info

    def _copy(self, folder: int, name: str, path: str, info: os.stat_result) -> None:
        fixed = path.startswith("objects/") and not path.startswith(("objects/info/", "objects/pack/multi-pack-index"))
        if fixed and self._there.get(path) == info.st_size:
            return
        target = self._folder / path
        private_dir(target.parent)
        target.unlink(missing_ok=True)
        self._bytes += info.st_size - self._there.get(path, 0)
        self._there[path] = info.st_size
        if fixed and self._bytes > OBJECT_BYTES:
            try:
                os.link(name, target, src_dir_fd=folder, follow_symlinks=False)
            except OSError:
                raise ProjectTooLargeError(f"it has more than {OBJECT_BYTES:,} bytes") from None
            return
        temporary = target.with_name(f"tmp_{uuid.uuid4().hex}")
        source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        with os.fdopen(source, "rb") as file, temporary.open("xb") as copy:
            _copy_bytes(file.fileno(), copy.fileno())
        temporary.chmod(stat.S_IMODE(info.st_mode) & 0o700 | stat.S_IRUSR)
        temporary.replace(target)


def _files(folder: Path) -> Iterator[tuple[str, int]]:
    for base, _, names in os.walk(folder):
        for name in names:
            path = Path(base, name)
            yield path.relative_to(folder).as_posix(), path.lstat().st_size


def _copy_bytes(source: int, target: int) -> None:
    """Copies a file, as a second name of the same blocks where the file system can."""
    if hasattr(os, "copy_file_range"):
        try:
            while os.copy_file_range(source, target, 1 << 30):
                pass
            return
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
                raise
    os.lseek(source, 0, os.SEEK_SET)
    os.ftruncate(target, 0)
    os.lseek(target, 0, os.SEEK_SET)
    while piece := os.read(source, 1 << 20):
        os.write(target, piece)
