"""A project's folder: which repository it is, what git runs in it by itself, and whether a file of it was touched."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from agent_tui.paths import read_regular
from agent_tui.tools.git.repository import git_places
from agent_tui.tools.sandbox.protected import led_to

GIT_HOOKS = (Path(".githooks"), Path(".husky"))
"""Folders beside ``.git/hooks`` whose programs git runs by itself where it was told to."""
MOST_STAMPS = 10_000


def git_hooks(root: Path) -> list[Path]:
    """The programs that git runs by itself in a folder: those of the repository, of the folder that its configuration
    names, and of the usual ones beside it."""
    folders = [root / folder for folder in GIT_HOOKS]
    if (root / ".git").exists():
        try:
            folders.append(git_places(root / ".git")[1] / "hooks")
        except (OSError, ValueError):
            folders.append(root / ".git" / "hooks")
        folders += led_to(root)
    return [*dict.fromkeys(file for folder in folders for file in walk(folder) if file.suffix != ".sample")]


def walk(place: Path) -> Iterator[Path]:
    """The files at or below a place, in order; links are followed, each folder is entered once."""
    if not place.is_dir():
        if place.is_symlink() or place.exists():
            yield place
        return
    seen: set[str] = set()
    for folder, folders, names in os.walk(place, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        # What husky writes itself whenever packages are installed, and what Python does.
        folders[:] = sorted(
            f for f in folders if not (f == "_" and Path(folder).name == ".husky") and f != "__pycache__"
        )
        yield from (Path(folder, name) for name in sorted(names))


Stamps: TypeAlias = tuple[tuple[str, int, int, int], ...]


def stamps(root: Path, places: Iterable[Path], files: Iterable[str]) -> Stamps:
    """Changes whenever a file at or below the places, a program that git runs, or one of the ``files`` was written,
    added or removed; far cheaper than to read them. The time is that of the file's entry, which no program can set."""
    paths: dict[Path, None] = dict.fromkeys(root / place for place in places)
    paths |= dict.fromkeys(git_hooks(root))
    for place in [*paths]:
        paths |= dict.fromkeys(walk(place))
    for name in files:
        paths |= {root / name: None, (root / name).parent: None}
    found: list[tuple[str, int, int, int]] = []
    for path in islice(paths, MOST_STAMPS):
        try:
            info = path.stat()
        except OSError:
            found.append((str(path), 0, 0, 0))
        else:
            found.append((str(path), info.st_ctime_ns, info.st_size, info.st_ino))
    return tuple(found)


def identity_of(root: Path) -> str:
    """Tells a repository from another one that was put in its place; the same as long as it is the same clone.

    ``.git/description`` is written when a repository is made or cloned and hardly ever again, so its time is that
    of the clone, and it survives copies and backups that keep times, as inodes would not. The address of its origin
    counts as well. Where there is no repository, it is the folder itself.
    """
    git = root / ".git"
    try:
        if git.is_file():
            return _named("worktree", read_regular(git, 4_096).decode("utf-8", "replace"), str(git.stat().st_mtime_ns))
        if git.is_dir():
            made = git / "description"
            when = f"{made.stat().st_mtime_ns}" if made.is_file() else f"inode {git.stat().st_ino}"
            return _named("repository", when, _origin(git / "config"))
        return _named("folder", str(root.stat().st_ino))
    except OSError:
        return "unreadable"


def _origin(config: Path) -> str:
    """The addresses that a repository's configuration names for its remote ``origin``, read as text."""
    try:
        data = read_regular(config, 200_000)
    except OSError:
        return ""
    found: list[str] = []
    here = False
    for line in data.decode("utf-8", "replace").splitlines():
        text = line.strip()
        if text.startswith("["):
            here = text.replace(" ", "").lower().startswith('[remote"origin"]')
        elif here and text.lower().startswith("url"):
            found.append(text.partition("=")[2].strip())
    return "\n".join(found)


def _named(*texts: str) -> str:
    return hashlib.blake2b("\0".join(texts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
