from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.context.tokens import O200K
from agent_tui.models.calibration import text_content
from agent_tui.models.messages import Message, TextPart, user_message
from agent_tui.models.session import SessionState
from agent_tui.models.steps import CompactionRecord, FixedPart, Step
from agent_tui.store.facts import TrustRow
from agent_tui.store.store import Store
from tests.store.vocabulary import MESSAGES, RECORDS, STATES, STEPS, TEXT
from tests.support.agents import words_only
from tests.support.forms import examples

pytestmark = pytest.mark.quick

NASTY = "a\x00b \ud800 \udfff \x1b]0;t\x07 é 漢 \U0001f600 \u2028"


def fresh(tmp: Path) -> Store:
    return Store.open(tmp / "data" / "sessions.db")


@settings(max_examples=examples(25, 200), deadline=None)
@given(messages=st.lists(MESSAGES, max_size=4, unique_by=lambda m: m.id))
def test_messages_come_back_exactly(tmp_path_factory: pytest.TempPathFactory, messages: list[Message]) -> None:
    path = tmp_path_factory.mktemp("store") / "sessions.db"
    with Store.open(path) as store:
        info = store.sessions.create("/p", "demo")
        for message in messages:
            store.messages.add(info.id, message)
    with Store.open(path) as store:
        assert list(store.messages.all(info.id).items()) == [(m.id, m) for m in messages]
        assert store.sessions.get(info.id).head_id == (messages[-1].id if messages else None)


@pytest.mark.slow
@settings(max_examples=examples(25, 200), deadline=None)
@given(
    steps=st.lists(STEPS, max_size=3, unique_by=lambda s: s.id),
    records=st.lists(RECORDS, max_size=3, unique_by=lambda r: r.id),
    summary=MESSAGES,
)
def test_steps_records_and_summaries_come_back_exactly(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step], records: list[CompactionRecord], summary: Message
) -> None:
    path = tmp_path_factory.mktemp("store") / "sessions.db"
    with Store.open(path) as store:
        info = store.sessions.create("/p", "demo")
        for step in steps:
            store.steps.add(info.id, step)
        store.compactions.commit(info.id, records, summary, None)
    with Store.open(path) as store:
        assert store.steps.all(info.id) == steps
        assert store.compactions.all(info.id) == records
        assert store.messages.summaries(info.id) == {summary.id: summary}
        assert store.messages.all(info.id) == {}


@settings(max_examples=examples(25, 200), deadline=None)
@given(title=TEXT, model=TEXT, project=TEXT, state=STATES)
def test_a_session_row_comes_back_exactly(
    tmp_path_factory: pytest.TempPathFactory, title: str, model: str, project: str, state: SessionState
) -> None:
    with Store.open(tmp_path_factory.mktemp("store") / "sessions.db") as store:
        info = store.sessions.create(project, model)
        info.title, info.updated = title, 12.5
        info.state = state
        store.sessions.save(info)
        assert store.sessions.get(info.id) == info
        assert store.sessions.all(project) == [info]
        store.trust.put(project, "which", "{}")
        assert store.trust.get(project) == TrustRow("which", "{}")
        store.rules.add(project, "repo", title)
        assert store.rules.of(project, "repo") == [("allow", title)]
        learned = store.measured.learn(model, project, lambda before: O200K)
        assert store.measured.calibration(model, project) == learned == O200K
        store.snapshots.add(info.id, "m", project, b"\x00\xff", 0o644)
        assert [(s.path, s.content) for s in store.snapshots.all(info.id)] == [(project, b"\x00\xff")]


def test_a_flush_writes_the_parts_it_is_told_and_only_those(tmp_path: Path) -> None:
    with fresh(tmp_path) as store:
        info = store.sessions.create("/p", "demo")
        draft = Message("d", "assistant", [TextPart("one"), TextPart("two")], "streaming")
        store.messages.add(info.id, draft)
        draft.parts = [TextPart("ONE"), TextPart("TWO" + NASTY), TextPart("three")]
        store.messages.write(info.id, draft, [1, 2])
        assert store.messages.all(info.id)["d"].parts == [TextPart("one"), TextPart("TWO" + NASTY), TextPart("three")]
        draft.status, draft.note, draft.raw_tokens = "stopped", "ended early", 7
        draft.parts.pop()
        store.messages.write(info.id, draft)
        assert store.messages.all(info.id)["d"] == draft


def test_raw_counts_are_stored_with_messages_and_summaries(tmp_path: Path) -> None:
    with fresh(tmp_path) as store:
        info = store.sessions.create("/p", "demo")
        store.messages.add(info.id, Message("a", "user"))
        store.compactions.commit(info.id, [], Message("s", "user"), None)
        counts = (1, 0, 5, 1, 2, 0, 0, 0, 1, 0, 0)
        store.messages.set_counts(info.id, {"a": counts, "s": words_only(4), "unknown": words_only(5)})
        kept = store.messages.all(info.id)["a"]
        assert (kept.raw_tokens, kept.counts) == (3, counts), "two kinds are no tokens"
        assert store.messages.summaries(info.id)["s"].raw_tokens == 4


def test_a_set_of_fixed_parts_is_stored_once_and_held_once(tmp_path: Path) -> None:
    fixed = FixedPart("tools", "builtin", "read", 10, "f", 3)
    with fresh(tmp_path) as store:
        info = store.sessions.create("/p", "demo")
        steps = [Step(f"s{n}", "turn", "m", "p", "a", "m", fixed=(dataclasses.replace(fixed),)) for n in range(5)]
        for step in steps:
            store.steps.add(info.id, step)
        changed = dataclasses.replace(steps[2], fixed=(), status="failed")
        store.steps.write(info.id, changed)
        loaded = store.steps.all(info.id)
        assert loaded == [*steps[:2], changed, *steps[3:]]
        assert len({id(step.fixed) for step in loaded if step.fixed}) == 1
        assert store.database.one("SELECT count(*) FROM fixed_set") == (1,)


def test_fields_of_a_newer_version_are_ignored(tmp_path: Path) -> None:
    with fresh(tmp_path) as store:
        info = store.sessions.create("/p", "demo")
        message = user_message("hello")
        store.messages.add(info.id, message)
        store.steps.add(info.id, step := Step("s", "turn", "m", "p", "a", "m"))
        store.database.run("UPDATE message SET data = json_set(data, '$.later', 1)")
        store.database.run("UPDATE part SET data = json_set(data, '$.later', 1)")
        store.database.run("UPDATE step SET data = json_set(data, '$.later', 1)")
        assert store.messages.all(info.id) == {message.id: message}
        assert store.steps.all(info.id) == [step]


def test_token_counts_of_many_contents(tmp_path: Path) -> None:
    with fresh(tmp_path) as store:
        counts = {f"f{n}": (n, 0, 2) for n in range(1200)}
        store.measured.put_counts(counts)
        store.measured.put_counts({"f1": (100,)})
        assert store.measured.counts([*counts, "unknown", "f1"]) == {**counts, "f1": (100,)}
        assert store.measured.counts([]) == {}
        assert store.measured.calibration("demo", "") is None


def test_a_calibration_is_kept_for_each_server_and_learned_over_what_others_learned(tmp_path: Path) -> None:
    content = text_content(None, 1_000)
    with fresh(tmp_path) as store, fresh(tmp_path) as other:
        store.measured.learn("one", "", lambda before: O200K.learned(content, 1_010))
        both = other.measured.learn("one", "", lambda before: (before or O200K).learned(content, 1_010))
        assert store.measured.calibration("one", "") == both and both.reports == 2
        assert store.measured.calibration("one", "http://127.0.0.1:8080") is None
