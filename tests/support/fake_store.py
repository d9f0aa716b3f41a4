"""Sessions and summaries in memory, for an agent without a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_tui.errors import StoreError
from agent_tui.models.messages import Message, Role
from agent_tui.models.search import IndexState, SessionHit
from agent_tui.models.session import SessionInfo
from agent_tui.store.exports.export_data import export_session
from agent_tui.store.search.texts import found_line
from agent_tui.text.search import fold, search_words

if TYPE_CHECKING:
    from agent_tui.store.search.reader import SearchReader
    from agent_tui.store.store import Store
else:
    Store = SearchReader = object


@dataclass
class FakeReader(SearchReader):
    """Searches titles, and texts that a test gives."""

    store: FakeStore

    def hits(
        self, query: str, project: str | None = None, stopped: Callable[[], bool] = lambda: False
    ) -> Iterator[SessionHit]:
        words = search_words(query)
        for info in self.store.sessions(project):
            text = self.store.said.get(info.id, "")
            line, marks = found_line(text or info.title, words)
            if all(word in fold(f"{info.title} {text}") for word in words):
                role: Role | None = "user" if text else None
                yield SessionHit(info, f"msg_{info.id}" if text else None, role, info.updated, line, tuple(marks))

    def state(self) -> IndexState:
        return IndexState("whole")

    def stop(self) -> None: ...

    def close(self) -> None: ...


@dataclass
class FakeStore(Store):
    """Sessions and summaries in memory."""

    listed: list[SessionInfo] = field(default_factory=list)
    kept: dict[str, Message] = field(default_factory=dict)
    branches: int = 0
    said: dict[str, str] = field(default_factory=dict)

    def sessions(
        self, project: str | Path | None = None, limit: int | None = None, **_kinds: bool
    ) -> list[SessionInfo]:
        return [s for s in self.listed if project is None or s.project == str(project)][:limit]

    def search_reader(self) -> FakeReader:
        return FakeReader(self)

    def session(self, session_id: str) -> SessionInfo:
        for info in self.listed:
            if info.id.startswith(session_id):
                return info
        raise StoreError(f"There is no session {session_id}.")

    def summaries(self, session_id: str) -> dict[str, Message]:
        return self.kept

    def tree_size(self, session_id: str) -> tuple[int, int]:
        return (0, self.branches)

    def export(self, session_id: str) -> dict[str, Any]:
        return export_session(SessionInfo(session_id, "/project", title="Exported", model="demo"), {}, {}, [], [])
