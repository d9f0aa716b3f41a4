"""What a search does before its first hit, and once it is stopped: it must not grow with the sessions there are."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent_tui.errors import StoreError
from agent_tui.store import search as look
from agent_tui.store.store import Store
from tests.store.test_search import said
from tests.support.forms import one_of

FEW, MANY = 8, 80


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the messages whose text was read."""
    read: list[int] = []
    real = look.text_of

    def text_of(connection: sqlite3.Connection, n: int) -> str:
        read.append(n)
        return real(connection, n)

    monkeypatch.setattr(look, "text_of", text_of)
    return read


def filled(path: Path, count: int) -> Store:
    """Sessions of one project, each with the same few words in its title, its texts, or apart."""
    store = Store.open(path / f"sessions-{count}.db")
    for number in range(count):
        said(store, "about parsers", "and lexers", "on zebras", project="/home/work", title=f"Talk {number}")
    return store


@pytest.mark.slow
@pytest.mark.parametrize(
    "query", one_of(["talk", "work", "parsers", "e", "parsers zebras", "work lexers", "talk zebras"], 3)
)
def test_the_first_hit_of_many_sessions_costs_what_it_costs_of_few(
    tmp_path: Path, texts: list[int], query: str
) -> None:
    costs = []
    for count in (FEW, MANY):
        with filled(tmp_path, count) as store, closing(store.search()) as reader:
            texts.clear()
            assert next(reader.hits(query)).session.project == "/home/work"
            costs.append(len(texts))
            assert len(list(reader.hits(query))) == count
    assert costs[1] <= costs[0] <= 5


def test_what_a_session_is_called_meanwhile_is_found(tmp_path: Path) -> None:
    with filled(tmp_path, FEW) as store, closing(store.search()) as reader:
        assert list(reader.hits("quagga")) == []
        info = store.sessions.all()[-1]
        info.title = "Quaggas"
        store.sessions.save(info)
        new = said(store, "nothing", title="A quagga")
        assert {hit.session.id for hit in reader.hits("quagga")} == {info.id, new.id}


@pytest.mark.forms(1)
@pytest.mark.parametrize("query", ["parsers", "parsers zebras", "nothing of it"])
def test_a_search_that_is_stopped_reads_no_further_and_the_next_one_goes_on(
    tmp_path: Path, texts: list[int], query: str
) -> None:
    with filled(tmp_path, MANY) as store, closing(store.search()) as reader:
        told: list[int] = []

        def stopped() -> bool:
            told.append(len(texts))
            return len(told) > 3

        texts.clear()
        with pytest.raises(StoreError, match="stopped"):
            list(reader.hits(query, stopped=stopped))
        assert len(texts) <= 15
        assert len(list(reader.hits("zebras"))) == MANY
