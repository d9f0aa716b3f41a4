"""The backup of the day: private, whole, never stale, never one of a damaged database."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent_tui.errors import StoreDamagedError
from agent_tui.models.messages import user_message
from agent_tui.store.backup import back_up_daily, backups_of, lock_backups
from agent_tui.store.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Store.open(tmp_path / "sessions.db") as store:
        info = store.sessions.create("/p", "demo")
        store.messages.add(info.id, user_message("what was said"))
    return tmp_path / "sessions.db"


def on(day: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_tui.store.backup.time.strftime", lambda *_: day)


def texts(path: Path) -> list[str]:
    with Store.open(path) as store:
        return [m.text for info in store.sessions.all() for m in store.messages.all(info.id).values()]


def test_it_is_made_once_a_day_and_the_newest_two_are_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for day in ("2026-11-26", "2026-11-27", "2026-11-28"):
        on(day, monkeypatch)
        assert back_up_daily(path) and not back_up_daily(path)
    assert [made.name for made in backups_of(path)] == [f"sessions.db.backup-2026-11-{day}" for day in (28, 27)]
    assert all(made.stat().st_mode & 0o777 == 0o600 for made in backups_of(path))
    assert sorted(p.name for p in path.parent.iterdir() if ".new" in p.name) == []


def test_it_holds_what_only_the_log_has_while_another_writes(path: Path) -> None:
    with Store.open(path) as store:
        info = store.sessions.all()[0]
        store.messages.add(info.id, user_message("in the log"))
        with store.transaction():
            store.messages.add(info.id, user_message("not stored yet"))
            assert back_up_daily(path)
    (made,) = backups_of(path)
    assert texts(made) == ["what was said", "in the log"]


def test_a_damaged_database_replaces_no_backup(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on("2026-11-27", monkeypatch)
    assert back_up_daily(path)
    before = backups_of(path)[0].read_bytes()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("DELETE FROM sqlite_master WHERE name = 'step'")
    connection.close()
    on("2026-11-28", monkeypatch)
    with pytest.raises(StoreDamagedError, match="agent-tui sessions repair"):
        back_up_daily(path)
    assert [made.read_bytes() for made in backups_of(path)] == [before]
    assert [p.name for p in path.parent.iterdir() if p.name.endswith(".new")] == []


def test_what_is_deleted_is_in_no_backup(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on("2026-11-27", monkeypatch)
    assert back_up_daily(path)
    path.with_name("sessions.db.backup-2026-11-26").write_bytes(b"no database")
    with Store.open(path) as store:
        store.delete(store.sessions.all()[0].id)
    (made,) = backups_of(path)
    assert b"what was said" not in made.read_bytes()
    assert texts(made) == []


def test_one_that_a_killed_program_left_is_removed(path: Path) -> None:
    left = path.with_name("sessions.db.backup-2026-11-01.77.new")
    left.write_bytes(b"half")
    os.utime(left, (1.0, 1.0))
    assert back_up_daily(path)
    assert not left.exists()


def test_two_programs_make_one(path: Path) -> None:
    with lock_backups(path, 0.0):
        assert not back_up_daily(path)
    assert back_up_daily(path)


def test_none_is_made_on_a_disk_that_it_would_fill(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_tui.store.backup.shutil.disk_usage", lambda _: SimpleNamespace(free=1))
    assert not back_up_daily(path)
    assert backups_of(path) == []
