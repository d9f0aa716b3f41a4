"""Facts that outlive a session: token counts, calibration, trust, permission rules, limits, offers; file snapshots."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

from agent_tui.models.calibration import Calibration
from agent_tui.models.codec import dumps, from_dict
from agent_tui.models.usage import LearnedLimit
from agent_tui.records import dataclass
from agent_tui.store.database import Database
from agent_tui.store.rows import decode, encode
from agent_tui.text.numbers import plural

_BATCH = 500


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
    """``identity`` says which repository was trusted, ``content`` (ASCII JSON) what it brought along."""

    identity: str
    content: str


RuleKind = Literal["allow", "ask", "deny"]
"""What a permission rule says to do."""

FACTS = ("token_count", "calibration", "trusted", "permission_rule", "learned_limit", "replay_fact")
"""The tables of what is known beside any session."""


class MeasuredCounts:
    """The facts known of token counts over all sessions: those of contents, and how each server's model counts."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def counts(self, fingerprints: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """The stored o200k_base counts of contents by kind, by content fingerprint; unknown ones are left out."""
        wanted = list(dict.fromkeys(fingerprints))
        found: dict[str, str] = {}
        for start in range(0, len(wanted), _BATCH):
            batch = wanted[start : start + _BATCH]
            marks = ",".join("?" * len(batch))
            found.update(
                self._db.all(f"SELECT fingerprint, counts FROM token_count WHERE fingerprint IN ({marks})", batch)
            )
        with self._db.decoding("a token count"):
            return {name: tuple(json.loads(counts)) for name, counts in found.items()}

    def put_counts(self, counts: Mapping[str, tuple[int, ...]]) -> None:
        """Keeps counts, by content fingerprint."""
        with self._db.writing():
            self._db.run_many(
                "INSERT INTO token_count (fingerprint, counts) VALUES (?, ?) "
                "ON CONFLICT DO UPDATE SET counts = excluded.counts",
                [(name, json.dumps(count)) for name, count in counts.items()],
            )

    def calibration(self, model: str, server: str) -> Calibration | None:
        """What was learned of how a model at a server (its address, or empty) counts; None before its first report."""
        row = self._db.one(
            "SELECT data FROM calibration WHERE model = ? AND server = ?", (encode(model), encode(server))
        )
        if row is None:
            return None
        with self._db.decoding("a calibration"):
            return from_dict(Calibration, json.loads(row[0]))

    def learn(self, model: str, server: str, change: Callable[[Calibration | None], Calibration]) -> Calibration:
        """Keeps what ``change`` makes of that, in one transaction: other processes learn of the same model."""
        with self._db.writing():
            learned = change(self.calibration(model, server))
            self._db.run(
                "INSERT OR REPLACE INTO calibration (model, server, data) VALUES (?, ?, ?)",
                (encode(model), encode(server), dumps(learned)),
            )
        return learned


class Trust:
    """The user's decisions on trust, by project root."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def get(self, folder: str | Path) -> TrustRow | None:
        """Returns what the user trusted in exactly this folder (a project root); None when they never did."""
        row = self._db.one("SELECT identity, content FROM trusted WHERE folder = ?", (encode(str(folder)),))
        return None if row is None else TrustRow(row[0], row[1])

    def put(self, folder: str | Path, identity: str, content: str) -> None:
        """Keeps what is trusted in a folder from now on, in place of what was before."""
        with self._db.writing():
            self._db.run(
                "INSERT INTO trusted (folder, created, identity, content) VALUES (?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET created = excluded.created, identity = excluded.identity, "
                "content = excluded.content",
                (encode(str(folder)), time.time(), identity, content),
            )


class StandingRules:
    """Permission rules that the user gave for good: what is allowed, asked about or denied."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def of(self, project: str | Path, identity: str) -> list[tuple[RuleKind, str]]:
        """The rules given for good in a repository (``project.brought`` tells it from others at the same path), each
        with what it says to do, oldest first."""
        return self._rules("project = ? AND identity = ?", encode(str(project)), identity)

    def of_others(self, project: str | Path, identity: str) -> list[tuple[RuleKind, str]]:
        """Rules that were given in other repositories at the same path, oldest first; they do not hold."""
        return self._rules("project = ? AND identity <> ?", encode(str(project)), identity)

    def _rules(self, where: str, *values: object) -> list[tuple[RuleKind, str]]:
        rows = self._db.all(f"SELECT decision, rule FROM permission_rule WHERE {where} ORDER BY n", values)
        with self._db.decoding("a permission rule"):
            return [(row[0] if row[0] in ("allow", "ask") else "deny", decode(row[1])) for row in rows]

    def add(self, project: str | Path, identity: str, rule: str, decision: RuleKind = "allow") -> None:
        """Keeps a rule in a repository, in place of one that said something else of the same."""
        with self._db.writing():
            self._db.run(
                "INSERT INTO permission_rule (project, identity, rule, decision) VALUES (?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET decision = excluded.decision",
                (encode(str(project)), identity, encode(rule), decision),
            )

    def remove(self, project: str | Path, rule: str) -> bool:
        """Takes a rule back, in whichever repository at that path it was given; False when there was none."""
        with self._db.writing():
            gone = self._db.run(
                "DELETE FROM permission_rule WHERE project = ? AND rule = ?", (encode(str(project)), encode(rule))
            )
            return gone.rowcount > 0


class Snapshots:
    """Files as they were before a session changed them."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, session_id: str, message_id: str, path: str | Path, content: bytes | None, mode: int | None) -> None:
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

    def all(self, session_id: str) -> list[Snapshot]:
        """All snapshots of a session, oldest first. To go back to before a message, restore for each path the first
        one made at or after it."""
        rows = self._db.all(
            "SELECT s.message_id, s.path, c.data, s.mode, s.created FROM snapshot AS s "
            "LEFT JOIN content AS c ON c.id = s.content_id WHERE s.session_id = ? ORDER BY s.n",
            (session_id,),
        )
        with self._db.decoding("a file snapshot"):
            return [Snapshot(row[0], decode(row[1]), row[2], row[3], row[4]) for row in rows]


_COLUMNS = (
    "max_window, max_input, max_output, believed, configured_window, configured_output, learned_at, text, "
    "accepted, raised_window, accepted_input, accepted_output"
)


def forgotten_text(count: int) -> str:
    """Returns the line that says that what servers taught of so many models was forgotten."""
    return (
        f"Forgot the learned limits of {plural(count, 'model')}."
        if count
        else "Nothing to forget: no server has corrected a limit yet."
    )


class Learned:
    """The facts that servers told by refusing requests, which outlive the session: limits, and how reasoning goes
    back."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def limit(self, model: str, server: str) -> LearnedLimit | None:
        """Returns the limit learned of a model (LiteLLM's name) at a server (its address, or empty); None when nothing
        was."""
        row = self._db.one(
            f"SELECT {_COLUMNS} FROM learned_limit WHERE model = ? AND server = ?", (encode(model), encode(server))
        )
        if row is None:
            return None
        with self._db.decoding("a learned limit"):
            values: list[Any] = [decode(value) if isinstance(value, bytes) else value for value in row]
            return LearnedLimit(model, server, *values)

    def put_limit(self, limit: LearnedLimit) -> None:
        """Keeps what was learned, in place of what was known of the same model and server."""
        values = [getattr(limit, field.name) for field in fields(limit)]
        with self._db.writing():
            self._db.run(
                f"INSERT OR REPLACE INTO learned_limit (model, server, {_COLUMNS}) "
                f"VALUES ({', '.join('?' * len(values))})",
                [encode(value) if isinstance(value, str) else value for value in values],
            )

    def limits(self) -> list[LearnedLimit]:
        """Everything learned, by model and server."""
        rows = self._db.all("SELECT model, server FROM learned_limit ORDER BY model, server")
        with self._db.decoding("a learned limit"):
            names = [(decode(model), decode(server)) for model, server in rows]
        return [found for name in names if (found := self.limit(*name)) is not None]

    def forget_limit(self, model: str, server: str) -> None:
        """Forgets what was learned of a model at a server."""
        with self._db.writing():
            self._db.run("DELETE FROM learned_limit WHERE model = ? AND server = ?", (encode(model), encode(server)))

    def server_facts(self, model: str, server: str) -> tuple[str, float] | None:
        """Returns what a server said last of a model, as JSON, and when; None where it never said anything."""
        row = self._db.one(
            "SELECT data, seen FROM server_fact WHERE model = ? AND server = ?", (encode(model), encode(server))
        )
        return None if row is None else (str(row[0]), float(row[1]))

    def put_server_facts(self, model: str, server: str, data: str, seen: float) -> None:
        """Keeps what a server says of a model, in place of what it said before."""
        with self._db.writing():
            self._db.run(
                "INSERT OR REPLACE INTO server_fact (model, server, data, seen) VALUES (?, ?, ?, ?)",
                (encode(model), encode(server), data, seen),
            )

    def replay_facts(self, model: str, server: str) -> set[str]:
        """Returns what else a server taught of a model by refusing: how it takes reasoning back, pictures, tools
        (``engine/models.py``)."""
        rows = self._db.all(
            "SELECT fact FROM replay_fact WHERE model = ? AND server = ?", (encode(model), encode(server))
        )
        return {str(row[0]) for row in rows}

    def add_replay_fact(self, model: str, server: str, fact: str) -> None:
        """Keeps one of those facts, once."""
        with self._db.writing():
            self._db.run(
                "INSERT OR IGNORE INTO replay_fact (model, server, fact, created) VALUES (?, ?, ?, ?)",
                (encode(model), encode(server), fact, time.time()),
            )

    def forget_all(self) -> int:
        """Forgets all that was learned of all models: what servers do may have changed. How many models that were."""
        with self._db.writing():
            limits = self._db.all("SELECT model, server FROM learned_limit")
            # There the API follows the model's name.
            facts = [
                (decode(m).rpartition(" ")[0], s) for m, s in self._db.all("SELECT model, server FROM replay_fact")
            ]
            self._db.run("DELETE FROM replay_fact")
            self._db.run("DELETE FROM learned_limit")
            self._db.run("DELETE FROM server_fact")
            return len({*facts, *((decode(model), server) for model, server in limits)})


class Offers:
    """The offers of MCP servers when they were last seen, by project."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def put(self, folder: str | Path, server: str, identity: str, offer: str) -> None:
        """Keeps an offer (ASCII JSON) in place of what that server of the folder offered before. ``identity`` is its
        configuration's."""
        key = (encode(str(folder)), encode(server))
        row = (identity, offer)
        if self._db.one("SELECT identity, offer FROM mcp_offer WHERE folder = ? AND server = ?", key) == row:
            return
        with self._db.writing():
            self._db.run(
                "INSERT INTO mcp_offer (folder, server, identity, offer) VALUES (?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET identity = excluded.identity, offer = excluded.offer",
                (*key, *row),
            )

    def get(self, folder: str | Path, server: str, identity: str) -> Any:
        """The JSON of what a server of the folder offered last; None where that is not known of this ``identity``.
        Raises StoreError."""
        row = self._db.one(
            "SELECT offer FROM mcp_offer WHERE folder = ? AND server = ? AND identity = ?",
            (encode(str(folder)), encode(server), identity),
        )
        with self._db.decoding("the offer of an MCP server"):
            return None if row is None else json.loads(row[0])
