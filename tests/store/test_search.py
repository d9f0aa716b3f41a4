"""Searching all sessions: what is found, with an index, without one, and while it grows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_tui.models.messages import Message, Role, Status, TextPart, ToolResultPart, new_id, user_message
from agent_tui.models.session import SessionHit, SessionInfo
from agent_tui.store.search_index import SearchIndex, index_file
from agent_tui.store.store import Store
from agent_tui.text.search import fold, search_words


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "data" / "sessions.db") as opened:
        yield opened


def said(store: Store, *texts: str, project: str = "/a", title: str = "untitled") -> SessionInfo:
    """A session in which the user and the model say these in turn."""
    info = store.sessions.create(project, "demo")
    info.title = title
    store.sessions.save(info)
    for number, text in enumerate(texts):
        add(store, info.id, text, "assistant" if number % 2 else "user")
    return store.sessions.get(info.id)


def add(store: Store, session: str, text: str, role: Role = "user", status: Status = "complete") -> Message:
    message = Message(new_id("msg"), role, [TextPart(text)], status, store.sessions.get(session).head_id, 5.0)
    store.messages.add(session, message)
    return message


def look(store: Store, query: str, project: str | None = None) -> list[SessionHit]:
    with closing(store.search.reader()) as reader:
        return list(reader.hits(query, project))


def found(store: Store, query: str, project: str | None = None) -> list[str]:
    return [hit.session.id for hit in look(store, query, project)]


def fill(store: Store, slices: int = 1_000) -> None:
    with closing(SearchIndex(store.file)) as index:
        for _ in range(slices):
            if not index.step():
                return


@pytest.fixture(params=["no index", "an index"])
def ready(request: pytest.FixtureRequest, store: Store) -> Iterator[tuple[Store, bool]]:
    """A store, and whether what it holds is to be put into the index before it is searched."""
    yield store, request.param == "an index"


WORDS = [
    "parser",
    "Pars",
    "ÄRGER",
    "straße",
    "STRASSE",
    "日本語",
    "東京都",
    "a",
    "ab",
    "x.y",
    '"q"',
    "50%",
    "AND",
    "cafe\u0301",
    "café",
]
QUERIES = [
    *WORDS,
    "par",
    "語",
    "é",
    "日",
    '"',
    "*",
    "NOT (",
    "a OR b",
    "parser ab",
    'x "a ab"',
    "-",
    "^",
    "ser:",
    "ﬁ",
    "\ud800",
    "\x00",
    "nothing",
]
texts = st.lists(st.sampled_from([*WORDS, "\n", "fi", "\ud800"]), max_size=6).map(" ".join)
sessions = st.lists(st.tuples(texts, st.lists(texts, max_size=4)), min_size=1, max_size=5)


@pytest.mark.slow
@given(sessions, st.lists(st.sampled_from(QUERIES), min_size=1, max_size=3).map(" ".join), st.integers(0, 3))
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_hit_has_the_words_and_every_session_with_them_is_hit(
    tmp_path_factory: pytest.TempPathFactory, content: list[tuple[str, list[str]]], query: str, later: int
) -> None:
    """Also with a part of the index only, and with messages that came after it was made."""
    words = search_words(query)
    with Store.open(tmp_path_factory.mktemp("home") / "sessions.db") as store:
        expected = set()
        infos = []
        for number, (title, messages) in enumerate(content):
            if number == later:
                fill(store)
            info = said(store, *messages, title=title)
            infos.append(info)
            whole = [fold(text) for text in (info.title or info.preview, info.id, info.project, *messages)]
            if words and all(any(w in t or w in " ".join(t.split()) for t in whole) for w in words):
                expected.add(info.id)
        hits = look(store, query)
    assert len(hits) == len({hit.session.id for hit in hits})
    assert {hit.session.id for hit in hits} == expected
    for hit in hits:
        assert all(0 <= start < end <= len(hit.line) for start, end in hit.spans)
        for start, end in hit.spans:
            assert any(word.split()[0][0] in fold(hit.line[start:end]) for word in words)


def test_a_hit_shows_the_newest_message_with_its_line_and_the_words_marked(ready: tuple[Store, bool]) -> None:
    store, indexed = ready
    info = said(store, "first\nthe Parser is slow", "why is that", "and\nthe PARSER again,\nsee")
    if indexed:
        fill(store)
    (hit,) = look(store, "parser")
    assert (hit.session.id, hit.role, hit.line, hit.spans) == (info.id, "user", "the PARSER again,", ((4, 10),))
    assert (hit.message_id, hit.created, hit.left_behind) == (info.head_id, 5.0, False)


def test_words_may_stand_in_several_messages_and_in_the_title(ready: tuple[Store, bool]) -> None:
    store, indexed = ready
    both = said(store, "about parsers", "and about lexers")
    near = said(store, "parsers and lexers")
    titled = said(store, "about lexers", title="Parsers")
    said(store, "about parsers")
    if indexed:
        fill(store)
    assert set(found(store, "parser lexer")) == {both.id, near.id, titled.id}
    assert found(store, "parser lexer")[0] == near.id
    assert found(store, '"parsers and"') == [near.id]


def test_scopes_are_this_project_and_all(ready: tuple[Store, bool]) -> None:
    store, indexed = ready
    here, there = said(store, "parser"), said(store, "parser", project="/b")
    if indexed:
        fill(store)
    assert found(store, "parser") == [there.id, here.id]
    assert found(store, "parser", "/a") == [here.id]


def test_output_of_tools_and_what_subagents_said_is_not_searched(ready: tuple[Store, bool]) -> None:
    store, indexed = ready
    info = said(store, "hello")
    result = ToolResultPart("c", "read", "parser")
    store.messages.add(info.id, Message("t", "tool", [result], "complete", info.head_id))
    child = store.sessions.create("/a", "demo", parent=info.id, kind="subagent")
    store.messages.add(child.id, user_message("parser"))
    if indexed:
        fill(store)
    assert found(store, "parser") == []


def test_what_a_rewind_left_behind_is_found_and_says_so(ready: tuple[Store, bool]) -> None:
    store, indexed = ready
    info = said(store, "one parser", "two", "three parser lexer")
    first = next(iter(store.messages.all(info.id)))
    info.head_id = first
    store.sessions.save(info)
    if indexed:
        fill(store)
    (hit,) = look(store, "parser")
    assert (hit.message_id, hit.left_behind) == (first, False)
    (hit,) = look(store, "lexer")
    assert hit.left_behind


def test_an_answer_is_found_while_it_streams_and_when_it_is_done(store: Store) -> None:
    info = said(store, "hello")
    draft = add(store, info.id, "about par", "assistant", "streaming")
    fill(store)
    assert found(store, "about") == [info.id]
    draft.parts, draft.status = [TextPart("about parsers")], "complete"
    store.messages.write(info.id, draft)
    assert found(store, "parsers") == [info.id]
    fill(store)
    assert found(store, "parsers") == [info.id]


def runs(store: Store) -> list[int]:
    """The messages that have any run of characters in the index."""
    with closing(sqlite3.connect(index_file(store.file))) as connection:
        rows = connection.execute('SELECT rowid FROM grams WHERE grams MATCH \'"par" OR "lex"\' ORDER BY rowid')
        return [n for (n,) in rows]


def test_a_deleted_session_leaves_nothing_in_the_index(store: Store) -> None:
    kept, gone = said(store, "lexers"), said(store, "parsers of zebras")
    fill(store)
    assert runs(store) == [1, 2]
    with closing(sqlite3.connect(index_file(store.file))) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert b"zeb" in index_file(store.file).read_bytes()
    store.delete(gone.id)
    assert runs(store) == [1]
    assert b"zeb" not in index_file(store.file).read_bytes()
    assert (found(store, "parsers"), found(store, "lexers")) == ([], [kept.id])


def test_a_session_whose_deletion_failed_is_still_found(store: Store) -> None:
    info = said(store, "parsers")
    fill(store)
    with closing(SearchIndex(store.file)) as index:
        index.forget([1])
    assert (found(store, "parsers"), runs(store)) == ([info.id], [])
    fill(store)
    assert (found(store, "parsers"), runs(store)) == ([info.id], [1])


def test_an_older_copy_of_the_database_that_is_put_back_gets_a_new_index(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with Store.open(path) as store:
        said(store, "lexers")
        fill(store)
    path.unlink()
    with Store.open(path) as store:
        info = said(store, "parsers")
        assert found(store, "parsers") == [info.id]
        fill(store)
        assert (found(store, "parsers"), found(store, "lexers")) == ([info.id], [])
        with closing(store.search.reader()) as reader:
            assert reader.state().kind == "whole"


@pytest.mark.parametrize("damage", [b"no database at all", b"SQLite format 3\0" + b"\xff" * 5_000])
def test_a_damaged_index_is_made_anew_and_nothing_is_missed_meanwhile(store: Store, damage: bytes) -> None:
    info = said(store, "parsers")
    index_file(store.file).write_bytes(damage)
    assert found(store, "parsers") == [info.id]
    fill(store)
    assert (found(store, "parsers"), runs(store)) == ([info.id], [1])
