"""The one way to what agent-tui reads by itself and sends to a model, and to what it writes by itself: memory files and
what they import, pins, attachments, skills, commands, types of subagents, prompt files; exports and imports.

Nobody judges a call here, so the border is in the opening: links are followed one by one, each place on the way is
held against the deny rules, no link that lies in the project leads out of it, and what is opened is what was looked at,
by the descriptors of the tools. Hard links are no links: a file in the project is the project's, whatever other names
it has, but for one that a rule denies.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from agent_tui.errors import AgentError
from agent_tui.paths import with_home
from agent_tui.records import dataclass
from agent_tui.text.numbers import size
from agent_tui.tools.files.beneath import at, is_within
from agent_tui.tools.files.text import create, replace

Reach = Literal["project", "own", "exact"]
"""How far a path leads: ``project``: nowhere out of the project and the added folders. ``own``: the user named it, and
may have links of their own; those of the project lead nowhere out of it. ``exact``: it was looked at before, and no
link may have come into its way since."""

_MOST_LINKS = 40
_NO_DISK = (("/", "proc"), ("/", "sys"))
"""Where files are what the kernel says: the environment with its keys among it."""


class BadFile(ValueError):
    """The file cannot be used; the text says why, as the end of a sentence about it."""


@dataclass(slots=True, frozen=True)
class Stamp:
    """Tells whether a file is still the one that was read, by the same rules."""

    modified: int
    size: int
    inode: int
    rules: tuple[str, ...]


@dataclass(slots=True, frozen=True)
class OpenedFile:
    """``path`` is where it really lies; ``info`` its state when ``data`` was read."""

    path: Path
    data: bytes
    info: os.stat_result


def follow(path: Path) -> tuple[Path, list[Path]]:
    """The place that an absolute path leads to, which need not exist, and the places of all links on the way. Raises
    OSError where they lead in a circle."""
    real, links = Path(path.anchor), list[Path]()
    todo = list(reversed(path.parts[1:]))
    while todo:
        name = todo.pop()
        if name == "..":
            real = real.parent
            continue
        real = real / name
        try:
            target = real.readlink()
        except OSError:
            continue  # no link, or nothing at all
        links.append(real)
        if len(links) > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        real = Path(target.anchor) if target.is_absolute() else real.parent
        todo += reversed(target.parts[1:] if target.is_absolute() else target.parts)
    return real, links


class FileAccess:
    """Reads and writes files in the name of the user, not of a tool. ``folders`` are the project's root and the folders
    added to it, ``denies`` says whether a rule keeps a path from being read (``patterns`` are those of all rules that
    do), and ``note`` is told of what goes to a model without a message."""

    def __init__(
        self,
        folders: Sequence[Path],
        denies: Callable[[Path], bool] = lambda path: False,
        patterns: Callable[[], Sequence[str]] = tuple,
        note: Callable[[Path], None] = lambda path: None,
    ) -> None:
        self.folders = [folder.resolve() for folder in folders]
        self.denies, self._patterns, self.note = denies, patterns, note

    @property
    def root(self) -> Path:
        return self.folders[0]

    def locate(self, path: Path, reach: Reach | None = None) -> Path:
        """Where a path really leads, as far as ``reach`` lets it; None: wherever that is. Raises BadFile."""
        try:
            written = Path(os.path.abspath(path))  # noqa: PTH100  (Path.absolute keeps what goes up)
            real, links = follow(path.absolute())
        except (OSError, ValueError) as error:
            raise BadFile(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
        if any(map(self.denies, dict.fromkeys((written, *links, real)))):
            raise BadFile("is kept from being read by a deny rule")
        if reach == "exact" and links:
            raise BadFile("is now reached by a link; name it again to use it")
        bound = reach == "project" or (reach == "own" and any(is_within(link, self.folders) for link in links))
        if bound and not is_within(real, self.folders):
            raise BadFile(f"leads out of the project{f', to {real}: name that to use it' if reach == 'own' else ''}")
        return real

    def stamp(self, path: Path) -> Stamp | None:
        """None where there is nothing; whether it may be read is seen when it is."""
        try:
            info = path.stat()
        except (OSError, ValueError):
            return None
        return Stamp(info.st_mtime_ns, info.st_size, info.st_ino, tuple(self._patterns()))

    def read(self, path: Path, limit: int, reach: Reach) -> OpenedFile:
        """At most ``limit`` bytes of a regular file, and one more of a larger one. Raises BadFile."""
        real = self.locate(path, reach)
        if real.parts[:2] in _NO_DISK:
            raise BadFile("is no file on a disk")
        try:
            with at(real) as place:
                data, info = place.read(limit + 1)
                # What was opened is judged, too: another name of a file may have taken its place since the look.
                if info.st_nlink > 1 and (self.denies(real) or place.info().st_ino != info.st_ino):
                    raise BadFile("is kept from being read by a deny rule")
        except OSError as error:
            if error.errno == errno.EINVAL:
                raise BadFile("is not a regular file") from None
            raise BadFile(f"cannot be read: {error.strerror or error}") from None
        return OpenedFile(real, data, info)

    def read_beginning(self, path: Path, limit: int, reach: Reach) -> str:
        """The file's text; what is over ``limit`` characters is cut, visibly. Raises BadFile."""
        data = self.read(path, limit * 4, reach).data
        if b"\0" in data:
            raise BadFile("is a binary file")
        text = data.decode("utf-8", "replace").removeprefix("\ufeff")
        if len(text) <= limit:
            return text
        return f"{text[:limit]}\n[… cut here: only the first {limit:,} characters are used …]"

    def read_whole(self, path: Path, limit: int, reach: Reach) -> OpenedFile:
        """All of a text file. Raises BadFile, also for what has more than ``limit`` bytes."""
        found = self.read(path, limit, reach)
        if len(found.data) > limit:
            raise BadFile(f"is larger than {size(limit)}")
        if b"\0" in found.data:
            raise BadFile("is a binary file")
        return found

    def read_given(self, path: Path, limit: int) -> bytes:
        """At most ``limit`` bytes, and one more, of what the user gave the program at its start: a file, which counts
        as read, or what their shell holds open for it. Raises BadFile."""
        whole = with_home(path).absolute()
        if whole == Path("/dev/stdin") or whole.parent in (Path("/dev/fd"), Path("/proc/self/fd")):
            try:
                with whole.open("rb") as file:
                    return file.read(limit + 1)
            except OSError as error:
                raise BadFile(f"cannot be read: {error.strerror or error}") from None
        found = self.read(whole, limit, "own")
        self.note(found.path)
        return found.data

    def write(
        self, path: Path, data: bytes, *, over: bool = False, make: bool = False, mode: int | None = None
    ) -> None:
        """Makes ``data`` a new file; with ``over`` also the content of one that is there, whole or not at all, while
        its other names keep what they have. ``make``: missing folders are made. Raises FileExistsError, and AgentError
        with what to do, also where the way leads over a link that lies in the project."""
        try:
            folder, links = follow(path.parent.absolute())
            if (link := next((link for link in links if is_within(link, self.folders)), None)) is not None:
                raise AgentError(f"Cannot write {path}: {link} is a link. Name the place it leads to, or remove it.")
            with at(folder / path.name, make=make) as place:
                if place.is_link():
                    raise AgentError(f"Cannot write {path}: it is a link. Name the file it leads to, or remove it.")
                if over:
                    replace(place, data, mode, alone=True)
                else:
                    create(place, data, mode)
        except FileExistsError:
            raise
        except (OSError, ValueError) as error:
            raise AgentError(f"Cannot write {path}: {getattr(error, 'strerror', None) or error}.") from None
