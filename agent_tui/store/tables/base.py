"""What every group of tables builds on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from agent_tui.errors import NoSessionError
from agent_tui.store.tables.database import Database, damaged
from agent_tui.store.tables.rows import encode


def no_session(session_id: str) -> NoSessionError:
    """What to raise where a session is not in the store."""
    return NoSessionError(f"no session {session_id!r}: `agent-tui sessions --all` lists them")


class Tables:
    """Access to the database for the mixins that make up ``Store``."""

    def __init__(self, database: Database) -> None:
        self._db = database

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Groups several writes into one: all are stored, or none. An exception undoes them.

        Never await inside: writes of other tasks would become part of it.
        """
        with self._db.writing():
            yield

    @contextmanager
    def _decoding(self, what: str) -> Iterator[None]:
        """Turns content that does not parse into a ``StoreError`` that says which."""
        try:
            yield
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise damaged(self._db.path, what) from error

    def _require_session(self, session_id: str) -> None:
        if self._db.one("SELECT 1 FROM session WHERE id = CAST(? AS TEXT)", (encode(session_id),)) is None:
            raise no_session(session_id)
