"""A damaged database made anew of what can be read of it. The damaged file is only ever read."""

from __future__ import annotations

import shutil
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from agent_tui.models.session import SessionInfo
from agent_tui.store.store import BUSY_TIMEOUT, Store
from agent_tui.store.tables.database import FAULTS, Database, newer
from agent_tui.store.tables.salvage import Content, salvage, scan
from agent_tui.store.tables.schema import MIGRATIONS

_HEADER = b"SQLite format 3\0"
_PAGE = 4096


@dataclass(slots=True)
class Report:
    """What was found: problems of the ``file`` as a whole, and of each session what is ``missing`` (empty: nothing)."""

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
        new = Database.open(folder / "new.db", BUSY_TIMEOUT, MIGRATIONS[: _version(old, path)])
        new.run("PRAGMA foreign_keys = OFF")
        with closing(new), new.writing():
            for table in _tables(new.connection):
                if not _copy_table(old, new, table):
                    report.file.append(f"not all of the table {table} can be read")
    with Store.open(folder / "new.db") as store:
        new = store.database
        new.run("PRAGMA foreign_keys = OFF")
        with store.transaction():
            _adopt(new, report)
        new.run("PRAGMA foreign_keys = ON")
        with store.transaction():
            for info in store.sessions(subagents=True):
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


def _version(old: sqlite3.Connection, path: Path) -> int:
    """How many migrations a damaged file has had: up to the last that made something it has. What later ones do to
    the rows still has to be done; the number in the file may be what is damaged, so it decides nothing alone."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        there = _columns(old)
        known: set[tuple[str, str]] = set()
        version = 1
        for number, migration in enumerate(MIGRATIONS, 1):
            for statement in migration:
                fresh.execute(statement)
            made = _columns(fresh)
            if there & (made - known):
                version = number
            known |= made
    claimed = _claimed(old)
    if claimed > len(MIGRATIONS) and there - known:
        raise newer(path, claimed, len(MIGRATIONS))
    return version


def _claimed(old: sqlite3.Connection) -> int:
    try:
        return int(old.execute("PRAGMA user_version").fetchone()[0])
    except FAULTS:
        return 0


def _columns(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    """Each column with its table, as far as the schema can be read."""
    found: set[tuple[str, str]] = set()
    try:
        for table in _tables(connection):
            found |= {(table, str(row[1])) for row in connection.execute(f"PRAGMA table_info({table})")}
    except FAULTS:
        pass
    return found


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
            "search, state) SELECT ?, x'', ?, x'', ?, ?, NULL, count(*), x'', x'', '{}' FROM message "
            "WHERE session_id = ? AND in_tree",
            (session_id, b"(recovered)", now, now, session_id),
        )
        report.file.append(f"the facts of session {session_id} are lost; its messages were recovered")
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
    store.put_session(info, new)
    for message in content.messages.values():
        store.put_message(info.id, message, in_tree=True)
    for summary in content.summaries.values():
        store.put_message(info.id, summary, in_tree=False)
    for step in content.steps:
        store.add_step(info.id, step)
    store.put_records(info.id, content.records)
    store.save_session(info)
    info.messages = store.session(info.id).messages
