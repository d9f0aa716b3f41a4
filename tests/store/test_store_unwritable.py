"""A disk that is full, a folder that is read-only, a database that another program holds: looking still works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent_tui.errors import StoreError, StoreUnwritableError
from agent_tui.models.messages import user_message
from agent_tui.store.database import Database
from agent_tui.store.reading import open_for_reading
from agent_tui.store.store import Store
from tests.store.test_store_damage import filled, use

FULL = """
import resource, sys
from pathlib import Path
from agent_tui.errors import StoreError
from agent_tui.models.messages import Message, TextPart, user_message
from agent_tui.store.store import Store
path = Path(sys.argv[1])
with Store.open(path) as store:
    info = store.sessions.all()[0]
    before = len(store.messages.all(info.id))
    for size in (path.stat().st_size + 40_000,):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        stored, said = 0, ""
        for number in range(60):
            try:
                store.messages.add(info.id, Message(f"big{number}", "user", [TextPart("x" * 20_000)]))
                stored += 1
            except StoreError as error:
                said = str(error)
                break
        assert said and "\\n" not in said, said
        assert len(store.messages.all(info.id)) == before + stored
        store.export(info.id)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        store.messages.add(info.id, user_message("there is room again"))
        assert len(store.messages.all(info.id)) == before + stored + 1
print(said)
"""


@pytest.mark.skipif(os.name != "posix", reason="limits of file sizes are POSIX")
def test_a_disk_that_fills_up_loses_only_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    filled(path)
    done = subprocess.run([sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "disk" in done.stdout
    assert use(path) == 4


def refusing(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Has the file itself refuse to be opened, as a read-only folder does; root may write anywhere."""
    real = Database.open.__func__  # type: ignore[attr-defined]

    def refuse(cls: type[Database], where: Path, *values: object) -> Database:
        if where == path:
            raise StoreUnwritableError(f"the session database {where} cannot be opened for writing")
        return real(cls, where, *values)  # type: ignore[no-any-return]

    monkeypatch.setattr(Database, "open", classmethod(refuse))


def test_what_cannot_be_written_is_read_from_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "sessions.db"
    first, *_ = filled(path)
    refusing(monkeypatch, path)
    with open_for_reading(path) as store:
        copied = store.database.one("PRAGMA database_list")[2]
        assert len(store.sessions.all()) == 4
        assert len(store.content(first).messages) == 36
        assert not store.writable
        assert "cannot be opened for writing" in str(store.problem)
        with pytest.raises(StoreError) as error:
            store.messages.add(first, user_message("no"))
        assert "\n" not in str(error.value)
        assert store.file == path
    assert not Path(copied).exists()
    with pytest.raises(StoreUnwritableError):
        Store.open(path)


def test_without_a_file_there_is_nothing_to_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "sessions.db"
    refusing(monkeypatch, path)
    with open_for_reading(path) as store:
        assert store.sessions.all() == []
        assert not store.writable


def test_a_log_that_was_not_copied_back_is_read_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "sessions.db"
    first, *_ = filled(path)
    with Store.open(path) as writer:
        writer.messages.add(first, user_message("only in the log"))
        refusing(monkeypatch, path)
        with open_for_reading(path) as store:
            assert len(store.content(first).messages) == 37
