"""What a check of the installation says of the index."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from agent_tui.errors import StoreError
from agent_tui.models.search import IndexHealth
from agent_tui.store.search.index import VERSION, damage_in, index_file, is_of, read_only, why_not
from agent_tui.store.search.texts import SEARCHED
from agent_tui.store.tables.database import FAULTS, explain

_TALKED = f"FROM message AS m JOIN session AS s ON s.id = m.session_id WHERE s.kind <> 'subagent' AND {SEARCHED}"
_LEFT = "(m.n < ?1 OR m.n > ?2 OR m.n IN (SELECT n FROM search.waits))"


def index_health(database: Path) -> IndexHealth:
    """How the index of a database is. Raises ``StoreError`` where the database cannot be read."""
    path = index_file(database)
    try:
        with closing(sqlite3.connect(read_only(database), uri=True)) as connection:
            (total,) = connection.execute(f"SELECT count(DISTINCT m.session_id) {_TALKED}").fetchone()
            if not path.exists():
                return IndexHealth(total=total, possible=_has_fts5(connection))
            try:
                return _health(connection, path, total)
            except (OSError, StoreError, *FAULTS) as error:
                return IndexHealth(total=total, problem=why_not(error, path), possible=_has_fts5(connection))
    except FAULTS as error:
        raise explain(error, database) from error


def _health(connection: sqlite3.Connection, path: Path, total: int) -> IndexHealth:
    size = path.stat().st_size
    connection.execute("ATTACH DATABASE ? AS search", (read_only(path),))
    if damage_in(connection, "search"):
        return IndexHealth(0, total, size, f"{path} is damaged")
    (version,) = connection.execute("PRAGMA search.user_version").fetchone()
    if version != VERSION:
        return IndexHealth(0, total, size)
    low, high, last = connection.execute("SELECT low, high, last FROM search.reach").fetchone()
    if high < 0 or not is_of(connection, high, last):
        return IndexHealth(0, total, size)
    connection.execute("SELECT rowid FROM search.grams WHERE grams MATCH '\"\"' LIMIT 1").fetchall()
    (left,) = connection.execute(f"SELECT count(DISTINCT m.session_id) {_TALKED} AND {_LEFT}", (low, high)).fetchone()
    return IndexHealth(total - left, total, size)


def _has_fts5(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").fetchone() is not None
