"""Sessions and summaries in memory, for an agent without a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from agent_tui.errors import StoreError
from agent_tui.models.messages import Message, Role
from agent_tui.models.session import SessionHit, SessionInfo
from agent_tui.store.content import SessionContent
from agent_tui.store.messages import Messages
from agent_tui.store.search import SearchReader, found_line
from agent_tui.store.sessions import SessionRows
from agent_tui.store.store import Store
from agent_tui.text.search import fold, search_words


class FakeStore(Store):
    """What a test puts into it: sessions that are ``listed``, summaries that are ``kept``, how many ``branches`` each
    session has, and what was ``said`` in them."""

    def __init__(self) -> None:
        self.listed: list[SessionInfo] = []
        self.kept: dict[str, Message] = {}
        self.branches = 0
        self.said: dict[str, str] = {}
        self.sessions = FakeSessions(self)
        self.messages = FakeMessages(self)

    def search(self) -> SearchReader:
        return FakeReader(self)

    def whole(self, session_id: str) -> tuple[SessionInfo, SessionContent]:
        return SessionInfo(session_id, "/project", title="Exported", model="demo"), SessionContent()


class FakeSessions(SessionRows):
    def __init__(self, store: FakeStore) -> None:
        self._store = store

    def all(
        self,
        project: str | Path | None = None,
        limit: int | None = None,
        *,
        empty: bool = True,
        subagents: bool = False,
        runs: bool = True,
    ) -> list[SessionInfo]:
        return [s for s in self._store.listed if project is None or s.project == project][:limit]

    def get(self, session_id: str) -> SessionInfo:
        for info in self._store.listed:
            if info.id.startswith(session_id):
                return info
        raise StoreError(f"There is no session {session_id}.")


class FakeMessages(Messages):
    def __init__(self, store: FakeStore) -> None:
        self._store = store

    def summaries(self, session_id: str) -> dict[str, Message]:
        return self._store.kept

    def tree_size(self, session_id: str) -> tuple[int, int]:
        return (0, self._store.branches)

    def said(self, info: SessionInfo) -> int:
        return info.messages


class FakeReader(SearchReader):
    """Searches titles, and texts that a test gives."""

    def __init__(self, store: FakeStore) -> None:
        super().__init__(None)
        self._store = store

    def hits(
        self, query: str, project: str | None = None, stopped: Callable[[], bool] = lambda: False
    ) -> Iterator[SessionHit]:
        words = search_words(query)
        for info in self._store.listed:
            if project is not None and info.project != project:
                continue
            text = self._store.said.get(info.id, "")
            line, marks = found_line(text or info.title, words)
            if all(word in fold(f"{info.title} {text}") for word in words):
                role: Role | None = "user" if text else None
                yield SessionHit(info, f"msg_{info.id}" if text else None, role, info.updated, line, tuple(marks))
