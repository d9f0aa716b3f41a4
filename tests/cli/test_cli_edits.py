"""``agent-tui context drop|restore|pin|undo``: the context edited from a shell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent_tui.commands.registry import run
from agent_tui.errors import AgentError
from agent_tui.store.store import Store
from tests.support.agents import parts_for
from tests.support.agents import running as agent_running
from tests.support.cli import Cli


@pytest.fixture
def session(cli: Cli) -> str:
    (cli.project / "notes.txt").write_text("a line\n" * 200)
    cli.run("-m", "demo", "-p", "read notes.txt")
    return str(cli.run("-m", "demo", "-c", "-p", "why?", "--output-format", "json").json["session_id"])


def ids(text: str) -> dict[str, str]:
    """Who said it, by id."""
    return dict(re.findall(r"^  (\d{6}) (you|model|tool):", text, re.MULTILINE))


@pytest.mark.slow
def test_a_result_is_dropped_restored_and_brought_back_by_an_undo(cli: Cli, session: str) -> None:
    before = cli.run("context", "--rows").out
    result = next(id for id, who in ids(before).items() if who == "tool")
    told = cli.run("context", "drop", "--dry-run", result).out
    assert re.fullmatch(
        r"Drops 2 messages \(1 more than chosen: [^)]+\): [\d,.k±~ ]+ tokens less per request\. .+\n", told
    )
    assert cli.run("context", "--rows").out == before
    assert cli.run("context", "drop", result, "--session", session).out.startswith("Dropped 2 messages: ")
    dropped = cli.run("context", "--rows").out
    assert "Dropped: 2 messages, not sent." in dropped
    assert ids(dropped.partition("Messages by id:")[2]).keys() == ids(before).keys() - {
        result,
        *ids(dropped.partition("Dropped:")[2].partition("Sum of")[0]),
    }
    data = cli.run("context", "--json").json
    assert [(edit["kind"], edit["in_force"]) for edit in data["session"]["edits"]] == [("drop", True)]
    assert data["session"]["compactions_made"] == []
    assert cli.run("context", "restore", result).out.startswith("Restored 2 messages: ")
    assert cli.run("context", "undo").out.startswith("Restored messages dropped again")
    assert cli.run("context", "undo").out.startswith("Dropped messages restored")
    assert cli.run("context", "--rows").out == before


@pytest.mark.slow
def test_a_range_goes_with_its_calls(cli: Cli, session: str) -> None:
    first, *_, last = ids(cli.run("context", "--rows").out)
    assert cli.run("context", "drop", f"{first}..{last}").out.startswith("Dropped 6 messages")
    assert "Messages by id:" not in cli.run("context", "--rows").out
    assert cli.run("export", session).json["compactions"][0]["kind"] == "drop"


@pytest.mark.slow
def test_an_error_is_one_line(cli: Cli, session: str) -> None:
    for arguments, says in (
        (["drop", "999999"], "No such message: 999999."),
        (["drop", "123456.."], "A range is two ids"),
        (["restore", "999999"], "No such message: 999999."),
        (["undo"], "Nothing to undo."),
        (["drop", "\x1b[31m"], "No such message"),
    ):
        outcome = cli.run("context", *arguments)
        assert outcome.code == 2 and says in outcome.error and "\x1b" not in outcome.error, arguments


@pytest.mark.slow
def test_the_flag_of_the_chat_is_taken_and_one_of_another_command_is_not_what_was_meant(cli: Cli, session: str) -> None:
    first = next(iter(ids(cli.run("context", "--rows").out)))
    assert cli.run("context", "drop", first, "--yes").out.startswith("Dropped ")
    outcome = cli.run("context", "restore", first, "--yes")
    assert outcome.code == 2 and "unrecognized arguments: --yes" in outcome.err
    assert "did you mean" not in outcome.err


FLAGS = (
    ("drop 123456 --yes/context", "Unknown flag --yes/context: drop takes --yes and --later."),
    ("fold 123456 --later", "Unknown flag --later: fold takes --yes."),
    ("restore 123456 --yes", "Unknown flag --yes: restore takes only ids."),
    ("pin --\x1b[31m", ": pin takes only ids."),
)


async def test_a_flag_that_there_is_not_is_named_as_one(tmp_path: Path) -> None:
    async with agent_running(parts_for(tmp_path / "home", tmp_path)) as (agent, _):
        for words, says in FLAGS:
            with pytest.raises(AgentError) as refused:
                await run(agent, f"/context {words}")
            assert says in str(refused.value) and "\x1b" not in str(refused.value)


def test_where_there_is_no_session_that_is_what_it_says(cli: Cli) -> None:
    for arguments in (["drop", "123456"], ["undo"], ["drop", "--dry-run", "123456"]):
        outcome = cli.run("context", *arguments)
        assert outcome.code == 2 and "no session here yet" in outcome.error, arguments
    assert cli.run("sessions").out == ""


@pytest.mark.slow
def test_a_session_that_is_open_elsewhere_is_left_alone(cli: Cli, session: str) -> None:
    first = next(iter(ids(cli.run("context", "--rows").out)))
    with Store.open(cli.paths.database) as store:
        lock = store.locks.take(session)
        outcome = cli.run("context", "drop", first)
        lock.release()
    assert outcome.code == 2 and f"open in another window: run /context drop {first} there" in outcome.error
    assert cli.run("context", "--json").json["session"]["edits"] == []


def test_exports_say_what_was_dropped(cli: Cli, session: str) -> None:
    first = next(iter(ids(cli.run("context", "--rows").out)))
    plain = cli.run("export", session, "--format", "md").out
    cli.run("context", "drop", first)
    told = cli.run("export", session, "--format", "md").out
    assert "## User (dropped from the context)\n" in told and told.count("> **Dropped 1 message, ") == 1
    assert "dropped from the context" in cli.run("export", session, "--format", "html").out
    assert cli.run("context", "--step", "3").code == 0
    cli.run("context", "undo")
    assert cli.run("export", session, "--format", "md").out == plain


def rows(cli: Cli) -> str:
    return cli.run("context", "--rows").out.partition("Messages by id:")[2]


@pytest.mark.slow
def test_a_range_is_folded_and_unfolded(cli: Cli, session: str) -> None:
    (cli.project / "notes.txt").write_text("".join(f"line {n} of a long file of notes\n" for n in range(400)))
    for number in range(3):
        cli.run("-m", "demo", "-c", "-p", f"read notes.txt, please ({number})")
    before = rows(cli)
    first, *_, last = ids(before)
    told = cli.run("context", "fold", "--dry-run", f"{first}..{last}").out
    assert re.match(r"Folds \d+ messages \(~[\d.k]+\) into a summary: ~[\d.k]+ tokens less per request", told)
    assert rows(cli) == before
    folded = cli.run("context", "fold", f"{first}..{last}")
    assert re.search(r"^Folded \d+ messages, ", folded.out, re.MULTILINE) and folded.code == 0
    assert "summary" in cli.run("context", "--rows").out
    assert cli.run("context", "undo").out.startswith("Folded messages restored")
    assert rows(cli) == before
    assert "one range" in cli.run("context", "fold", first, last, first).error
