"""Folders that a command which only looks may write all the same: what builds, tests and caches make, and those that
the user named until the program ends.

Each of them is left out by git, holds nothing that git knows, and is a plain folder of the project: what a command
writes there it may write anywhere else no more than before. The rules of git that count are those of the moment the
session began, since the model may write others.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from types import MappingProxyType

from agent_tui.pipes.programs import mounts
from agent_tui.tools.git.repository import OwnGit, find_repository, own_git, read_small
from agent_tui.tools.sandbox.protected import is_protected
from agent_tui.tools.word_sets import word_set

NAMES = word_set(
    "build dist target out _build coverage htmlcov test-results __pycache__ .pytest_cache .mypy_cache .ruff_cache "
    ".tox .nox .hypothesis .benchmarks .eggs *.egg-info .nyc_output .next .nuxt .svelte-kit .turbo .parcel-cache "
    ".gradle .cache cmake-build-* .zig-cache zig-out dist-newstyle .stack-work bazel-*"
)
"""What only builds, tests and caches make."""

LOCK = "Cargo.lock"
"""Made by the first build, beside ``Cargo.toml``, where there is none: the only file, and the only one git is told
of."""

_SECONDS = 3.0
_ENTRIES = 200_000
_IGNORE_BYTES = 1_000_000
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Lent:
    """The folders, and files, that one command may write. ``made`` of them were not there: to the command they are
    not until it makes them, and they are gone afterwards where it has left nothing in them. ``sockets``: it may use
    unix sockets; ``written`` is what it wrote in."""

    def __init__(
        self,
        places: Mapping[Path, tuple[int, int]] = MappingProxyType({}),
        made: Iterable[Path] = (),
        back: Callable[[Lent], None] | None = None,
    ) -> None:
        self.places, self._absent, self._back = dict(places), set(made), back
        self.sockets = False
        self.written: set[Path] = set()

    def around(self, path: Path) -> Path | None:
        """The one that ``path`` is, or lies in."""
        return next((place for place in self.places if path.is_relative_to(place)), None)

    def pretend(self, makes: bool, path: Path) -> int | None:
        """A folder is to be made or removed that has to be there as long as the command runs: what the command is to
        hear, 0 that it was done, else an error; None for what the kernel is to do."""
        if path not in self.places or (makes and path not in self._absent):
            return None
        if makes:
            self._absent.discard(path)
            return 0
        with contextlib.suppress(OSError):
            if next(path.iterdir(), None) is None:
                absent = path in self._absent
                self._absent.add(path)
                return -errno.ENOENT if absent else 0
        return None

    def give_back(self) -> None:
        """The command has ended."""
        if self._back is not None:
            self._back(self)

    @property
    def absent(self) -> frozenset[Path]:
        """Those that it left, or made, not to be there."""
        return frozenset(self._absent)


class Outputs:
    """Of the project in ``root``, as git knew it when this was made. ``granted`` answers the folders that the user
    named."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self.granted: Callable[[], Sequence[Path]] = tuple
        self._repository = find_repository(self._root)
        self._commit = self._repository.commit if self._repository is not None else ""
        self._tree = self._repository.tree if self._repository is not None else None
        self._begun = dict(self._ignore_files())
        self._ignored: dict[Path, bool] = {}
        self._known: dict[Path, None] = {}
        self._in_use: list[Lent] = []

    def _ignore_files(self) -> Iterator[tuple[Path, str]]:
        """Those at the top, as they are: they may not be committed."""
        for folder in (self._root, *self._root.parents):
            if self._tree is not None and folder.is_relative_to(self._tree):
                yield folder, read_small(folder / ".gitignore", folder, _IGNORE_BYTES)

    # What may be written

    def lent(self, closed: Iterable[Path], more: Iterable[Path] = ()) -> Lent:
        """Returns the places for output that are there, and ``more``, which is made where it is missing. ``closed`` are
        places that no command sees. Runs git."""
        known = [*self._at_the_top(), *self._known, *self.granted()]
        wanted = dict.fromkeys([*(path for path in known if os.path.lexists(path)), *more])
        allowed = self._allowed([path for path in wanted if not any(_touch(path, place) for place in closed)])
        places: dict[Path, tuple[int, int]] = {}
        made: list[Path] = []
        for path in sorted(allowed, key=lambda path: len(path.parts)):
            if any(path.is_relative_to(other) for other in places):
                continue
            try:
                info, new = self._opened(path)
            except OSError:
                continue
            places[path] = (info.st_dev, info.st_ino)
            made += [path] * new
        self._known.update(dict.fromkeys(path for path in more if path in places and path.name != LOCK))
        lent = Lent(places, made, self._given_back)
        self._in_use.append(lent)
        return lent

    def wanted(self, tried: Iterable[Path]) -> dict[Path, Path]:
        """Of the paths that a command tried to change those that lie in a folder, or are a file, which it may write
        when it is asked for; with that. Runs git."""
        found = {path: place for path in tried if (place := self._place_of(path)) is not None}
        allowed = set(self._allowed(dict.fromkeys(found.values())))
        return {path: place for path, place in found.items() if place in allowed}

    def offered(self, tried: Mapping[Path, bool]) -> Path | None:
        """The folder at the top that the user may be asked for, where all these paths lie in it: git leaves it out. It
        is there, or the command tried to make it (a path with True is a folder). Runs git."""
        tops = {self._root / path.relative_to(self._root).parts[0] for path in tried if self._is_inside(path)}
        if len(tops) != 1 or not all(map(self._is_inside, tried)):
            return None
        (top,) = tops
        folder = top.is_dir() or (tried.get(top, False) and not os.path.lexists(top))
        return top if folder and self._allowed([top], named=False) else None

    def _is_inside(self, path: Path) -> bool:
        return path != self._root and path.is_relative_to(self._root)

    def _at_the_top(self) -> list[Path]:
        try:
            return [self._root / entry.name for entry in os.scandir(self._root) if _named(entry.name)]
        except OSError:
            return []

    def _place_of(self, path: Path) -> Path | None:
        """The first folder on the way to ``path`` that is named like one of them; of what is to be renamed to that
        the name it will have."""
        if not self._is_inside(path):
            return None
        place = self._root
        for part in path.relative_to(self._root).parts:
            if part == "node_modules" and (place / part / ".cache") in (path, *path.parents):
                return place / part / ".cache"
            name = _named(part) or ("target" if part.startswith("target") else "")
            if name:
                return place / name
            place /= part
        return path if path.name == LOCK and (path.parent / "Cargo.toml").is_file() else None

    def _allowed(self, paths: Iterable[Path], named: bool = True) -> list[Path]:
        granted = set(self.granted())
        inside = [path for path in paths if self._is_inside(path)]
        inside = [path for path in inside if not is_protected(path.relative_to(self._root))]
        inside = [path for path in inside if not named or path in granted or self._place_of(path) == path]
        if not inside or self._repository is None or self._tree is None:
            return []
        # A repository in the project has rules of its own, and none of them is asked.
        inside = [path for path in inside if not any(os.path.lexists(way / ".git") for way in self._ways(path))]
        with own_git(self._repository) as git:
            if git is None:
                return []
            for path in inside:
                if path not in self._ignored:
                    with contextlib.suppress(subprocess.TimeoutExpired):  # it is asked again the next time
                        self._ignored[path] = self._is_ignored(git, path, self._tree)
            inside = [path for path in inside if self._ignored.get(path) or path.name == LOCK]
            names = [str(path.relative_to(self._root)) for path in inside]
            tracked = git.run(self._root, "ls-files", "-z", "--", *names, timeout=_SECONDS) if inside else b""
        if tracked is None:
            return []
        theirs = [self._root / os.fsdecode(name) for name in tracked.split(b"\0") if name]
        return [path for path in inside if not any(one.is_relative_to(path) for one in theirs)]

    def _ways(self, path: Path) -> list[Path]:
        return [path, *(way for way in path.parents if self._is_inside(way))]

    def _is_ignored(self, git: OwnGit, path: Path, tree: Path) -> bool:
        """By git's own word, in a folder that has nothing but the ignore files of then. Raises TimeoutExpired."""
        name = str(path.relative_to(tree))
        if self._commit and git.answer(tree, "ls-tree", "-z", self._commit, "--", name, timeout=_SECONDS) != b"":
            return False
        with tempfile.TemporaryDirectory(prefix="agent-tui-git-") as private:
            base = Path(private).resolve()
            for way in [way for way in path.parents if way.is_relative_to(tree)]:
                folder = base / way.relative_to(tree)
                folder.mkdir(parents=True, exist_ok=True)
                (folder / ".gitignore").write_text(self._said_in(git, way, tree), "utf-8", "surrogateescape")
            (base / name).mkdir()
            there = ("--no-literal-pathspecs", "--work-tree", str(base), "check-ignore", "-q", "--no-index")
            return git.answer(base, *there, "--", f"./{name}", timeout=_SECONDS) is not None

    def _said_in(self, git: OwnGit, folder: Path, tree: Path) -> str:
        if folder not in self._begun:
            name = (folder / ".gitignore").relative_to(tree)
            text = git.answer(folder.parent, "cat-file", "blob", f"{self._commit}:{name}", timeout=_SECONDS)
            self._begun[folder] = (text or b"").decode("utf-8", "surrogateescape")
        return self._begun[folder]

    def listens_nobody(self, readable: Sequence[Path]) -> bool:
        """Returns whether no unix socket can be found in the project, nor one that this system tells of in
        ``readable``."""
        try:
            known = Path("/proc/net/unix").read_bytes().splitlines()[1:]
            named = [Path(os.fsdecode(fields[7])) for line in known if len(fields := line.split(None, 7)) > 7]
            if any(path.is_relative_to(place) for path in named for place in (self._root, *readable)):
                return False
            return not any(_is_socket(entry) for entry in _below(self._root))
        except OSError:
            return False

    # What is on the disk

    def _opened(self, path: Path) -> tuple[os.stat_result, bool]:
        """Opens or makes the place at a path that no link leads to, and returns its status; True: it was made. Raises
        OSError for what may not be written."""
        way = os.open(self._root, _FOLDER)
        try:
            device = os.fstat(way).st_dev
            for name in path.relative_to(self._root).parts[:-1]:
                above, way = way, os.open(name, _FOLDER, dir_fd=way)
                os.close(above)
            new = False
            with contextlib.suppress(FileExistsError):
                if path.name == LOCK:
                    os.close(os.open(LOCK, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644, dir_fd=way))
                else:
                    os.mkdir(path.name, dir_fd=way)
                new = True
            try:
                info = os.stat(path.name, dir_fd=way, follow_symlinks=False)
                if path.name == LOCK and (not new or not stat.S_ISREG(info.st_mode)):
                    raise OSError("there is one, or something else")
                if path.name != LOCK and not stat.S_ISDIR(info.st_mode):
                    raise OSError("no folder")
                if info.st_dev != device or _is_mounted(path):
                    raise OSError("it lies elsewhere")
                if not new:
                    _without_other_names(path)
            except OSError:
                if new:
                    with contextlib.suppress(OSError):
                        (os.unlink if path.name == LOCK else os.rmdir)(path.name, dir_fd=way)
                raise
            return info, new
        finally:
            os.close(way)

    def _given_back(self, lent: Lent) -> None:
        if lent not in self._in_use:
            return
        self._in_use.remove(lent)
        for path in sorted(lent.places, key=lambda path: -len(path.parts)):
            new = path in lent.absent
            if any(path in other.places for other in self._in_use):
                continue
            with contextlib.suppress(OSError):
                info = path.lstat()
                if (info.st_dev, info.st_ino) == lent.places[path]:
                    if path.name == LOCK and info.st_size == 0:
                        path.unlink()
                    elif new:
                        path.rmdir()


def names_output(path: PurePath) -> bool:
    """Returns whether a path, relative to the project, lies in a folder that is named like one of them."""
    return any(_named(part) for part in path.parts)


def _named(name: str) -> str:
    return name if any(fnmatchcase(name, pattern) for pattern in NAMES) else ""


def _touch(path: Path, closed: Path) -> bool:
    return path.is_relative_to(closed) or closed.is_relative_to(path)


def _is_mounted(path: Path) -> bool:
    """Returns whether something is mounted there or below."""
    return any(Path(place).is_relative_to(path) for place, _ in mounts())


def _without_other_names(folder: Path) -> None:
    """Raises OSError where a file in ``folder`` has a name elsewhere, too (a hard link), or there is too much to say
    so."""
    names: dict[int, list[int]] = {}
    for entry in _below(folder):
        info = entry.stat(follow_symlinks=False)
        if info.st_nlink > 1:
            names.setdefault(info.st_ino, [info.st_nlink, 0])[1] += 1
    if any(links != seen for links, seen in names.values()):
        raise OSError("a file in it has a name elsewhere, too")


def _below(folder: Path) -> Iterator[os.DirEntry[str]]:
    """All below that is no folder. Raises OSError, also where there is too much."""
    entries, todo = 0, [str(folder)]
    while todo:
        with os.scandir(todo.pop()) as found:
            for entry in found:
                entries += 1
                if entries > _ENTRIES:
                    raise OSError("more in it than is looked through")
                if entry.is_dir(follow_symlinks=False):
                    todo.append(entry.path)
                else:
                    yield entry


def _is_socket(entry: os.DirEntry[str]) -> bool:
    plain = entry.is_file(follow_symlinks=False) or entry.is_symlink()
    return not plain and stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)
