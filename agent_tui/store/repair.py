"""The session database checked, and made anew of what is sound in it and in its backups. What is damaged is only ever
read, and kept."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agent_tui.errors import StoreDamagedError, StoreError, StoreOlderError
from agent_tui.models.messages import Message
from agent_tui.models.session import SessionInfo
from agent_tui.models.steps import FixedSets
from agent_tui.records import dataclass
from agent_tui.store.aside import all_sessions_locked, move_aside
from agent_tui.store.backup import backups_of, day_of_backup, opened_unchanged, problems_of
from agent_tui.store.database import FAULTS, UNREADABLE, Database, copied_files, explain, newer
from agent_tui.store.rows import (
    COLUMNS,
    MESSAGE_COLUMNS,
    RECORD_COLUMNS,
    STEP_COLUMNS,
    load_counts,
    load_fixed,
    load_message,
    load_object,
    load_part,
    load_record,
    load_step,
    load_waiting,
    session_of,
)
from agent_tui.store.schema import VERSION, version_of
from agent_tui.store.store import BUSY_TIMEOUT, Store
from agent_tui.text.numbers import plural

log = logging.getLogger(__name__)

Row = dict[str, Any]


@dataclass(slots=True)
class RepairReport:
    """The findings of a check: problems of the ``file`` as a whole, and of each session (empty: none)."""

    file: list[str] = field(default_factory=list)
    sessions: list[tuple[SessionInfo, str]] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        return not self.file and not any(problem for _, problem in self.sessions)

    def lines(self) -> list[str]:
        """The report for people, a line for each problem of the file and each session."""
        found = [f"damaged  the file: {problem}" for problem in self.file]
        for info, problem in self.sessions:
            state = "damaged" if problem else "ok"
            found.append(f"{state:<8} {info.id}  {plural(info.messages, 'message')}{problem and f'  ({problem})'}")
        return found

    def as_json(self) -> str:
        rows = [{"id": info.id, "messages": info.messages, "problem": what} for info, what in self.sessions]
        return json.dumps({"file": self.file, "sessions": rows}, indent=2)


def check(store: Store, session_id: str | None = None) -> RepairReport:
    """Reads everything of one session, or of all and the file itself. Raises ``StoreError`` when there is no such
    session."""
    report = RepairReport()
    if session_id is None:
        report.file += problems_of(store.database.connection)
        try:
            infos = store.sessions.all(subagents=True)
        except StoreError as error:
            report.file.append(str(error))
            return report
    else:
        infos = [store.sessions.listed(session_id)]
    for info in infos:
        try:
            store.content(info.id)
            report.sessions.append((info, ""))
        except StoreError as error:
            report.sessions.append((info, error.what if isinstance(error, StoreDamagedError) else str(error)))
    return report


@dataclass(slots=True)
class Repaired:
    """A repair as it was done: ``kept`` is the damaged original, ``backup`` the day of the backup that something was
    taken from, empty for none; ``sessions`` are there now, ``empty`` of them without a message."""

    kept: Path = Path()
    backup: str = ""
    sessions: int = 0
    empty: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    """How many rows of each table were read and make no sense, or belong to nothing."""
    unread: list[str] = field(default_factory=list)
    """The tables of the damaged file that could not be read to their end."""

    def line(self) -> str:
        """Says in one line what was done, and lost."""
        lost = [plural(count, *_NAMES.get(what, ("other row",))) for what, count in self.lost.items() if count]
        if self.unread:
            lost.append(f"what was stored after {f'the backup of {self.backup}' if self.backup else 'the damage'}")
        used = f" with the backup of {self.backup}" if self.backup else ""
        there = plural(self.sessions, "session") + (f", {self.empty} of them without messages" if self.empty else "")
        return (
            f"Repaired the database{used}: {there}. Lost: {', '.join(lost) or 'nothing'}. The damaged one is kept as "
            f"{self.kept}."
        )


_NAMES = {
    "session": ("session",),
    "session facts": ("session's title and settings", "sessions' titles and settings"),
    "message": ("message",),
    "message facts": ("message's details", "messages' details"),
    "part": ("part of a message", "parts of messages"),
    "waiting": ("message that waited", "messages that waited"),
    "place": ("message's place", "messages' places"),
    "end": ("end of a conversation", "ends of conversations"),
    "fixed_set": ("system prompt with tools", "system prompts with tools"),
    "step": ("step",),
    "compaction": ("compaction",),
    "snapshot": ("earlier state of a file", "earlier states of files"),
}
"""Names for one, and for several."""


def repair_file(path: Path) -> Repaired | None:
    """Puts a sound database in the place of a damaged one, which is kept beside it under another name: of each table
    the rows that can be read, and where some cannot, those of the newest backup. None where nothing is damaged. Raises
    ``StoreError`` where it is in use, nothing of it can be read, or it cannot be written; then nothing has changed."""
    if not path.is_file():
        raise StoreError(f"no session database at {path}")
    problem = "it has no session"
    try:
        with closing(Database.open(path, BUSY_TIMEOUT)) as database:
            if check(Store(database)).sound:
                return None
    except StoreOlderError:
        raise
    except StoreError as error:
        problem = str(error)
    with all_sessions_locked(path, BUSY_TIMEOUT):
        try:
            with TemporaryDirectory(prefix="repair-", dir=path.parent) as name:
                folder = Path(name)
                repaired = _make_anew(path, folder)
                if not repaired.sessions and not repaired.backup:
                    raise StoreError(f"nothing can be recovered, and no backup is sound: {problem}")
                repaired.kept = move_aside(path, time.strftime("damaged-%Y%m%d-%H%M%S"), folder / "new.db")
                return repaired
        except FAULTS as error:
            raise explain(error, path) from error
        except OSError as error:
            raise StoreError(f"cannot repair {path}: {error.strerror or error}") from error


def _make_anew(path: Path, folder: Path) -> Repaired:
    """Makes ``new.db`` in ``folder``. Raises ``StoreError`` for a file of a newer version, of which this one would lose
    what it does not know."""
    repaired, target = Repaired(), folder / "new.db"
    with ExitStack() as opened:
        connections = [("", sqlite3.connect(copied_files(path, folder), isolation_level=None))]
        connections += [(day_of_backup(backup), opened_unchanged(backup)) for backup in backups_of(path)]
        for _, connection in connections:
            opened.enter_context(closing(connection))
        sources = [(day, connection) for day, connection in connections if _is_ours(connection, path)]
        new = opened.enter_context(closing(Database.open(target, BUSY_TIMEOUT)))
        new.run("PRAGMA foreign_keys = OFF")
        with new.writing():
            for (table,) in new.all("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"):
                _copy_table(sources, new, table, repaired)
            for table, where in _ORPHANS:
                repaired.lost[table] += new.run(f"DELETE FROM {table} WHERE {where}").rowcount
            for what, statement in _MENDS:
                repaired.lost[what] += new.run(statement).rowcount
            new.run(_LENGTHS)
        repaired.sessions, repaired.empty = new.one(
            "SELECT count(*), count(*) FILTER (WHERE messages = 0) FROM session"
        )
    with target.open("rb") as file:
        os.fsync(file.fileno())
    return repaired


def _is_ours(connection: sqlite3.Connection, path: Path) -> bool:
    """Returns whether SQLite reads a file that may be damaged, as one of the present version."""
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    try:
        version = version_of(connection)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except FAULTS:
        return False
    if version > VERSION:
        raise newer(path, version)
    return version == VERSION


def _copy_table(
    sources: Sequence[tuple[str, sqlite3.Connection]], new: Database, table: str, repaired: Repaired
) -> None:
    """Copies the sound rows of the file, and of the backups those that it has not, or not sound."""
    facts = new.all(f"PRAGMA table_info({table})")
    columns, keys = [row[1] for row in facts], [row[1] for row in facts if row[5]]
    insert = f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    unsound: dict[tuple[Any, ...], Row] = {}
    was_read = is_file_read = False
    for day, connection in sources:
        try:
            for values in connection.execute(f"SELECT {', '.join(columns)} FROM {table} NOT INDEXED"):
                row = dict(zip(columns, values, strict=True))
                key = tuple(row[name] for name in keys)
                if was_read and key not in unsound:
                    continue  # deleted since
                if not is_sound(table, row):
                    unsound.setdefault(key, row)
                elif new.run(insert, values).rowcount:
                    unsound.pop(key, None)
                    repaired.backup = repaired.backup or day
            was_read, is_file_read = True, is_file_read or not day
        except FAULTS as error:
            log.info("%s is not read to its end: %s", table, error)
        if was_read and not unsound:
            break
    if not is_file_read:
        repaired.unread.append(table)
    for row in unsound.values():
        plain = next((one for less in _PLAIN.get(table, ()) if is_sound(table, one := row | less)), None)
        if plain is not None:
            new.run(insert, tuple(plain.values()))
        repaired.lost[table if plain is None else f"{table} facts"] += 1


def is_sound(table: str, row: Row) -> bool:
    """Returns whether a row makes what it is read as."""
    load = _LOADS.get(table)
    try:
        if load is not None:
            load(row)
    except UNREADABLE:
        return False
    return True


def _load_message(row: Row) -> Message:
    if row["in_tree"] not in (0, 1):
        raise ValueError("neither in the tree nor outside it")
    columns = {name: row[name] for name in MESSAGE_COLUMNS}
    return load_message({**load_object(row["data"]), **columns, "counts": load_counts(row["counts"]), "parts": []})


_LOADS: Mapping[str, Callable[[Row], object]] = {
    "session": lambda row: session_of([row[name] for name in COLUMNS.split(", ")]),
    "message": _load_message,
    "part": lambda row: load_part(load_object(row["data"])),
    "waiting": lambda row: load_waiting(row["data"]),
    "step": lambda row: load_step(
        {**load_object(row["data"]), **{name: row[name] for name in STEP_COLUMNS}, "fixed": ()}
    ),
    "compaction": lambda row: load_record(
        {**load_object(row["data"]), **{name: row[name] for name in RECORD_COLUMNS}, "active": bool(row["active"])}
    ),
    "fixed_set": lambda row: load_fixed(row["data"], FixedSets()),
}

_NO_FACTS: Row = {
    "project": b"",
    "title": b"(repaired)",
    "model": b"",
    "created": 0.0,
    "updated": 0.0,
    "messages": 0,
    "preview": b"",
    "state": "{}",
}
_PLAIN: Mapping[str, Sequence[Row]] = {
    "session": (_NO_FACTS, _NO_FACTS | {"head_id": None, "parent_session": None, "kind": "user"}),
    "message": ({"raw_tokens": None, "counts": None, "data": "{}"},),
}
"""What says nothing, in the place of what makes no sense; the first that will do. A session's messages and a message's
parts are in rows of their own."""

_HEADLESS = "session_id NOT IN (SELECT id FROM session)"
_SUMMARY = "json_extract(compaction.data, '$.summary_id')"
_ORPHANS = (
    *((table, _HEADLESS) for table in ("message", "waiting", "step", "compaction", "snapshot")),
    ("part", "message NOT IN (SELECT n FROM message)"),
    # Without its content, a snapshot would say that there was no file.
    ("snapshot", "content_id IS NOT NULL AND content_id NOT IN (SELECT id FROM content)"),
    (
        "compaction",
        f"{_SUMMARY} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM message AS m WHERE m.session_id = compaction.session_id "
        f"AND m.id = {_SUMMARY} AND NOT m.in_tree)",
    ),
)

_NEWEST = "(SELECT m.id FROM message AS m WHERE m.session_id = {} AND m.in_tree AND m.n < {} ORDER BY m.n DESC LIMIT 1)"
_MENDS = (
    ("fixed_set", "UPDATE step SET fixed_id = NULL WHERE fixed_id NOT IN (SELECT id FROM fixed_set)"),
    # A message whose parent is lost follows the one that was added before it.
    (
        "place",
        f"UPDATE message SET parent_id = {_NEWEST.format('message.session_id', 'message.n')} "
        "WHERE in_tree AND parent_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM message AS p "
        "WHERE p.session_id = message.session_id AND p.id = message.parent_id AND p.in_tree AND p.n < message.n)",
    ),
    (
        "end",
        f"UPDATE session SET head_id = {_NEWEST.format('session.id', '9e18')} WHERE head_id IS NOT NULL AND NOT EXISTS "
        "(SELECT 1 FROM message AS m WHERE m.session_id = session.id AND m.id = session.head_id AND m.in_tree)",
    ),
)
"""What holds the rest together again, with what of it is lost."""

_LENGTHS = (
    "UPDATE session SET messages = (WITH RECURSIVE way (id, parent_id) AS ("
    "SELECT id, parent_id FROM message WHERE session_id = session.id AND id = session.head_id AND in_tree UNION "
    "SELECT m.id, m.parent_id FROM way JOIN message AS m "
    "ON m.session_id = session.id AND m.id = way.parent_id AND m.in_tree) SELECT COUNT(*) FROM way)"
)
