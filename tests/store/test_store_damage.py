"""A store under attack: nothing crashes, what can be read is read, nothing is destroyed."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_tui.commands.export import render
from agent_tui.errors import StoreError
from agent_tui.models.messages import Message, Origin, TextPart, ToolCallPart, ToolResultPart, user_message
from agent_tui.models.session import SessionState
from agent_tui.models.steps import CompactionRecord, FixedPart, Step
from agent_tui.models.usage import TokenUsage
from agent_tui.store.messages import walk
from agent_tui.store.repair import check, open_for_reading, repair_file, repair_session
from agent_tui.store.store import Store
from tests.support.forms import examples, one_of

SESSIONS = 4


def filled(path: Path) -> list[str]:
    """A database as use makes it: turns with calls and results, steps, a compaction, snapshots, a rewound branch."""
    data, ids = _filled()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return list(ids)


@functools.cache
def _filled() -> tuple[bytes, list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sessions.db"
        ids = _fill(path, SESSIONS, turns=12)
        return path.read_bytes(), ids


def _fill(path: Path, sessions: int, turns: int) -> list[str]:
    ids = []
    with Store.open(path) as store:
        for number in range(sessions):
            info = store.sessions.create(f"/project/{number % 2}", "demo")
            parent = None
            for turn in range(turns):
                question = user_message(f"question {turn} of {number} " + "wörd " * 40)
                question.id, question.parent_id = f"q{number}_{turn}", parent
                store.messages.add(info.id, question)
                answer = Message(f"a{number}_{turn}", "assistant", [TextPart("answer " * 60)], parent_id=question.id)
                answer.origin = Origin("openai", "chat", "gpt")
                answer.parts.append(ToolCallPart(f"c{turn}", "read", '{"path": "x"}'))
                store.messages.add(info.id, answer)
                result = Message(f"r{number}_{turn}", "tool", [ToolResultPart(f"c{turn}", "read", "line\n" * 50)])
                result.parent_id = answer.id
                store.messages.add(info.id, result)
                step = Step(f"s{number}_{turn}", "turn", "demo", "openai", "chat", "gpt", answer.id, "complete")
                step.usage = TokenUsage(100 + turn, 20)
                step.fixed = (FixedPart("system", "", "system", 12, "f" * 16),)
                store.steps.add(info.id, step)
                parent = result.id
            summary = Message(f"sum{number}", "user", [TextPart("so far")])
            record = CompactionRecord(f"rec{number}", f"op{number}", "summary", [f"q{number}_0"], summary_id=summary.id)
            store.compactions.commit(info.id, [record], summary)
            store.snapshots.add(info.id, f"q{number}_1", "/project/file", b"content" * 100, 0o644)
            stored = store.sessions.get(info.id)
            stored.title = f"Session {number}"
            store.sessions.save(stored)
            ids.append(info.id)
        store.measured.put_counts({"f": (1,)})
        store.rules.add("/project/0", "repo", "read(*)")
    return ids


def use(path: Path) -> int:
    """Everything that reading commands do. Returns how many sessions could be exported; raises StoreError alone."""
    done = 0
    with open_for_reading(path) as store:
        for info in store.sessions.all():
            json.dumps([info.created + info.updated + info.messages, info.title + info.preview + info.project])
            try:
                content = store.content(info.id)
                walk(content.messages, content.head_id)
                for form in ("json", "md", "html"):
                    render(*store.whole(info.id), form)
                done += 1
            except StoreError as error:
                assert "\n" not in str(error)
        report = check(store)
        assert report.sound in (True, False)
    return done


def run(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


ROWS: dict[str, tuple[str, ...]] = {
    "part is no JSON": ("UPDATE part SET data = '{' WHERE message = 2",),
    "part is a list": ("UPDATE part SET data = '[1]' WHERE message = 2",),
    "part of unknown type": ('UPDATE part SET data = \'{"type":"song","text":"x"}\' WHERE message = 2',),
    "text is a number": ('UPDATE part SET data = \'{"type":"text","text":5}\' WHERE message = 1',),
    "metadata is a list": (
        'UPDATE part SET data = \'{"type":"text","text":"x","provider_metadata":[1]}\' WHERE message = 1',
    ),
    "part is a number": ("UPDATE part SET data = 7 WHERE message = 2",),
    "part is a blob": ("UPDATE part SET data = x'ff00fe' WHERE message = 2",),
    "part is nested deeply": (f"UPDATE part SET data = '{'[' * 50_000}' WHERE message = 2",),
    "message is no JSON": ("UPDATE message SET data = 'nonsense' WHERE n = 2",),
    "message facts of wrong types": ('UPDATE message SET data = \'{"created":[],"origin":3}\' WHERE n = 2',),
    "unknown role": ("UPDATE message SET role = 'king' WHERE n = 2",),
    "unknown status": ("UPDATE message SET status = x'00ff' WHERE n = 2",),
    "count is text": ("UPDATE message SET raw_tokens = 'many' WHERE n = 2",),
    "parent of itself": ("UPDATE message SET parent_id = id WHERE n = 5",),
    "parents in a circle": ("UPDATE message SET parent_id = 'r0_11' WHERE id = 'q0_3'",),
    "parent is gone": ("UPDATE message SET parent_id = 'gone' WHERE n = 5",),
    "message is gone": ("DELETE FROM message WHERE n = 4",),
    "parts without a message": ("INSERT INTO part VALUES (99999, 0, '{}')",),
    "head is gone": ("UPDATE session SET head_id = 'gone'",),
    "state is no JSON": ("UPDATE session SET state = 'x'",),
    "state is a list": ("UPDATE session SET state = '[]'",),
    "state of wrong types": ('UPDATE session SET state = \'{"pinned":{},"thinking":[],"environment":3}\'',),
    "state is nested deeply": (f"UPDATE session SET state = '{'[' * 50_000}'",),
    "unknown kind of session": ("UPDATE session SET kind = 'king'",),
    "kind is a blob": ("UPDATE session SET kind = x'00ff'",),
    "title is text": ("UPDATE session SET title = 'x' || char(27)",),
    "title is a number": ("UPDATE session SET title = 5, project = 6.5, model = 'm'",),
    "title is no UTF-8": ("UPDATE session SET title = x'ff', preview = x'c3', project = x'80'",),
    "times are words": ("UPDATE session SET created = 'now', updated = 'then', messages = 'all'",),
    "times are endless": ("UPDATE session SET created = 9e999, updated = -9e999",),
    "step is no JSON": ("UPDATE step SET data = '{\"usage\":' WHERE n = 2",),
    "usage of wrong types": ('UPDATE step SET data = \'{"usage":{"input":"x","output":[]}}\' WHERE n = 2',),
    "unknown kind of step": ('UPDATE step SET data = \'{"kind":"dance","model":"m"}\' WHERE n = 2',),
    "fixed set is gone": ("DELETE FROM fixed_set",),
    "fixed set is no JSON": ("UPDATE fixed_set SET data = '5'",),
    "compaction is no JSON": ("UPDATE compaction SET data = '' WHERE n = 1",),
    "summary is gone": ("DELETE FROM message WHERE NOT in_tree",),
    "huge part": ("UPDATE part SET data = zeroblob(8000000) WHERE message = 2",),
    "no table of steps": ("DROP TABLE step",),
    "no table of messages": ("DROP TABLE message",),
    "no table of parts": ("DROP TABLE part",),
    "no table of compactions": ("DROP TABLE compaction",),
    "no table of contents": ("DROP TABLE content", "DROP TABLE snapshot"),
    "no indexes": ("DROP INDEX message_in_order", "DROP INDEX session_by_age"),
    "sessions are gone": ("DELETE FROM session",),
}


@pytest.mark.parametrize("case", one_of(list(ROWS), every=3))
def test_rows_that_make_no_sense_cost_only_themselves(tmp_path: Path, case: str) -> None:
    path = tmp_path / "sessions.db"
    filled(path)
    run(path, "PRAGMA foreign_keys = OFF", *ROWS[case])
    whole = path.read_bytes()
    expected = 0 if case == "sessions are gone" else 4
    assert use(path) == expected
    with Store.open(path) as store:
        sound = check(store).sound
        if expected:
            good = next(info for info in store.sessions.all() if "3" in info.id or info.project)
            assert store.content(good.id) is not None
    if not sound:
        made = repair_file(path)
        assert made is not None
        assert made.kept.read_bytes()[100:4096] == whole[100:4096]
        with Store.open(path) as store:
            assert check(store).sound, check(store)
            assert len(store.sessions.all()) == 4
            store.messages.add(store.sessions.all()[0].id, user_message("and on"))
        assert repair_file(path) is None


def test_a_damaged_session_opens_as_far_as_it_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    first, second, *_ = filled(path)
    run(
        path,
        "UPDATE part SET data = '{' WHERE message = (SELECT n FROM message WHERE id = 'a0_3')",
        "DELETE FROM message WHERE id = 'q0_5'",
        "UPDATE message SET data = 'x' WHERE id = 'r0_7'",
    )
    with Store.open(path) as store:
        content = store.content(first)
        way = [message.id for message in walk(content.messages, content.head_id)]
        assert len(way) == 35
        assert way.index("r0_4") + 1 == way.index("a0_5")
        told = " ".join(content.missing)
        assert "a0_3" in told
        assert "a0_5" in told
        assert "details of message r0_7" in told
        assert content.messages["r0_7"].parts
        assert store.content(second).missing == []
        assert store.export(first)["missing"] == content.missing
        assert "missing" not in store.export(second)


def test_damaged_facts_of_a_session_cost_only_themselves_and_are_named(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    first, second, *_ = filled(path)
    with Store.open(path) as store:
        info = store.sessions.get(first)
        info.state = SessionState(
            pinned=("/project/notes.md",),
            compaction_failures=2,
            compaction_paused=True,
            compaction_off=True,
            thinking="high",
            environment="Linux",
            newer={"later": 1},
        )
        store.sessions.save(info)
        whole = store.sessions.get(first)
    run(
        path,
        "UPDATE session SET title = x'41ff', created = 'then', kind = 'king', state = "
        f"json_set(state, '$.thinking', 'most', '$.compaction_failures', -1) WHERE id = '{first}'",
    )
    with Store.open(path) as store:
        found = store.sessions.get(first)
        assert (found.title, found.created, found.kind) == ("A\ufffd", 0.0, "user")
        assert found.state == dataclasses.replace(whole.state, thinking=None, compaction_failures=0)
        assert first in [info.id for info in store.sessions.all()]
        content = store.content(first)
        told = "facts of the session itself: title, created, compaction failures, thinking, kind"
        assert content.missing == [told]
        assert len(content.messages) == 36
        assert store.content(second).missing == []
        made = repair_session(store, first)
        assert made is not None
        assert store.sessions.get(made[0].id).state == found.state
        assert store.content(made[0].id).missing == []
    assert repair_file(path) is not None
    with Store.open(path) as store:
        assert check(store).sound
        assert store.sessions.get(first).state == found.state


def test_a_damaged_subagents_session_stays_out_of_the_list(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    first, *_ = filled(path)
    with Store.open(path) as store:
        child = store.sessions.create("/project/0", "demo", parent=first, kind="subagent")
        store.messages.add(child.id, user_message("look"))
    run(path, f"UPDATE session SET state = '[]', title = 5 WHERE id = '{child.id}'")
    for _ in range(2):
        with Store.open(path) as store:
            assert child.id not in [info.id for info in store.sessions.all()]
            found = store.sessions.get(child.id)
            assert (found.kind, found.parent_session) == ("subagent", first)
            sound = check(store).sound
        assert (repair_file(path) is None) == sound
    with Store.open(path) as store:
        store.delete(first)
        assert child.id not in [info.id for info in store.sessions.all(subagents=True)]


def test_one_session_is_copied_and_the_damaged_one_stays(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    first, second, *_ = filled(path)
    run(path, "UPDATE part SET data = '{' WHERE message = 1")
    before = path.read_bytes()
    with Store.open(path) as store:
        assert repair_session(store, second) is None
        made = repair_session(store, first)
        assert made is not None
        copy, content = made
        assert content.missing
        assert store.content(copy.id).missing == []
        assert len(store.content(copy.id).messages) == len(content.messages) == 36
        assert len(store.steps.all(copy.id)) == 12
        assert store.sessions.get(copy.id).parent_session == first
        assert store.content(first).missing == content.missing
    assert before != path.read_bytes()


@pytest.mark.parametrize("where", ["head", "version", "owner", "cut", "empty log", "torn log", "size"])
def test_a_damaged_file_is_repaired_beside_the_original(tmp_path: Path, where: str) -> None:
    path = tmp_path / "sessions.db"
    filled(path)
    damage(path, where)
    before = path.read_bytes()
    try:
        use(path)
    except StoreError as error:
        assert "\n" not in str(error)
    made = repair_file(path)
    assert made is not None or where in ("empty log", "torn log")
    if made is not None:
        assert made.kept.read_bytes() == before
    with Store.open(path) as store:
        report = check(store)
        assert report.sound, report
        assert len(report.sessions) >= (1 if where in ("cut", "middle") else 4)
        assert any(len(store.content(info.id).messages) >= 10 for info, _ in report.sessions)


def damage(path: Path, where: str) -> None:
    data = bytearray(path.read_bytes())
    if where == "head":
        data[:24] = b"\0" * 24
    elif where == "version":
        data[60:64] = (77).to_bytes(4, "big")
    elif where == "owner":
        data[68:72] = b"abcd"
    elif where == "middle":
        for page in range(8, len(data) // 4096, 5):
            data[page * 4096 + 8 : page * 4096 + 400] = b"\xa5" * 392
    elif where == "cut":
        del data[len(data) * 2 // 3 // 4096 * 4096 :]
    elif where == "size":
        data += b"\0" * 1000
        data[28:32] = (9_999_999).to_bytes(4, "big")
        data[24:28] = data[92:96]
    else:
        path.with_name(path.name + "-wal").write_bytes(b"" if where == "empty log" else os.urandom(9_000))
        return
    path.write_bytes(data)


def fuzz(folder: Path, seeds: range) -> dict[str, int]:
    """Flips bytes, pages and rows of copies of one database; every reading command must end in words."""
    source = folder / "source" / "sessions.db"
    filled(source)
    found = {"read": 0, "refused": 0, "repaired": 0, "sessions": 0}
    for seed in seeds:
        chance = random.Random(seed)
        path = folder / str(seed) / "sessions.db"
        path.parent.mkdir()
        shutil.copyfile(source, path)
        flip(path, chance)
        before = path.read_bytes()
        try:
            found["sessions"] += use(path)
            found["read"] += 1
        except StoreError as error:
            assert "\n" not in str(error), seed
            found["refused"] += 1
        path.write_bytes(before)
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        try:
            made = repair_file(path)
        except StoreError as error:
            assert "\n" not in str(error), seed
            assert path.read_bytes()[100:] == before[100:], seed
            continue
        if made is not None:
            found["repaired"] += 1
            with Store.open(path) as store:
                assert check(store).sound, seed
        shutil.rmtree(path.parent)
    return found


def flip(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    kind = chance.choice(["bytes", "bytes", "pages", "cut", "swap", "rows"])
    if kind == "bytes":
        for _ in range(chance.choice([1, 3, 30, 300])):
            data[chance.randrange(len(data))] = chance.randrange(256)
    elif kind == "pages":
        for _ in range(chance.randint(1, 5)):
            page = chance.randrange(len(data) // 4096)
            data[page * 4096 : page * 4096 + 4096] = chance.choice([bytes(4096), chance.randbytes(4096)])
    elif kind == "cut":
        del data[chance.randrange(len(data)) :]
    elif kind == "swap":
        one, two = (chance.randrange(len(data) // 4096) * 4096 for _ in range(2))
        data[one : one + 4096], data[two : two + 4096] = data[two : two + 4096], data[one : one + 4096]
    path.write_bytes(data)
    if kind == "rows":
        spoil_rows(path, chance)


def spoil_rows(path: Path, chance: random.Random) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    spoilt: list[Callable[[], object]] = [
        lambda: chance.randrange(-(2**60), 2**60),
        lambda: chance.randbytes(20),
        lambda: '{"type":"text","text":null}',
        lambda: "x" * chance.randrange(2_000),
        lambda: 1e308 * chance.choice([1, -1, 10]),
    ]
    for _ in range(chance.randint(1, 12)):
        table = chance.choice(
            ["session", "message", "part", "step", "compaction", "fixed_set", "snapshot", "token_count"]
        )
        column = chance.choice([row[1] for row in connection.execute(f"PRAGMA table_info({table})")])
        try:
            connection.execute(
                f"UPDATE {table} SET {column} = ? WHERE rowid IN (SELECT rowid FROM {table} ORDER BY random() LIMIT 2)"
                if table not in ("part", "token_count")
                else f"UPDATE {table} SET {column} = ? WHERE random() % 9 = 0",
                (chance.choice(spoilt)(),),
            )
        except sqlite3.IntegrityError:
            continue
    connection.close()


@pytest.mark.slow
def test_random_damage_never_crashes(tmp_path: Path) -> None:
    copies = examples(24, 240)
    found = fuzz(tmp_path, range(copies))
    assert found["read"] > copies // 4
    assert found["repaired"] > copies // 8


def test_a_branch_whose_beginning_is_lost_is_told_and_can_still_be_gone_to(tmp_path: Path) -> None:
    with Store.open(tmp_path / "sessions.db") as store:
        info = store.sessions.create("/p", "demo")
        for name, parent in (("a", None), ("b", "a"), ("lost", "a"), ("after", "lost"), ("c", "b")):
            store.messages.add(info.id, Message(name, "user", [TextPart(name)], parent_id=parent))
        store.database.run("DELETE FROM message WHERE id = 'lost'")
        content = store.content(info.id)
        assert content.head_id == "c"
        assert any("after" in line for line in content.missing)
        assert all(m.parent_id is None or m.parent_id in content.messages for m in content.messages.values())
