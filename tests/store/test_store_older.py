"""A database of an earlier version: everything in it reads as before, also when its migration was killed."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_tui.errors import StoreError
from agent_tui.models.calibration import TERMS
from agent_tui.models.codec import from_dict, to_dict
from agent_tui.models.messages import Message
from agent_tui.models.session import SessionState
from agent_tui.store import schema
from agent_tui.store.database import Database
from agent_tui.store.export_data import session_row
from agent_tui.store.repair import check, repair_file
from agent_tui.store.rows import dump_state
from agent_tui.store.store import Store
from tests.support.agents import TokenCounter, parts_for, running, waiting
from tests.support.older_databases import PROJECT, as_it_read, as_listed_now, restore, rows

OLD = schema.MIGRATIONS[:8]
LATER = [statement for migration in schema.MIGRATIONS[8:] for statement in migration]

KILLED = """
import os, signal, sqlite3, sys
from agent_tui.store import schema

path, done = sys.argv[1], int(sys.argv[2])
later = [statement for migration in schema.MIGRATIONS[8:] for statement in migration]
connection = sqlite3.connect(path, isolation_level=None)
connection.create_function("die", 0, lambda: os.kill(os.getpid(), signal.SIGKILL))
connection.execute("PRAGMA journal_mode = WAL").fetchone()
connection.execute("PRAGMA cache_size = 1")
schema.migrate(connection, [*schema.MIGRATIONS[:8], (*later[:done], "SELECT die()")])
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return restore(tmp_path / "data" / "sessions.db")


def kinds(store: Store) -> dict[str, str]:
    return {info.title: info.kind for info in store.sessions.all(subagents=True)}


def is_within(before: Any, now: Any) -> bool:
    """Whether all that was there is there as it was, whatever else is there now."""
    if isinstance(before, dict):
        return all(key in now and is_within(value, now[key]) for key, value in before.items())
    if isinstance(before, list):
        return len(before) == len(now) and all(map(is_within, before, now))
    return bool(before == now)


def require_as_before(path: Path) -> None:
    then = as_it_read()
    subagents = [session["id"] for session in then["sessions"] if session["state"].get("subagent")]
    assert len(subagents) == 1
    with Store.open(path) as store:
        assert [session_row(info) for info in store.sessions.all()] == as_listed_now(then) != then["listed"]
        newest = store.sessions.newest(PROJECT)
        assert newest is not None
        assert newest.id == then["newest"]
        assert check(store).sound
        for session in then["sessions"]:
            # The mark in the state became the kind; what later versions added to the state is as in a new session.
            subagent = session["state"].pop("subagent", False)
            state = {**dump_state(SessionState()), **session["state"]}
            kind, count = "subagent" if subagent else "user", len(then["paths"][session["id"]])
            expected = {**session, "state": state, "kind": kind, "messages": count}
            assert store.export(session["id"])["session"] == expected
            # So is what they added to messages.
            kept = [to_dict(from_dict(Message, m)) for m in then["waiting"][session["id"]]]
            assert [to_dict(m) for m in store.waiting.all(session["id"])[0]] == kept
            assert all(is_within(m, now) for m, now in zip(then["waiting"][session["id"]], kept, strict=True))
            found = [message.id for message in store.messages.path(session["id"], session["head_id"])]
            assert found == then["paths"][session["id"]]


def test_everything_reads_as_before(path: Path) -> None:
    changed = (
        *("session", "spending", "mcp_offer", "sqlite_sequence", "token_count", "growth", "calibration"),
        "server_fact",
    )
    before = rows(path, *changed)
    require_as_before(path)
    counted_by_kind = [(*row, None) for row in before["message"]]
    assert rows(path, *changed) == {**before, "message": counted_by_kind}
    require_as_before(path)


async def test_the_chat_goes_on_where_it_was(tmp_path: Path) -> None:
    home = tmp_path / "home"
    restore(home / "data" / "sessions.db")
    first = next(s for s in as_it_read()["sessions"] if s["state"]["thinking"] and s["messages"] == 8)
    async with running(parts_for(home, tmp_path / "project", resume=first["id"])) as (agent, _):
        assert [m.text for m in agent.conversation.path if m.role == "user"] == ["Where is add?", "Plan it again"]
        assert agent.context.pinned == [f"{PROJECT}/notes.md"]
        assert agent.models.effort == "high"
        assert agent.conversation.info.state == SessionState(
            pinned=(f"{PROJECT}/notes.md",),
            compaction_failures=3,
            compaction_paused=True,
            compaction_off=True,
            thinking="high",
            environment=first["state"]["environment"],
        )
        assert len(waiting(agent, "held")) == 2
        assert waiting(agent, "held")[0] == "and then the changelog"
        assert agent.context.usage().anchor_step is not None
        agent.turns.submit("go on")
        await agent.turns.join()
        assert agent.conversation.path[-1].role == "assistant"
        await agent.sessions.fork()
        assert (agent.conversation.info.kind, agent.conversation.info.parent_session) == ("user", first["id"])


def test_deleting_takes_the_subagents_along(path: Path) -> None:
    with Store.open(path) as store:
        child = next(info for info in store.sessions.all(subagents=True) if info.kind == "subagent")
        fork = store.fork(child.id, child.head_id)
        assert fork.kind == "user"
        assert child.parent_session is not None
        store.delete(child.parent_session)
        assert set(kinds(store)) == {"A copy of it", "Hello", child.title}
        assert store.sessions.get(fork.id).parent_session == child.id


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize("done", range(len(LATER) + 1))
def test_a_migration_that_is_killed_leaves_the_old_database(path: Path, done: int) -> None:
    before = rows(path)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path), str(done)], capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    old = Database.open(path, 1.0, OLD)
    assert old.one("PRAGMA user_version") == (8,)
    assert old.one("""SELECT count(*) FROM session WHERE instr(state, '"subagent":true') > 0""") == (1,)
    assert old.one("PRAGMA integrity_check") == ("ok",)
    old.close()
    assert rows(path) == before
    require_as_before(path)


def test_an_older_program_says_that_the_database_is_newer(path: Path) -> None:
    Store.open(path).close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="written by a newer agent-tui") as error:
        Database.open(path, 1.0, OLD)
    assert "upgrade agent-tui" in str(error.value)
    assert "\n" not in str(error.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("owner", [b"\0\0\0\0", b"abcd"])
def test_a_damaged_one_is_repaired_into_the_present_schema(path: Path, owner: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[:24] = b"\0" * 24
    data[60:64] = (3).to_bytes(4, "big")
    data[68:72] = owner
    path.write_bytes(data)
    assert repair_file(path) is not None
    require_as_before(path)


def test_a_state_that_is_no_json_does_not_stop_the_migration(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("""UPDATE session SET state = '{"subagent":true' WHERE instr(state, '"subagent":true') > 0""")
    connection.execute("UPDATE session SET state = x'ff00' WHERE title = CAST('Hello' AS BLOB)")
    connection.commit()
    connection.close()
    with Store.open(path) as store:
        assert sorted(kinds(store).values()) == ["subagent", "user", "user", "user"]
        assert len(store.sessions.all()) == 3
        assert sum(bool(missing) for _, missing in check(store).sessions) == 2


def test_lists_are_read_from_an_index_in_their_order(path: Path) -> None:
    with Store.open(path) as store:
        asked: list[str] = []
        store.database.connection.set_trace_callback(asked.append)
        store.sessions.all()
        store.sessions.all(PROJECT, limit=1, empty=False)
        store.database.connection.set_trace_callback(None)
        plans = [store.database.all(f"EXPLAIN QUERY PLAN {sql}") for sql in asked]
    told = [" ".join(str(row[3]) for row in plan) for plan in plans]
    assert "session_by_age" in told[0]
    assert "session_by_project" in told[1]
    assert not [line for line in told if "TEMP B-TREE" in line]


OLDER_KINDS = 11
"""So many kinds of text, and three terms beside them, were there before: as many terms as now."""


def as_of_older_kinds(path: Path) -> None:
    """Writes into a database what the version before stored of its kinds of text, in the place of what there is."""
    counts = [40, *(1,) * (OLDER_KINDS - 1)]
    factors = [*(1.0,) * OLDER_KINDS, 4.0, 0.9, 0.0]
    rows = [[0.0] * n + [1e-6] for n in range(len(factors))]
    learned = json.dumps({"factors": factors, "covariance": rows, "noise": 0.01, "reports": 9})
    growth = json.dumps({"terms": [*counts, 1.0, 500.0, 1.0], "squares": 1e6})
    connection = sqlite3.connect(path)
    connection.execute("UPDATE message SET counts = ?", (json.dumps(counts),))
    connection.execute("UPDATE token_count SET counts = ?", (json.dumps(counts),))
    connection.execute("UPDATE calibration SET data = ?", (learned,))
    changed = "UPDATE step SET data = json_set(data, '$.growth', json(?), '$.given.calibrated', ?)"
    connection.execute(changed, (growth, learned))
    for name, data in connection.execute("SELECT id, data FROM fixed_set").fetchall():
        older = json.dumps([{**part, "counts": counts} for part in json.loads(data)])
        connection.execute("UPDATE fixed_set SET data = ? WHERE id = ?", (older, name))
    connection.execute("ALTER TABLE permission_rule DROP COLUMN decision")
    connection.execute("DROP TABLE server_fact")
    for column in ("accepted", "raised_window", "accepted_input", "accepted_output"):
        connection.execute(f"ALTER TABLE learned_limit DROP COLUMN {column}")
    connection.execute(f"PRAGMA user_version = {schema.MIGRATIONS.index(schema.OTHER_KINDS)}")
    connection.commit()
    connection.close()


async def test_what_was_learned_and_counted_by_other_kinds_of_text_is_forgotten(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    async with running(parts_for(home, project, counter=TokenCounter())) as (agent, _):
        for text in ("hello " * 300, "and again " * 300):
            agent.turns.submit(text)
            await agent.turns.join()
        session, (path,) = agent.conversation.info.id, home.glob("**/sessions.db")
        assert agent.runtime is not None and agent.runtime.calibration is not None
        messages = {m.id: (m.raw_tokens, m.counts) for m in agent.conversation.path}
        shown = agent.context.usage()
    as_of_older_kinds(path)
    async with running(parts_for(home, project, counter=TokenCounter(), resume=session)) as (agent, _):
        assert agent.runtime is not None and agent.runtime.calibration is None
        assert all(step.growth is None for step in agent.conversation.steps)
        await agent.context.ready()
        assert {m.id: (m.raw_tokens, m.counts) for m in agent.conversation.path} == messages
        now = agent.context.usage()
        assert now.total == pytest.approx(shown.total, rel=0.01)
        was = {row.id: row.tokens for row in shown.rows}
        assert {row.id: row.tokens for row in now.rows} == pytest.approx(was, rel=0.05, abs=20)
        past = agent.context.history()
        for number in range(1, past.count + 1):
            moment = past.moment(number)
            assert moment.differs is not None
            assert abs(moment.differs) <= 2 * (moment.step.estimated_spread or 0)
        agent.turns.submit("go on")
        await agent.turns.join()
        assert agent.runtime.calibration is not None and 0 < agent.runtime.calibration.reports < 9


def test_rows_that_are_no_json_do_not_stop_what_is_forgotten(path: Path) -> None:
    with Store.open(path) as store:
        store.database.run('UPDATE fixed_set SET data = \'["x", 1, {"counts": [1]}]\'')
        store.database.run("UPDATE step SET data = x'ff00' WHERE n = (SELECT min(n) FROM step)")
        store.database.run("UPDATE step SET data = '{\"growth\":' WHERE n = (SELECT max(n) FROM step)")
    connection = sqlite3.connect(path)
    connection.execute("ALTER TABLE permission_rule DROP COLUMN decision")
    connection.execute("DROP TABLE server_fact")
    for column in ("accepted", "raised_window", "accepted_input", "accepted_output"):
        connection.execute(f"ALTER TABLE learned_limit DROP COLUMN {column}")
    connection.execute(f"PRAGMA user_version = {schema.MIGRATIONS.index(schema.OTHER_KINDS)}")
    connection.commit()
    connection.close()
    with Store.open(path) as store:
        assert set(store.database.all("SELECT data FROM fixed_set")) == {('["x",1,{}]',)}


def test_the_kinds_of_text_are_those_that_a_migration_made_room_for() -> None:
    """Where they change, ``schema.OTHER_KINDS`` has to be the last migration again: then name them here."""
    kinds = "words pieces capitals digits more_digits wide letters scripts space symbols fragments korean"
    assert [term.replace(" ", "_") for term in TERMS] == [*kinds.split(), "messages", "schemas"]
    assert schema.MIGRATIONS.count(schema.OTHER_KINDS) == 1
