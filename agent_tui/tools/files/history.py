"""A repository's history, kept outside of it: what a command destroys is put back, what git does by itself stays.

Kept are the objects, as copies, which never change once they are written, and with them what names them: HEAD,
references, index, logs, configuration. What was there and is gone, or is not what it was, is looked at when a command
has ended; a repository that git can go on with is left as it is.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import stat
import time
import uuid
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

from agent_tui.paths import private_dir
from agent_tui.records import dataclass
from agent_tui.text.numbers import plural
from agent_tui.tools.files.beneath import Place, at, entered, info_of
from agent_tui.tools.files.kept import ProjectTooLargeError
from agent_tui.tools.files.text import replace
from agent_tui.tools.git.repository import OwnGit, Repository, find_repository, own_git

OBJECT_BYTES = 500_000_000
SMALL_BYTES = 20_000_000
FILES_BYTES = 200_000_000
ENTRIES = 100_000
SECONDS = 3.0
"""Copied are objects up to so many bytes altogether; of the other files those up to this size, up to so many bytes
altogether; in folders of so many entries, and as long as that takes no longer."""

_REFERENCE_BYTES = 4_096

_CHECK_SECONDS = 20.0
_MOST_TIPS = 20_000
_OBJECT_ID = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_OURS = re.compile(r"(?:HEAD|index|packed-refs|shallow|config|config\.worktree|commondir|gitdir|description)")
_WORKTREE = re.compile(r"(worktrees/[^/]+)/(HEAD|index)")
_KEPT_FOLDERS = ("refs", "logs", "info", "hooks", "worktrees")
_DEPTH = 40

_Key = tuple[int, int, int]


@dataclass(slots=True)
class _State:
    """``objects`` are known by size and times, ``files`` by their content, and all by their permission bits."""

    objects: dict[str, _Key] = field(default_factory=dict)
    files: dict[str, tuple[_Key, bytes]] = field(default_factory=dict)
    modes: dict[str, int] = field(default_factory=dict)
    bytes: int = 0


class KeptHistory:
    """Of one repository of the project in ``root``: ``git`` is its own folder with objects and references, links
    resolved; ``folder`` takes the copies. Not for several threads at once."""

    def __init__(self, git: Path, folder: Path, root: Path) -> None:
        self._git, self._folder, self._root = git, folder, root
        self._before = _State()
        self._copied: set[str] = set()
        self._bytes = 0

    def look(self) -> None:
        """Takes the repository as it is. Raises OSError, and TooMuchError where not all of it is kept."""
        self._before = now = self._looked(self._before, whole=True)
        deadline = time.monotonic() + SECONDS
        if not self._copied:
            self._copied = set(self._there())
        for name in now.objects.keys() - self._copied:
            if time.monotonic() > deadline:
                raise ProjectTooLargeError("copying its objects takes too long; the rest follows")
            self._copy(name, now.objects[name][0])

    def mend(self) -> str:
        """Puts back what was destroyed since the last look, and says what, empty for nothing. Raises OSError."""
        before = self._before
        if not before.modes:
            return ""
        now, opened = self._open_again(before)
        if "" not in now.modes and info_of(self._git) is not None and find_repository(self._git.parent) is not None:
            return ""  # it was moved, and what is there says where
        damaged = self._damaged_objects(before, now)
        files, folders = self._destroyed(before, now)
        missing = before.objects.keys() - now.objects.keys()
        if files or folders or damaged:
            damaged |= missing
            lists = {name: content for name, (_, content) in before.files.items() if _is_list(name)}
            files |= {name: one for name, one in lists.items() if name not in now.files or now.files[name][1] != one}
            self._put_files(files)
        if missing and not damaged and not self._connected(before):
            damaged = set(missing)
        back = sum(self._put_object(name) for name in sorted(damaged))
        self._before = self._looked(now) if opened or files or folders or damaged else now
        for name in missing - damaged:  # git has packed or dropped them
            self._copied.discard(name)
            (self._folder / name).unlink(missing_ok=True)
        told: list[str] = [name for name in ("HEAD", "index") if name in files]
        others = len(files) - len(told)
        told += [plural(others, "reference or file", "references and files")] * bool(others)
        told += [plural(back, "object")] * bool(back) + ["permissions"] * opened
        told += [", ".join(sorted(folders))] * bool(folders and not told)
        if lost := len(damaged) - back:
            told.append(f"but not {plural(lost, 'object')} of which no copy was saved")
        return ", ".join(told)

    # ------------------------------------------------------------------------------------------------ looking

    def _looked(self, known: _State, whole: bool = False) -> _State:
        """The repository as it is. Where there is too much, TooMuchError if it is to be the ``whole``; else what is
        known is looked at all the same, so that a command cannot bury it, and of the rest no more."""
        state = _State()
        with contextlib.suppress(OSError), at(self._git) as place:
            state.modes[""] = stat.S_IMODE(place.info().st_mode)
            self._look_in(place.folder, place.name, "", state, known, whole)
        return state

    def _look_in(self, above: int, entry: str, prefix: str, state: _State, known: _State, whole: bool) -> None:
        try:
            folder = os.open(entry, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
        except OSError:
            return
        try:
            for name in os.listdir(folder):  # noqa: PTH208 - of a descriptor
                with contextlib.suppress(FileNotFoundError):
                    info = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    self._take(folder, name, prefix + name, info, state, known, whole)
        finally:
            os.close(folder)

    def _take(
        self, folder: int, entry: str, name: str, info: os.stat_result, state: _State, known: _State, whole: bool
    ) -> None:
        if len(state.modes) + len(state.objects) > ENTRIES:
            if whole:
                raise ProjectTooLargeError(f"it has more than {ENTRIES:,} files")
            if name not in known.modes and name not in known.objects:
                return
        key = (info.st_size, info.st_mtime_ns, info.st_ctime_ns)
        if stat.S_ISREG(info.st_mode):
            if name.endswith(".lock") or entry.startswith("tmp_"):
                return
            if name.startswith("objects/") and not _is_list(name):
                state.objects[name] = key
                return
            old = known.files.get(name)
            short = name.startswith("refs/") or state.bytes > FILES_BYTES
            most = _REFERENCE_BYTES if short else SMALL_BYTES
            content = old[1] if old is not None and old[0] == key else _read(folder, entry, info.st_size, most)
            if content is not None:
                state.files[name] = (key, content)
                state.bytes += len(content)
                if whole and state.bytes > FILES_BYTES:
                    raise ProjectTooLargeError(f"its references, logs and lists have more than {FILES_BYTES:,} bytes")
        elif not stat.S_ISDIR(info.st_mode) or name in ("modules", "lfs", "annex") or name.count("/") > _DEPTH:
            return
        state.modes[name] = stat.S_IMODE(info.st_mode)
        if stat.S_ISDIR(info.st_mode):
            self._look_in(folder, entry, name + "/", state, known, whole)

    # ------------------------------------------------------------------------------------------------ copies

    def _there(self) -> Iterator[str]:
        for base, _, names in os.walk(self._folder):
            for name in names:
                path = Path(base, name)
                copy = path.relative_to(self._folder).as_posix()
                size = path.lstat().st_size
                self._bytes += size
                if copy in self._before.objects and self._before.objects[copy][0] == size:
                    yield copy

    def _copy(self, name: str, size: int) -> None:
        target = self._folder / name
        private_dir(target.parent)
        temporary = target.with_name(f"tmp_{uuid.uuid4().hex}")
        with at(self._git / name) as place:
            if self._bytes + size > OBJECT_BYTES:
                # Not a copy, but it outlives the removal of the other name.
                try:
                    os.link(place.name, target, src_dir_fd=place.folder, follow_symlinks=False)
                except FileExistsError:
                    pass
                except OSError:
                    raise ProjectTooLargeError(f"its objects have more than {OBJECT_BYTES:,} bytes") from None
            else:
                with os.fdopen(place.open(os.O_RDONLY), "rb") as source, temporary.open("xb") as copy:
                    _copy_bytes(source.fileno(), copy.fileno())
                temporary.replace(target)
                self._bytes += size
        self._copied.add(name)

    # ------------------------------------------------------------------------------------------------ judging

    def _damaged_objects(self, before: _State, now: _State) -> set[str]:
        """Those that are there and are not what they were: no object ever changes."""
        changed = {
            name for name in before.objects.keys() & now.objects.keys() if before.objects[name] != now.objects[name]
        }
        return {
            name for name in changed if before.objects[name][0] != now.objects[name][0] or not self._is_its_copy(name)
        }

    def _is_its_copy(self, name: str) -> bool:
        try:
            with at(self._git / name) as place, (self._folder / name).open("rb") as copy:
                with os.fdopen(place.open(os.O_RDONLY), "rb") as file:
                    while (piece := file.read(1 << 20)) == copy.read(1 << 20):
                        if not piece:
                            return True
                return False
        except OSError:
            return name not in self._copied

    def _destroyed(self, before: _State, now: _State) -> tuple[dict[str, bytes], set[str]]:
        """The files to be put back, and the folders that are gone, by what no git leaves behind: a HEAD or a reference
        that says nothing, an index that is cut off, a branch that is gone while HEAD stays on it, or its log stays."""
        refs_before, refs_now = _references(before), _references(now)
        bad = {name for name in before.files if _is_broken(name, before, now)}
        bad |= {name for name in refs_before.keys() & now.files.keys() if not _says_something(now.files[name][1])}
        bad |= self._unknown(refs_before, refs_now)
        head = refs_before.get("HEAD", "")
        gone = {name for name in refs_before if name.startswith("refs/") and name not in refs_now}
        on = head.removeprefix("ref: ")
        unborn = on in gone and refs_now.get("HEAD", head) == head
        logged = {name for name in gone if f"logs/{name}" in now.files and f"logs/{name}" in before.files}
        folders = {"refs", "objects"} & (before.modes.keys() - now.modes.keys())
        if not (bad or unborn or logged or folders):
            return {}, set()
        wanted = bad | {name for name in before.files if _ours(name) and name not in now.files}
        if "" not in now.modes:  # all of it
            wanted |= before.files.keys()
        if "packed-refs" not in wanted:
            wanted |= gone
        stands = refs_now.get("HEAD", "").removeprefix("ref: ")
        if on in refs_before and stands not in refs_now and not _OBJECT_ID.fullmatch(stands.encode()):
            wanted.add("HEAD")
        back = {name: refs_before[name].encode() + b"\n" for name in wanted if name in refs_before}
        return back | {name: before.files[name][1] for name in wanted if name in before.files}, folders

    def _unknown(self, before: dict[str, str], now: dict[str, str]) -> set[str]:
        """References that were changed to name what the repository does not have."""
        moved = {name: value for name, value in now.items() if name in before and before[name] != value}
        ids = {value for value in moved.values() if _OBJECT_ID.fullmatch(value.encode())} - set(before.values())
        if not ids:
            return set()
        with self._own_git() as git:
            if git is None or git.run(self._git, "rev-list", "--no-walk", "--quiet", *ids, timeout=5) is not None:
                return set()
            missing = {one for one in list(ids)[:200] if git.run(self._git, "cat-file", "-e", one, timeout=5) is None}
        return {name for name, value in moved.items() if value in missing}

    def _connected(self, before: _State) -> bool:
        """Returns whether every object that something names is there: what is gone was not needed then."""
        values = set(_references(self._looked(before)).values())
        tips = [value for value in values if _OBJECT_ID.fullmatch(value.encode())][:_MOST_TIPS]
        with self._own_git() as git:
            if git is None:
                return False
            arguments = ("fsck", "--connectivity-only", "--cache", "--no-dangling", "--no-progress", "--no-reflogs")
            return git.run(self._git, *arguments, *tips, timeout=_CHECK_SECONDS) is not None

    def _own_git(self) -> contextlib.AbstractContextManager[OwnGit | None]:
        return own_git(Repository(self._root, self._git, self._git))

    # ------------------------------------------------------------------------------------------------ putting back

    def _open_again(self, before: _State) -> tuple[_State, bool]:
        """The repository as it is, and whether its owner had lost permissions, which are given back."""
        now, opened = self._looked(before), False
        for _ in range(_DEPTH):
            lost = [name for name, mode in now.modes.items() if before.modes.get(name, 0) & ~mode & stat.S_IRWXU]
            if not lost:
                break
            for name in lost:
                _set_mode(self._git / name if name else self._git, before.modes[name])
            now, opened = self._looked(before), True
        return now, opened

    def _put_files(self, files: dict[str, bytes]) -> None:
        if files:
            with contextlib.suppress(FileNotFoundError), at(self._git) as place:
                if not stat.S_ISDIR(place.info().st_mode):
                    place.unlink()
        for name, content in files.items():
            with at(self._git / name, make=True) as place:
                _clear(place)
                replace(place, content, self._before.modes.get(name), alone=True)
        for name in ("refs/heads", "refs/tags", "objects/pack", "objects/info"):
            with contextlib.suppress(OSError), entered(self._git / name, make=True):
                pass

    def _put_object(self, name: str) -> bool:
        try:
            content = (self._folder / name).read_bytes()
        except OSError:
            return False
        if len(content) != self._before.objects[name][0]:
            return False
        with at(self._git / name, make=True) as place:
            _clear(place)
            replace(place, content, self._before.modes.get(name, 0o444), alone=True)
        return True


def _ours(name: str) -> bool:
    return bool(_OURS.fullmatch(name)) or name.split("/", 1)[0] in _KEPT_FOLDERS


def _is_list(name: str) -> bool:
    """Returns whether git writes this file among the objects anew under the same name."""
    return name.startswith(("objects/info/", "objects/pack/multi-pack-index"))


def _is_broken(name: str, before: _State, now: _State) -> bool:
    """Returns whether a file that git always keeps, and that was there before, is gone or says nothing."""
    content = now.files[name][1] if name in now.files else None
    if content is not None and name in before.files and content == before.files[name][1]:
        return False
    if name == "HEAD":
        return content is None or not _says_something(content)
    if name == "index":
        return content is None or not _is_index(content)
    if (tree := _WORKTREE.fullmatch(name)) and tree[1] in now.modes:
        return content is None or not (_is_index(content) if tree[2] == "index" else _says_something(content))
    return name == "config" and content is None


def _says_something(content: bytes) -> bool:
    text = content.strip()
    return bool(_OBJECT_ID.fullmatch(text)) or (text.startswith(b"ref: ") and len(text) > 5)


def _is_index(content: bytes) -> bool:
    if content[:4] != b"DIRC" or len(content) < 32:
        return False
    for size, kind in ((20, hashlib.sha1), (32, hashlib.sha256)):
        if content[-size:] == kind(content[:-size], usedforsecurity=False).digest():
            return True
    return content[-20:] == bytes(20)  # index.skipHash


def _references(state: _State) -> dict[str, str]:
    found: dict[str, str] = {}
    if "packed-refs" in state.files:
        for line in state.files["packed-refs"][1].decode("utf-8", "surrogateescape").splitlines():
            value, _, name = line.partition(" ")
            if _OBJECT_ID.fullmatch(value.encode("utf-8", "surrogateescape")):
                found[name] = value
    for name, (_, content) in state.files.items():
        if (name == "HEAD" or name.startswith("refs/")) and _says_something(content):
            found[name] = content.decode("utf-8", "surrogateescape").strip()
    return found


def _read(folder: int, name: str, size: int, most: int) -> bytes | None:
    """The first ``most`` bytes of a file; None for one that is larger than what is kept of any."""
    if size > SMALL_BYTES:
        return None
    try:
        return Place(folder, Path(name)).read(most)[0]
    except OSError:
        return None


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


def _clear(place: Place) -> None:
    """Takes away what stands there and is no file."""
    with contextlib.suppress(FileNotFoundError):
        info = place.info()
        if stat.S_ISDIR(info.st_mode):
            os.rmdir(place.name, dir_fd=place.folder)
        elif not stat.S_ISREG(info.st_mode):
            place.unlink()


def _set_mode(path: Path, mode: int) -> None:
    """Sets the permission bits of a file or folder, never those that a link leads to."""
    with contextlib.suppress(OSError), at(path) as place:
        if not hasattr(os, "O_PATH"):
            os.chmod(place.name, mode, dir_fd=place.folder, follow_symlinks=False)
            return
        descriptor = place.open(os.O_PATH)
        try:
            if not stat.S_ISLNK(os.fstat(descriptor).st_mode):
                Path(f"/proc/self/fd/{descriptor}").chmod(mode)
        finally:
            os.close(descriptor)
