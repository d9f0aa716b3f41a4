"""Files as they were before a message changed them, so that ``/rewind`` can restore them.

Git is never touched, nor any file a tool did not change. A file that others changed afterwards is left alone and named.
What commands of ``bash`` change is not recorded: a restore then skips such a file if a tool had changed it too.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
import uuid
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

MAX_BYTES = 20_000_000

# The store keeps the first state under a message and path. What the file was after each change is kept beside it, as
# a digest, under a path no file can have.
_AFTER = "\0after\0"
_UNKNOWN = b"unknown"

Save = Callable[[str, str, bytes | None, int | None], None]


class StoredSnapshot(Protocol):
    """A row of the store, oldest first: the file as it was before ``message_id`` changed it; None: not there."""

    @property
    def message_id(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def content(self) -> bytes | None: ...
    @property
    def mode(self) -> int | None: ...


class Snapshotter:
    """Gives the tools their ``before_change`` and ``after_change``. ``save`` is ``Store.snapshot`` of the session;
    ``message_id`` names the user message whose turn is running."""

    def __init__(self, save: Save) -> None:
        self._save = save
        self.message_id = ""

    def begin_turn(self, message_id: str) -> None:
        """What is changed from now on belongs to this message of the user."""
        self.message_id = message_id

    def before_change(self, path: Path) -> None:
        """Records the file as it is. A link is recorded as what it is: nothing that could be restored."""
        if not self.message_id:
            return
        try:
            info = path.lstat()
        except FileNotFoundError:
            self._save(self.message_id, str(path), None, None)
            return
        if stat.S_ISREG(info.st_mode) and info.st_size <= MAX_BYTES:
            self._save(self.message_id, str(path), path.read_bytes(), stat.S_IMODE(info.st_mode))

    def after_change(self, path: Path) -> None:
        """Records what the file has become, to notice later changes by others."""
        if self.message_id:
            self._save(self.message_id, f"{_AFTER}{time.time_ns()}\0{path}", _digest(path), None)


@dataclass(slots=True, frozen=True)
class FileRestore:
    """``content`` None: the file did not exist and is removed."""

    path: Path
    content: bytes | None
    mode: int | None


@dataclass(slots=True)
class RestorePlan:
    """What a restore would do; ``skipped`` are lines for the user, one for each file left as it is."""

    restores: list[FileRestore] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def plan_restore(snapshots: Iterable[StoredSnapshot], message_ids: Collection[str]) -> RestorePlan:
    """How to bring back the files as they were before the messages ``message_ids`` (all user messages that a rewind
    takes back). ``snapshots`` are all of the session's, oldest first."""
    wanted = set(message_ids)
    first: dict[str, StoredSnapshot] = {}
    became: dict[str, bytes] = {}
    kept: dict[str, set[bytes]] = {}
    for row in snapshots:
        if row.path.startswith(_AFTER):
            became[row.path.removeprefix(_AFTER).partition("\0")[2]] = row.content or _UNKNOWN
            continue
        kept.setdefault(row.path, set()).add(_digest_of(row.content))
        if row.message_id in wanted:
            first.setdefault(row.path, row)
    plan = RestorePlan()
    for name, row in first.items():
        path = Path(name)
        if name not in became:
            continue  # the change was announced and never made
        # What a tool left behind, or any state that is kept here anyway (as after an earlier rewind), may go.
        problem = _problem(path, {became[name]} | kept[name])
        if problem:
            plan.skipped.append(f"{name}: {problem}")
        elif _digest(path) != _digest_of(row.content):
            plan.restores.append(FileRestore(path, row.content, row.mode))
    return plan


def apply_restore(plan: RestorePlan) -> list[str]:
    """Does what ``plan`` says; returns its skipped lines and one more for each file that could not be restored."""
    lines = list(plan.skipped)
    for restore in plan.restores:
        try:
            _restore(restore)
        except OSError as error:
            lines.append(f"{restore.path}: {error.strerror or error}")
    return lines


def _problem(path: Path, ours: set[bytes]) -> str:
    try:
        if path.resolve() != path:
            return "a link leads elsewhere now; left as it is"
    except (OSError, RuntimeError):
        return "cannot be resolved; left as it is"
    if _digest(path) not in ours:
        return "changed since by others; left as it is"
    return ""


def _restore(restore: FileRestore) -> None:
    path = restore.path
    if restore.content is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name[:50]}.{uuid.uuid4().hex[:12]}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(restore.content)
        if restore.mode is not None:
            temporary.chmod(restore.mode)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _digest(path: Path) -> bytes:
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return _UNKNOWN
        return _digest_of(path.read_bytes())
    except FileNotFoundError:
        return _digest_of(None)
    except OSError:
        return _UNKNOWN


def _digest_of(content: bytes | None) -> bytes:
    return b"missing" if content is None else hashlib.blake2b(content, digest_size=20).digest()
