"""Facts that outlive a session: token counts, calibration, trusted folders, permission rules; and file snapshots."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_tui.store.tables.base import Tables
from agent_tui.store.tables.rows import decode, encode

_BATCH = 500

GROWTHS_KEPT = 50
"""Steps of a model that its calibration is taken from."""


@dataclass(slots=True, frozen=True)
class Snapshot:
    """A file as it was before the turn of ``message_id`` first changed it. ``content`` None: it did not exist.
    ``mode`` are its permission bits, None where unknown; ``created`` is in seconds since the epoch."""

    message_id: str
    path: str
    content: bytes | None
    mode: int | None
    created: float


@dataclass(slots=True, frozen=True)
class TrustRow:
    """``identity`` says which repository was trusted, ``content`` (ASCII JSON) what it brought along; None for a
    folder trusted by a version that did not look at it."""

    identity: str
    content: str | None


FACTS = ("token_count", "growth", "trusted", "permission_rule", "learned_limit", "replay_fact")
"""The tables of what is known beside any session."""


class FactTables(Tables):
    def counts(self, fingerprints: Iterable[str]) -> dict[str, int]:
        """The stored o200k_base counts of contents, by content fingerprint; unknown ones are left out."""
        wanted = list(dict.fromkeys(fingerprints))
        found: dict[str, int] = {}
        for start in range(0, len(wanted), _BATCH):
            batch = wanted[start : start + _BATCH]
            marks = ",".join("?" * len(batch))
            found.update(
                self._db.all(f"SELECT fingerprint, tokens FROM token_count WHERE fingerprint IN ({marks})", batch)
            )
        return found

    def put_counts(self, counts: Mapping[str, int]) -> None:
        with self._db.writing():
            self._db.run_many(
                "INSERT INTO token_count (fingerprint, tokens) VALUES (?, ?) "
                "ON CONFLICT DO UPDATE SET tokens = excluded.tokens",
                list(counts.items()),
            )

    def growths(self, model: str) -> list[tuple[int, int]]:
        """(measured, estimated) growth in tokens of a model's newest verified steps over all sessions, oldest first."""
        rows = self._db.all("SELECT actual, estimated FROM growth WHERE model = ? ORDER BY n", (encode(model),))
        return [(int(actual), int(estimated)) for actual, estimated in rows]

    def add_growth(self, model: str, step_id: str, actual: int, estimated: int) -> None:
        """Adds a verified step, once; of each model the newest ``GROWTHS_KEPT`` stay."""
        name = encode(model)
        with self._db.writing():
            self._db.run(
                "INSERT OR IGNORE INTO growth (model, step_id, actual, estimated) VALUES (?, ?, ?, ?)",
                (name, step_id, actual, estimated),
            )
            self._db.run(
                "DELETE FROM growth WHERE model = ? AND n <= "
                "(SELECT n FROM growth WHERE model = ? ORDER BY n DESC LIMIT 1 OFFSET ?)",
                (name, name, GROWTHS_KEPT),
            )

    def replay_facts(self, model: str, server: str) -> set[str]:
        """What was learned of how a model at a server takes reasoning back (``failures.refusals``)."""
        rows = self._db.all(
            "SELECT fact FROM replay_fact WHERE model = ? AND server = ?", (encode(model), encode(server))
        )
        return {str(row[0]) for row in rows}

    def add_replay_fact(self, model: str, server: str, fact: str) -> None:
        with self._db.writing():
            self._db.run(
                "INSERT OR IGNORE INTO replay_fact (model, server, fact, created) VALUES (?, ?, ?, ?)",
                (encode(model), encode(server), fact, time.time()),
            )

    def forget_replay_facts(self) -> None:
        """Everything learned about it, of all models: what servers do may have changed."""
        with self._db.writing():
            self._db.run("DELETE FROM replay_fact")

    def trust_row(self, folder: str | Path) -> TrustRow | None:
        """What the user trusted in exactly this folder (a project root); None when they never did."""
        row = self._db.one("SELECT identity, content FROM trusted WHERE folder = ?", (encode(str(folder)),))
        return None if row is None else TrustRow(row[0], row[1])

    def trust(self, folder: str | Path, identity: str, content: str) -> None:
        """Keeps what is trusted in a folder from now on, in place of what was before."""
        with self._db.writing():
            self._db.run(
                "INSERT INTO trusted (folder, created, identity, content) VALUES (?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET created = excluded.created, identity = excluded.identity, "
                "content = excluded.content",
                (encode(str(folder)), time.time(), identity, content),
            )

    def permission_rules(self, project: str | Path, identity: str) -> list[str]:
        """The rules the user allowed for good in a repository (``project.brought`` tells it from others at the same
        path), oldest first."""
        return self._rules("project = ? AND identity = ?", encode(str(project)), identity)

    def rules_of_others(self, project: str | Path, identity: str) -> list[str]:
        """Rules that were allowed in other repositories at the same path, oldest first; they do not hold."""
        return self._rules("project = ? AND identity <> ?", encode(str(project)), identity)

    def _rules(self, where: str, *values: object) -> list[str]:
        rows = self._db.all(f"SELECT rule FROM permission_rule WHERE {where} ORDER BY n", values)
        with self._decoding("a permission rule"):
            return [decode(row[0]) for row in rows]

    def add_permission_rule(self, project: str | Path, identity: str, rule: str) -> None:
        with self._db.writing():
            self._db.run(
                "INSERT OR IGNORE INTO permission_rule (project, identity, rule) VALUES (?, ?, ?)",
                (encode(str(project)), identity, encode(rule)),
            )

    def remove_permission_rule(self, project: str | Path, rule: str) -> bool:
        """Takes a rule back, in whichever repository at that path it was allowed; False when there was none."""
        with self._db.writing():
            gone = self._db.run(
                "DELETE FROM permission_rule WHERE project = ? AND rule = ?", (encode(str(project)), encode(rule))
            )
            return gone.rowcount > 0

    def snapshot(
        self, session_id: str, message_id: str, path: str | Path, content: bytes | None, mode: int | None
    ) -> None:
        """Keeps a file as it is before a tool changes it (None: it does not exist yet). Only the first state under
        one message and path counts; later calls change nothing."""
        content_id = None if content is None else hashlib.blake2b(content, digest_size=20).hexdigest()
        with self._db.writing():
            if content_id is not None:
                self._db.run("INSERT OR IGNORE INTO content (id, data) VALUES (?, ?)", (content_id, content))
            self._db.run(
                "INSERT OR IGNORE INTO snapshot (session_id, message_id, path, content_id, mode, created) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (session_id, message_id, encode(str(path)), content_id, mode, time.time()),
            )

    def snapshots(self, session_id: str) -> list[Snapshot]:
        """All snapshots of a session, oldest first. To go back to before a message, restore for each path the first
        one made at or after it."""
        rows = self._db.all(
            "SELECT s.message_id, s.path, c.data, s.mode, s.created FROM snapshot AS s "
            "LEFT JOIN content AS c ON c.id = s.content_id WHERE s.session_id = ? ORDER BY s.n",
            (session_id,),
        )
        with self._decoding("a file snapshot"):
            return [Snapshot(row[0], decode(row[1]), row[2], row[3], row[4]) for row in rows]
