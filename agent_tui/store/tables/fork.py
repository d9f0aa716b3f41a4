"""Copies of a conversation up to a message, under the same ids."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Sequence

from agent_tui.models.messages import new_id
from agent_tui.models.session import SessionInfo
from agent_tui.models.steps import CompactionRecord
from agent_tui.store.tables.ledger import LedgerTables


class ForkTables(LedgerTables):
    def fork_session(self, session_id: str, head_id: str | None) -> SessionInfo:
        """A new session that holds the path to ``head_id`` with its steps, compaction records, summaries and file
        snapshots, under the same ids: anchors, fingerprints and records mean the same there.

        Left out are the steps of messages that are left out, and records of no message of the path. Drafts and
        running steps are ``stopped`` in the copy. Raises ``StoreError``; the source is never changed.
        """
        with self._db.writing():
            source = self.session(session_id)
            kept = [message.id for message in self.path(source.id, head_id)]
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
                    source.state, going=None, back=source.state.back if source.state.back in kept else None
                ),
            )
            self._insert_session(info)
            records = [r for r in self.records(source.id) if _applies(r, set(kept))]
            summaries = [r.summary_id for r in records if r.summary_id is not None]
            self._copy_messages(source.id, info.id, [*kept, *summaries])
            self._copy_steps(source.id, info.id, self._steps_of(source.id, set(kept), records))
            for record in records:
                self._insert_record(info.id, record)
            self._db.run(
                "INSERT INTO snapshot (session_id, message_id, path, content_id, mode, created) "
                "SELECT ?, message_id, path, content_id, mode, created FROM snapshot "
                "WHERE session_id = ? AND message_id IN (SELECT value FROM json_each(?)) ORDER BY n",
                (info.id, source.id, json.dumps(kept)),
            )
            self._stop_unfinished(info.id)
        return info

    def _copy_messages(self, source: str, target: str, ids: Sequence[str]) -> None:
        wanted = json.dumps(list(ids))
        self._db.run(
            "INSERT INTO message (session_id, id, in_tree, role, status, parent_id, raw_tokens, data) "
            "SELECT ?, id, in_tree, role, status, parent_id, raw_tokens, data FROM message "
            "WHERE session_id = ? AND id IN (SELECT value FROM json_each(?)) ORDER BY n",
            (target, source, wanted),
        )
        self._db.run(
            "INSERT INTO part (message, position, data) SELECT copy.n, part.position, part.data "
            "FROM message AS copy JOIN message AS original ON original.session_id = ? AND original.id = copy.id "
            "JOIN part ON part.message = original.n WHERE copy.session_id = ?",
            (source, target),
        )

    def _copy_steps(self, source: str, target: str, ids: Sequence[str]) -> None:
        self._db.run(
            "INSERT INTO step (session_id, id, status, message_id, fixed_id, data) "
            "SELECT ?, id, status, message_id, fixed_id, data FROM step "
            "WHERE session_id = ? AND id IN (SELECT value FROM json_each(?)) ORDER BY n",
            (target, source, json.dumps(list(ids))),
        )

    def _steps_of(self, session_id: str, kept: set[str], records: Sequence[CompactionRecord]) -> list[str]:
        """Ids of the steps that belong to a copy. Steps without a message of the tree (counts, subagents, failed
        compactions) belong to it up to the first step that answered with a message left behind."""
        tree = {
            row[0] for row in self._db.all("SELECT id FROM message WHERE session_id = ? AND in_tree", (session_id,))
        }
        rows = self._db.all("SELECT n, id, message_id FROM step WHERE session_id = ? ORDER BY n", (session_id,))
        last_kept = max((n for n, _, message in rows if message in kept), default=0)
        end = min((n for n, _, message in rows if message in tree - kept and n > last_kept), default=None)
        compactions = {record.step_id for record in records}
        return [
            step
            for n, step, message in rows
            if message in kept or step in compactions or (message not in tree and (end is None or n < end))
        ]

    def _stop_unfinished(self, session_id: str) -> int:
        """Marks drafts and running steps as stopped; returns how many there were."""
        drafts = self._db.run(
            "UPDATE message SET status = 'stopped' WHERE session_id = ? AND status = 'streaming'", (session_id,)
        )
        steps = self._db.run(
            "UPDATE step SET status = 'stopped' WHERE session_id = ? AND status = 'running'", (session_id,)
        )
        return drafts.rowcount + steps.rowcount


def _applies(record: CompactionRecord, kept: set[str]) -> bool:
    if record.kind == "summary":
        return kept.issuperset(record.message_ids)
    return not kept.isdisjoint(record.message_ids)
