"""Which session a run belongs to, and what it leaves behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_tui.errors import StoreUnwritableError
from agent_tui.store.database import Database
from agent_tui.store.sessions import SessionRows
from tests.support.cli import Cli, answers, came
from tests.support.forms import one_of


@pytest.mark.quick
def test_a_session_is_begun_and_gone_on_with_by_name(cli: Cli) -> None:
    cli.script(came("one") + came("two"))
    first = cli.run("-p", "one", "-m", "demo", "--session", "ci-42", "--output-format", "json").json
    second = cli.run("-p", "two", "-m", "demo", "--session", "ci-42", "--output-format", "json").json
    assert first["session_id"] == second["session_id"] == "ci-42"
    assert [s["messages"] for s in cli.run("sessions", "--json").json] == [4]
    # A name is a name, not the beginning of one.
    assert (
        cli.run("-p", "one", "-m", "demo", "--session", "ci-4", "--output-format", "json").json["session_id"] == "ci-4"
    )


def test_a_session_that_another_process_begins_in_the_same_moment_is_gone_on_with(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.script(came("one") + came("two"))
    assert cli.run("-p", "one", "-m", "demo", "--session", "ci-7").code == 0
    looked: list[str] = []
    there = SessionRows.exists

    def late(self: SessionRows, session_id: str) -> bool:
        looked.append(session_id)
        return len(looked) > 1 and there(self, session_id)

    monkeypatch.setattr(SessionRows, "exists", late)
    assert cli.run("-p", "two", "-m", "demo", "--session", "ci-7").code == 0
    assert [s["messages"] for s in cli.run("sessions", "--json").json] == [4]


@pytest.mark.slow
def test_a_session_of_another_folder_says_so_until_the_model_knows(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below, worktree = cli.project / "below", tmp_path / "worktree"
    below.mkdir()
    worktree.mkdir()
    (cli.project / ".agent-tui").mkdir()  # the project, also for who works below
    cli.script(answers(*("Seen." for _ in range(9))))
    assert cli.run("-p", "one", "-m", "demo", "--session", "moves").err == ""
    here = cli.project
    for there in (below, worktree, cli.project):
        monkeypatch.chdir(there)
        first = cli.run("-p", "two", "-m", "demo", "-r", "moves")
        assert first.error == (f"This session worked in {here}. From here on files and commands are those of {there}.")
        assert cli.run("-p", "three", "-m", "demo", "-r", "moves").err == ""
        here = there


def test_continuing_where_nothing_was_said_tells_that_it_begins(cli: Cli) -> None:
    cli.script(answers("First.", "Second."))
    first = cli.run("-p", "one", "-m", "demo", "-c")
    assert (first.code, first.out) == (0, "First.\n")
    assert first.error.startswith(f"No earlier session in {cli.project}: this one is new.")
    assert cli.run("-p", "two", "-m", "demo", "-c").err == ""


def test_an_ephemeral_session_leaves_nothing(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    cli.script(
        '[[step]]\ntool_calls = [{ name = "bash", arguments = { command = "seq 200000" } }]\n' + answers("Kept?")
    )
    flags = ("--ephemeral", "--allow", "bash(seq *)")
    assert cli.run("-p", "remember the word mango", "-m", "demo", *flags).out == "Kept?\n"
    assert cli.run("sessions", "--all", "--json").json == []
    left = [path for place in (scratch, cli.home) for path in place.rglob("*") if path.is_file()]
    assert [path for path in left if b"mango" in path.read_bytes()] == []
    assert [path for path in left if "output" in path.parts or scratch in path.parents] == []


@pytest.mark.parametrize("known", one_of([True, False]))
def test_an_ephemeral_session_needs_no_home_that_can_be_written(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """As in a container whose file system is read-only. A file where a folder belongs keeps even root from writing."""
    folder = cli.project / ".agent-tui" / "commands"
    folder.mkdir(parents=True)
    (folder / "greet.md").write_text("Say hello", "utf-8")
    if known:
        assert cli.run("-p", "hi", "-m", "demo", "--trust").code == 0
    long = 'tool_calls = [{ name = "bash", arguments = { command = "seq 200000" } }]\n'
    cli.script(f'[[step]]\nmatch = "Say hello"\n{long}' + answers("Came."))
    refuse_writing(cli.paths.database, cli.paths.cache, monkeypatch)
    flags = ("-m", "demo", "--allow", "bash(seq *)", "--output-format", "json")
    outcome = cli.run("-p", "/greet" if known else "Say hello", "--ephemeral", *flags)
    assert (outcome.code, outcome.json["text"]) == (0, "Came.")
    assert "199999" in outcome.json["tool_calls"][0]["result"]["text"]
    assert cli.run("-p", "hi", *flags).error.endswith("set AGENT_TUI_HOME to another one")


def refuse_writing(database: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder can be made where ``cache`` was, and the database says that it cannot be written."""
    if cache.exists():
        cache.rename(cache.with_name("old"))
    cache.parent.mkdir(parents=True, exist_ok=True)
    cache.write_text("in the way", "utf-8")
    opened = Database.open

    def refusing(path: Path, *more: Any) -> Database:
        if path == database:
            raise StoreUnwritableError(f"cannot store sessions in {path}; set AGENT_TUI_HOME to another one")
        return opened(path, *more)

    monkeypatch.setattr(Database, "open", refusing)


def test_a_cache_that_cannot_be_written_is_told_in_one_line(cli: Cli) -> None:
    cli.paths.cache.parent.mkdir(parents=True, exist_ok=True)
    cli.paths.cache.write_text("in the way", "utf-8")
    cli.refused(1, "-p", "hi", "-m", "demo", words=f"cannot write to {cli.paths.cache}")


def test_trust_holds_in_an_ephemeral_session(cli: Cli) -> None:
    folder = cli.project / ".agent-tui" / "commands"
    folder.mkdir(parents=True)
    (folder / "greet.md").write_text("Say hello", "utf-8")
    cli.script(came("Say hello"))
    assert cli.run("-p", "hi", "-m", "demo", "--trust").code == 0
    assert cli.run("-p", "/greet", "-m", "demo", "--ephemeral").out == "Came.\n"


@pytest.mark.slow
def test_a_session_that_is_typed_wins_over_one_of_a_variable(cli: Cli) -> None:
    cli.setenv("AGENT_TUI_SESSION", "ci")
    cli.script(answers("One.") + "[[step]]\nrepeat = 0\ntext = 'More.'\n")
    assert cli.run("-p", "hi", "-m", "demo").code == 0
    for typed in (("--ephemeral",), ("--session", "other"), ("-r", "ci"), ("-c",)):
        assert cli.run("-p", "hi", "-m", "demo", *typed).code == 0, typed
    assert {s["id"] for s in cli.run("sessions", "--json").json} == {"ci", "other"}
    cli.setenv("AGENT_TUI_EPHEMERAL", "1")
    cli.refused(2, "-p", "hi", "-m", "demo", words="cannot be combined")
    cli.refused(2, "-p", "hi", "-m", "demo", "-c", "-r", "x", words="cannot be combined")
