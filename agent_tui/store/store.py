"""The message store: everything a session is, in one SQLite database. ``Store`` holds its parts, each a small class
over the same connection, and does itself what concerns several of them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from agent_tui.errors import (
    StoreError,
    StoreOlderError,
    StoreUnwritableError,
)
from agent_tui.models.measuring import steps_measuring
from agent_tui.models.messages import Metadata, new_id
from agent_tui.models.session import SessionInfo
from agent_tui.models.steps import CompactionRecord
from agent_tui.store.aside import move_older_aside
from agent_tui.store.backup import backups_of, lock_backups
from agent_tui.store.content import SessionContent
from agent_tui.store.database import Database, copied_files, damaged
from agent_tui.store.export_data import export_session
from agent_tui.store.facts import FACTS, Learned, MeasuredCounts, Offers, Snapshots, StandingRules, Trust
from agent_tui.store.locks import Locks, PassingFolder
from agent_tui.store.messages import Messages, WaitingTable
from agent_tui.store.search import SearchReader
from agent_tui.store.sessions import SessionRows
from agent_tui.store.steps import Compactions, Spending, Steps

BUSY_TIMEOUT = 3.0
"""Seconds that opening waits for another process's write, which takes milliseconds, before it is called locked."""

WRITE_TIMEOUT = 0.05
"""Seconds a statement may block afterwards: the UI's loop stands still meanwhile, so whoever can waits outside."""

UNSEEN_TIMEOUT = 120.0
"""Seconds for both where no screen stands still meanwhile: ten runs at once that each store 100 MB hold each other up
for that long on a slow disk."""


class Store:
    """Synchronous, for one thread. Every write is one transaction (``transaction`` groups several), stored when the
    call returns: a killed process loses nothing of it. All methods raise ``StoreError`` with one line for the user.
    Nothing but ``delete`` deletes what was said."""

    def __init__(
        self,
        database: Database,
        folder: PassingFolder | None = None,
        bills: Database | None = None,
        problem: str | None = None,
        damaged: bool = False,
        notice: str | None = None,
    ) -> None:
        """``folder`` goes with the store; ``bills`` is the database that keeps what calls cost, where it is another;
        ``problem`` is why ``database`` is but a copy that refuses writes: the file is ``damaged``, or it cannot be
        written. ``notice`` is what the user is to know of its opening."""
        self.database = database
        self.sessions = SessionRows(database)
        self.messages = Messages(database, self.sessions)
        self.waiting = WaitingTable(database, self.sessions)
        self.spending = Spending(bills or database)
        self.steps = Steps(database, self.sessions, self.spending)
        self.compactions = Compactions(database, self.sessions, self.messages, self.steps)
        self.snapshots = Snapshots(database)
        self.measured = MeasuredCounts(database)
        self.learned = Learned(database)
        self.trust = Trust(database)
        self.rules = StandingRules(database)
        self.offers = Offers(database)
        self.locks = Locks(database.path.parent / "locks", self.sessions)
        self.problem = problem
        self.damaged = damaged
        self.notice = notice or problem
        self._folder = folder
        self._bills = bills

    @classmethod
    def open(cls, path: Path, busy_timeout: float = BUSY_TIMEOUT, write_timeout: float = WRITE_TIMEOUT) -> Store:
        """Opens the database, creating it (private) where needed; one of an earlier version is moved aside, and
        ``notice`` says so. ``busy_timeout`` is how many seconds that may wait for another program's write,
        ``write_timeout`` how many every statement afterwards; then ``StoreLockedError`` is raised.

        Raises ``StoreError`` for a folder or file that cannot be written, a damaged or foreign file, a database of a
        newer version, a full disk, or a lock of another program.
        """
        notice = None
        try:
            database = Database.open(path, busy_timeout)
        except StoreOlderError:
            notice = move_older_aside(path, busy_timeout)
            database = Database.open(path, busy_timeout)
        database.wait_for_lock(write_timeout)
        return cls(database, notice=notice)

    @classmethod
    def ephemeral(cls, path: Path, busy_timeout: float = BUSY_TIMEOUT, write_timeout: float = WRITE_TIMEOUT) -> Store:
        """A store that is gone when it is closed. It knows the facts that outlive sessions in the database at ``path``
        (trust, rules, what models taught) and no session; what its calls cost is kept there, for the sum of the
        day. That database may be one that cannot be written, or not be there; else raises ``StoreError`` as ``open``
        does."""
        writable, notice = True, None
        try:
            with cls.open(path, busy_timeout) as opened:
                notice = opened.notice
        except StoreUnwritableError:
            writable = False
        folder = PassingFolder(sessions=True)
        with contextlib.ExitStack() as undo:
            undo.callback(folder.cleanup)
            database = Database.open(folder.path / path.name, busy_timeout)
            undo.callback(database.close)
            database.wait_for_lock(write_timeout)
            bills: Database | None = None
            if writable:
                database.copy_tables(path, FACTS)
                bills = Database.open(path, busy_timeout)
                bills.wait_for_lock(write_timeout)
            elif path.exists():
                beside = PassingFolder()
                try:
                    known = copied_files(path, beside.path)
                    cls.open(known, busy_timeout).close()
                    database.copy_tables(known, FACTS)
                finally:
                    beside.cleanup()
            undo.pop_all()
            return cls(database, folder, bills, notice=notice)

    @property
    def writable(self) -> bool:
        """False where only a copy of the database could be opened, for looking."""
        return self.problem is None

    @property
    def folder(self) -> Path | None:
        """The private folder that goes with a store which is gone when it is closed."""
        return self._folder.path if self._folder is not None else None

    @property
    def file(self) -> Path:
        """The database file."""
        return self.database.path

    def search(self) -> SearchReader:
        """Searches all sessions, in a thread of its own; to be closed."""
        (file,) = self.database.one("SELECT file FROM pragma_database_list WHERE name = 'main'")
        return SearchReader(Path(file) if file else None)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Groups several writes into one: all are stored, or none. An exception undoes them.

        Never await inside: writes of other tasks would become part of it.
        """
        with self.database.writing():
            yield

    def close(self) -> None:
        """Releases all session locks and the file. The store cannot be used afterwards."""
        self.locks.release()
        self.database.close()
        if self._bills is not None:
            self._bills.close()
        if self._folder is not None:
            self._folder.cleanup()

    def fork(self, session_id: str, head_id: str | None) -> SessionInfo:
        """A new session that holds the path to ``head_id`` with its steps, compaction records, summaries and file
        snapshots, under the same ids: anchors, fingerprints and records mean the same there.

        Left out are the steps of messages that are left out, and records of no message of the path. Drafts and
        running steps are ``stopped`` in the copy. Raises ``StoreError``; the source is never changed.
        """
        with self.database.writing():
            source = self.sessions.get(session_id)
            kept = [message.id for message in self.messages.path(source.id, head_id)]
            now = time.time()
            info = dataclasses.replace(
                source,
                id=new_id("ses"),
                created=now,
                updated=now,
                head_id=head_id,
                messages=len(kept),
                parent_session=source.id,
                preview=source.preview if kept else "",
                kind="user",
                state=dataclasses.replace(
                    source.state,
                    going=None,
                    handed_from=None,
                    handed_to=(),
                    drops_waiting={},
                    agent_drops=(),
                    agent_asked=(),
                    back=source.state.back if source.state.back in kept else None,
                ),
            )
            self.sessions.insert(info)
            every, there = self.compactions.all(source.id), set(kept)
            summaries = [r.summary_id for r in every if r.summary_id is not None and _applies(r, there)]
            records = [r for r in every if _applies(r, there.union(summaries))]
            self._copy_messages(source.id, info.id, [*kept, *summaries])
            self._copy_steps(source.id, info.id, self._steps_of(source.id, set(kept), records))
            for record in records:
                self.compactions.insert(info.id, record)
            self.database.run(
                "INSERT INTO snapshot (session_id, message_id, path, content_id, mode, created) "
                "SELECT ?, message_id, path, content_id, mode, created FROM snapshot "
                "WHERE session_id = ? AND message_id IN (SELECT value FROM json_each(?)) ORDER BY n",
                (info.id, source.id, json.dumps(kept)),
            )
            self.sessions.stop_unfinished(info.id)
        return info

    def recover(self, session_id: str) -> bool:
        """After a crash: drafts and running steps become ``stopped``. True when there were any.

        Only the holder of the session's lock may call it: to anyone else, a draft may be another process's live
        answer. Raises ``StoreError`` when the lock is not held by this store.
        """
        if self.locks.held(session_id) is None:
            raise StoreError(f"session {session_id} is not locked by this process, so it cannot be recovered")
        with self.database.writing():
            return self.sessions.stop_unfinished(session_id) > 0

    def delete(self, session_id: str) -> None:
        """Deletes a session with everything in it, overwriting its bytes, and what subagents did for it; in the
        backups, too. Raises ``SessionBusyError`` when it is open elsewhere."""
        session_id = self.sessions.listed(session_id).id
        mine = self.locks.held(session_id)
        lock = mine or self.locks.take(session_id)
        try:
            with lock_backups(self.file, BUSY_TIMEOUT):
                _erase(self.database, session_id)
                for backup in backups_of(self.file):
                    try:
                        with contextlib.closing(Database.open(backup, BUSY_TIMEOUT)) as kept:
                            _erase(kept, session_id)
                    except StoreError:
                        backup.unlink(missing_ok=True)
        except BaseException:
            if mine is None:
                lock.release()
            raise
        lock.remove()

    def content(self, session_id: str) -> SessionContent:
        """Everything of a session that its conversation is made of. Raises ``StoreError`` where there is no such
        session, for a lock, and where a row of it makes no sense."""
        with self.database.reading():
            info = self.sessions.get(session_id)
            content = SessionContent(
                self.messages.all(info.id),
                self.messages.summaries(info.id),
                self.steps.all(info.id),
                self.compactions.all(info.id),
                info.head_id,
            )
        self._require_tree(content)
        return content

    def _require_tree(self, content: SessionContent) -> None:
        """Every branch can be gone to: each message follows one that was added before it. Raises ``StoreError``."""
        known: set[str | None] = {None}
        for message in content.messages.values():
            if message.parent_id not in known:
                raise damaged(self.database.path, f"message {message.parent_id} is missing")
            known.add(message.id)
        if content.head_id not in known:
            raise damaged(self.database.path, f"message {content.head_id} is missing")

    def whole(self, session_id: str) -> tuple[SessionInfo, SessionContent]:
        """Everything stored of a session. What a crash cut in it counts as it will when it is continued."""
        info = self.sessions.get(session_id)
        content = self.content(info.id)
        if self.locks.held(info.id) is None and not self.locks.in_use(info.id):
            content.stop_unfinished()
        return info, content

    def export(self, session_id: str) -> Metadata:
        """The same as ``export --format json`` prints it."""
        return export_session(*self.whole(session_id))

    def _copy_messages(self, source: str, target: str, ids: Sequence[str]) -> None:
        wanted = json.dumps(list(ids))
        self.database.run(
            "INSERT INTO message (session_id, id, in_tree, role, status, parent_id, raw_tokens, counts, data) "
            "SELECT ?, id, in_tree, role, status, parent_id, raw_tokens, counts, data FROM message "
            "WHERE session_id = ? AND id IN (SELECT value FROM json_each(?)) ORDER BY n",
            (target, source, wanted),
        )
        self.database.run(
            "INSERT INTO part (message, position, data) SELECT copy.n, part.position, part.data "
            "FROM message AS copy JOIN message AS original ON original.session_id = ? AND original.id = copy.id "
            "JOIN part ON part.message = original.n WHERE copy.session_id = ?",
            (source, target),
        )

    def _copy_steps(self, source: str, target: str, ids: Sequence[str]) -> None:
        self.database.run(
            "INSERT INTO step (session_id, id, status, message_id, fixed_id, data) "
            "SELECT ?, id, status, message_id, fixed_id, data FROM step "
            "WHERE session_id = ? AND id IN (SELECT value FROM json_each(?)) ORDER BY n",
            (target, source, json.dumps(list(ids))),
        )

    def _steps_of(self, session_id: str, kept: set[str], records: Sequence[CompactionRecord]) -> list[str]:
        """Ids of the steps that belong to a copy. Steps without a message of the tree (counts, subagents, failed
        compactions) belong to it up to the first step that answered with a message left behind."""
        tree = {
            row[0]
            for row in self.database.all("SELECT id FROM message WHERE session_id = ? AND in_tree", (session_id,))
        }
        rows = self.database.all("SELECT n, id, message_id FROM step WHERE session_id = ? ORDER BY n", (session_id,))
        last_kept = max((n for n, _, message in rows if message in kept), default=0)
        end = min((n for n, _, message in rows if message in tree - kept and n > last_kept), default=None)
        compactions = {record.step_id for record in records}
        own = {
            step
            for n, step, message in rows
            if message in kept or step in compactions or (message not in tree and (end is None or n < end))
        }
        own |= steps_measuring(self.steps.all(session_id), own)
        return [step for _, step, _ in rows if step in own]

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _applies(record: CompactionRecord, kept: set[str]) -> bool:
    if record.kind == "summary":
        return kept.issuperset(record.message_ids)
    return not kept.isdisjoint(record.message_ids)


def _erase(database: Database, session_id: str) -> None:
    """Deletes a session and what subagents did for it from a file, overwriting the bytes."""
    database.run("PRAGMA secure_delete = ON")
    try:
        with database.writing():
            database.run("DELETE FROM session WHERE parent_session = ? AND kind = 'subagent'", (session_id,))
            database.run("DELETE FROM session WHERE id = ?", (session_id,))
            database.run(
                "DELETE FROM content WHERE NOT EXISTS (SELECT 1 FROM snapshot WHERE snapshot.content_id = content.id)"
            )
            database.run(
                "DELETE FROM fixed_set WHERE NOT EXISTS (SELECT 1 FROM step WHERE step.fixed_id = fixed_set.id)"
            )
    finally:
        database.run("PRAGMA secure_delete = OFF")
    database.run("PRAGMA wal_checkpoint(TRUNCATE)")
