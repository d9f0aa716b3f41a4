"""The schema as an ordered list of migrations; ``PRAGMA user_version`` says how many of them a file has had.

A migration that was released is never edited: a change of the schema is a new entry at the end.

Text that people or models wrote is stored either as ASCII JSON or as UTF-8 bytes with surrogates let through, so lone
surrogates and NUL characters come back as they went in.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

APPLICATION_ID = 0x41475455
"""``PRAGMA application_id`` of our files (the letters AGTU): tells them from other programs' databases."""

Migration = tuple[str, ...]

_FIRST: Migration = (
    """CREATE TABLE session (
        id TEXT PRIMARY KEY,
        project BLOB NOT NULL,
        title BLOB NOT NULL,
        model BLOB NOT NULL,
        created REAL NOT NULL,
        updated REAL NOT NULL,
        head_id TEXT,
        messages INTEGER NOT NULL DEFAULT 0,
        parent_session TEXT,
        preview BLOB NOT NULL,
        search BLOB NOT NULL,
        state TEXT NOT NULL
    )""",
    "CREATE INDEX session_by_age ON session (updated, id)",
    "CREATE INDEX session_by_project ON session (project, updated, id)",
    """CREATE TABLE message (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        id TEXT NOT NULL,
        in_tree INTEGER NOT NULL,
        role TEXT NOT NULL,
        status TEXT NOT NULL,
        parent_id TEXT,
        raw_tokens INTEGER,
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
    "CREATE TABLE token_count (fingerprint TEXT PRIMARY KEY, tokens INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE ratio (model BLOB PRIMARY KEY, value REAL NOT NULL) WITHOUT ROWID",
    "CREATE TABLE trusted (folder BLOB PRIMARY KEY, created REAL NOT NULL) WITHOUT ROWID",
    """CREATE TABLE permission_rule (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        project BLOB NOT NULL,
        rule BLOB NOT NULL,
        UNIQUE (project, rule)
    )""",
)

_GROWTH: Migration = (
    # The ratio is of the model's newest steps over all sessions, so the steps are kept instead of one number.
    "DROP TABLE ratio",
    """CREATE TABLE growth (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        model BLOB NOT NULL,
        step_id TEXT NOT NULL UNIQUE,
        actual INTEGER NOT NULL,
        estimated INTEGER NOT NULL
    )""",
    "CREATE INDEX growth_by_model ON growth (model, n)",
)

_LEARNED_LIMITS: Migration = (
    # What servers said of a model's limits when they refused a request; an empty server is the provider's own.
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
        PRIMARY KEY (model, server)
    ) WITHOUT ROWID""",
)

_NEW_TEXT: Migration = (
    # Growth is of new text alone from here on; what was kept before held the errors of everything else in it.
    "DELETE FROM growth",
)

_TRUST_OF_CONTENT: Migration = (
    # Folders trusted before have no content: they are asked about once more.
    "ALTER TABLE trusted ADD COLUMN identity TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE trusted ADD COLUMN content TEXT",
)

_REPLAY_FACTS: Migration = (
    # What a model at a server taught about taking reasoning back, by being refused once.
    """CREATE TABLE replay_fact (
        model BLOB NOT NULL,
        server BLOB NOT NULL,
        fact TEXT NOT NULL,
        created REAL NOT NULL,
        PRIMARY KEY (model, server, fact)
    ) WITHOUT ROWID""",
)

_WAITING: Migration = (
    # Messages that were typed while the model worked, until they join the conversation.
    """CREATE TABLE waiting (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        id TEXT NOT NULL,
        data TEXT NOT NULL,
        UNIQUE (session_id, id)
    )""",
)

_RULES_OF_REPOSITORIES: Migration = (
    # A remembered rule is of a repository, not of a path. One from before belongs to what was trusted there, else to
    # none that is known: it is asked about again.
    "CREATE TEMP TABLE rule_of_path AS SELECT n, project, rule FROM permission_rule",
    "DROP TABLE permission_rule",
    """CREATE TABLE permission_rule (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        project BLOB NOT NULL,
        identity TEXT NOT NULL,
        rule BLOB NOT NULL,
        UNIQUE (project, identity, rule)
    )""",
    """INSERT INTO permission_rule (n, project, identity, rule)
        SELECT n, project, COALESCE((SELECT identity FROM trusted WHERE folder = project), ''), rule
        FROM rule_of_path ORDER BY n""",
    "DROP TABLE rule_of_path",
)

_KINDS: Migration = (
    # What a session is was a mark in the JSON of its state, looked for as text in every row. Lists show all but
    # subagents, whose rows are only looked for by their parent.
    "ALTER TABLE session ADD COLUMN kind TEXT NOT NULL DEFAULT 'user'",
    """UPDATE session SET kind = 'subagent',
        state = CASE WHEN json_valid(state) THEN json_remove(state, '$.subagent') ELSE state END
        WHERE instr(state, '"subagent":true') > 0""",
    "DROP INDEX IF EXISTS session_by_age",
    "DROP INDEX IF EXISTS session_by_project",
    "CREATE INDEX session_by_age ON session (updated, id) WHERE kind <> 'subagent'",
    "CREATE INDEX session_by_project ON session (project, updated, id) WHERE kind <> 'subagent'",
    "CREATE INDEX session_of_parent ON session (parent_session) WHERE kind = 'subagent'",
)

_SPENDING: Migration = (
    # What each call cost, by local day: budgets ask for the sum of a day before every call.
    """CREATE TABLE spending (
        step_id TEXT PRIMARY KEY,
        day TEXT NOT NULL,
        usd REAL NOT NULL,
        unpriced INTEGER NOT NULL,
        held REAL NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX spending_of_day ON spending (day, usd, unpriced, held)",
)

_OFFERS: Migration = (
    # What MCP servers offered when they were last seen: a look at a session starts none.
    """CREATE TABLE mcp_offer (
        folder TEXT NOT NULL,
        server TEXT NOT NULL,
        identity TEXT NOT NULL,
        offer TEXT NOT NULL,
        PRIMARY KEY (folder, server)
    ) WITHOUT ROWID""",
)

_MESSAGES_OF_THE_BRANCH: Migration = (
    # ``messages`` counted the whole tree; it is the length of the conversation that is opened. The two differ only
    # where a rewind left something behind: there the end of the conversation is not the newest message, or a message
    # has more than one that follows it.
    """UPDATE session SET messages = (
        WITH RECURSIVE way (id, parent_id) AS (
            SELECT id, parent_id FROM message WHERE session_id = session.id AND id = session.head_id AND in_tree
            UNION
            SELECT m.id, m.parent_id FROM way
                JOIN message AS m ON m.session_id = session.id AND m.id = way.parent_id AND m.in_tree)
        SELECT COUNT(*) FROM way)
        WHERE messages > 0 AND (
            head_id IS NOT (SELECT id FROM message WHERE session_id = session.id AND in_tree ORDER BY n DESC LIMIT 1)
            OR (SELECT COUNT(*) - COUNT(DISTINCT COALESCE(parent_id, '')) FROM message
                WHERE session_id = session.id AND in_tree) > 0)""",
)

_REPORTS_AS_THEY_CAME: Migration = (
    # A step has the report of its provider and, apart from it, what is believed. Versions before would build on reports
    # that are not: they are kept from opening the file. Where one had replaced a report, that is lost.
)

_COUNTS_BY_KIND: Migration = (
    # What was counted before is counted again by kind when it is next asked for. A calibration of one number for a
    # model says nothing of kinds: it is learned anew, for each server.
    "ALTER TABLE message ADD COLUMN counts TEXT",
    "DROP TABLE token_count",
    "CREATE TABLE token_count (fingerprint TEXT PRIMARY KEY, counts TEXT NOT NULL) WITHOUT ROWID",
    "DROP TABLE growth",
    """CREATE TABLE calibration (
        model BLOB NOT NULL, server BLOB NOT NULL, data TEXT NOT NULL, PRIMARY KEY (model, server)) WITHOUT ROWID""",
)

OTHER_KINDS: Migration = (
    # What was counted, estimated and learned by other kinds of text says nothing of those there are now
    # (``models.calibration.TERMS``), also where there were as many of them: texts are counted again, calibrations
    # learned anew, and past steps made again with what is known of the model's family. It goes to the end of the list
    # once more when the kinds change.
    "UPDATE message SET counts = NULL WHERE counts IS NOT NULL",
    "DELETE FROM token_count",
    "DELETE FROM calibration",
    """UPDATE step SET data = json_remove(data, '$.growth', '$.given.calibrated')
        WHERE CASE typeof(data) WHEN 'text' THEN json_valid(data) END""",
    """UPDATE fixed_set SET data = (
        SELECT json_group_array(CASE type WHEN 'object' THEN json_remove(value, '$.counts') ELSE value END)
        FROM json_each(fixed_set.data))
        WHERE CASE typeof(data) WHEN 'text' THEN json_valid(data) END""",
)

_RULES_THAT_REFUSE: Migration = ("ALTER TABLE permission_rule ADD COLUMN decision TEXT NOT NULL DEFAULT 'allow'",)

_FACTS_OF_SERVERS: Migration = (
    # What a server was seen to take, where that is more than was stated.
    "ALTER TABLE learned_limit ADD COLUMN accepted INTEGER",
    "ALTER TABLE learned_limit ADD COLUMN raised_window INTEGER",
    "ALTER TABLE learned_limit ADD COLUMN accepted_input INTEGER",
    "ALTER TABLE learned_limit ADD COLUMN accepted_output INTEGER",
    # What a server said last of a model, for when it does not answer.
    """CREATE TABLE server_fact (
        model BLOB NOT NULL,
        server BLOB NOT NULL,
        data TEXT NOT NULL,
        seen REAL NOT NULL,
        PRIMARY KEY (model, server)
    ) WITHOUT ROWID""",
)

MIGRATIONS: list[Migration] = [
    _FIRST,
    _GROWTH,
    _LEARNED_LIMITS,
    _NEW_TEXT,
    _TRUST_OF_CONTENT,
    _REPLAY_FACTS,
    _WAITING,
    _RULES_OF_REPOSITORIES,
    _KINDS,
    _SPENDING,
    _OFFERS,
    _MESSAGES_OF_THE_BRANCH,
    _REPORTS_AS_THEY_CAME,
    _COUNTS_BY_KIND,
    OTHER_KINDS,
    _RULES_THAT_REFUSE,
    _FACTS_OF_SERVERS,
]


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> None:
    """Brings a database up to date in one transaction; two processes doing it at once do it once.

    Raises ``sqlite3.Error``; the file is then as it was.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        for migration in migrations[version:]:
            for statement in migration:
                connection.execute(statement)
        if version < len(migrations):
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
