from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

import pytest

from agent_tui.errors import StoreError, StoreLockedError
from agent_tui.models.messages import Message, TextPart, user_message
from agent_tui.store import schema
from agent_tui.store.store import Store

posix = pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")


def one_line(error: pytest.ExceptionInfo[StoreError]) -> str:
    text = str(error.value)
    assert "\n" not in text
    assert text
    return text


def filled(path: Path, count: int = 3) -> str:
    with Store.open(path) as store:
        info = store.sessions.create("/p", "demo")
        for n in range(count):
            store.messages.add(info.id, Message(f"m{n}", "user", [TextPart("text " * 500)]))
        return info.id


@posix
def test_everything_it_creates_is_private(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "data" / "sessions.db"
    old = os.umask(0)
    try:
        with Store.open(path) as store:
            info = store.sessions.create("/p", "demo")
            store.locks.take(info.id)
            found = [path.parent, *path.parent.rglob("*")]
            modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in found}
    finally:
        os.umask(old)
    assert {"sessions.db", "sessions.db-wal", "sessions.db-shm", "locks", f"{info.id}.lock"} <= set(modes)
    assert {name: mode for name, mode in modes.items() if mode & 0o077} == {}


@posix
def test_a_database_that_others_could_read_is_made_private(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    filled(path)
    path.chmod(0o644)
    Store.open(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_it_writes_ahead_and_checks_references(tmp_path: Path) -> None:
    with Store.open(tmp_path / "sessions.db") as store:
        assert store.database.one("PRAGMA journal_mode") == ("wal",)
        assert store.database.one("PRAGMA synchronous") == (1,)
        assert store.database.one("PRAGMA foreign_keys") == (1,)
        assert store.database.one("PRAGMA busy_timeout") == (50,)


def test_a_newer_database_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    filled(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="newer agent-tui") as error:
        Store.open(path)
    assert "upgrade" in one_line(error)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    path.write_bytes(b"these are my notes, keep them\n" * 100)
    with pytest.raises(StoreError, match="not a session database") as error:
        Store.open(path)
    one_line(error)
    assert path.read_bytes().startswith(b"these are my notes")


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE songs (name)")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="another program's"):
        Store.open(path)


@pytest.mark.slow
def test_a_damaged_file_is_one_line_wherever_it_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    session_id = filled(path, 60)
    whole = path.read_bytes()
    refused = 0
    for start in range(100, len(whole), 4096):
        path.write_bytes(whole[:start] + b"\xa5" * 3000 + whole[start + 3000 :])
        try:
            with Store.open(path) as store:
                store.sessions.get(session_id)
                store.messages.all(session_id)
                store.steps.all(session_id)
        except StoreError as error:
            assert "\n" not in str(error)
            refused += 1
    assert refused > 5
    path.write_bytes(whole[:5000])
    with pytest.raises(StoreError) as cut, Store.open(path) as store:
        store.messages.all(session_id)
    one_line(cut)


@pytest.mark.parametrize("broken", ["{", '{"type":"unknown"}', "[]", '{"type":"text"}', "null", '{},{"type":"text"}'])
def test_content_that_makes_no_sense_is_one_line(tmp_path: Path, broken: str) -> None:
    path = tmp_path / "sessions.db"
    session_id = filled(path)
    with Store.open(path) as store:
        store.database.run("UPDATE part SET data = ? WHERE message = 1", (broken,))
        with pytest.raises(StoreError, match="damaged") as error:
            store.messages.all(session_id)
        one_line(error)


def test_a_missing_parent_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    session_id = filled(path)
    with Store.open(path) as store:
        store.database.run("UPDATE message SET parent_id = 'gone' WHERE id = 'm2'")
        store.database.run("UPDATE message SET parent_id = 'm1' WHERE id = 'm1'")
        for head in ("m2", "m1"):
            with pytest.raises(StoreError, match="damaged"):
                store.messages.path(session_id, head)


def test_a_full_disk_loses_only_the_write_it_hit(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    session_id = filled(path)
    with Store.open(path) as store:
        before = store.sessions.get(session_id)
        (pages,) = store.database.one("PRAGMA page_count")
        store.database.run(f"PRAGMA max_page_count = {pages + 3}")
        with pytest.raises(StoreError, match="disk is full") as error:
            store.messages.add(session_id, Message("big", "user", [TextPart("x" * 100_000)]))
        one_line(error)
        assert list(store.messages.all(session_id)) == ["m0", "m1", "m2"]
        assert store.sessions.get(session_id) == before
        store.database.run(f"PRAGMA max_page_count = {pages + 1000}")
        store.messages.add(session_id, Message("big", "user", [TextPart("x" * 100_000)]))
        assert store.sessions.get(session_id).head_id == "big"
        assert store.database.one("PRAGMA integrity_check") == ("ok",)


def test_a_database_held_by_another_writer_is_called_locked(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    session_id = filled(path)
    with Store.open(path, write_timeout=0.0) as store:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreLockedError, match="locked by another program") as error:
            store.messages.add(session_id, user_message("x"))
        one_line(error)
        assert len(store.messages.all(session_id)) == 3
        other.execute("ROLLBACK")
        other.close()
        store.messages.add(session_id, user_message("x"))


@posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    filled(folder / "sessions.db")
    folder.chmod(0o500)
    try:
        with pytest.raises(StoreError, match="permissions") as error, Store.open(folder / "sessions.db") as store:
            store.sessions.create("/p", "demo")
        one_line(error)
        with pytest.raises(StoreError, match="permissions"):
            Store.open(folder / "other.db")
    finally:
        folder.chmod(0o700)


def test_a_database_opened_for_reading_only_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    filled(path)
    with Store.open(path) as store:
        store.database.run("PRAGMA query_only = ON")
        with pytest.raises(StoreError, match="cannot be opened for writing"):
            store.sessions.create("/p", "demo")


def test_a_path_that_cannot_be_a_database_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file" / "sessions.db", tmp_path):
        with pytest.raises(StoreError) as error:
            Store.open(path)
        one_line(error)
