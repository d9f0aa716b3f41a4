from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.errors import StoreError
from agent_tui.models.messages import Message, SummaryPart, TextPart
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.store.store import Store
from tests.support.forms import examples

pytestmark = pytest.mark.quick


def step(step_id: str, message_id: str | None, kind: str = "turn") -> Step:
    return Step(step_id, kind, "demo", "p", "a", "m", message_id, "complete")  # type: ignore[arg-type]


def line(store: Store, session_id: str, *ids: str, parent: str | None = None) -> None:
    for message_id in ids:
        store.messages.add(session_id, Message(message_id, "user", [TextPart(message_id)], parent_id=parent))
        parent = message_id


def test_a_fork_keeps_the_path_its_steps_and_what_concerns_it(tmp_path: Path) -> None:
    with Store.open(tmp_path / "sessions.db") as store:
        info = store.sessions.create("/p", "demo")
        line(store, info.id, "a", "b", "c", "d")
        line(store, info.id, "x", "y", parent="a")
        for made in (step("sb", "b"), step("count", None, "count"), step("sx", "x"), step("sd", "d")):
            store.steps.add(info.id, made)
        store.steps.add(info.id, step("sy", "y"))
        store.steps.add(info.id, step("late", None, "count"))
        early = CompactionRecord("r1", "o1", "summary", ["a", "b"], summary_id="sum1", step_id="compact")
        store.compactions.commit(
            info.id, [early], Message("sum1", "user", [SummaryPart("s", "r1")]), step("compact", None, "compaction")
        )
        other = CompactionRecord("r2", "o2", "summary", ["a", "x"], summary_id="sum2")
        pruned = CompactionRecord("r3", "o2", "prune", ["x", "c"], active=False)
        store.compactions.commit(info.id, [pruned, other], Message("sum2", "user", [SummaryPart("t", "r2")]), None)
        store.snapshots.add(info.id, "b", "/p/b", b"b", 0o644)
        store.snapshots.add(info.id, "y", "/p/y", b"y", 0o644)
        before = store.export(info.id)

        fork = store.fork(info.id, "d")

        assert store.export(info.id) == before
        assert store.messages.path(fork.id, "d") == store.messages.path(info.id, "d")
        assert list(store.messages.all(fork.id)) == ["a", "b", "c", "d"]
        assert [s.id for s in store.steps.all(fork.id)] == ["sb", "count", "sd", "compact"]
        assert store.compactions.all(fork.id) == [early, pruned]
        assert list(store.messages.summaries(fork.id)) == ["sum1"]
        assert [s.path for s in store.snapshots.all(fork.id)] == ["/p/b"]
        assert store.sessions.get(fork.id) == fork
        assert (fork.parent_session, fork.head_id, fork.messages, fork.preview) == (info.id, "d", 4, "a")

        whole = store.fork(info.id, "y")
        assert [s.id for s in store.steps.all(whole.id)] == ["count", "sx", "sy", "late", "compact"]
        assert [r.id for r in store.compactions.all(whole.id)] == ["r3", "r2"]
        nothing = store.fork(info.id, None)
        assert (nothing.messages, nothing.preview, store.messages.all(nothing.id)) == (0, "", {})


def test_a_fork_and_its_source_go_separate_ways(tmp_path: Path) -> None:
    with Store.open(tmp_path / "sessions.db") as store:
        info = store.sessions.create("/p", "demo")
        line(store, info.id, "a", "b")
        draft = Message("draft", "assistant", [TextPart("half")], "streaming", "b")
        store.messages.add(info.id, draft)
        store.steps.add(info.id, Step("s", "turn", "demo", "p", "a", "m", "draft"))
        record = CompactionRecord("r", "o", "prune", ["a"])
        store.compactions.commit(info.id, [record], None, None)
        fork = store.fork(info.id, "draft")
        assert store.messages.all(fork.id)["draft"].status == "stopped"
        assert store.steps.all(fork.id)[0].status == "stopped"
        assert store.messages.all(info.id)["draft"].status == "streaming"
        draft.parts = [TextPart("half and more")]
        store.messages.write(info.id, draft)
        store.compactions.write(fork.id, [replace(record, active=False)])
        line(store, fork.id, "e", parent="a")
        assert store.messages.all(fork.id)["draft"].text == "half"
        assert store.compactions.all(info.id)[0].active
        assert not store.compactions.all(fork.id)[0].active
        assert "e" not in store.messages.all(info.id)
        store.delete(info.id)
        assert [m.id for m in store.messages.path(fork.id, "draft")] == ["a", "b", "draft"]


def test_a_compaction_is_stored_whole_or_not_at_all(tmp_path: Path) -> None:
    with Store.open(tmp_path / "sessions.db") as store:
        info = store.sessions.create("/p", "demo")
        record = CompactionRecord("r", "o", "summary", [], summary_id="sum")
        running = step("c", None, "compaction")
        running.status = "running"
        store.steps.add(info.id, running)
        with pytest.raises(StoreError):
            store.compactions.commit(info.id, [record, record], Message("sum", "user"), step("c", None, "compaction"))
        assert (store.compactions.all(info.id), store.messages.summaries(info.id)) == ([], {})
        assert store.steps.all(info.id) == [running]
        store.compactions.commit(info.id, [record], Message("sum", "user"), step("c", None, "compaction"))
        assert store.compactions.all(info.id) == [record]
        assert store.steps.all(info.id)[0].status == "complete"
        for active in (False, True):
            store.compactions.write(info.id, [replace(record, active=active, switched=[1.0])])
            assert store.compactions.all(info.id) == [replace(record, active=active, switched=[1.0])]


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["say", "rewind", "fork", "compact", "undo"]), st.integers(0, 30)), max_size=25
)


@settings(max_examples=examples(20, 150), deadline=None)
@given(actions=ACTIONS)
def test_any_sequence_of_rewinds_forks_and_compactions_loses_nothing(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[str, int]]
) -> None:
    with Store.open(tmp_path_factory.mktemp("store") / "sessions.db") as store:
        current = store.sessions.create("/p", "demo")
        expected: dict[str, dict[str, str | None]] = {current.id: {}}
        for number, (action, choice) in enumerate(actions):
            tree = expected[current.id]
            head = store.sessions.get(current.id).head_id
            ids: list[str | None] = [None, *tree]
            target = ids[choice % len(ids)]
            if action == "say":
                line(store, current.id, f"m{number}", parent=head)
                tree[f"m{number}"] = head
            elif action == "rewind":
                current = store.sessions.get(current.id)
                current.head_id = target
                store.sessions.save(current)
            elif action == "fork":
                current = store.fork(current.id, target)
                path: dict[str, str | None] = {}
                while target is not None:
                    parent = tree[target]
                    path[target] = parent
                    target = parent
                expected[current.id] = path
            elif action == "compact":
                sent = [m.id for m in store.messages.path(current.id, head)]
                record = CompactionRecord(f"r{number}", f"o{number}", "summary", sent, summary_id=f"s{number}")
                store.compactions.commit(current.id, [record], Message(f"s{number}", "user"), None)
            else:
                active = [r for r in store.compactions.all(current.id) if r.active]
                if active:
                    store.compactions.write(current.id, [replace(active[-1], active=False)])
        for session_id, tree in expected.items():
            messages = store.messages.all(session_id)
            assert {m.id: m.parent_id for m in messages.values()} == tree
            info = store.sessions.get(session_id)
            assert info.messages == len(store.messages.path(session_id, info.head_id))
            summaries = store.messages.summaries(session_id)
            for record in store.compactions.all(session_id):
                assert record.summary_id in summaries
                assert set(record.message_ids) <= set(messages)
