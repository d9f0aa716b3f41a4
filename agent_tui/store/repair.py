"""Damaged databases: opened to look, rebuilt, checked and repaired. The damaged file is only ever read, and kept."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import field
from pathlib import Path
from tempfile import TemporaryDirectory

from agent_tui.errors import StoreDamagedError, StoreError, StoreUnwritableError
from agent_tui.models.messages import new_id
from agent_tui.models.session import SessionInfo
from agent_tui.records import dataclass
from agent_tui.store.aside import all_sessions_locked, move_aside
from agent_tui.store.database import FAULTS, Database, copied_files, explain, newer
from agent_tui.store.locks import PassingFolder
from agent_tui.store.salvage import Content, salvage, scan
from agent_tui.store.schema import VERSION, create_schema, version_of
from agent_tui.store.store import BUSY_TIMEOUT, Store
from agent_tui.text.numbers import plural

_HEADER = b"SQLite format 3\0"
_PAGE = 4096


@dataclass(slots=True)
class Report:
    """The findings of a check: problems of the ``file`` as a whole, and of each session what is ``missing`` (empty:
    nothing)."""

    file: list[str] = field(default_factory=list)
    sessions: list[tuple[SessionInfo, list[str]]] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        return not self.file and not any(missing for _, missing in self.sessions)


def rebuild(path: Path, folder: Path) -> Report:
    """A new database in ``folder`` with all that can be read of the damaged one. Raises ``StoreError`` for one of a
    newer version, of which this one would lose what it does not know."""
    damaged = folder / "damaged.db"
    for suffix in ("", "-wal"):
        source = path.with_name(path.name + suffix)
        if source.exists():
            shutil.copyfile(source, damaged.with_name(damaged.name + suffix))
    report = Report()
    with closing(_opened(damaged)) as old:
        old.text_factory = lambda data: data.decode("utf-8", "replace")
        _refuse_newer(old, path)
        new = Database.open(folder / "new.db", BUSY_TIMEOUT)
        new.run("PRAGMA foreign_keys = OFF")
        with closing(new), new.writing():
            for table in _tables(new.connection):
                if not _copy_table(old, new, table):
                    report.file.append(f"part of the table {table} is unreadable")
    with Store.open(folder / "new.db") as store:
        new = store.database
        new.run("PRAGMA foreign_keys = OFF")
        with store.transaction():
            _adopt(new, report)
        new.run("PRAGMA foreign_keys = ON")
        with store.transaction():
            for info in store.sessions.all(subagents=True):
                missing = store.content(info.id).missing
                if missing:
                    content = salvage(new.connection, info.id, info.head_id)
                    _empty(new, info.id)
                    write_content(store, info, content, new=False)
                report.sessions.append((info, missing))
        new.run("PRAGMA wal_checkpoint(TRUNCATE)")
    return report


def _opened(path: Path) -> sqlite3.Connection:
    """A connection to a damaged file; what is fixed about the head of ours is put right in the copy."""
    try:
        return _connected(path)
    except (sqlite3.DatabaseError, UnicodeError):
        pages = path.stat().st_size // _PAGE
    with path.open("r+b") as file:
        # sqlite.org/fileformat2.html: magic, page size, write-ahead log, no reserved bytes, the fixed fractions; how
        # many pages there are, and that this number holds; schema format 4; UTF-8.
        file.write(
            _HEADER + _PAGE.to_bytes(2, "big") + b"\x02\x02\x00\x40\x20\x20" + bytes(4) + pages.to_bytes(4, "big")
        )
        for place, value in ((44, 4), (56, 1), (92, 0)):
            file.seek(place)
            file.write(value.to_bytes(4, "big"))
    return _connected(path)


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        # So SQLite reads a file that is shorter than it should be, and one whose schema it does not like.
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _refuse_newer(old: sqlite3.Connection, path: Path) -> None:
    """Raises ``StoreError`` where a file says that it is of a newer version, and has tables that this one has not."""
    try:
        claimed = version_of(old)
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
            create_schema(fresh)
            unknown = set(_tables(old)) - set(_tables(fresh))
    except FAULTS:
        return
    if claimed > VERSION and unknown:
        raise newer(path, claimed)


def _tables(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    return sorted(row[0] for row in rows)


def _copy_table(old: sqlite3.Connection, new: Database, table: str) -> bool:
    """Copies the rows that can be read and fit; False when there were others."""
    facts = new.all(f"PRAGMA table_info({table})")
    keys = [row[1] for row in sorted(facts, key=lambda row: int(row[5])) if row[5]] or ["rowid"]
    columns = [*keys, *(row[1] for row in facts if row[1] not in keys)]
    try:
        there = {row[1] for row in old.execute(f"PRAGMA table_info({table})")}
    except FAULTS:
        return False
    columns = [column for column in columns if column in there or column == "rowid"]
    if len(columns) < 2 and not there:
        return False
    names = ", ".join(columns)
    rows, whole = scan(old, table, names, keys)
    marks = ", ".join("?" * len(columns))
    for row in rows:
        try:
            new.connection.execute(f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})", row)
        except sqlite3.IntegrityError:
            whole = False
    return whole


def _adopt(new: Database, report: Report) -> None:
    """Gives messages whose session is lost a session again, and drops rows that belong to nothing."""
    lost = new.all("SELECT DISTINCT session_id FROM message WHERE session_id NOT IN (SELECT id FROM session)")
    now = time.time()
    for (session_id,) in lost:
        new.run(
            "INSERT OR IGNORE INTO session (id, project, title, model, created, updated, head_id, messages, preview, "
            "kind, state) SELECT ?, x'', ?, x'', ?, ?, NULL, count(*), x'', 'user', '{}' FROM message "
            "WHERE session_id = ? AND in_tree",
            (session_id, b"(recovered)", now, now, session_id),
        )
        report.file.append(f"title, model and settings of session {session_id} are lost; its messages were recovered")
    for _ in range(3):
        orphans = new.all("PRAGMA foreign_key_check")
        if not orphans:
            return
        for table, row in {(row[0], row[1]) for row in orphans if row[1] is not None}:
            new.run(f"DELETE FROM {table} WHERE rowid = ?", (row,))
        # Tables without row ids cannot be named by one.
        new.run("DELETE FROM part WHERE message NOT IN (SELECT n FROM message)")


def _empty(new: Database, session_id: str) -> None:
    for table in ("message", "step", "compaction"):
        new.run(f"DELETE FROM {table} WHERE session_id = ?", (session_id,))


def write_content(store: Store, info: SessionInfo, content: Content, new: bool = True) -> None:
    """Writes a session and what was read of it, in one transaction of the caller's."""
    info.head_id = content.head_id
    info.messages = 0
    (store.sessions.insert if new else store.sessions.replace)(info)
    for message in content.messages.values():
        store.messages.insert(info.id, message, in_tree=True)
    for summary in content.summaries.values():
        store.messages.insert(info.id, summary, in_tree=False)
    for step in content.steps:
        store.steps.add(info.id, step)
    for record in content.records:
        store.compactions.insert(info.id, record)
    store.sessions.save(info)
    info.messages = store.sessions.get(info.id).messages


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
        infos = store.sessions.all(subagents=True)
    else:
        infos = [store.sessions.get(session_id)]
    for info in infos:
        report.sessions.append((info, store.content(info.id).missing))
    return report


def file_problems(connection: sqlite3.Connection) -> list[str]:
    """Returns the problems that SQLite finds in the file, at most ten lines."""
    try:
        rows = connection.execute("PRAGMA quick_check(10)").fetchall()
    except FAULTS as error:
        return [" ".join(str(error).split())]
    found = [" ".join(str(row[0]).split()) for row in rows]
    return [] if found == ["ok"] else found


def repair_session(store: Store, session_id: str) -> tuple[SessionInfo, Content] | None:
    """A copy of a damaged session with all of it that can be read; the damaged one stays as it is. None where nothing
    is missing. Raises ``StoreError``, also when the file itself is damaged."""
    info = store.sessions.get(session_id)
    content = store.content(info.id)
    if not content.missing:
        return None
    if file_problems(store.database.connection):
        raise StoreError(
            "the file itself is damaged: run `agent-tui sessions repair` without an ID to repair all of it"
        )
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
        raise StoreError(f"no session database at {path}")
    with all_sessions_locked(path, BUSY_TIMEOUT):
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
            raise StoreError(f"cannot repair {path}: {error.strerror or error}") from error


def _exchange(path: Path, new: Path) -> Path:
    """Puts ``new`` in the place of ``path``, which is kept under the name that is returned, its log beside it."""
    with new.open("rb") as file:
        os.fsync(file.fileno())
    new.chmod(0o600)
    return move_aside(path, time.strftime("damaged-%Y%m%d-%H%M%S"), new)


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


def open_for_reading(path: Path, busy_timeout: float = BUSY_TIMEOUT) -> Store:
    """As ``Store.open``; where the file or its folder cannot be written, the disk is full, or the file is so damaged
    that SQLite refuses it, a private copy of what can be read is opened, which refuses writes and says so in
    ``problem``. Without a file, that is an empty database. Raises ``StoreError`` as ``open`` does for all else, and
    where something that is no folder is in the way."""
    try:
        return Store.open(path, busy_timeout)
    except (StoreUnwritableError, StoreDamagedError) as error:
        if _no_folder(path):
            raise
        folder = PassingFolder()
        damaged = isinstance(error, StoreDamagedError)
        try:
            make = _salvaged if damaged else _copied
            database = make(path, folder.path, busy_timeout)
        except (OSError, sqlite3.Error, StoreError):
            folder.cleanup()
            raise error from None
        problem = str(error)
    database.forbid_writing()
    database.path = path
    return Store(database, folder, problem=problem, damaged=damaged)


def _no_folder(path: Path) -> bool:
    """Returns whether a file stands where one of the path's folders should be: nothing was ever stored there."""
    return any(parent.exists() and not parent.is_dir() for parent in path.parents)


def _copied(path: Path, folder: Path, busy_timeout: float) -> Database:
    """A copy of a database that cannot be written, with what its log holds. Raises OSError and ``StoreError``."""
    if not path.exists():
        return Database.in_memory(path)
    return Database.open(copied_files(path, folder), busy_timeout)


def _salvaged(path: Path, folder: Path, busy_timeout: float) -> Database:
    """Returns a database of all that can be read of a damaged one. Raises OSError and ``StoreError``, also when that is
    nothing."""

    if not rebuild(path, folder).sessions:
        raise StoreError("nothing is readable")
    return Database.open(folder / "new.db", busy_timeout)
