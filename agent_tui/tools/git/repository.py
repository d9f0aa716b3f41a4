"""What can be read of a repository without git: where it lies, its branch, the commit it is at.

Every file of it may be anyone's: sizes are bounded, devices and pipes are not opened, and what leads out of the
repository is not followed.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from agent_tui.paths import belongs_to_user, git_folder

SMALL = 65_536
_LARGEST = 50_000_000  # packed-refs of very many branches
_OBJECT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_HEADS = "refs/heads/"
_MAX_LINKS = 5  # of symbolic references, as git


@dataclass(slots=True, frozen=True)
class Repository:
    """``tree`` is the folder with the files, None in a bare repository. ``own`` holds HEAD and the index, ``common``
    objects, references and configuration; they differ in a linked worktree only. ``stranger``: ``own`` lies elsewhere
    and does not know ``tree``, so that it is perhaps another project's."""

    tree: Path | None
    own: Path
    common: Path
    stranger: bool = False

    @property
    def file(self) -> list[Path]:
        """The ``.git`` of the tree."""
        return [self.tree / ".git"] if self.tree is not None else []

    @property
    def branch(self) -> str:
        """``HEAD`` when none is checked out; empty when it cannot be read."""
        head = read_small(self.own / "HEAD", self.own).strip()
        if head.startswith("ref: " + _HEADS):
            name = head.removeprefix("ref: " + _HEADS)
            return "" if name == ".invalid" else name  # written where references are kept in another format
        return "HEAD" if _OBJECT.fullmatch(head) else ""

    @property
    def commit(self) -> str:
        """The name of the commit that is checked out; empty before the first one and where it cannot be read."""
        name = "HEAD"
        for _ in range(_MAX_LINKS):
            value = self._reference(name)
            if not value.startswith("ref: "):
                return value if _OBJECT.fullmatch(value) else ""
            name = value.removeprefix("ref: ").strip()
            if not name.startswith("refs/") or ".." in name:
                return ""
        return ""

    @property
    def other_format(self) -> bool:
        """References are kept in a format that is not read here (reftable)."""
        return (self.common / "reftable").is_dir()

    def _reference(self, name: str) -> str:
        for folder in (self.own, self.common):
            if text := read_small(folder / name, folder).strip():
                return text
        for line in read_small(self.common / "packed-refs", self.common, _LARGEST).splitlines():
            commit, _, packed = line.partition(" ")
            if packed == name:
                return commit
        return ""


def find_repository(folder: Path) -> Repository | None:
    """The repository ``folder`` is in; None when it is in none, and where the nearest is another user's: git would
    not look into that either."""
    found = _nearest(folder)
    if found is None or not belongs_to_user(found.tree or found.own, found.own, *found.file):
        return None
    return found


def _nearest(folder: Path) -> Repository | None:
    for place in (folder, *folder.parents):
        git = place / ".git"
        if git.is_dir() and git_folder(place) is not None:
            # A commondir in a plain .git is how a worktree says where the rest is; here it would be a trick.
            return Repository(place, git, git)
        if git.is_file():
            return _linked(place, git)
        if (place / "HEAD").is_file() and (place / "objects").is_dir() and (place / "refs").is_dir():
            return Repository(None, place, place)
    return None


def _linked(place: Path, file: Path) -> Repository | None:
    """A worktree's or submodule's: ``.git`` is a file that says where the repository is."""
    text = read_small(file, place)
    if not text.startswith("gitdir:"):
        return None
    own = _joined(place, text.removeprefix("gitdir:").strip())
    if own is None or not (own / "HEAD").is_file():
        return None
    pointer = read_small(own / "commondir", own).strip()
    common = (_joined(own, pointer) if pointer else own) or own
    return Repository(place, own, common, not _knows(own, common, place))


def _knows(own: Path, common: Path, place: Path) -> bool:
    """Whether a repository elsewhere says that ``place`` is a worktree or submodule of its own."""
    back = read_small(own / "gitdir", own).strip()
    if back:
        return own.is_relative_to(common) and _joined(own, back) == (place / ".git").resolve()
    from agent_tui.tools.git.values import read_values

    worktree = read_values(read_small(own / "config", own)).get("core.worktree", "")
    return bool(worktree) and _joined(own, worktree) == place.resolve()


def _joined(base: Path, name: str) -> Path | None:
    try:
        return (base / name).resolve() if name and "\0" not in name else None
    except (OSError, RuntimeError, ValueError):
        return None


def read_small(path: Path, within: Path, limit: int = SMALL) -> str:
    """The text of a regular file that really lies below ``within``; empty for anything else, and for what is larger
    than ``limit`` bytes."""
    try:
        if not path.resolve().is_relative_to(within.resolve()):
            return ""
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, RuntimeError, ValueError):
        return ""
    with os.fdopen(descriptor, "rb") as file:
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return ""
            data = file.read(limit + 1)
        except OSError:
            return ""
    return data.decode("utf-8", "surrogateescape") if len(data) <= limit else ""
