"""Files as they were before a message changed them and as each branch left them, so that ``/rewind`` can restore them.

Git is never touched, nor any file that neither a tool nor a command changed. A file that others changed afterwards is
left alone and named. Of what commands of ``bash`` change, files that are ignored, large or links are not recorded: a
restore then skips such a file if a tool had changed it too.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import stat
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.errors import AgentError
from agent_tui.records import dataclass
from agent_tui.tools.files.beneath import at, info_of
from agent_tui.tools.files.kept import FileChange, KeptFiles, ProjectTooLargeError
from agent_tui.tools.files.repository_copy import RepositoryCopy
from agent_tui.tools.files.text import replace
from agent_tui.tools.git.repository import find_repository
from agent_tui.tools.sandbox.places import git_folders

if TYPE_CHECKING:
    from agent_tui.store.facts import Snapshot

MAX_BYTES = 20_000_000

# The store keeps the first state under a message and path. What the file was after each change is kept beside it, as
# a digest, and what it was when its branch was left, whole, under paths no file can have.
_AFTER, _LEFT = "\0after\0", "\0left\0"
_UNKNOWN, _MISSING = b"unknown", b"missing"

Save = Callable[[str, str, bytes | None, int | None], None]


@dataclass(slots=True, frozen=True)
class Changed:
    """A file that a command changed: what it was, None where it was not there, and the digest of what it is now."""

    path: Path
    content: bytes | None
    mode: int | None
    digest: bytes
    mode_now: int | None


def changed_since(changes: Iterable[FileChange]) -> list[Changed]:
    """``changes`` with what the files are now. Reads them: not for the UI's loop."""
    return [Changed(one.path, one.content, one.mode, _digest(one.path), _mode(one.path)) for one in changes]


class Snapshotter:
    """Gives the tools their ``before_change`` and ``after_change``. ``save`` is ``Store.snapshot`` of the session;
    ``message_id`` names the user message whose turn is running."""

    def __init__(self, save: Save, together: Callable[[], AbstractContextManager[object]] = nullcontext) -> None:
        """``together`` makes one transaction of what is saved within it."""
        self._save, self._together = save, together
        self.message_id = ""

    def begin_turn(self, message_id: str) -> None:
        """Counts what is changed from now on as part of this message of the user."""
        self.message_id = message_id

    def before_change(self, path: Path) -> None:
        """Records the file as it is. A link is recorded as what it is: nothing that could be restored."""
        if not self.message_id:
            return
        try:
            found = _whole(path)
        except FileNotFoundError:
            self._save(self.message_id, str(path), None, None)
            return
        if found is not None:
            self._save(self.message_id, str(path), *found)

    def after_change(self, path: Path) -> None:
        """Records what the file has become, to notice later changes by others."""
        if self.message_id:
            self._save(self.message_id, f"{_AFTER}{time.time_ns()}\0{path}", _digest(path), _mode(path))

    def changed(self, message_id: str, changes: Sequence[Changed]) -> None:
        """Records what a command did that ran in the turn of ``message_id``. Raises StoreError."""
        with self._together():
            for one in changes if message_id else ():
                self._save(message_id, str(one.path), one.content, one.mode)
                self._save(message_id, f"{_AFTER}{time.time_ns()}\0{one.path}", one.digest, one.mode_now)

    def keep(self, paths: Iterable[Path], message_id: str) -> None:
        """Records files as they are, whole, as what the branch of this message was left with."""
        for path in paths:
            try:
                found = _whole(path)
            except FileNotFoundError:
                self._save(message_id, f"{_LEFT}{time.time_ns()}\0{path}", None, None)
            except OSError:
                continue
            else:
                if found is not None:
                    self._save(message_id, f"{_LEFT}{time.time_ns()}\0{path}", *found)


@dataclass(slots=True, frozen=True)
class FileRestore:
    """``content`` None: the file did not exist and is removed."""

    path: Path
    content: bytes | None
    mode: int | None


@dataclass(slots=True)
class RestorePlan:
    """The changes that a restore would make; ``skipped`` are lines for the user, one for each file left as it is."""

    restores: list[FileRestore] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


@dataclass(slots=True, frozen=True)
class _State:
    digest: bytes
    content: bytes | None
    mode: int | None


class FileHistory:
    """All that is kept of a session's files. ``rows`` are the snapshots of the session, oldest first."""

    def __init__(self, rows: Iterable[Snapshot]) -> None:
        self._before: list[tuple[str, str, _State]] = []
        self._after: list[tuple[str, str, _State]] = []
        self._kept: dict[bytes, _State] = {}
        self._ours: dict[str, set[bytes]] = {}
        self._modes: dict[str, set[int | None]] = {}
        self._changed: set[str] = set()
        for row in rows:
            name = row.path.split("\0")[-1]
            self._modes.setdefault(name, set()).add(row.mode)
            if row.path.startswith(_AFTER):
                self._after.append((row.message_id, name, _State(row.content or _UNKNOWN, None, row.mode)))
                self._ours.setdefault(name, set()).add(row.content or _UNKNOWN)
                self._changed.add(name)
                continue
            state = _State(_digest_of(row.content), row.content, row.mode)
            self._kept[state.digest] = state
            if row.path.startswith(_LEFT):
                self._after.append((row.message_id, name, state))
            else:
                self._before.append((row.message_id, row.path, state))
                self._ours.setdefault(row.path, set()).add(state.digest)

    def plan(self, leaving: Collection[str], entering: Collection[str] = ()) -> RestorePlan:
        """Returns the plan that brings files from where the user messages ``leaving`` took them to where ``entering``
        left them: both are all that follow the message that the two branches share. A file that only the former changed
        becomes what it was before them."""
        plan = RestorePlan()
        for name, wanted in self._wanted(set(leaving), set(entering)).items():
            path = Path(name)
            now, mode_now = _digest(path), _mode(path)
            known = self._kept.get(wanted.digest)
            mode = wanted.mode if wanted.mode is not None or known is None else known.mode
            if mode_now is not None and mode_now not in self._modes[name]:
                mode = mode_now  # the user gave it since
            if now == wanted.digest and mode in (None, mode_now):
                continue
            # What a tool left behind, or any state that is kept here anyway (as after an earlier rewind), may go.
            problem = _problem(path, now, self._ours[name])
            if not problem and known is None and wanted.digest != _MISSING:
                problem = "its earlier content was not saved; left as is"
            if problem:
                plan.skipped.append(f"{name}: {problem}")
            else:
                content = None if known is None else known.content
                plan.restores.append(FileRestore(path, content, mode))
        return plan

    def to_keep(self, leaving: Collection[str]) -> list[Path]:
        """The files that these messages changed and that are now what the messages, or the user after them, made of
        them; of another branch's work nothing is to be kept for this one."""
        last = {name: state.digest for message, name, state in self._after if message in leaving}
        found = []
        for name, digest in last.items():
            now = _digest(Path(name))
            if now != _UNKNOWN and (now == digest or now not in self._ours[name]):
                found.append(Path(name))
        return found

    def _wanted(self, leaving: set[str], entering: set[str]) -> dict[str, _State]:
        wanted: dict[str, _State] = {}
        for message, name, state in self._before:
            # Where nothing came after, the change was announced and never made.
            if message in leaving and name in self._changed:
                wanted.setdefault(name, state)
        wanted.update((name, state) for message, name, state in self._after if message in entering)
        return wanted


def apply_restore(plan: RestorePlan) -> list[str]:
    """Does what ``plan`` says; returns its skipped lines and one more for each file that could not be restored, or not
    with all its names."""
    lines = list(plan.skipped)
    for restore in plan.restores:
        try:
            if others := _restore(restore):
                names = "another name keeps" if others == 1 else f"{others} other names keep"
                lines.append(f"{restore.path} was restored alone; {names} the newer content (hard links)")
        except OSError as error:
            lines.append(f"{restore.path}: {error.strerror or error}")
    return lines


def _problem(path: Path, now: bytes, ours: set[bytes]) -> str:
    try:
        if path.resolve() != path:
            return "a link points elsewhere now; left as is"
    except (OSError, RuntimeError):
        return "cannot be resolved; left as is"
    if now not in ours:
        return "changed since by something else; left as is"
    return ""


def _restore(restore: FileRestore) -> int:
    """How many other names of the file there are (hard links), which stay as they are: who gave them is not known."""
    if restore.content is None:
        with contextlib.suppress(FileNotFoundError), at(restore.path) as place:
            place.unlink()
        return 0
    with at(restore.path, make=True, change=True) as place:
        others = 0
        with contextlib.suppress(FileNotFoundError):
            others = place.info().st_nlink - 1
        replace(place, restore.content, restore.mode, alone=True)
        return others


def _whole(path: Path) -> tuple[bytes, int] | None:
    """Content and permission bits of a file; None for what is no regular file, or too large to keep. Raises OSError."""
    with at(path) as place:
        info = place.info()
        if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_BYTES:
            return None
        content, info = place.read(MAX_BYTES + 1)
        return (content, stat.S_IMODE(info.st_mode)) if len(content) <= MAX_BYTES else None


def _mode(path: Path) -> int | None:
    info = info_of(path)
    return None if info is None else stat.S_IMODE(info.st_mode)


def _digest(path: Path) -> bytes:
    try:
        with at(path) as place:
            return _digest_of(place.read()[0])
    except FileNotFoundError:
        return _MISSING
    except OSError:
        return _UNKNOWN


def _digest_of(content: bytes | None) -> bytes:
    return _MISSING if content is None else hashlib.blake2b(content, digest_size=20).digest()


log = logging.getLogger(__name__)

_REPOSITORIES = 20


class ProjectKeeping:
    """Satisfies ``Keeping`` of the tools: files that a command changed are recorded as if a tool had changed them, and
    of the repository there is a copy before the first command runs.

    ``folder`` is a private one, out of reach of commands. What cannot be kept is said once, and left out from then on.
    """

    def __init__(self, root: Path, folder: Path, snapshots: Snapshotter) -> None:
        self._root, self._folder, self._snapshots = root.resolve(), folder, snapshots
        self._files: KeptFiles | None = None
        self._copies: dict[Path, RepositoryCopy] = {}
        self._lock = asyncio.Lock()
        self._running = 0
        self._message = ""
        self._left_out = False
        self._notes: list[str] = []
        self._told: set[str] = set()

    async def before(self) -> None:
        """Takes project and repository as they are."""
        async with self._lock:
            if self._running:  # what runs beside it has changed that, and none of it is this command's
                await self._record()
            await asyncio.to_thread(self._look)
            self._message = self._snapshots.message_id
            self._running += 1

    async def after(self) -> list[str]:
        """Records what has changed; what there is to say of it."""
        async with self._lock:
            self._running -= 1
            await self._record()
            notes, self._notes = self._notes, []
            return notes

    async def _record(self) -> None:
        """Records what has changed, and says which repository is gone."""

        def changes() -> list[Changed]:
            for git, copy in self._copies.items():
                if (line := copy.way_back()) and copy.is_gone():
                    self._say(f"{git} is gone or damaged; as it was when the session began: {line}")
            return changed_since(self._changes())

        changed = await asyncio.to_thread(changes)
        try:
            self._snapshots.changed(self._message, changed)
        except AgentError as error:
            self._say(f"could not save for /rewind what the command changed: {error}")

    def _changes(self) -> list[FileChange]:
        if self._left_out:
            return []
        try:
            if self._files is None:
                self._files = KeptFiles(self._root, self._folder)
            return self._files.look()
        except (ProjectTooLargeError, OSError) as error:
            self._left_out = True
            self._say(f"/rewind cannot undo what commands change in this project: {error}")
            if self._files is not None:
                self._files.close()
                self._files = None
            return []

    def _look(self) -> None:
        self._changes()
        for git in self._repositories():
            if git not in self._copies:
                name = hashlib.blake2b(os.fsencode(git), digest_size=8).hexdigest()
                self._copies[git] = RepositoryCopy(git, self._folder / name)
            try:
                self._copies[git].take()
            except (ProjectTooLargeError, OSError) as error:
                self._say(f"there is no whole copy of {git}: {error}")

    def _repositories(self) -> list[Path]:
        """The folder of git that the project is in, and those of its submodules."""
        found = find_repository(self._root)
        if found is None or found.stranger:
            return []
        places = [found.common]
        with contextlib.suppress(OSError):
            places += [git for git in git_folders(found.common) if (git / "objects").is_dir()]
        return list(dict.fromkeys(place.resolve() for place in places))[:_REPOSITORIES]

    def _say(self, text: str) -> None:
        """Once in a session."""
        if text not in self._told:
            self._told.add(text)
            self._notes.append(f"[{text}]")
