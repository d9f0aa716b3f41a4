"""Searching all sessions: what is found, and where."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_tui.models.messages import (
    Message,
    ReasoningPart,
    Role,
    Status,
    TextPart,
    ToolResultPart,
    new_id,
    user_message,
)
from agent_tui.models.session import SessionHit, SessionInfo
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
    with closing(store.search()) as reader:
        return list(reader.hits(query, project))


def found(store: Store, query: str, project: str | None = None) -> list[str]:
    return [hit.session.id for hit in look(store, query, project)]


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
@given(sessions, st.lists(st.sampled_from(QUERIES), min_size=1, max_size=3).map(" ".join))
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_hit_has_the_words_and_every_session_with_them_is_hit(
    tmp_path_factory: pytest.TempPathFactory, content: list[tuple[str, list[str]]], query: str
) -> None:
    words = search_words(query)
    with Store.open(tmp_path_factory.mktemp("home") / "sessions.db") as store:
        expected = set()
        infos = []
        for title, messages in content:
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


@pytest.mark.quick
def test_a_hit_shows_the_newest_message_with_its_line_and_the_words_marked(store: Store) -> None:
    info = said(store, "first\nthe Parser is slow", "why is that", "and\nthe PARSER again,\nsee")
    (hit,) = look(store, "parser")
    assert (hit.session.id, hit.role, hit.line, hit.spans) == (info.id, "user", "the PARSER again,", ((4, 10),))
    assert (hit.message_id, hit.created, hit.left_behind) == (info.head_id, 5.0, False)


def test_words_may_stand_in_several_messages_and_in_the_title(store: Store) -> None:
    both = said(store, "about parsers", "and about lexers")
    near = said(store, "parsers and lexers")
    titled = said(store, "about lexers", title="Parsers")
    said(store, "about parsers")
    assert set(found(store, "parser lexer")) == {both.id, near.id, titled.id}
    assert found(store, "parser lexer")[0] == near.id
    assert found(store, '"parsers and"') == [near.id]


@pytest.mark.quick
def test_scopes_are_this_project_and_all(store: Store) -> None:
    here, there = said(store, "parser"), said(store, "parser", project="/b")
    assert found(store, "parser") == [there.id, here.id]
    assert found(store, "parser", "/a") == [here.id]


@pytest.mark.quick
def test_output_of_tools_and_what_subagents_said_is_not_searched(store: Store) -> None:
    info = said(store, "hello")
    result = ToolResultPart("c", "read", "parser")
    store.messages.add(info.id, Message("t", "tool", [result], "complete", info.head_id))
    child = store.sessions.create("/a", "demo", parent=info.id, kind="subagent")
    store.messages.add(child.id, user_message("parser"))
    assert found(store, "parser") == []


@pytest.mark.quick
def test_thoughts_are_not_searched_whatever_a_provider_sent_along(store: Store) -> None:
    info = said(store, "Which animal?")
    thought = ReasoningPart("a zebra", {"details": [{"type": "text"}]})
    head = store.sessions.get(info.id).head_id
    store.messages.add(
        info.id, Message(new_id("msg"), "assistant", [thought, TextPart("A horse.")], "complete", head, 5.0)
    )
    assert found(store, "horse") == [info.id] and found(store, "zebra") == []


@pytest.mark.quick
def test_what_a_rewind_left_behind_is_found_and_says_so(store: Store) -> None:
    info = said(store, "one parser", "two", "three parser lexer")
    first = next(iter(store.messages.all(info.id)))
    info.head_id = first
    store.sessions.save(info)
    (hit,) = look(store, "parser")
    assert (hit.message_id, hit.left_behind) == (first, False)
    (hit,) = look(store, "lexer")
    assert hit.left_behind


@pytest.mark.quick
def test_an_answer_is_found_while_it_streams_and_when_it_is_done(store: Store) -> None:
    info = said(store, "hello")
    draft = add(store, info.id, "about par", "assistant", "streaming")
    assert found(store, "about") == [info.id]
    draft.parts, draft.status = [TextPart("about parsers")], "complete"
    store.messages.write(info.id, draft)
    assert found(store, "parsers") == [info.id]
