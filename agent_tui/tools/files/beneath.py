"""Opens files and folders by their paths from the root folder down, one descriptor after the other, with no link on the
way.

A path is judged once its links are resolved. Whoever may write in the project can put a link in the place of one of
its folders before the path is opened; here that is an error, so that what is opened is what was judged. A folder that
is held open stays the one it is, whatever takes its name.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from agent_tui.errors import ToolError
from agent_tui.paths import read_opened, with_home
from agent_tui.records import dataclass
from agent_tui.text.clean import pictured

if TYPE_CHECKING:
    from agent_tui.tools.base import ToolContext

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

    def is_link(self) -> bool:
        try:
            return stat.S_ISLNK(self.info().st_mode)
        except FileNotFoundError:
            return False

    def open(self, flags: int, mode: int = 0o600) -> int:
        """A descriptor; a pipe or device is opened without waiting."""
        return os.open(self.name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode, dir_fd=self.folder)

    def read(self, limit: int = -1) -> tuple[bytes, os.stat_result]:
        """Up to ``limit`` bytes of a regular file, and its state."""
        return read_opened(self.open(os.O_RDONLY), limit)

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
            raise OSError(errno.EACCES, "it is part of a git repository's own data; only git may change it")
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


def read_bounded(path: Path, limit: int) -> bytes:
    """Up to ``limit`` bytes of the regular file at a resolved path. Raises OSError."""
    with at(path) as place:
        return place.read(limit)[0]


def info_of(path: Path) -> os.stat_result | None:
    """The state of what is at a resolved path; None where nothing can be reached."""
    try:
        with at(path) as place:
            return place.info()
    except OSError:
        return None


def is_read_only(path: Path) -> bool:
    """Returns whether the owner of a file may not write it: somebody meant it to stay as it is."""
    info = info_of(path)
    return info is not None and stat.S_ISREG(info.st_mode) and not info.st_mode & stat.S_IWUSR


def has_other_names(path: Path) -> bool:
    """Returns whether a file has hard links, which nobody judged: one may decide what runs."""
    info = info_of(path)
    return info is not None and stat.S_ISREG(info.st_mode) and info.st_nlink > 1


def names_in(folder: int) -> Iterator[os.DirEntry[str]]:
    """Yields the entries of a folder of which the caller holds a descriptor. Raises OSError."""
    readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        with os.scandir(readable) as found:
            yield from found
    finally:
        os.close(readable)


def open_regular(path: Path, name: str) -> BinaryIO:
    """The file at a resolved path, opened for reading. Raises ToolError for what is missing, unreadable, a folder, a
    device or a pipe, and where a link was put in its way."""
    try:
        with at(path) as place:
            try:
                descriptor = place.open(os.O_RDONLY)
            except FileNotFoundError:
                raise ToolError(f"{name} does not exist.{_similar(place)}") from None
    except FileNotFoundError:
        raise ToolError(f"{name} does not exist.") from None
    except OSError as error:
        raise ToolError(f"{name} cannot be read: {error.strerror}.") from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        what = "a folder; use list" if stat.S_ISDIR(mode) else "not a regular file"
        raise ToolError(f"{name} is {what}.")
    return os.fdopen(descriptor, "rb")


def _similar(place: Place) -> str:
    import difflib

    try:
        names = [entry.name for entry in islice(names_in(place.folder), 2000)]
    except OSError:
        return ""
    near = difflib.get_close_matches(place.name, names, n=3, cutoff=0.7)
    return f" In the same folder: {', '.join(pictured(n) for n in near)}." if near else ""


def resolve(path: str, context: ToolContext) -> Path:
    """The absolute path, ``~`` expanded and every link followed; it need not exist. One below ``/tmp`` is what
    commands mean by it, where they have a ``/tmp`` of their own. Raises ToolError for a path that cannot be one, and
    for one that leads elsewhere than it did when the call was allowed."""
    resolved = _in_private_tmp(path, context) or resolve_from(path, context.cwd)
    if context.allowed_paths is not None and resolved not in context.allowed_paths:
        raise ToolError("The path now leads elsewhere than when the call was allowed. Check it before you try again.")
    return resolved


def _in_private_tmp(path: str, context: ToolContext) -> Path | None:
    if context.jail is None or context.domain == "free" or not path or "\0" in path:
        return None
    named = Path(os.path.normpath(context.cwd / with_home(path)))
    if not named.is_relative_to("/tmp") and not named.is_relative_to("/var/tmp"):
        return None
    private = context.jail.private_tmp
    place = private.place_of(named) if private is not None else None
    return resolve_from(str(place), context.cwd) if place is not None else None


def known_to_commands(path: Path, context: ToolContext) -> str:
    """A note on a resolved path that lies in the commands' own ``/tmp``; empty for any other."""
    if context.jail is None or not is_within(path, [context.jail.policy().temporary]):
        return ""
    private = context.jail.private_tmp
    name = private.name_for(path) if private is not None else None
    if name is None:
        return ""
    other = f"; this machine has another {name}" if os.path.lexists(name) else ""
    return f"[commands find it as {name}, until the program ends{other}]"


def resolve_from(path: str, cwd: Path) -> Path:
    """The same without regard to any call. Raises ToolError for what cannot be a path."""
    if not path or "\0" in path:
        raise ToolError("The path is empty or contains a NUL character.")
    try:
        resolved = (cwd / Path(path).expanduser()).resolve()
    except (RuntimeError, OSError, ValueError) as error:
        raise ToolError(f"The path {path[:200]!r} cannot be resolved: {error}") from None
    try:
        resolved.lstat()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise ToolError(f"The path {path[:80]!r}… is too long.") from None
    return resolved


def is_within(path: Path, folders: Iterable[Path]) -> bool:
    """True when the resolved ``path`` is one of ``folders`` or below one, links in ``folders`` followed."""
    text = os.path.normcase(path)
    # By its own name first: that costs no look at the disk, and what is resolved lies below no link.
    return any(_below(text, folder) or _below(text, os.path.realpath(folder)) for folder in folders)


def _below(path: str, folder: str | Path) -> bool:
    tree = os.path.normcase(folder)
    return path == tree or path.startswith(tree.rstrip(os.sep) + os.sep)


def inside(path: Path, context: ToolContext) -> bool:
    """True when the resolved ``path`` lies in the project or an added directory."""
    return is_within(path, [context.root, *context.added_dirs])


def may_tell(path: Path, context: ToolContext) -> bool:
    """Returns whether the model may learn about the resolved ``path`` without asking: it could read it just as well."""
    return inside(path, context) and not context.hidden(path)


def shown(path: Path, context: ToolContext) -> str:
    """The path as people and the model are shown it: relative to the working directory when below it."""
    for base in (context.cwd.resolve(), context.root.resolve()):
        if path == base:
            return "."
        if path.is_relative_to(base):
            return (path if base != context.cwd.resolve() else path.relative_to(base)).as_posix()
    return path.as_posix()
