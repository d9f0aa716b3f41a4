from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tui.errors import SessionBusyError, StoreError
from agent_tui.models.messages import Message, TextPart, user_message
from agent_tui.models.session import SessionInfo
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "data" / "sessions.db") as opened:
        yield opened


def aged(store: Store, project: str, updated: float, text: str = "hello") -> SessionInfo:
    info = store.create_session(project, "demo")
    store.add_message(info.id, user_message(text))
    info = store.session(info.id)
    info.updated = updated
    store.save_session(info)
    return store.session(info.id)


def test_sessions_are_listed_newest_first_and_by_project(store: Store) -> None:
    old, new, other = aged(store, "/a", 1.0), aged(store, "/a", 3.0), aged(store, "/b", 2.0)
    assert store.sessions() == [new, other, old]
    assert store.sessions("/a") == [new, old]
    assert store.sessions(limit=1) == [new]
    assert store.newest_session("/a") == new
    assert store.newest_session("/c") is None


def test_an_empty_session_is_not_the_one_to_continue(store: Store) -> None:
    used = aged(store, "/a", 1.0)
    empty = store.create_session("/a", "demo")
    assert store.newest_session("/a") == used
    assert store.sessions("/a") == [empty, used]
    assert store.sessions("/a", empty=False) == [used]


def test_the_preview_is_the_first_question_on_one_line_without_control_characters(store: Store) -> None:
    info = store.create_session("/a", "demo")
    store.add_message(info.id, Message("m", "user", [TextPart("\x1b]0;evil\x07 line\none\u202e\ud800 " + "x" * 500)]))
    store.add_message(info.id, Message("n", "user", [TextPart("second")], parent_id="m"))
    preview = store.session(info.id).preview
    assert preview.startswith("]0;evil line one xxx")
    assert len(preview) == 200
    assert store.session(info.id).messages == 2
    assert store.session(info.id).head_id == "n"


def test_a_session_is_found_by_a_unique_beginning_of_its_id(store: Store) -> None:
    infos = [store.create_session("/a", "demo") for _ in range(3)]
    assert store.session(infos[0].id[:-1]) == infos[0]
    with pytest.raises(StoreError, match="more than one session"):
        store.session("ses_")
    for unknown in ("", "nothing", "\ud800", "%", "ses_\x00"):
        with pytest.raises(StoreError, match="no session"):
            store.session(unknown)


def test_what_does_not_exist_is_refused(store: Store) -> None:
    info = store.create_session("/a", "demo")
    with pytest.raises(StoreError, match="no session"):
        store.messages("unknown")
    with pytest.raises(StoreError, match="no session"):
        store.add_message("unknown", user_message("x"))
    with pytest.raises(StoreError, match="no message"):
        store.add_message(info.id, user_message("x", parent_id="unknown"))
    with pytest.raises(StoreError, match="no message"):
        store.write_message(info.id, user_message("x"))
    with pytest.raises(StoreError, match="no message"):
        store.path(info.id, "unknown")
    with pytest.raises(StoreError, match="no step"):
        store.write_step(info.id, Step("s", "turn", "m", "p", "a", "m"))
    with pytest.raises(StoreError, match="no compaction"):
        store.write_records(info.id, [CompactionRecord("r", "o", "prune", ["a"])])
    info.head_id = "unknown"
    with pytest.raises(StoreError, match="no message"):
        store.save_session(info)
    store.add_message(info.id, Message("a", "user"))
    with pytest.raises(StoreError, match="already has"):
        store.add_message(info.id, Message("a", "user"))
    assert store.session(info.id).messages == 1


def test_a_rewind_moves_the_head_and_keeps_every_message(store: Store) -> None:
    info = store.create_session("/a", "demo")
    for message_id, parent in (("a", None), ("b", "a"), ("c", "b")):
        store.add_message(info.id, Message(message_id, "user", parent_id=parent))
    info = store.session(info.id)
    info.head_id = "a"
    store.save_session(info)
    store.add_message(info.id, Message("d", "user", parent_id="a"))
    store.add_message(info.id, Message("aside", "user", parent_id="a"), head=False)
    assert store.session(info.id).head_id == "d"
    assert [m.id for m in store.path(info.id, "d")] == ["a", "d"]
    assert [m.id for m in store.path(info.id, "c")] == ["a", "b", "c"]
    assert store.path(info.id, None) == []
    assert list(store.messages(info.id)) == ["a", "b", "c", "d", "aside"]


def test_deleting_takes_one_session_whole_and_nothing_else(store: Store) -> None:
    infos = [aged(store, "/a", n, "a secret word" if n else "kept") for n in (0.0, 1.0)]
    for info in infos:
        store.add_step(info.id, Step("s", "turn", "m", "p", "a", "m"))
        store.snapshot(info.id, "m", "/a/shared", b"same", 0o600)
        store.snapshot(info.id, "m", "/a/own", info.id.encode(), 0o600)
    store.delete_session(infos[1].id)
    assert store.sessions() == [store.session(infos[0].id)]
    assert [s.content for s in store.snapshots(infos[0].id)] == [b"same", infos[0].id.encode()]
    assert len(store.steps(infos[0].id)) == 1
    assert store._db.one("SELECT count(*) FROM content") == (2,)
    assert b"a secret word" not in store.file.read_bytes()
    assert not list((store.file.parent / "locks").iterdir())


def test_the_first_snapshot_of_a_file_under_a_message_counts(store: Store) -> None:
    info = aged(store, "/a", 1.0)
    store.snapshot(info.id, "m", "/a/x", None, None)
    store.snapshot(info.id, "m", "/a/x", b"later", 0o644)
    store.snapshot(info.id, "n", "/a/x", b"later", 0o644)
    assert [(s.message_id, s.content, s.mode) for s in store.snapshots(info.id)] == [
        ("m", None, None),
        ("n", b"later", 0o644),
    ]


def test_permission_rules_are_kept_in_order_and_can_be_taken_back(store: Store) -> None:
    for rule in ("bash(git status*)", "edit(src/**)", "bash(git status*)"):
        store.add_permission_rule("/a", "repo", rule)
    assert store.permission_rules("/a", "repo") == ["bash(git status*)", "edit(src/**)"]
    assert store.permission_rules("/b", "repo") == []
    assert store.remove_permission_rule("/a", "edit(src/**)")
    assert not store.remove_permission_rule("/a", "edit(src/**)")
    assert store.permission_rules("/a", "repo") == ["bash(git status*)"]
    assert store.trust_row("/a") is None


def test_a_transaction_stores_all_or_nothing(store: Store) -> None:
    info = store.create_session("/a", "demo")
    with pytest.raises(StoreError), store.transaction():
        store.add_message(info.id, Message("a", "user"))
        store.add_message(info.id, Message("a", "user"))
    assert store.messages(info.id) == {}
    with store.transaction():
        store.add_message(info.id, Message("a", "user"))
        store.add_message(info.id, Message("b", "user", parent_id="a"))
    assert list(store.messages(info.id)) == ["a", "b"]


def test_a_second_opener_is_told_who_has_the_session(store: Store) -> None:
    info = store.create_session("/a", "demo")
    with Store.open(store.file) as other:
        with store.lock(info.id) as lock:
            assert lock.held
            with pytest.raises(SessionBusyError, match="is open in process"):
                other.lock(info.id)
            with pytest.raises(SessionBusyError):
                store.lock(info.id)
            with pytest.raises(SessionBusyError):
                other.delete_session(info.id)
            assert other.messages(info.id) == {}
        assert not lock.held
        other.lock(info.id).release()
        store.lock(info.id)
        store.delete_session(info.id)
        with pytest.raises(StoreError, match="no session"):
            other.lock(info.id)


def test_recovery_stops_what_was_running_and_needs_the_lock(store: Store) -> None:
    info = store.create_session("/a", "demo")
    store.add_message(info.id, Message("a", "assistant", [TextPart("half")], "streaming"))
    store.add_message(info.id, Message("b", "user", parent_id="a"))
    store.add_step(info.id, Step("s", "turn", "m", "p", "a", "m", "a"))
    with pytest.raises(StoreError, match="not locked"):
        store.recover(info.id)
    with store.lock(info.id):
        assert store.recover(info.id)
        assert not store.recover(info.id)
    assert [m.status for m in store.messages(info.id).values()] == ["stopped", "complete"]
    assert store.messages(info.id)["a"].text == "half"
    assert [s.status for s in store.steps(info.id)] == ["stopped"]
