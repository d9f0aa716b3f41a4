"""What ``sessions check`` and ``sessions repair`` do. The damaged file is only ever read, and kept."""

from __future__ import annotations

import dataclasses
import json
import os
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from agent_tui.errors import SessionBusyError, StoreError
from agent_tui.models.messages import new_id
from agent_tui.models.session import SessionInfo
from agent_tui.store.damage.rebuild import Report, rebuild, write_content
from agent_tui.store.lock import SessionLock
from agent_tui.store.search.index import remove_index
from agent_tui.store.store import Store
from agent_tui.store.tables.database import FAULTS, explain
from agent_tui.store.tables.salvage import Content
from agent_tui.text.numbers import plural

_SIDES = ("-wal", "-shm")


@dataclass(slots=True)
class Repaired:
    """``kept`` is the damaged original; ``report`` says what the repaired copy lacks."""

    kept: Path
    report: Report


def check(store: Store, session_id: str | None = None) -> Report:
    """Reads everything of one session, or of all and the file itself. Raises ``StoreError`` when there is no such
    session."""
    report = Report()
    if session_id is None:
        report.file += file_problems(store.database.connection)
        infos = store.sessions(subagents=True)
    else:
        infos = [store.session(session_id)]
    for info in infos:
        report.sessions.append((info, store.content(info.id).missing))
    return report


def file_problems(connection: sqlite3.Connection) -> list[str]:
    """What SQLite finds wrong with the file, at most ten lines."""
    try:
        rows = connection.execute("PRAGMA quick_check(10)").fetchall()
    except FAULTS as error:
        return [" ".join(str(error).split())]
    found = [" ".join(str(row[0]).split()) for row in rows]
    return [] if found == ["ok"] else found


def repair_session(store: Store, session_id: str) -> tuple[SessionInfo, Content] | None:
    """A copy of a damaged session with all of it that can be read; the damaged one stays as it is. None where nothing
    is missing. Raises ``StoreError``, also when the file itself is damaged."""
    info = store.session(session_id)
    content = store.content(info.id)
    if not content.missing:
        return None
    if file_problems(store.database.connection):
        raise StoreError("the file itself is damaged: `agent-tui sessions repair` without an ID repairs all of it")
    copy = dataclasses.replace(
        info, id=new_id("ses"), title=f"{info.title or 'untitled'} (repaired)", parent_session=info.id
    )
    with store.transaction():
        write_content(store, copy, content)
    return copy, content


def repair_file(path: Path) -> Repaired | None:
    """Puts a repaired copy of the database in its place, and the damaged file beside it under another name. None
    where nothing is damaged. Raises ``StoreError`` where it is in use, cannot be read at all or cannot be written;
    then nothing has changed."""
    if not path.is_file():
        raise StoreError(f"there is no session database at {path}")
    with _alone(path):
        problem = ""
        try:
            with Store.open(path) as store:
                if check(store).sound:
                    return None
        except StoreError as error:
            problem = str(error)
        try:
            with TemporaryDirectory(prefix="repair-", dir=path.parent) as folder:
                report = rebuild(path, Path(folder))
                if problem and not report.sessions:
                    raise StoreError(f"nothing can be recovered: {problem}")
                return Repaired(_exchange(path, Path(folder) / "new.db"), report)
        except FAULTS as error:
            raise explain(error, path) from error
        except OSError as error:
            raise StoreError(f"{path} cannot be repaired: {error.strerror or error}") from error


class _alone:
    """Holds the locks of all sessions that have one, so that no other agent-tui is at work on the file."""

    def __init__(self, path: Path) -> None:
        self._folder = path.parent / "locks"
        self._held: list[SessionLock] = []

    def __enter__(self) -> None:
        for file in sorted(self._folder.glob("*.lock")) if self._folder.is_dir() else ():
            try:
                self._held.append(SessionLock(file, file.stem, lambda lock: None))
            except SessionBusyError as error:
                self.__exit__()
                raise StoreError(f"{error}; close it before the repair") from error

    def __exit__(self, *exc: object) -> None:
        for lock in self._held:
            lock.release()


def _exchange(path: Path, new: Path) -> Path:
    """Puts ``new`` in the place of ``path``, which is kept under the name that is returned, its log beside it."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    kept = path.with_name(f"{path.name}.damaged-{stamp}")
    number = 1
    while kept.exists():
        number += 1
        kept = path.with_name(f"{path.name}.damaged-{stamp}-{number}")
    with new.open("rb") as file:
        os.fsync(file.fileno())
    new.chmod(0o600)
    moved: list[tuple[Path, Path]] = []
    remove_index(path)
    try:
        for suffix in (*_SIDES, ""):
            source, target = path.with_name(path.name + suffix), kept.with_name(kept.name + suffix)
            if source.exists():
                source.rename(target)
                moved.append((target, source))
        new.rename(path)
    except OSError:
        for target, source in reversed(moved):
            target.rename(source)
        raise
    return kept


def lines(report: Report) -> Sequence[str]:
    """A report for people, a line for each session and each problem of the file."""
    found = [f"damaged  the file: {problem}" for problem in report.file]
    for info, missing in report.sessions:
        state = "damaged" if missing else "ok"
        found.append(
            f"{state:<8} {info.id}  {plural(info.messages, 'message')}" + "".join(f"\n         - {m}" for m in missing)
        )
    return found


def as_json(report: Report) -> str:
    rows = [{"id": info.id, "messages": info.messages, "missing": missing} for info, missing in report.sessions]
    return json.dumps({"file": report.file, "sessions": rows}, indent=2)
