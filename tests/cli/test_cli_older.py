"""The commands on a database of an earlier version, and of a later one."""

from __future__ import annotations

import json

from agent_tui.models.session import SessionState
from agent_tui.store import database, schema
from agent_tui.store import repair as rebuild
from agent_tui.store.rows import dump_state
from tests.support.cli import Cli
from tests.support.older_databases import as_it_read, as_listed_now, restore


def test_an_earlier_database_is_listed_counted_and_exported(cli: Cli) -> None:
    restore(cli.paths.database)
    then = as_it_read()
    assert json.loads(cli.run("sessions", "--all", "--json").out) == as_listed_now(then)
    for session in then["sessions"]:
        context = cli.run("context", "--session", session["id"], "--json")
        assert context.code == 0, context.err
        rows = json.loads(context.out)
        assert rows["total"] > 0
        exported = cli.run("export", session["id"])
        assert exported.code == 0, exported.err
        export = json.loads(exported.out)
        assert len(export["messages"]) >= session["messages"] > 0
        assert export["session"]["kind"] == ("subagent" if session["state"].pop("subagent", False) else "user")
        assert export["session"]["state"] == {**dump_state(SessionState()), **session["state"]}
        assert cli.run("export", session["id"], "--format", "md").code == 0
    assert cli.run("sessions", "check").code == 0


def test_a_later_database_is_refused_in_one_line(cli: Cli) -> None:
    restore(cli.paths.database)
    assert cli.run("sessions", "--all").code == 0
    for module in (database, rebuild):
        cli.monkeypatch.setattr(module, "MIGRATIONS", schema.MIGRATIONS[:8])
    for arguments in (["sessions"], ["sessions", "check"], ["context"], ["export", "ses_1"], ["sessions", "repair"]):
        refused = cli.run(*arguments)
        assert refused.code == 1, arguments
        assert refused.out == ""
        assert "written by a newer agent-tui" in refused.error
        assert "upgrade agent-tui" in refused.error
