"""The message store: everything a session is, in one SQLite database."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from agent_tui.errors import StoreError, StoreLockedError, StoreUnwritableError
from agent_tui.models.messages import Message, Metadata
from agent_tui.models.search import IndexHealth
from agent_tui.models.session import SessionInfo
from agent_tui.models.steps import CompactionRecord
from agent_tui.store.exports.export_data import export_session
from agent_tui.store.lock import SessionLock, is_held
from agent_tui.store.passing import PassingFolder
from agent_tui.store.search.fill import Filler
from agent_tui.store.search.health import index_health
from agent_tui.store.search.index import NoIndex, SearchIndex, index_file, remove_index
from agent_tui.store.search.reader import SearchReader
from agent_tui.store.tables.database import Database, copied_files, damaged
from agent_tui.store.tables.facts import FACTS, FactTables
from agent_tui.store.tables.fork import ForkTables
from agent_tui.store.tables.learned import LearnedTables
from agent_tui.store.tables.offers import OfferTables
from agent_tui.store.tables.rows import encode
from agent_tui.store.tables.salvage import Content, salvage
from agent_tui.store.tables.session_rows import read_row
from agent_tui.store.tables.waiting import WaitingTables

log = logging.getLogger(__name__)

BUSY_TIMEOUT = 3.0
"""Seconds that opening waits for another process's write, which takes milliseconds, before it is called locked."""

WRITE_TIMEOUT = 0.05
"""Seconds a statement may block afterwards: the UI's loop stands still meanwhile, so whoever can waits outside."""

UNSEEN_TIMEOUT = 120.0
"""Seconds for both where no screen stands still meanwhile: ten runs at once that each store 100 MB hold each other up
for that long on a slow disk."""


class Store(ForkTables, FactTables, LearnedTables, OfferTables, WaitingTables):
    """Synchronous, for one thread. Every write is one transaction (``transaction`` groups several), stored when the
    call returns: a killed process loses nothing of it. All methods raise ``StoreError`` with one line for the user.
    Nothing but ``delete_session`` deletes what was said."""

    def __init__(
        self,
        database: Database,
        folder: PassingFolder | None = None,
        problem: str | None = None,
        damaged: bool = False,
    ) -> None:
        """``folder`` goes with the store; ``problem`` is why ``database`` is but a copy that refuses writes: the file
        is ``damaged``, or it cannot be written."""
        super().__init__(database)
        self._held: dict[str, SessionLock] = {}
        self._folder = folder
        self._filler: Filler | None = None
        self.problem = problem
        self.damaged = damaged

    @classmethod
    def open(cls, path: Path, busy_timeout: float = BUSY_TIMEOUT, write_timeout: float = WRITE_TIMEOUT) -> Store:
        """Opens the database, creating it (private) or migrating it where needed. ``busy_timeout`` is how many seconds
        that may wait for another program's write, ``write_timeout`` how many every statement afterwards; then
        ``StoreLockedError`` is raised.

        Raises ``StoreError`` for a folder or file that cannot be written, a damaged or foreign file, a database of a
        newer version, a full disk, or a lock of another program.
        """
        database = Database.open(path, busy_timeout)
        database.wait_for_lock(write_timeout)
        return cls(database)

    @classmethod
    def ephemeral(cls, path: Path, busy_timeout: float = BUSY_TIMEOUT, write_timeout: float = WRITE_TIMEOUT) -> Store:
        """A store that is gone when it is closed. It knows the facts that outlive sessions in the database at ``path``
        (trust, rules, what models taught) and no session; what its calls cost is kept there, for the sum of the
        day. That database may be one that cannot be written, or not be there; else raises ``StoreError`` as ``open``
        does."""
        writable = True
        try:
            cls.open(path, busy_timeout).close()
        except StoreUnwritableError:
            writable = False
        folder = PassingFolder(sessions=True)
        try:
            store = cls.open(folder.path / path.name, busy_timeout, write_timeout)
        except BaseException:
            folder.cleanup()
            raise
        store._folder = folder
        try:
            if writable:
                store._db.copy_tables(path, FACTS)
                store._bills = Database.open(path, busy_timeout)
            elif path.exists():
                beside = PassingFolder()
                try:
                    known = copied_files(path, beside.path)
                    cls.open(known, busy_timeout).close()
                    store._db.copy_tables(known, FACTS)
                finally:
                    beside.cleanup()
        except BaseException:
            store.close()
            raise
        return store

    @property
    def writable(self) -> bool:
        """False where only a copy of the database could be opened, for looking."""
        return self.problem is None

    @property
    def folder(self) -> Path | None:
        """The private folder that goes with a store which is gone when it is closed."""
        return self._folder.path if self._folder is not None else None

    @property
    def database(self) -> Database:
        """What lies below, for repairs."""
        return self._db

    def put_session(self, info: SessionInfo, new: bool) -> None:
        """Writes all facts of a session, whether it is there already or ``new``, in a transaction of the caller's."""
        if new:
            self._insert_session(info)
            return
        self._db.run(
            "UPDATE session SET created = ?, messages = ?, head_id = NULL, parent_session = ?, kind = ?, project = ?, "
            "preview = ? WHERE id = ?",
            (
                info.created,
                info.messages,
                info.parent_session,
                info.kind,
                encode(info.project),
                encode(info.preview),
                info.id,
            ),
        )

    def put_message(self, session_id: str, message: Message, in_tree: bool) -> None:
        """Adds a message as it is, wherever it belongs, in a transaction of the caller's."""
        self._insert_message(session_id, message, in_tree)

    def put_records(self, session_id: str, records: Sequence[CompactionRecord]) -> None:
        """Adds compaction records as they are, in a transaction of the caller's."""
        for record in records:
            self._insert_record(session_id, record)

    @property
    def file(self) -> Path:
        """The database file."""
        return self._db.path

    def close(self) -> None:
        """Releases all session locks and the file. The store cannot be used afterwards."""
        for lock in list(self._held.values()):
            lock.release()
        self._db.close()
        if self._bills is not self._db:
            self._bills.close()
        if self._folder is not None:
            self._folder.cleanup()

    def checkpoint(self) -> None:
        """Moves what was written into the main file. Slow (it waits for the disk) but callable from any thread;
        to be called there when a turn has ended, so that no write on the UI loop has to do it."""
        self._db.checkpoint()

    def lock(self, session_id: str) -> SessionLock:
        """The right to write to a session, until released or the process ends. Raises ``SessionBusyError`` when
        another holder has it; the session can still be read."""
        session_id = self.session(session_id).id
        lock = SessionLock(self._lock_file(session_id), session_id, self._forget)
        self._held[session_id] = lock
        return lock

    def in_use(self, session_id: str) -> bool:
        """Whether somebody may write to a session now: a draft in it is then a live answer, not what a crash cut."""
        return is_held(self._lock_file(session_id))

    def recover(self, session_id: str) -> bool:
        """After a crash: drafts and running steps become ``stopped``. True when there were any.

        Only the holder of the session's lock may call it: to anyone else, a draft may be another process's live
        answer. Raises ``StoreError`` when the lock is not held by this store.
        """
        if session_id not in self._held:
            raise StoreError(f"session {session_id} is not locked by this process, so it cannot be recovered")
        with self._db.writing():
            return self._stop_unfinished(session_id) > 0

    def delete_session(self, session_id: str) -> None:
        """Deletes a session with everything in it, overwriting its bytes, and what subagents did for it. Raises
        ``SessionBusyError`` when it is open elsewhere."""
        session_id = self.session(session_id).id
        mine = self._held.get(session_id)
        lock = mine or self.lock(session_id)
        index: SearchIndex | None = None
        try:
            index = self._out_of_index(session_id)
            self._db.run("PRAGMA secure_delete = ON")
            with self._db.writing():
                self._db.run("DELETE FROM session WHERE parent_session = ? AND kind = 'subagent'", (session_id,))
                self._db.run("DELETE FROM session WHERE id = ?", (session_id,))
                self._db.run(
                    "DELETE FROM content WHERE NOT EXISTS "
                    "(SELECT 1 FROM snapshot WHERE snapshot.content_id = content.id)"
                )
                self._db.run(
                    "DELETE FROM fixed_set WHERE NOT EXISTS (SELECT 1 FROM step WHERE step.fixed_id = fixed_set.id)"
                )
            if index is not None:
                self._overwrite(index)
        except BaseException:
            if mine is None:
                lock.release()
            raise
        finally:
            self._db.run("PRAGMA secure_delete = OFF")
            if index is not None:
                index.close()
        lock.remove()
        self._db.run("PRAGMA wal_checkpoint(TRUNCATE)")

    @property
    def _really(self) -> Path | None:
        """The file that is read and written; None where there is none."""
        name = self._db.one("SELECT file FROM pragma_database_list WHERE name = 'main'")[0]
        return Path(name) if name else None

    def search_reader(self) -> SearchReader:
        """Searches all sessions, in a thread of its own; to be closed."""
        self._fill_index()
        return SearchReader(self._really, self._fill_index)

    def index_health(self) -> IndexHealth:
        """How the index of texts is; reads all of it. Raises ``StoreError``."""
        return index_health(self._db.path)

    def filler(self) -> Filler:
        """Keeps the index of texts up, in a thread of its own; to be begun and closed."""
        self._filler = Filler(self._db.path)
        return self._filler

    def _fill_index(self) -> None:
        """Has the index brought up to date: others add messages too, and may remove it."""
        if self._filler is not None:
            self._filler.wake()

    def _out_of_index(self, session_id: str) -> SearchIndex | None:
        """Takes the texts of a session out of the index, ahead of its deletion; the index, to be overwritten there."""
        rows = self._db.all("SELECT n FROM message WHERE session_id = ?", (session_id,))
        path = self._really
        if not rows or path is None or not index_file(path).exists():
            return None
        index: SearchIndex | None = None
        try:
            index = SearchIndex(path)
            index.forget([n for (n,) in rows])
        except NoIndex as error:
            if index is not None:
                index.close()
            self._without_index(path, error)
            return None
        return index

    def _overwrite(self, index: SearchIndex) -> None:
        try:
            index.overwrite()
        except NoIndex as error:
            index.close()
            self._without_index(index.database, error)

    def _without_index(self, database: Path, error: NoIndex) -> None:
        log.warning("The index is made anew: %s", error)
        try:
            remove_index(database)
        except OSError as why:
            raise StoreUnwritableError(f"{index_file(database)} cannot be removed: {why.strerror or why}") from why

    def content(self, session_id: str) -> Content:
        """Everything of a session that its conversation is made of. A damaged one is read as far as that goes, and
        ``missing`` is then not empty. Raises ``StoreError`` where there is no such session, or for a lock."""
        info, lost = read_row(self._session_row(session_id))
        content = self._content(info)
        if lost:
            content.missing.insert(0, f"facts of the session itself: {', '.join(lost)}")
        return content

    def _content(self, info: SessionInfo) -> Content:
        try:
            with self._db.reading():
                content = Content(
                    self.messages(info.id), self.summaries(info.id), self.steps(info.id), self.records(info.id)
                )
                content.head_id = info.head_id
                self._require_tree(info, content)
                return content
        except StoreLockedError:
            raise
        except StoreError as error:
            content = salvage(self._db.connection, info.id, info.head_id)
            if not content.missing:
                content.missing.append(str(error))
            return content

    def _require_tree(self, info: SessionInfo, content: Content) -> None:
        """Every branch can be gone to: each message follows one that was added before it."""
        known: set[str | None] = {None}
        for message in content.messages.values():
            if message.parent_id not in known:
                raise damaged(self._db.path, f"message {message.parent_id} is missing")
            known.add(message.id)
        if info.head_id not in known:
            raise damaged(self._db.path, f"message {info.head_id} is missing")

    def export(self, session_id: str) -> Metadata:
        """Everything stored of a session, as ``export --format json`` prints it. What a damaged one lacks is listed
        under ``missing``."""
        info = self.session(session_id)
        content = self.content(info.id)
        info.head_id = content.head_id
        export = export_session(info, content.messages, content.summaries, content.steps, content.records)
        return {**export, "missing": content.missing} if content.missing else export

    def _lock_file(self, session_id: str) -> Path:
        return self._db.path.parent / "locks" / f"{session_id}.lock"

    def _forget(self, lock: SessionLock) -> None:
        if self._held.get(lock.session_id) is lock:
            del self._held[lock.session_id]

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
