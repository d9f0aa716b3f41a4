"""Whatever goes wrong is answered with one clear line and the right exit code."""

from __future__ import annotations

import os
import socket
import sqlite3
from pathlib import Path

import pytest

from tests.support.cli import Cli


def refused(cli: Cli, code: int, *arguments: str, words: str) -> None:
    outcome = cli.run(*arguments)
    assert outcome.out == ""
    assert outcome.code == code
    assert words in outcome.error
    assert outcome.error.startswith("agent-tui: ")


def test_unknown_sessions(cli: Cli) -> None:
    cli.run("-p", "hi", "-m", "demo")
    refused(cli, 2, "-p", "hi", "-r", "ses_gone", words="ses_gone")
    refused(cli, 2, "context", "--session", "ses_gone", words="ses_gone")
    refused(cli, 2, "export", "ses_gone", words="ses_gone")
    refused(cli, 2, "sessions", "delete", "ses_gone", "--yes", words="ses_gone")


@pytest.mark.slow
def test_unknown_models(cli: Cli) -> None:
    refused(cli, 2, "-p", "hi", "-m", "gpt5", words="Unknown model 'gpt5'. Did you mean openai/gpt-5")
    refused(cli, 2, "context", "-m", "gpt5", words="Unknown model")
    refused(
        cli, 2, "-p", "hi", "-m", "opnai/gpt-5", words="Unknown provider 'opnai' in model 'opnai/gpt-5'. Did you mean"
    )
    cli.config('default_model = "mine"\n[models.mine]\nmodel = "opnai/gpt-5"\n')
    refused(cli, 2, "-p", "hi", words="models.mine.model: Unknown provider 'opnai'")
    cli.config('default_model = "mine"\n[models.mine]\nmodel = "openai/gpt-5"\n')
    refused(cli, 2, "-p", "hi", "-m", "mnie", words="Unknown model 'mnie'. Did you mean mine?")
    cli.config("default_model = 'sonet'\n")
    refused(cli, 2, "-p", "hi", words="default_model: Unknown model 'sonet'. Did you mean anthropic/claude-sonnet")


@pytest.mark.forms(1)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[context\n", "not valid TOML"),
        ("[context]\ncompact = 1\n", "unknown key context.compact"),
        ("[context]\nauto_compact = 1\n", "context.auto_compact"),
        ("[permissions]\nallow = ['bash(']\n", "bash("),
        (
            "[ui]\n\ntheme = 'nrod'\n",
            "config.toml, line 3: ui.theme: no such theme: 'nrod'; allowed: auto, agent-dark, ",
        ),
    ],
)
def test_bad_configuration(cli: Cli, text: str, words: str) -> None:
    cli.config(text)
    for command in (("-p", "hi"), ("context",), ("models",), ("doctor",)):
        refused(cli, 2, *command, words=words)


def test_bad_variables(cli: Cli) -> None:
    cli.setenv("AGENT_TUI_CONTEXT__AUTO_COMPACT", "perhaps")
    refused(cli, 2, "-p", "hi", words="environment: AGENT_TUI_CONTEXT__AUTO_COMPACT")
    refused(cli, 2, "config", "show", words="AGENT_TUI_CONTEXT__AUTO_COMPACT")


def test_a_theme_of_ones_own_is_known_by_the_name_in_its_file(cli: Cli) -> None:
    cli.paths.themes.mkdir(parents=True)
    (cli.paths.themes / "file.toml").write_text('name = "mine"\n[colors]\nprimary = "#fff"\n', "utf-8")
    cli.config("[ui]\ntheme = 'mine'\n")
    assert cli.run("config", "show").code == 0
    cli.setenv("AGENT_TUI_UI__THEME", "file")
    refused(cli, 2, "config", "show", words="environment: AGENT_TUI_UI__THEME: no such theme: 'file'")


def test_files_and_folders_that_are_missing(cli: Cli) -> None:
    refused(cli, 2, "-p", "hi", "--config", "gone.toml", words="gone.toml: no such file")
    refused(cli, 2, "-p", "hi", "--add-dir", "gone", words="--add-dir gone: no such folder")


@pytest.mark.quick
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--output-format", "json"), "--output-format needs"),
        (("-p", "hi", "-r"), "--resume needs an ID"),
        (("-p", "one", "two"), "Two prompts"),
        (("-p", "hi", "-c", "-r", "abc"), "cannot be combined"),
    ],
)
def test_flags_that_do_not_go_together(cli: Cli, arguments: tuple[str, ...], words: str) -> None:
    refused(cli, 2, *arguments, words=words)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-p", "hi", "--permission-mode", "sometimes"), "accept-edits"),
        (("-p", "hi", "--output-format", "xml"), "stream-json"),
        (("--nonsense",), "--nonsense"),
        (("export", "x", "--format", "pdf"), "pdf"),
        (("config", "edit"), "edit"),
    ],
)
def test_flags_that_do_not_exist(cli: Cli, arguments: tuple[str, ...], words: str) -> None:
    outcome = cli.run(*arguments)
    assert outcome.code == 2
    assert words in outcome.err.splitlines()[-1]


@pytest.mark.quick
def test_the_chat_needs_a_terminal(cli: Cli) -> None:
    refused(cli, 2, words="needs a terminal")


def test_databases_that_cannot_be_used(cli: Cli) -> None:
    file = cli.paths.database
    file.parent.mkdir(parents=True)
    file.write_bytes(b"not a database, but long enough to be read as one" * 100)
    refused(cli, 1, "-p", "hi", "-m", "demo", words="not a session database")
    refused(cli, 1, "sessions", words="not a session database")


@pytest.mark.quick
def test_databases_of_a_newer_version(cli: Cli) -> None:
    cli.run("sessions")
    with sqlite3.connect(cli.paths.database) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    refused(cli, 1, "-p", "hi", "-m", "demo", words="newer agent-tui")
    refused(cli, 1, "context", words="newer agent-tui")


@pytest.mark.quick
def test_a_data_folder_that_cannot_be_made(cli: Cli) -> None:
    (cli.home).write_text("a file", "utf-8")
    refused(cli, 1, "sessions", words="cannot store sessions")


@pytest.mark.slow
def test_a_session_whose_model_is_gone(cli: Cli) -> None:
    cli.config('[models.mine]\nmodel = "demo"\n')
    assert cli.run("-p", "hi", "-m", "mine").code == 0
    session = cli.newest()
    cli.config("")
    refused(cli, 2, "-p", "more", "-r", session, words="choose another with -m. Unknown model 'mine'")
    refused(cli, 2, "-p", "more", "-c", words="'mine'")
    assert cli.run("-p", "more", "-r", session, "-m", "demo").code == 0
    refused(cli, 2, "-p", "more", "-r", session, words="No model is configured")


def test_a_server_that_does_not_answer(cli: Cli) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        cli.config(f"""
[agent]
retries = 1
[models.own]
model = "openai/x"
api_base = "http://127.0.0.1:{port}/v1"
api_key_env = "OWN_KEY"
context_window = 8000
""")
        cli.setenv("OWN_KEY", "sk-secret-value")
        outcome = cli.run("-p", "hi", "-m", "own", "--output-format", "json")
    assert outcome.code == 75
    (notice,) = [n for n in outcome.json["notices"] if n["level"] == "error"]
    assert notice["code"] == "connection"
    assert f"No connection to the server at http://127.0.0.1:{port}/v1." in notice["text"]
    assert "api_base" in notice["text"]
    assert "sk-secret" not in outcome.err + outcome.out + cli.paths.log_file.read_text("utf-8")


def test_exports_that_cannot_be_written(cli: Cli, tmp_path: Path) -> None:
    cli.run("-p", "hi", "-m", "demo")
    refused(cli, 1, "export", cli.newest(), "-o", str(tmp_path / "gone" / "x.json"), words="Cannot write")


@pytest.mark.quick
def test_an_export_writes_over_nothing_unasked(cli: Cli, tmp_path: Path) -> None:
    cli.run("-p", "hi", "-m", "demo")
    file, session = tmp_path / "kept.md", cli.newest()
    file.write_text("mine", "utf-8")
    refused(cli, 2, "export", session, "--format", "md", "-o", str(file), words="kept.md already exists")
    assert file.read_text("utf-8") == "mine"
    assert cli.run("export", session, "--format", "md", "-o", str(file), "--force").code == 0
    assert file.read_text("utf-8").startswith("# ")
    link, folder = cli.project / "link.md", cli.project / "folder"
    link.symlink_to(file)
    folder.symlink_to(tmp_path)
    for place in (link, folder / "new.md"):
        refused(cli, 1, "export", session, "-o", str(place), "--force", words="is a link")
    assert file.read_text("utf-8").startswith("# ") and not (tmp_path / "new.md").exists()
    assert cli.run("export", session, "-o", os.devnull).code == 0
    assert cli.run("export", session, "--format", "md", "-o", "-").out.startswith("# ")


UNWRITABLE = Path("/sys")
"""Nobody makes folders here, not even root: a home in it is one that cannot be written."""


@pytest.mark.skipif(not UNWRITABLE.is_dir(), reason="there is no folder that nobody can write in")
def test_looking_needs_no_home_that_can_be_written(cli: Cli) -> None:
    cli.setenv("AGENT_TUI_HOME", str(UNWRITABLE / "agent-tui"))
    doctor = cli.run("doctor")
    said = {line.split()[1]: line for line in doctor.out.splitlines()}
    assert (doctor.code, doctor.err) == (1, "")
    assert said["sessions"].startswith("fail  sessions") and "AGENT_TUI_HOME" in said["sessions"]
    assert said["log"].startswith("warn ") and "nothing is logged" in said["log"]
    assert {"model", "sandbox", "terminal"} <= said.keys()
    for command in (("context", "-m", "demo"), ("models",), ("config", "show"), ("sessions",), ("sessions", "check")):
        outcome = cli.run(*command)
        assert outcome.code == 0, (command, outcome)
        assert "damaged" not in outcome.out
    refused(cli, 1, "sessions", "delete", "ses_x", "--yes", words=f"cannot store sessions in {UNWRITABLE}")


def test_deleting_asks(cli: Cli) -> None:
    cli.run("-p", "hi", "-m", "demo")
    refused(cli, 2, "sessions", "delete", cli.newest(), words="--yes")
