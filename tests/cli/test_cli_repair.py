from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from agent_tui.store.backup import back_up_daily
from tests.store.test_store_damage import filled
from tests.support.cli import Cli


def database(cli: Cli) -> Path:
    return cli.home / "data" / "sessions.db"


def spoil(cli: Cli, statement: str) -> None:
    connection = sqlite3.connect(database(cli), isolation_level=None)
    connection.execute(statement)
    connection.close()


def test_a_sound_database_is_left_alone(cli: Cli) -> None:
    filled(database(cli))
    found = cli.run("sessions", "check")
    assert found.code == 0
    assert found.out.count("ok ") == 4
    assert cli.run("sessions", "repair").error == "No damage found; nothing was changed."
    assert list(database(cli).parent.glob("*damaged*")) == []


def test_damage_is_named_and_repaired(cli: Cli) -> None:
    first, second, *_ = filled(database(cli))
    spoil(cli, "UPDATE part SET data = '{' WHERE message = 1")
    found = cli.run("sessions", "check")
    assert found.code == 1
    assert f"damaged  {first}  36 messages  (a message)" in found.out
    assert cli.run("sessions", "check", second).code == 0
    rows = json.loads(cli.run("sessions", "check", "--json").out)
    assert [row["problem"] for row in rows["sessions"]].count("a message") == 1
    for command in (["export", first], ["context", "--session", first], ["-p", "hi", "-m", "demo", "-r", first]):
        refused = cli.run(*command)
        assert refused.code == 1 and "run `agent-tui sessions repair`" in refused.error
    whole = cli.run("sessions", "repair")
    assert whole.code == 0
    assert "Lost: 1 part of a message. The damaged one is kept as" in whole.error
    assert len(list(database(cli).parent.glob("*damaged*"))) == 1
    assert cli.run("sessions", "check").code == 0


@pytest.mark.slow
def test_a_file_that_sqlite_refuses_is_listed_and_restored_from_its_backup(cli: Cli) -> None:
    filled(database(cli))
    assert back_up_daily(database(cli))
    data = bytearray(database(cli).read_bytes())
    data[:20] = bytes(20)
    database(cli).write_bytes(data)
    listed = cli.run("sessions", "--all")
    assert listed.code == 0
    assert listed.out.count("\n") == 4
    assert "sessions repair" in listed.error and "shown is the backup of" in listed.error
    assert "sessions repair" in cli.run("-p", "hi", "-m", "demo").error
    assert cli.run("sessions", "check").code == 1
    assert cli.run("doctor").code == 1
    assert cli.run("sessions", "repair").code == 0
    assert cli.run("sessions", "check").code == 0


def test_unknown_sessions_and_files_are_one_line(cli: Cli) -> None:
    assert cli.run("sessions", "repair").code == 1
    filled(database(cli))
    for action in ("check", "repair"):
        outcome = cli.run("sessions", action, "ses_nothing")
        assert outcome.code == 2
        assert outcome.err.count("\n") == 1
