"""Messages that wait to be sent: stored from the moment they are typed until they join the conversation."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence

from agent_tui.errors import StoreError
from agent_tui.models.codec import dumps, message_from_dict
from agent_tui.models.messages import Message
from agent_tui.store.tables.base import Tables
from agent_tui.store.tables.rows import check_fields

log = logging.getLogger(__name__)


class WaitingTables(Tables):
    """A message leaves this table in the transaction that adds it to the conversation (``add_message``): a crash
    finds it in one of the two, never in both or none."""

    def add_waiting(self, session_id: str, message: Message) -> None:
        """Keeps a message that waits, behind those that wait already; once."""
        with self._db.writing():
            self._require_session(session_id)
            self._db.run(
                "INSERT OR IGNORE INTO waiting (session_id, id, data) VALUES (?, ?, ?)",
                (session_id, message.id, dumps(message)),
            )

    def remove_waiting(self, session_id: str, message_id: str) -> None:
        """A message was taken back; nothing happens where it does not wait."""
        with self._db.writing():
            self._db.run("DELETE FROM waiting WHERE session_id = ? AND id = ?", (session_id, message_id))

    def order_waiting(self, session_id: str, ids: Sequence[str]) -> None:
        """What waits is to go out in this order; what is not among ``ids`` stays in front of it, as it was."""
        place = {message_id: n for n, message_id in enumerate(ids)}
        with self._db.writing():
            rows = self._db.all("SELECT id, data FROM waiting WHERE session_id = ? ORDER BY n", (session_id,))
            self._db.run("DELETE FROM waiting WHERE session_id = ?", (session_id,))
            for message_id, data in sorted(rows, key=lambda row: place.get(row[0], -1)):
                self._db.run(
                    "INSERT INTO waiting (session_id, id, data) VALUES (?, ?, ?)", (session_id, message_id, data)
                )

    def move_waiting(self, source: str, target: str) -> None:
        """What waits in one session waits in another from now on."""
        with self._db.writing():
            self._db.run("UPDATE OR REPLACE waiting SET session_id = ? WHERE session_id = ?", (target, source))

    def waiting(self, session_id: str) -> tuple[list[Message], int]:
        """What waits in a session, in the order it was typed, and how many of those cannot be read."""
        try:
            rows = self._db.all("SELECT data FROM waiting WHERE session_id = ? ORDER BY n", (session_id,))
        except StoreError as error:
            log.warning("What waits in session %s cannot be read: %s", session_id, error)
            return [], 1
        found: list[Message] = []
        for (data,) in rows:
            try:
                message = message_from_dict(json.loads(data))
                for value in (message, *message.parts):
                    check_fields(value)
                found.append(message)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                log.warning("A message that waits in session %s cannot be read: %s", session_id, error)
        return found, len(rows) - len(found)
