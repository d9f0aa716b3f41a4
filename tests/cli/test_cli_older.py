"""The commands on a database of an earlier version, and of a later one."""

from __future__ import annotations

import pytest

from agent_tui.store.schema import VERSION
from tests.store.test_store_versions import as_earlier
from tests.support.cli import Cli


@pytest.mark.forms(2)
@pytest.mark.parametrize(
    "arguments", [("sessions", "--all"), ("-p", "hello", "-m", "demo"), ("context", "--json"), ("config", "show")]
)
def test_an_earlier_database_is_kept_aside_in_one_line(cli: Cli, arguments: tuple[str, ...]) -> None:
    before = as_earlier(cli.paths.database)
    ran = cli.run(*arguments)
    assert ran.code == 0, ran.err
    (told,) = [line for line in ran.err.splitlines() if "is kept as" in line]
    assert "sessions.db.version-" in told and "begin anew" in told
    assert cli.paths.database.with_name(f"sessions.db.version-{VERSION - 1}").read_bytes() == before
    assert "is kept as" not in cli.run(*arguments).err


def test_a_later_database_is_refused_in_one_line(cli: Cli) -> None:
    before = as_earlier(cli.paths.database, VERSION + 1)
    for arguments in (["sessions"], ["sessions", "check"], ["context"], ["export", "ses_1"], ["sessions", "repair"]):
        refused = cli.run(*arguments)
        assert refused.code == 1, arguments
        assert refused.out == ""
        assert "written by a newer agent-tui" in refused.error
        assert "upgrade agent-tui" in refused.error
    assert cli.paths.database.read_bytes() == before
