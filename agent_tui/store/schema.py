"""The one schema of the session database; ``PRAGMA user_version`` says which one a file has.

Nothing was released with another, so there are no migrations: a change of a table, or of what its JSON means, raises
``VERSION``, and a file of an earlier one is moved aside (``store.aside``).

Text that people or models wrote is stored either as ASCII JSON or as UTF-8 bytes with surrogates let through, so lone
surrogates and NUL characters come back as they went in.
"""

from __future__ import annotations

import sqlite3

APPLICATION_ID = 0x41475455
"""``PRAGMA application_id`` of our files (the letters AGTU): tells them from other programs' databases."""

VERSION = 20

SCHEMA = (
    """CREATE TABLE session (
        id TEXT PRIMARY KEY,
        project BLOB NOT NULL,
        title BLOB NOT NULL,
        model BLOB NOT NULL,
        created REAL NOT NULL,
        updated REAL NOT NULL,
        head_id TEXT,
        messages INTEGER NOT NULL,
        parent_session TEXT,
        preview BLOB NOT NULL,
        kind TEXT NOT NULL,
        state TEXT NOT NULL
    )""",
    # Lists show all but subagents, whose rows are only looked for by their parent.
    "CREATE INDEX session_by_age ON session (updated, id) WHERE kind <> 'subagent'",
    "CREATE INDEX session_by_project ON session (project, updated, id) WHERE kind <> 'subagent'",
    "CREATE INDEX session_of_parent ON session (parent_session) WHERE kind = 'subagent'",
    """CREATE TABLE message (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        id TEXT NOT NULL,
        in_tree INTEGER NOT NULL,
        role TEXT NOT NULL,
        status TEXT NOT NULL,
        parent_id TEXT,
        raw_tokens INTEGER,
        counts TEXT,
        data TEXT NOT NULL,
        UNIQUE (session_id, id)
    )""",
    "CREATE INDEX message_in_order ON message (session_id, in_tree, n)",
    "CREATE INDEX message_draft ON message (session_id) WHERE status = 'streaming'",
    """CREATE TABLE part (
        message INTEGER NOT NULL REFERENCES message (n) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        data TEXT NOT NULL,
        PRIMARY KEY (message, position)
    ) WITHOUT ROWID""",
    # Messages that were typed while the model worked, until they join the conversation.
    """CREATE TABLE waiting (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        id TEXT NOT NULL,
        data TEXT NOT NULL,
        UNIQUE (session_id, id)
    )""",
    "CREATE TABLE fixed_set (id TEXT PRIMARY KEY, data TEXT NOT NULL)",
    """CREATE TABLE step (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        id TEXT NOT NULL,
        status TEXT NOT NULL,
        message_id TEXT,
        fixed_id TEXT REFERENCES fixed_set (id),
        data TEXT NOT NULL,
        UNIQUE (session_id, id)
    )""",
    "CREATE INDEX step_in_order ON step (session_id, n)",
    "CREATE INDEX step_fixed ON step (fixed_id)",
    "CREATE INDEX step_running ON step (session_id) WHERE status = 'running'",
    """CREATE TABLE compaction (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        id TEXT NOT NULL,
        operation_id TEXT NOT NULL,
        active INTEGER NOT NULL,
        data TEXT NOT NULL,
        UNIQUE (session_id, id)
    )""",
    # Files as they were before a session changed them.
    "CREATE TABLE content (id TEXT PRIMARY KEY, data BLOB NOT NULL)",
    """CREATE TABLE snapshot (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        message_id TEXT NOT NULL,
        path BLOB NOT NULL,
        content_id TEXT REFERENCES content (id),
        mode INTEGER,
        created REAL NOT NULL,
        UNIQUE (session_id, message_id, path)
    )""",
    "CREATE INDEX snapshot_content ON snapshot (content_id)",
    # What each call cost, by local day: budgets ask for the sum of a day before every call.
    """CREATE TABLE spending (
        step_id TEXT PRIMARY KEY,
        day TEXT NOT NULL,
        usd REAL NOT NULL,
        unpriced INTEGER NOT NULL,
        held REAL NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX spending_of_day ON spending (day, usd, unpriced, held)",
    "CREATE TABLE token_count (fingerprint TEXT PRIMARY KEY, counts TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE calibration (
        model BLOB NOT NULL,
        server BLOB NOT NULL,
        data TEXT NOT NULL,
        PRIMARY KEY (model, server)
    ) WITHOUT ROWID""",
    """CREATE TABLE trusted (
        folder BLOB PRIMARY KEY,
        created REAL NOT NULL,
        identity TEXT NOT NULL,
        content TEXT NOT NULL
    ) WITHOUT ROWID""",
    # A remembered rule is of a repository, not of a path.
    """CREATE TABLE permission_rule (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        project BLOB NOT NULL,
        identity TEXT NOT NULL,
        rule BLOB NOT NULL,
        decision TEXT NOT NULL,
        UNIQUE (project, identity, rule)
    )""",
    # What servers said of a model's limits when they refused a request, and what they were seen to take; an empty
    # server is the provider's own.
    """CREATE TABLE learned_limit (
        model BLOB NOT NULL,
        server BLOB NOT NULL,
        max_window INTEGER,
        max_input INTEGER,
        max_output INTEGER,
        believed INTEGER,
        configured_window INTEGER,
        configured_output INTEGER,
        learned_at REAL NOT NULL,
        text BLOB NOT NULL,
        accepted INTEGER,
        raised_window INTEGER,
        accepted_input INTEGER,
        accepted_output INTEGER,
        PRIMARY KEY (model, server)
    ) WITHOUT ROWID""",
    # What a server said last of a model, for when it does not answer.
    """CREATE TABLE server_fact (
        model BLOB NOT NULL,
        server BLOB NOT NULL,
        data TEXT NOT NULL,
        seen REAL NOT NULL,
        PRIMARY KEY (model, server)
    ) WITHOUT ROWID""",
    # What a model at a server taught about taking reasoning back, by being refused once.
    """CREATE TABLE replay_fact (
        model BLOB NOT NULL,
        server BLOB NOT NULL,
        fact TEXT NOT NULL,
        created REAL NOT NULL,
        PRIMARY KEY (model, server, fact)
    ) WITHOUT ROWID""",
    # What MCP servers offered when they were last seen: a look at a session starts none.
    """CREATE TABLE mcp_offer (
        folder TEXT NOT NULL,
        server TEXT NOT NULL,
        identity TEXT NOT NULL,
        offer TEXT NOT NULL,
        PRIMARY KEY (folder, server)
    ) WITHOUT ROWID""",
)


def version_of(connection: sqlite3.Connection) -> int:
    """The schema version of a database; 0 for a new one. Raises ``sqlite3.Error``."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def create_schema(connection: sqlite3.Connection) -> None:
    """Makes the tables in an empty database, in one transaction; two processes doing it at once do it once.

    Raises ``sqlite3.Error``; the file is then as it was.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        if version_of(connection) == 0:
            for statement in SCHEMA:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
