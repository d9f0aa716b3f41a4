"""Steps, compaction records and spending: what was sent, what it cost, and what is sent differently since."""

from __future__ import annotations

import time
from collections.abc import Sequence

from agent_tui.errors import StoreError
from agent_tui.models.messages import Message, content_fingerprint
from agent_tui.models.steps import CompactionRecord, FixedPart, FixedSets, Step
from agent_tui.models.usage import Cost
from agent_tui.store.database import Database
from agent_tui.store.messages import Messages
from agent_tui.store.rows import dump_fixed, dump_record, dump_step, load_fixed, load_json, load_record, load_step
from agent_tui.store.sessions import SessionRows

NOT_COUNTED = ("subagent", "count")
"""Kinds of steps without a row: a subagent's call has one in its own session, a count is free."""


def day_of(moment: float) -> str:
    """The local day of a time in seconds since the epoch: ``2026-11-21``; empty for what is no time."""
    try:
        return time.strftime("%Y-%m-%d", time.localtime(moment))
    except (OverflowError, ValueError, OSError):
        return ""


class Spending:
    """The cost of model calls, by the day they were made: the sum of a day over all sessions of this machine. The rows
    outlive their sessions: what was deleted has been paid for. A store that is thrown away keeps them in the
    ``database`` of the others."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def on(self, day: str) -> tuple[Cost, float]:
        """Returns the cost of the calls of a day, of all sessions and processes, and the dollars that calls under way,
        or that never said what they cost, are taken to cost beyond that."""
        row = self._db.one(
            "SELECT COALESCE(SUM(usd), 0), COALESCE(SUM(unpriced), 0), COALESCE(SUM(held), 0) FROM spending "
            "WHERE day = ?",
            (day,),
        )
        known, unpriced, held = row or (0.0, 0, 0.0)
        return Cost(float(known), int(unpriced)), float(held)

    def put(self, step: Step) -> None:
        """Keeps what a step cost so far, in place of what was known of it."""
        if step.kind in NOT_COUNTED:
            return
        cost = step.cost
        with self._db.writing():
            self._db.run(
                "INSERT INTO spending (step_id, day, usd, unpriced, held) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (step_id) DO UPDATE SET usd = excluded.usd, unpriced = excluded.unpriced, "
                "held = excluded.held",
                (step.id, day_of(step.created), cost.known, cost.unpriced, step.held_usd),
            )


class Steps:
    """The model calls of sessions: what each sent, and its usage."""

    def __init__(self, database: Database, sessions: SessionRows, spending: Spending) -> None:
        self._db = database
        self._sessions = sessions
        self._spending = spending
        self._fixed: tuple[Sequence[FixedPart], str, str] = (), "", ""

    def add(self, session_id: str, step: Step) -> None:
        """Stores a new step, normally when it starts (status ``running``)."""
        with self._db.writing():
            self._insert(session_id, step)

    def write(self, session_id: str, step: Step) -> None:
        """Stores the present state of a step that was added before. Raises ``StoreError`` when it was not."""
        with self._db.writing():
            changed = self._db.run(
                "UPDATE step SET status = ?, message_id = ?, fixed_id = ?, data = ? WHERE session_id = ? AND id = ?",
                (step.status, step.message_id, self._put_fixed(step.fixed), dump_step(step), session_id, step.id),
            )
            if changed.rowcount != 1:
                raise StoreError(f"session {session_id} has no step {step.id}")
            self._spending.put(step)

    def all(self, session_id: str) -> list[Step]:
        """All steps in the order they were added. Steps that sent the same fixed parts share them."""
        with self._db.reading():
            self._sessions.require(session_id)
            rows = self._db.all(
                "SELECT id, status, message_id, fixed_id, data FROM step WHERE session_id = ? ORDER BY n", (session_id,)
            )
            sets = self._db.all(
                "SELECT id, data FROM fixed_set WHERE id IN (SELECT fixed_id FROM step WHERE session_id = ?)",
                (session_id,),
            )
        with self._db.decoding("a step"):
            shared = FixedSets()
            fixed: dict[str | None, tuple[FixedPart, ...]] = {key: load_fixed(data, shared) for key, data in sets}
            steps: list[Step] = []
            for (step_id, status, message_id, fixed_id, _), data in zip(
                rows, load_json(row[4] for row in rows), strict=True
            ):
                parts = () if fixed_id is None else fixed[fixed_id]
                data.update(id=step_id, status=status, message_id=message_id, fixed=parts)
                steps.append(load_step(data))
            return steps

    def _insert(self, session_id: str, step: Step) -> None:
        self._sessions.require(session_id)
        taken = self._db.one("SELECT 1 FROM step WHERE session_id = ? AND id = ?", (session_id, step.id))
        if taken is not None:
            raise StoreError(f"session {session_id} already has a step {step.id}")
        self._db.run(
            "INSERT INTO step (session_id, id, status, message_id, fixed_id, data) VALUES (?, ?, ?, ?, ?, ?)",
            (session_id, step.id, step.status, step.message_id, self._put_fixed(step.fixed), dump_step(step)),
        )
        self._spending.put(step)

    def _put_fixed(self, fixed: Sequence[FixedPart]) -> str | None:
        # Thousands of steps send the same few sets of fixed parts: each set is stored once. Another process may have
        # removed it meanwhile, so it is put there each time.
        if not fixed:
            return None
        parts = tuple(fixed)
        if parts is not self._fixed[0]:
            text = dump_fixed(parts)
            self._fixed = parts, content_fingerprint(text), text
        _, key, text = self._fixed
        self._db.run("INSERT OR IGNORE INTO fixed_set (id, data) VALUES (?, ?)", (key, text))
        return key


class Compactions:
    """The compaction records of sessions: what is sent differently since."""

    def __init__(self, database: Database, sessions: SessionRows, messages: Messages, steps: Steps) -> None:
        self._db = database
        self._sessions = sessions
        self._messages = messages
        self._steps = steps

    def commit(
        self,
        session_id: str,
        records: Sequence[CompactionRecord],
        summary: Message | None = None,
        step: Step | None = None,
    ) -> None:
        """Stores a finished compaction in one transaction: its records, the summary message (outside the tree) and
        the step that made it (new, or added earlier). Raises ``StoreError``; then nothing of it is stored."""
        with self._db.writing():
            self._sessions.require(session_id)
            if summary is not None:
                self._messages.insert(session_id, summary, in_tree=False)
            if step is not None:
                known = self._db.one("SELECT 1 FROM step WHERE session_id = ? AND id = ?", (session_id, step.id))
                (self._steps.add if known is None else self._steps.write)(session_id, step)
            for record in records:
                self.insert(session_id, record)

    def write(self, session_id: str, records: Sequence[CompactionRecord]) -> None:
        """Stores the present state of records that were made before: undone, or in force again. Raises ``StoreError``
        when one of them was not; then nothing is changed."""
        with self._db.writing():
            for record in records:
                changed = self._db.run(
                    "UPDATE compaction SET active = ?, data = ? WHERE session_id = ? AND id = ?",
                    (record.active, dump_record(record), session_id, record.id),
                )
                if changed.rowcount != 1:
                    raise StoreError(f"session {session_id} has no compaction {record.id}")

    def all(self, session_id: str) -> list[CompactionRecord]:
        """All compaction records, active or not, in the order they were made."""
        with self._db.reading():
            self._sessions.require(session_id)
            rows = self._db.all(
                "SELECT id, operation_id, active, data FROM compaction WHERE session_id = ? ORDER BY n", (session_id,)
            )
        with self._db.decoding("a compaction"):
            records: list[CompactionRecord] = []
            for row, data in zip(rows, load_json(row[3] for row in rows), strict=True):
                data.update(id=row[0], operation_id=row[1], active=bool(row[2]))
                records.append(load_record(data))
            return records

    def insert(self, session_id: str, record: CompactionRecord) -> None:
        """Adds a record as it is, in a transaction of the caller's."""
        self._db.run(
            "INSERT INTO compaction (session_id, id, operation_id, active, data) VALUES (?, ?, ?, ?, ?)",
            (session_id, record.id, record.operation_id, record.active, dump_record(record)),
        )
