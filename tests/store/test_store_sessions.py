from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tui.errors import SessionBusyError, StoreError
from agent_tui.models.messages import Message, TextPart, user_message
from agent_tui.models.session import SessionInfo
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.store.store import Store

pytestmark = pytest.mark.quick


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "data" / "sessions.db") as opened:
        yield opened


def aged(store: Store, project: str, updated: float, text: str = "hello") -> SessionInfo:
    info = store.sessions.create(project, "demo")
    store.messages.add(info.id, user_message(text))
    info = store.sessions.get(info.id)
    info.updated = updated
    store.sessions.save(info)
    return store.sessions.get(info.id)


def test_sessions_are_listed_newest_first_and_by_project(store: Store) -> None:
    old, new, other = aged(store, "/a", 1.0), aged(store, "/a", 3.0), aged(store, "/b", 2.0)
    assert store.sessions.all() == [new, other, old]
    assert store.sessions.all("/a") == [new, old]
    assert store.sessions.all(limit=1) == [new]
    assert store.sessions.newest("/a") == new
    assert store.sessions.newest("/c") is None


def test_an_empty_session_is_not_the_one_to_continue(store: Store) -> None:
    used = aged(store, "/a", 1.0)
    empty = store.sessions.create("/a", "demo")
    assert store.sessions.newest("/a") == used
    assert store.sessions.all("/a") == [empty, used]
    assert store.sessions.all("/a", empty=False) == [used]


def test_the_preview_is_the_first_question_on_one_line_without_control_characters(store: Store) -> None:
    info = store.sessions.create("/a", "demo")
    store.messages.add(info.id, Message("m", "user", [TextPart("\x1b]0;evil\x07 line\none\u202e\ud800 " + "x" * 500)]))
    store.messages.add(info.id, Message("n", "user", [TextPart("second")], parent_id="m"))
    preview = store.sessions.get(info.id).preview
    assert preview.startswith("]0;evil line one xxx")
    assert len(preview) == 200
    assert store.sessions.get(info.id).messages == 2
    assert store.sessions.get(info.id).head_id == "n"


def test_a_session_is_found_by_a_unique_beginning_of_its_id(store: Store) -> None:
    infos = [store.sessions.create("/a", "demo") for _ in range(3)]
    assert store.sessions.get(infos[0].id[:-1]) == infos[0]
    with pytest.raises(StoreError, match="more than one session"):
        store.sessions.get("ses_")
    for unknown in ("", "nothing", "\ud800", "%", "ses_\x00"):
        with pytest.raises(StoreError, match="no such session"):
            store.sessions.get(unknown)


def test_what_does_not_exist_is_refused(store: Store) -> None:
    info = store.sessions.create("/a", "demo")
    with pytest.raises(StoreError, match="no such session"):
        store.messages.all("unknown")
    with pytest.raises(StoreError, match="no such session"):
        store.messages.add("unknown", user_message("x"))
    with pytest.raises(StoreError, match="no message"):
        store.messages.add(info.id, user_message("x", parent_id="unknown"))
    with pytest.raises(StoreError, match="no message"):
        store.messages.write(info.id, user_message("x"))
    with pytest.raises(StoreError, match="no message"):
        store.messages.path(info.id, "unknown")
    with pytest.raises(StoreError, match="no step"):
        store.steps.write(info.id, Step("s", "turn", "m", "p", "a", "m"))
    with pytest.raises(StoreError, match="no compaction"):
        store.compactions.write(info.id, [CompactionRecord("r", "o", "prune", ["a"])])
    info.head_id = "unknown"
    with pytest.raises(StoreError, match="no message"):
        store.sessions.save(info)
    store.messages.add(info.id, Message("a", "user"))
    with pytest.raises(StoreError, match="already has"):
        store.messages.add(info.id, Message("a", "user"))
    assert store.sessions.get(info.id).messages == 1


def test_a_rewind_moves_the_head_and_keeps_every_message(store: Store) -> None:
    info = store.sessions.create("/a", "demo")
    for message_id, parent in (("a", None), ("b", "a"), ("c", "b")):
        store.messages.add(info.id, Message(message_id, "user", parent_id=parent))
    info = store.sessions.get(info.id)
    info.head_id = "a"
    store.sessions.save(info)
    store.messages.add(info.id, Message("d", "user", parent_id="a"))
    store.messages.add(info.id, Message("aside", "user", parent_id="a"), head=False)
    assert store.sessions.get(info.id).head_id == "d"
    assert [m.id for m in store.messages.path(info.id, "d")] == ["a", "d"]
    assert [m.id for m in store.messages.path(info.id, "c")] == ["a", "b", "c"]
    assert store.messages.path(info.id, None) == []
    assert list(store.messages.all(info.id)) == ["a", "b", "c", "d", "aside"]


def test_deleting_takes_one_session_whole_and_nothing_else(store: Store) -> None:
    infos = [aged(store, "/a", n, "a secret word" if n else "kept") for n in (0.0, 1.0)]
    for info in infos:
        store.steps.add(info.id, Step("s", "turn", "m", "p", "a", "m"))
        store.snapshots.add(info.id, "m", "/a/shared", b"same", 0o600)
        store.snapshots.add(info.id, "m", "/a/own", info.id.encode(), 0o600)
    store.delete(infos[1].id)
    assert store.sessions.all() == [store.sessions.get(infos[0].id)]
    assert [s.content for s in store.snapshots.all(infos[0].id)] == [b"same", infos[0].id.encode()]
    assert len(store.steps.all(infos[0].id)) == 1
    assert store.database.one("SELECT count(*) FROM content") == (2,)
    assert b"a secret word" not in store.file.read_bytes()
    assert not list((store.file.parent / "locks").glob("*.lock"))


def test_the_first_snapshot_of_a_file_under_a_message_counts(store: Store) -> None:
    info = aged(store, "/a", 1.0)
    store.snapshots.add(info.id, "m", "/a/x", None, None)
    store.snapshots.add(info.id, "m", "/a/x", b"later", 0o644)
    store.snapshots.add(info.id, "n", "/a/x", b"later", 0o644)
    assert [(s.message_id, s.content, s.mode) for s in store.snapshots.all(info.id)] == [
        ("m", None, None),
        ("n", b"later", 0o644),
    ]


def test_permission_rules_are_kept_in_order_and_can_be_taken_back(store: Store) -> None:
    for rule in ("bash(git status*)", "edit(src/**)", "bash(git status*)"):
        store.rules.add("/a", "repo", rule)
    assert store.rules.of("/a", "repo") == [("allow", "bash(git status*)"), ("allow", "edit(src/**)")]
    assert store.rules.of("/b", "repo") == []
    assert store.rules.remove("/a", "edit(src/**)")
    assert not store.rules.remove("/a", "edit(src/**)")
    store.rules.add("/a", "repo", "bash(git status*)", "deny")
    assert store.rules.of("/a", "repo") == [("deny", "bash(git status*)")]
    assert store.trust.get("/a") is None


def test_a_transaction_stores_all_or_nothing(store: Store) -> None:
    info = store.sessions.create("/a", "demo")
    with pytest.raises(StoreError), store.transaction():
        store.messages.add(info.id, Message("a", "user"))
        store.messages.add(info.id, Message("a", "user"))
    assert store.messages.all(info.id) == {}
    with store.transaction():
        store.messages.add(info.id, Message("a", "user"))
        store.messages.add(info.id, Message("b", "user", parent_id="a"))
    assert list(store.messages.all(info.id)) == ["a", "b"]


def test_a_second_opener_is_told_who_has_the_session(store: Store) -> None:
    info = store.sessions.create("/a", "demo")
    with Store.open(store.file) as other:
        with store.locks.take(info.id) as lock:
            assert lock.held
            with pytest.raises(SessionBusyError, match="is open in process"):
                other.locks.take(info.id)
            with pytest.raises(SessionBusyError):
                store.locks.take(info.id)
            with pytest.raises(SessionBusyError):
                other.delete(info.id)
            assert other.messages.all(info.id) == {}
        assert not lock.held
        other.locks.take(info.id).release()
        store.locks.take(info.id)
        store.delete(info.id)
        with pytest.raises(StoreError, match="no such session"):
            other.locks.take(info.id)


def test_recovery_stops_what_was_running_and_needs_the_lock(store: Store) -> None:
    info = store.sessions.create("/a", "demo")
    store.messages.add(info.id, Message("a", "assistant", [TextPart("half")], "streaming"))
    store.messages.add(info.id, Message("b", "user", parent_id="a"))
    store.steps.add(info.id, Step("s", "turn", "m", "p", "a", "m", "a"))
    with pytest.raises(StoreError, match="not locked"):
        store.recover(info.id)
    with store.locks.take(info.id):
        assert store.recover(info.id)
        assert not store.recover(info.id)
    assert [m.status for m in store.messages.all(info.id).values()] == ["stopped", "complete"]
    assert store.messages.all(info.id)["a"].text == "half"
    assert [s.status for s in store.steps.all(info.id)] == ["stopped"]


def test_deleting_a_session_takes_its_subagents_along(store: Store) -> None:
    parent, other = aged(store, "/a", 1.0), aged(store, "/a", 2.0)
    child = store.sessions.create("/a", "demo", parent=parent.id, kind="subagent")
    store.messages.add(child.id, user_message("look"))
    fork = store.fork(child.id, store.sessions.get(child.id).head_id)
    assert fork.kind == "user"
    store.delete(parent.id)
    assert {info.id for info in store.sessions.all(subagents=True)} == {other.id, fork.id}


def test_lists_are_read_from_an_index_in_their_order(store: Store) -> None:
    asked: list[str] = []
    store.database.connection.set_trace_callback(asked.append)
    store.sessions.all()
    store.sessions.all("/a", limit=1, empty=False)
    store.database.connection.set_trace_callback(None)
    plans = [store.database.all(f"EXPLAIN QUERY PLAN {sql}") for sql in asked]
    told = [" ".join(str(row[3]) for row in plan) for plan in plans]
    assert "session_by_age" in told[0]
    assert "session_by_project" in told[1]
    assert not [line for line in told if "TEMP B-TREE" in line]
