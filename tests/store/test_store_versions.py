"""A database of another version: an earlier one is kept aside, a newer one refused; nothing is ever written over."""

from __future__ import annotations

import hashlib
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent_tui.errors import StoreError
from agent_tui.models.calibration import TERMS
from agent_tui.store.repair import repair_file
from agent_tui.store.schema import SCHEMA, VERSION
from agent_tui.store.store import Store

PINNED = (20, "2392")


def as_earlier(path: Path, version: int = VERSION - 1, **text: str) -> bytes:
    """Makes a database of an earlier version; returns its bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA application_id = 1095193685")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.execute("CREATE TABLE session (id, words)")
    connection.execute("INSERT INTO session VALUES ('ses_old', ?)", (text.get("words", "what was said"),))
    connection.close()
    path.chmod(0o644)
    return path.read_bytes()


def test_a_changed_schema_has_a_new_version() -> None:
    """A change of tables, or of the kinds of text that counts are stored by: raise ``VERSION``, then pin both here."""
    digest = hashlib.sha256(repr((SCHEMA, TERMS)).encode()).hexdigest()
    assert (VERSION, digest[:4]) == PINNED


def test_an_earlier_one_is_kept_aside_and_said_so(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    for number, words in enumerate(("first", "second"), 1):
        before = as_earlier(path, words=words)
        with Store.open(path) as store:
            assert store.sessions.all() == []
            assert store.writable
            notice = store.notice
        kept = path.with_name(f"sessions.db.version-{VERSION - 1}{'' if number == 1 else '-2'}")
        assert kept.read_bytes() == before
        assert kept.stat().st_mode & 0o777 == 0o600
        assert notice is not None and "\n" not in notice and str(path) in notice and kept.name in notice
        with Store.open(path) as store:
            assert store.notice is None
    assert len(list(tmp_path.glob("*.version-*"))) == 2


def test_what_only_its_log_holds_is_kept_too(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    as_earlier(path)
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL").fetchone()
    writer.execute("INSERT INTO session VALUES ('ses_log', 'only in the log')")
    Store.open(path).close()
    writer.close()
    kept = sqlite3.connect(path.with_name(f"sessions.db.version-{VERSION - 1}"))
    assert [row[0] for row in kept.execute("SELECT id FROM session")] == ["ses_old", "ses_log"]
    kept.close()


def test_two_that_start_at_once_keep_one_aside(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    as_earlier(path)
    with ThreadPoolExecutor(4) as pool:
        opened = list(pool.map(lambda _: open_and_add(path), range(4)))
    assert sum(notice is not None for notice in opened) == 1
    assert len(list(tmp_path.glob("*.version-*"))) == 1
    with Store.open(path) as store:
        assert len(store.sessions.all()) == 4


def open_and_add(path: Path) -> str | None:
    with Store.open(path, write_timeout=5.0) as store:
        store.sessions.create("/p", "demo")
        return store.notice


def test_one_that_another_program_works_on_stays(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with Store.open(tmp_path / "else" / "sessions.db") as other:
        session = other.sessions.create("/p", "demo")
        before = as_earlier(path)
        (tmp_path / "locks").symlink_to(tmp_path / "else" / "locks")
        with other.locks.take(session.id), pytest.raises(StoreError, match="close it, then try again"):
            Store.open(path)
    assert path.read_bytes() == before


def test_a_run_that_keeps_nothing_says_it_too(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    as_earlier(path)
    with Store.ephemeral(path) as store:
        assert store.notice is not None and "is kept as" in store.notice


def test_a_repair_leaves_an_earlier_one_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    before = as_earlier(path)
    with pytest.raises(StoreError, match="the next start keeps it aside"):
        repair_file(path)
    assert path.read_bytes() == before
