"""The index as a file: filled by several processes at once, killed while it is written, impossible to have."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from agent_tui.models.session import IndexHealth
from agent_tui.store import search_index as module
from agent_tui.store.search_index import NoIndex, SearchIndex, index_file, remove_index
from agent_tui.store.search_reader import Filler
from agent_tui.store.store import Store
from tests.store.test_search import add, fill, found, said
from tests.support.waiting import PATIENCE

CHILD = Path(__file__).resolve().parents[1] / "support" / "store_child.py"


def child(path: Path) -> subprocess.Popen[str]:
    """A process that fills the index, and says so for each message."""
    return subprocess.Popen([sys.executable, str(CHILD), str(path), "-", "index"], stdout=subprocess.PIPE, text=True)


def indexed(path: Path) -> list[int]:
    """The messages in the index that have ``wor`` in them, each as often as it is there."""
    with closing(SearchIndex(path)) as index:
        assert index._index is not None
        rows = index._index.execute("SELECT rowid FROM grams WHERE grams MATCH '\"wor\"' ORDER BY rowid")
        return [n for (n,) in rows]


@pytest.mark.slow
def test_processes_that_are_killed_while_they_fill_it_lose_and_double_nothing(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with Store.open(path) as store:
        for session in range(10):
            said(store, *(f"words of {session} {number}" for number in range(20)))
    for lines in (1, 30, 90):
        with child(path) as process, child(path) as other:
            assert process.stdout is not None and other.stdout is not None
            for _ in range(lines):
                process.stdout.readline()
            process.send_signal(signal.SIGKILL)
            other.stdout.readline()
            other.send_signal(signal.SIGKILL)
            process.stdout.read()
            other.stdout.read()
    with Store.open(path) as store:
        assert len(found(store, "words")) == 10
        with child(path) as process, child(path) as other:
            assert process.stdout is not None and other.stdout is not None
            process.stdout.read()
            other.stdout.read()
        assert len(found(store, "words")) == 10
    assert indexed(path) == list(range(1, 201))


def test_it_is_private_and_made_anew_for_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "sessions.db"
    with Store.open(path) as store:
        info = said(store, "words")
        fill(store)
        assert os.name != "posix" or index_file(path).stat().st_mode & 0o077 == 0
        monkeypatch.setattr(module, "VERSION", module.VERSION + 1)
        assert found(store, "words") == [info.id]
        fill(store)
        assert (found(store, "words"), indexed(path)) == ([info.id], [1])


@pytest.mark.parametrize("why", ["no FTS5", "no file"])
def test_without_it_all_is_found_and_the_reason_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    path = tmp_path / "sessions.db"
    if why == "no FTS5":
        tables = [statement.replace("fts5", "fts5_that_is_not_there") for statement in module._TABLES]
        monkeypatch.setattr(module, "_TABLES", tables)
    else:
        index_file(path).mkdir()
    with Store.open(path) as store:
        info = said(store, "words")
        with pytest.raises(NoIndex, match="FTS5" if why == "no FTS5" else "cannot write"):
            SearchIndex(path)
        with closing(store.search.reader()) as reader:
            assert [hit.session.id for hit in reader.hits("words")] == [info.id]
            assert reader.state().kind == "missing" and reader.state().why


def test_the_filler_takes_what_is_new_when_it_is_woken_and_ends_at_once(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with Store.open(path) as store:
        info = said(store, "words")
        filler = Filler(path, pause=0)
        filler.begin()
        try:
            assert filler.whole.wait(PATIENCE)
            add(store, info.id, "more words")
            filler.wake()
            assert filler.whole.wait(PATIENCE)
            assert indexed(path) == [1, 2]
        finally:
            filler.close()


def watched(path: Path, filler: Filler) -> list[int]:
    """What is in the index once nothing is missing any more."""
    assert filler.whole.wait(PATIENCE)
    return indexed(path)


def test_one_that_is_removed_while_it_is_filled_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with Store.open(path) as store:
        info = said(store, "words")
        with closing(store.search.filler()) as filler:
            filler.begin()
            assert watched(path, filler) == [1]
            remove_index(path)
            add(store, info.id, "more words")
            filler.wake()
            assert watched(path, filler) == [1, 2]


def test_a_damaged_page_is_found_at_the_start_and_it_is_made_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "sessions.db"
    with Store.open(path) as store:
        said(store, *(f"words of {number}" for number in range(40)))
        fill(store)
        with closing(sqlite3.connect(index_file(path))) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        data = bytearray(index_file(path).read_bytes())
        data[-4096:] = b"\xa5" * 4096
        index_file(path).write_bytes(data)
        with closing(store.search.filler()) as filler:
            filler.begin()
            assert watched(path, filler) == list(range(1, 41))
    assert [r.getMessage() for r in caplog.records] == [
        f"The search index {index_file(path)} was damaged, and is made anew."
    ]


def test_whoever_searches_has_what_others_added_put_in(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with Store.open(path) as store, closing(store.search.filler()) as filler, Store.open(path) as other:
        filler.begin()
        assert watched(path, filler) == []
        said(other, "words")
        store.search.reader().close()
        assert watched(path, filler) == [1]


def test_its_health_says_how_many_sessions_it_has_and_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with Store.open(path) as store:
        assert store.search.health() == IndexHealth()
        said(store, "words", "more words")
        store.sessions.create("/a", "demo")
        assert store.search.health() == IndexHealth(0, 1)
        fill(store)
        whole = store.search.health()
        assert (whole.sessions, whole.total, whole.problem) == (1, 1, "") and whole.size > 4_000
        said(store, "words")
        assert (store.search.health().sessions, store.search.health().total) == (1, 2)
        index_file(path).write_bytes(b"no database at all" * 1_000)
        assert store.search.health() == IndexHealth(0, 2, 0, f"{index_file(path)} is damaged")
