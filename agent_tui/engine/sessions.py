"""Opening, switching and forking sessions; one is current at a time, locked while it is."""

from __future__ import annotations

import logging

from agent_tui.engine.conversation import Conversation
from agent_tui.errors import AgentError, SessionBusyError, StoreError
from agent_tui.models.session import SessionInfo
from agent_tui.store.locks import SessionLock
from agent_tui.store.store import Store

log = logging.getLogger(__name__)


class Sessions:
    """Holds the current conversation and its lock. A session that is open elsewhere is opened read-only."""

    def __init__(self, store: Store, project: str) -> None:
        self._store = store
        self._project = project
        self._current: Conversation | None = None
        self._lock: SessionLock | None = None
        self.lost: StoreError | None = None

    @property
    def current(self) -> Conversation:
        if self._current is None:
            raise AgentError("The session is still opening.")
        return self._current

    @property
    def is_open(self) -> bool:
        return self._current is not None

    def open_first(self, resume: str | None, session: str | None, newest: bool) -> Conversation:
        """Opens what was asked for on the command line, else a new session: ``resume`` has to be there, ``session`` is
        begun where it is not. Raises AgentError when it is missing."""
        if resume:
            return self.open(resume)
        if session is not None:
            return self._open_named(session)
        found = self._store.sessions.newest(self._project) if newest else None
        return self.open(found.id) if found is not None else self.open_new()

    def _open_named(self, session: str) -> Conversation:
        if self._store.sessions.exists(session):
            return self.open(session)
        try:
            return self.open_new(session)
        except StoreError:
            # Another process may have begun it in this moment.
            if not self._store.sessions.exists(session):
                raise
            return self.open(session)

    def open_for_reading(self, session_id: str | None) -> Conversation:
        """Opens a session (None: the project's newest, else an empty one) without locking or changing it. What a crash
        cut in it counts as it will when it is continued."""
        store = self._store
        info = store.sessions.get(session_id) if session_id else store.sessions.newest(self._project)
        if info is None:
            info = SessionInfo("", self._project)
        self._current = Conversation(store, info, read_only=True)
        if info.id and not store.locks.in_use(info.id):
            self._current.stop_unfinished()
        return self._current

    def open_new(self, session_id: str | None = None) -> Conversation:
        """Begins a session, of the id given or of a new one; what waits to be sent comes along."""
        info = self._store.sessions.create(self._project, "", session_id=session_id)
        return self._enter(info, carry=True)

    def open(self, session_id: str) -> Conversation:
        """Makes a stored session current. Raises StoreError when there is none of that id."""
        info = self._store.sessions.get(session_id)
        if self._current is not None and self._current.info.id == info.id:
            return self._current
        return self._enter(info)

    def _enter(self, info: SessionInfo, carry: bool = False) -> Conversation:
        store = self._store
        lock: SessionLock | None = None
        try:
            lock = store.locks.take(info.id)
        except SessionBusyError:
            lock = None
        try:
            if lock is not None:
                store.recover(info.id)
                info = store.sessions.get(info.id)
            conversation = Conversation(store, info, read_only=lock is None)
            if self._current is not None:
                self._current.save()
                if carry and not self._current.read_only:
                    store.waiting.move(self._current.info.id, info.id)
        except BaseException:
            if lock is not None:
                lock.release()
            raise
        self.leave()
        self._current, self._lock = conversation, lock
        return conversation

    def leave(self) -> None:
        """Lets the current session go; a new one in which nothing was said is removed."""
        conversation, lock = self._current, self._lock
        self._current = self._lock = None
        if lock is None:
            return
        try:
            if conversation is not None:
                conversation.save()
                store, session = self._store, conversation.info
                if not conversation.messages and not session.title and store.waiting.all(session.id) == ([], 0):
                    store.delete(session.id)
        except StoreError as error:
            log.warning("The session was not left as it should be: %s", error)
            if conversation is not None and conversation.unsaved:
                self.lost = StoreError(f"What was not saved of session {conversation.info.id} is lost: {error}")
        finally:
            lock.release()

    def fork(self, message_id: str | None) -> Conversation:
        """Continues a copy of the current session, up to ``message_id`` (None: all of it); what waits comes along."""
        current = self.current
        current.save()
        head = message_id or current.info.head_id
        info = self._store.fork(current.info.id, head)
        if current.info.title and not info.title:
            info.title = current.info.title
        return self._enter(info, carry=True)
