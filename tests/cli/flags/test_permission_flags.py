"""Rules and modes of one run, and what it says of a call that nobody may allow."""

from __future__ import annotations

import pytest

from tests.support.cli import Cli, answers

WRITE = """
[[step]]
tool_calls = [{ name = "bash", arguments = { command = "touch made" } }]
[[step]]
text = "Over."
"""


@pytest.mark.quick
def test_rules_of_the_command_line_allow_and_deny(cli: Cli) -> None:
    cli.script(WRITE)
    denied = cli.run("-p", "make it", "-m", "demo", "--output-format", "json")
    (notice,) = denied.json["notices"]
    assert denied.json["denied_calls"] == 1
    assert "--allow 'bash(touch made)'" in notice["text"] or "--allow 'bash(touch" in notice["text"]
    assert denied.err.count("\n") == 1
    assert not (cli.project / "made").exists()
    assert cli.run("-p", "make it", "-m", "demo", "--allow", "bash(touch *)", "--deny", "bash(touch made)").code == 0
    assert not (cli.project / "made").exists()
    cli.setenv("AGENT_TUI_ALLOW", '["bash(ls*)"]')
    assert cli.run("-p", "make it", "-m", "demo", "--allow", "bash(touch *)", "--fail-on-denial").code == 0
    assert (cli.project / "made").exists()


@pytest.mark.forms(2)
@pytest.mark.parametrize(
    ("mode", "call", "words"),
    [
        ("ask", 'name = "bash", arguments = { command = "touch made" }', "--allow 'bash(touch"),
        ("plan", 'name = "bash", arguments = { command = "touch made" }', "--permission-mode "),
        ("auto", 'name = "read", arguments = { path = "../beside" }', "--add-dir"),
        ("ask", 'name = "fetch", arguments = { url = "https://example.com/" }', "--allow 'fetch(example.com)'"),
    ],
)
def test_a_refusal_names_the_flag_that_would_allow_it(cli: Cli, mode: str, call: str, words: str) -> None:
    cli.script(f"[[step]]\ntool_calls = [{{ {call} }}]\n{answers('Over.')}")
    outcome = cli.run("-p", "go", "-m", "demo", "--permission-mode", mode, "--fail-on-denial")
    assert outcome.code == 56
    assert words in outcome.error
    assert f"--permission-mode {mode}" not in outcome.error


def test_a_denial_can_fail_the_run(cli: Cli) -> None:
    cli.script(WRITE)
    outcome = cli.run("-p", "make it", "-m", "demo", "--fail-on-denial")
    assert (outcome.code, outcome.out) == (56, "Over.\n")


WORKFLOW = """
[[step]]
tool_calls = [{ name = "write", arguments = { path = ".github/workflows/ci.yml", content = "on: push" } }]
[[step]]
text = "Over."
"""


def test_a_rule_that_names_the_workflows_lets_a_run_write_them(cli: Cli) -> None:
    cli.script(WORKFLOW)
    refused = cli.run("-p", "go", "-m", "demo", "--permission-mode", "auto", "--fail-on-denial")
    assert refused.code == 56 and "--allow 'edit(./.github/workflows/ci.yml)'" in refused.error
    project = cli.project / ".agent-tui"
    project.mkdir()
    (project / "config.toml").write_text('[permissions]\nallow = ["edit(./.github/workflows/**)"]\n', "utf-8")
    assert cli.run("-p", "go", "-m", "demo", "--trust", "--fail-on-denial").code == 56, (
        "the project says so, not the user"
    )
    assert cli.run("-p", "go", "-m", "demo", "--allow", "edit(./.github/workflows/**)", "--fail-on-denial").code == 0
    assert (cli.project / ".github/workflows/ci.yml").read_text() == "on: push"
