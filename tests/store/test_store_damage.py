"""A store under attack: nothing crashes, what can be read is read, nothing is destroyed."""

from __future__ import annotations

import functools
import json
import os
import random
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_tui.commands.export import render
from agent_tui.errors import StoreDamagedError, StoreError
from agent_tui.models.messages import Message, Origin, TextPart, ToolCallPart, ToolResultPart, user_message
from agent_tui.models.session import SessionInfo
from agent_tui.models.steps import CompactionRecord, FixedPart, Step
from agent_tui.models.usage import TokenUsage
from agent_tui.store.backup import back_up_daily
from agent_tui.store.messages import walk
from agent_tui.store.reading import open_for_reading
from agent_tui.store.repair import check, repair_file
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
    """Everything that reading commands do, each of which fails in one line. Returns how many sessions were exported."""
    done = 0
    try:
        opened = open_for_reading(path)
    except StoreError as error:
        assert "\n" not in str(error)
        return 0
    with opened as store:
        for info in listed(store):
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


def listed(store: Store) -> list[SessionInfo]:
    try:
        return store.sessions.all()
    except StoreError as error:
        assert "\n" not in str(error)
        return []


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


@pytest.mark.forms(1)
@pytest.mark.parametrize("case", one_of(list(ROWS), every=9))
def test_rows_that_make_no_sense_are_named_and_repaired(tmp_path: Path, case: str) -> None:
    path = tmp_path / "sessions.db"
    filled(path)
    run(path, "PRAGMA foreign_keys = OFF", *ROWS[case])
    use(path)
    whole = path.read_bytes()
    with Store.open(path) as store:
        sound = check(store).sound
    if case == "sessions are gone":
        assert sound
        return
    made = repair_file(path)
    assert (made is None) == sound
    if made is None:
        return
    assert made.kept.read_bytes()[100:4096] == whole[100:4096]
    assert sum(made.lost.values()) or made.unread
    assert "Lost: nothing" not in made.line()
    with Store.open(path) as store:
        assert check(store).sound, check(store)
        assert len(store.sessions.all()) == 4
        store.messages.add(store.sessions.all()[0].id, user_message("and on"))
    assert repair_file(path) is None


def test_sessions_that_lost_their_messages_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    first, *_ = filled(path)
    run(path, "PRAGMA foreign_keys = OFF", f"DELETE FROM message WHERE session_id = '{first}'")
    made = repair_file(path)
    assert made is not None and "4 sessions, 1 of them without messages. Lost:" in made.line()


def test_a_damaged_session_is_refused_and_the_others_are_not(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    first, second, *_ = filled(path)
    run(path, "UPDATE part SET data = '{' WHERE message = 1")
    with Store.open(path) as store:
        for reading in (store.content, store.export):
            with pytest.raises(StoreDamagedError, match="agent-tui sessions repair"):
                reading(first)
        assert len(store.content(second).messages) == 36
        assert [bool(problem) for _, problem in check(store).sessions].count(True) == 1


def test_a_session_whose_row_makes_no_sense_is_listed_and_can_be_deleted(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    first, second, *_ = filled(path)
    run(path, f"UPDATE session SET state = '[]', title = 5 WHERE id = '{first}'")
    with Store.open(path) as store:
        titles = {info.id: info.title for info in store.sessions.all()}
        assert titles[first] == "(damaged)" and titles[second] == "Session 1"
        with pytest.raises(StoreDamagedError, match=f"the facts of session {first}"):
            store.sessions.get(first)
        store.delete(first)
        assert len(store.sessions.all()) == 3


def test_what_cannot_be_read_comes_from_the_newest_backup(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    first, second, *_ = filled(path)
    assert back_up_daily(path)
    with Store.open(path) as store:
        whole = store.export(first)
        store.delete(second)
        store.messages.add(first, Message("later", "user", [TextPart("said since")], parent_id="r0_11"))
    run(
        path,
        "UPDATE part SET data = '{' WHERE message = (SELECT n FROM message WHERE id = 'a0_3')",
        "UPDATE message SET data = 'x' WHERE id = 'r0_7'",
        "UPDATE step SET data = '' WHERE id = 's0_2'",
        f"UPDATE session SET title = 5 WHERE id = '{first}'",
    )
    made = repair_file(path)
    assert made is not None and made.backup == time.strftime("%Y-%m-%d")
    assert f"with the backup of {made.backup}: 3 sessions. Lost: nothing." in made.line()
    with Store.open(path) as store:
        assert [info.id for info in store.sessions.all()].count(second) == 0, "deleted since"
        content = store.content(first)
        assert [m.text for m in walk(content.messages, "later")][-1] == "said since"
        now = store.export(first)
    assert now["messages"][:36] == whole["messages"][:36]
    assert now["steps"] == whole["steps"]


def test_without_a_backup_what_is_left_holds_together(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    first, second, *_ = filled(path)
    run(
        path,
        "UPDATE part SET data = '{' WHERE message = (SELECT n FROM message WHERE id = 'a0_3') AND position = 0",
        "DELETE FROM message WHERE id = 'q0_5'",
        "UPDATE message SET data = 'x' WHERE id = 'r0_7'",
        f"UPDATE session SET title = x'41ff' WHERE id = '{first}'",
        f"UPDATE session SET head_id = 'gone' WHERE id = '{second}'",
    )
    made = repair_file(path)
    assert made is not None and made.backup == ""
    assert made.line().split(". ")[1] == (
        "Lost: 1 session's title and settings, 1 message's details, 2 parts of messages, "
        "1 message's place, 1 end of a conversation"
    )
    with Store.open(path) as store:
        content = store.content(first)
        way = [message.id for message in walk(content.messages, content.head_id)]
        assert len(way) == 35
        assert way.index("r0_4") + 1 == way.index("a0_5")
        assert content.messages["r0_7"].parts
        assert store.sessions.get(first).title == "(repaired)"
        assert store.content(second).head_id == "r1_11"


@pytest.mark.forms(1)
@pytest.mark.parametrize("where", one_of(["head", "middle", "cut", "size"], 2))
def test_a_file_that_sqlite_refuses_is_restored_from_its_backup(tmp_path: Path, where: str) -> None:
    path = tmp_path / "sessions.db"
    filled(path)
    assert back_up_daily(path)
    damage(path, where)
    before = path.read_bytes()
    use(path)
    made = repair_file(path)
    assert made is not None and made.backup and made.kept.read_bytes() == before
    assert f"what was stored after the backup of {made.backup}" in made.line()
    with Store.open(path) as store:
        report = check(store)
        assert report.sound, report
        assert [len(store.content(info.id).messages) for info, _ in report.sessions] == [36] * 4


def test_a_file_that_sqlite_refuses_stays_where_there_is_no_backup(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    filled(path)
    damage(path, "head")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="nothing can be recovered, and no backup is sound"):
        repair_file(path)
    assert path.read_bytes() == before
    assert list(tmp_path.glob("*damaged*")) == []


@pytest.mark.slow
def test_a_log_that_is_empty_or_torn_is_no_damage(tmp_path: Path) -> None:
    for number, log in enumerate((b"", os.urandom(9_000))):
        path = tmp_path / str(number) / "sessions.db"
        filled(path)
        path.with_name("sessions.db-wal").write_bytes(log)
        assert use(path) == 4
        assert repair_file(path) is None


def damage(path: Path, where: str) -> None:
    data = bytearray(path.read_bytes())
    if where == "head":
        data[:24] = b"\0" * 24
    elif where == "middle":
        for page in range(2, len(data) // 4096):
            data[page * 4096 + 8 : page * 4096 + 400] = b"\xa5" * 392
    elif where == "cut":
        del data[len(data) // 3 // 4096 * 4096 :]
    else:
        data += b"\0" * 1000
        data[28:32] = (9_999_999).to_bytes(4, "big")
        data[24:28] = data[92:96]
    path.write_bytes(data)


def fuzz(folder: Path, seeds: range) -> dict[str, int]:
    """Flips bytes, pages and rows of copies of one database, half of them with a backup; every reading command must
    end in words."""
    source = folder / "source" / "sessions.db"
    filled(source)
    found = {"read": 0, "refused": 0, "repaired": 0, "sessions": 0}
    for seed in seeds:
        chance = random.Random(seed)
        path = folder / str(seed) / "sessions.db"
        path.parent.mkdir()
        shutil.copyfile(source, path)
        if seed % 2:
            assert back_up_daily(path)
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
