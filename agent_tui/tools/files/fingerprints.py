"""What the files are that a command names, and which of them are not as somebody accepted them: by their contents, of a
whole environment of packages by what the system says of them."""
# ruff: noqa: PTH114, PTH115  (thousands of paths a look)

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Mapping
from dataclasses import field
from operator import itemgetter
from pathlib import Path

from agent_tui.pipes.programs import may_be_written
from agent_tui.records import dataclass
from agent_tui.tools.files import beneath

MOST_BYTES, MOST_PACKAGED = 32_000_000, 60_000
"""Bytes of what a command names, and the files of an environment of packages: of more it is not known what runs."""

SETTLED_SECONDS = 1.0
"""Whoever wrote a file later than this before it is looked at may be about to write it again."""

BEING_WRITTEN = "? being written"
"""Stands for the content of such a file; what begins with ``?`` is not known, and the same as nothing else."""

TICK = 0.02
"""Seconds within which two changes of a file may have one time; systems count in fractions of that."""


@dataclass(slots=True, frozen=True)
class NamedFiles:
    """``files`` lie where commands may write, ``trees`` are environments of packages there; ``missing`` are scripts
    that are named and not there. ``imports``: modules beside a script are wanted. ``problem`` says why it cannot be
    told what would run; else empty. ``stamps`` say of files that were read for what they name which ones those were."""

    files: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    trees: tuple[str, ...] = ()
    imports: bool = False
    problem: str = ""
    stamps: Mapping[str, tuple[int, ...]] = field(default_factory=dict, compare=False)


def fingerprint(named: NamedFiles, root: Path, *, settled: bool = False) -> dict[str, str]:
    """What the files are, by their paths below ``root``, or whole for those elsewhere. With ``settled`` one that was
    written just now, and not read before, is ``BEING_WRITTEN``: it may change before it is used. So is one that is not
    the one that was read for what it names."""
    below = os.path.realpath(root)
    found = {_shown(path, below): _digest(path, settled, named.stamps.get(path)) for path in named.files}
    if settled:  # one that comes and goes is there when it is started
        found |= {_shown(path, below): BEING_WRITTEN for path in named.missing if _just_changed(path)}
    return found | {_shown(path, below) + "/": _tree_digest(path) for path in named.trees}


def changed_files(accepted: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The files that are not what was accepted. One that is gone counts only where the command still names it."""
    return [path for path, digest in now.items() if digest.startswith("?") or accepted.get(path) != digest]


def _just_changed(path: str) -> bool:
    """Returns whether something came into the folder of a file, or went, so lately that it may come again."""
    try:
        return 0 <= time.time() - Path(path).parent.stat().st_ctime < SETTLED_SECONDS
    except OSError:
        return False


def _shown(path: str, root: str) -> str:
    return path[len(root) + 1 :] if path.startswith(root + "/") else path


_read_before: dict[tuple[int, ...], str] = {}
"""Digests by what the system says of a file. Nobody but root can write a file and keep the time of its change."""


def stamp_of(info: os.stat_result) -> tuple[int, ...]:
    """Which file it is, and in which state."""
    return (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)


def _digest(path: str, settled: bool, read: tuple[int, ...] | None = None) -> str:
    real = os.path.realpath(path)
    link = f"{real} " if os.path.islink(path) else ""
    if link and not may_be_written(real):
        return f"leads to {real}"
    try:
        # A file that is as it was is not opened: who waits for that would know when to put another in its place.
        stamp = stamp_of(os.lstat(real))
        known = _read_before.get(stamp)
        if known is None:
            with beneath.at(Path(real)) as place:
                data, info = place.read(MOST_BYTES)
            known = hashlib.blake2b(data, digest_size=20).hexdigest()
            age = time.time() - info.st_ctime
            if settled and 0 <= age < SETTLED_SECONDS:
                return BEING_WRITTEN
            if 0 <= age < TICK:  # the next change would have the same time
                time.sleep(TICK)
                return _digest(path, settled, read)
            stamp = stamp_of(info)
            _read_before[stamp] = known
        return BEING_WRITTEN if settled and read not in (None, stamp) else link + known
    except FileNotFoundError:
        return "gone"
    except OSError as error:
        return f"? unreadable: {error.strerror}"


def _tree_digest(folder: str) -> str:
    """Of an environment of packages what the system says of its files: to read them takes seconds."""
    found, count, todo = hashlib.blake2b(digest_size=20), 0, [folder]
    while todo:
        at = todo.pop()
        try:
            with os.scandir(at) as entries:
                named = sorted(((entry.name, entry) for entry in entries), key=itemgetter(0))
        except OSError:
            continue
        found.update(os.fsencode(f"{at[len(folder) :]}\0{len(named)}\0"))
        count += len(named)
        for name, entry in named:
            if entry.is_dir(follow_symlinks=False):
                todo += [entry.path] if name != "__pycache__" else []
                continue
            with contextlib.suppress(OSError):
                target = os.readlink(entry.path) if entry.is_symlink() else ""
                found.update(os.fsencode(f"{name}\0{stamp_of(entry.stat(follow_symlinks=False))}{target}\0"))
        if count > MOST_PACKAGED:
            return f"? more than {MOST_PACKAGED:,} files"
    return found.hexdigest()
