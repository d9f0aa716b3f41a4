"""The index as a file: filled by several processes at once, killed while it is written, impossible to have."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from agent_tui.store import Store
from agent_tui.store.search import index as module
from agent_tui.store.search.fill import Filler
from agent_tui.store.search.index import NoIndex, SearchIndex, index_file
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
        with pytest.raises(NoIndex, match="FTS5" if why == "no FTS5" else "cannot be written"):
            SearchIndex(path)
        with closing(store.search_reader()) as reader:
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
