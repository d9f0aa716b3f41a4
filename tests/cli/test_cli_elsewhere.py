"""Where the program is not on its developer's machine: Windows, CI, a container; what helps there, help and version."""

from __future__ import annotations

import os
import pwd
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent_tui.cli import parse_options
from agent_tui.cli.arguments import EPILOG, subparsers_of
from agent_tui.cli.subcommands import build_parser
from agent_tui.paths import settle_home, user_paths, with_home
from agent_tui.tools.git.repository import version_and_commit
from tests.support.cli import REPOSITORY, Cli, answers, came
from tests.support.every import every

WINDOWS = """
import os, sys
sys.platform = "win32"
for name in ("fcntl", "termios", "tty", "pty", "pwd", "grp", "resource"):
    sys.modules[name] = None
for name in [name for name in vars(os) if name.startswith("O_") or name in ("geteuid", "getuid", "killpg", "fork")]:
    delattr(os, name)
from agent_tui.cli import main
sys.exit(main(sys.argv[1:]))
"""
COMMANDS = {parser.prog: parser.epilog or "" for parser in subparsers_of(build_parser())}
EXAMPLE = re.compile(r"agent-tui.*?(?=\s[|>]\s|\s{2,}|$)")


@pytest.mark.slow
@every("command", COMMANDS)
def test_the_help_of_every_subcommand_has_examples_that_are_right(command: str) -> None:
    title, *examples = COMMANDS[command].splitlines()
    assert title in ("example:", "examples:") and examples
    for example in examples:
        words = shlex.split(understood(example))
        assert " ".join(words).startswith(command), "an example of another command"
        values, rest = build_parser().parse_known_args(words[1:])
        assert not rest or parse_options(rest), "only serve hands on what it does not know"
        assert callable(values.run)


def test_the_help_of_the_program_has_examples_that_are_right() -> None:
    examples = EPILOG.partition("\n\n")[0].splitlines()[1:]
    assert len(examples) > 2
    assert [parse_options(shlex.split(understood(example))[1:]).prompt for example in examples][-1] == "review this"


def understood(example: str) -> str:
    """The command in a line of shell, which may say behind it what it does."""
    found = EXAMPLE.search(example)
    assert found, example
    return found[0]


def test_windows_is_told_what_to_do_instead_of_a_traceback(cli: Cli) -> None:
    for arguments in (["--version"], ["-p", "hi", "-m", "demo"], ["doctor"]):
        done = subprocess.run(
            [sys.executable, "-c", WINDOWS, *arguments], cwd=cli.project, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "agent-tui: agent-tui does not run on Windows itself. Run it in WSL (wsl --install).\n"


def test_the_version_names_commit_and_python(cli: Cli) -> None:
    first, second = cli.run("--version").out.splitlines()
    assert first == f"agent-tui {version_and_commit()}"
    assert second.startswith(f"Python {sys.version.split()[0]} on ") and second.endswith(f", in {sys.prefix}")


@pytest.mark.forms(2)
@pytest.mark.parametrize(
    ("said", "told"),
    [
        (["hi", "--cd", "~nobody-at-all/x"], "--cd"),
        (["hi", "--add-dir", "~nobody-at-all"], "nobody-at-all"),
        (["see @~nobody-at-all/x"], ""),
    ],
)
def test_the_home_of_nobody_is_a_folder_that_is_not_there(cli: Cli, said: list[str], told: str) -> None:
    outcome = cli.run("-p", *said, "-m", "demo")
    assert "Traceback" not in outcome.err and told in outcome.err


def no(*_: object, **__: object) -> None:
    raise KeyError("nobody")


def test_a_user_without_a_home_gets_an_answer(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("AGENT_TUI_HOME")
    monkeypatch.setattr(pwd, "getpwuid", no)
    cli.script(answers("Seen."))
    outcome = cli.run("-p", "hi", "-m", "demo", "--ephemeral")
    assert (outcome.code, outcome.out) == (0, "Seen.\n")


@pytest.mark.parametrize("home", ["", "relative", "."])
def test_a_home_that_is_no_whole_path_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: str) -> None:
    """Every ``~`` would mean the top of the file system, or another folder after each change of it."""
    monkeypatch.setenv("HOME", home)
    for name in ("AGENT_TUI_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_dir=str(tmp_path)))
    settle_home()
    assert (Path.home(), with_home("~/x")) == (tmp_path, tmp_path / "x")
    assert user_paths().data.is_relative_to(tmp_path)


def test_a_machine_without_temporary_files_is_told_what_it_needs(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr("tempfile.gettempdir", none)
    cli.refused(1, "-p", "hi", "-m", "demo", "--ephemeral", words="Set TMPDIR")


@pytest.mark.slow
def test_the_command_of_the_docs_reviews_without_home_and_terminal(cli: Cli, tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "ci.md").read_text("utf-8")
    shown = re.search(r"```sh\n(git diff [\s\S]*?)```", page)
    assert shown
    cli.script(came("x = 2"))
    program = tmp_path / "bin" / "agent-tui"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m agent_tui "$@"\n')
    program.chmod(0o755)
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"], ["tag", "base"]):
        (cli.project / "a.py").write_text("x = 1\n")
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=cli.project, check=True)
    (cli.project / "a.py").write_text("x = 2\n")
    commit = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "two"]
    subprocess.run(commit, cwd=cli.project, check=True)
    variables = {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(REPOSITORY),
        "BASE": "base",
        **cli.env,
    }
    done = subprocess.run(
        ["bash", "-e", "-c", shown[1].replace("anthropic/claude-sonnet-4-6", "demo")],
        cwd=cli.project,
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "Came.\n", "")
