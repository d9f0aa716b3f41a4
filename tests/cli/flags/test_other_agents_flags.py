"""Flags, modes and rules as other agents call them: taken where they mean the same, else refused with what is near."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent_tui.cli import parse_options
from agent_tui.cli.other_agents import _NEAREST, _WORDS
from agent_tui.commands import registry
from agent_tui.config import FLAGS
from agent_tui.errors import ConfigError
from agent_tui.tools.rules.foreign import own_rules
from tests.support.cli import Cli, answers
from tests.support.every import every

WRITE = """
[[step]]
tool_calls = [{ name = "bash", arguments = { command = "touch made" } }]
[[step]]
text = "Over."
"""


@every(
    ("theirs", "ours"),
    [
        (["-p", "hi", "--permission-mode", "acceptEdits"], ["-p", "hi", "--permission-mode", "accept-edits"]),
        (["-p", "hi", "--permission-mode=bypassPermissions"], ["-p", "hi", "--permission-mode", "bypass"]),
        (["-p", "hi", "--permission-mode", "default"], ["-p", "hi", "--permission-mode", "ask"]),
        (["-p", "hi", "--approval-mode", "auto_edit"], ["-p", "hi", "--permission-mode", "accept-edits"]),
        (["-p", "hi", "--dangerously-skip-permissions"], ["-p", "hi", "--permission-mode", "bypass"]),
        (["--yolo", "-p", "hi"], ["-p", "hi", "--permission-mode", "bypass"]),
        (["--prompt", "hi", "--max-budget-usd", "2.5"], ["-p", "hi", "--budget", "2.5"]),
        (["-p", "hi", "--max-budget-usd=2.5"], ["-p", "hi", "--budget=2.5"]),
        (["-p", "hi", "--json-schema", "a.json"], ["-p", "hi", "--output-schema", "a.json"]),
        (["-p", "hi", "--session-id", "abc", "--cwd", "/"], ["-p", "hi", "--session", "abc", "--cd", "/"]),
        (["-p", "hi", "--no-session-persistence"], ["-p", "hi", "--ephemeral"]),
        (["-p", "hi", "--include-directories", "/a,/b"], ["-p", "hi", "--add-dir", "/a", "--add-dir", "/b"]),
        (["exec", "--full-auto", "--skip-git-repo-check", "hi"], ["-p", "hi", "--permission-mode", "auto"]),
        (["run", "hi", "-m", "demo"], ["-p", "hi", "-m", "demo"]),
        (
            ["-p", "hi", "--allowedTools", "Bash(git diff:*),Read,Edit(src/**)", "--disallowed-tools", "WebFetch"],
            ["-p", "hi", "--allow=bash(git diff *)", "--allow=read", "--allow=edit(src/**)", "--deny=fetch"],
        ),
        (
            ["--allowedTools", "Bash(npm test)", "Edit", "-p", "hi"],
            ["-p", "hi", "--allow=bash(npm test)", "--allow=edit"],
        ),
        (["-p", "--allowedTools", "Read", "fix it"], ["-p", "--allow", "read", "fix it"]),
    ],
)
def test_what_means_the_same_is_taken(theirs: list[str], ours: list[str]) -> None:
    assert parse_options(theirs) == parse_options(ours)


@every(
    ("given", "rules"),
    [
        ("Bash(git log:*) Bash(git show:*)", ["bash(git log *)", "bash(git show *)"]),
        ("Bash(*), Bash", ["bash", "bash"]),
        ("Read(//etc/hosts),Read(/docs/**),Edit(~/x)", ["read(/etc/hosts)", "read(./docs/**)", "edit(~/x)"]),
        ("WebFetch(domain:docs.python.org)", ["fetch(docs.python.org)"]),
        ("mcp__github,mcp__github__get_issue", ["mcp__github__*", "mcp__github__get_issue"]),
        ("Task TodoWrite LS Grep Glob Write MultiEdit", ["subagent", "todo", "list", "grep", "glob", "write", "edit"]),
        ("WebSearch,NotebookEdit,Read", ["web_search", "read"]),
        ("Bash(echo (a, b):*)", ["bash(echo (a, b) *)"]),
        ("bash(git diff *)", ["bash(git diff *)"]),
    ],
)
def test_lists_of_tools_are_rules(given: str, rules: list[str]) -> None:
    assert own_rules(given) == rules


@pytest.mark.parametrize("given", ["Bash(ls", "Bash)ls(", "(x)"])
def test_a_list_that_cannot_be_read_is_no_rule(given: str) -> None:
    with pytest.raises(ConfigError):
        own_rules(given)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-p", "hi", "--bugdet", "1"), "did you mean --budget?"),
        (("-p", "hi", "--permision-mode=plan"), "did you mean --permission-mode?"),
        (("-p", "hi", "--sandbox", "read-only"), "use --permission-mode plan"),
        (("-p", "hi", "--json"), "use --output-format json"),
        (("-p", "hi", "--effort", "high"), "use /thinking in the chat"),
        (("-p", "hi", "--max-budget-usd", "x"), "--budget: must be a number, not 'x'"),
        (("-p", "hi", "--max-turns", "x"), "--max-turns: must be a whole number, not 'x'"),
        (("-p", "hi", "--permission-mode", "dontAsk"), "invalid choice: 'dontAsk'"),
        (("sesions",), "Did you mean agent-tui sessions?"),
        (("docter",), "Did you mean agent-tui doctor?"),
        (("login",), "Use agent-tui auth set PROVIDER."),
        (("resume", "abc"), "Use agent-tui --resume."),
        (("sessions", "--serch"), "did you mean --search?"),
        (("-p", "hi", "--allowedTools", "Bahs(ls)"), "did you mean bash?"),
    ],
)
def test_the_rest_is_refused_with_what_is_near(cli: Cli, arguments: tuple[str, ...], words: str) -> None:
    outcome = cli.run(*arguments)
    assert (outcome.code, outcome.out) == (2, "") and words in outcome.err


def test_what_is_near_exists(cli: Cli) -> None:
    """A flag of ours or a command of ours that is named instead of one of others is there."""
    said = " ".join([*_NEAREST.values(), *_WORDS.values()])
    flags = {f"--{flag.name}" for flag in FLAGS}
    assert set(re.findall(r"--[a-z][\w-]*", said)) <= flags
    assert all(registry.find(name) for name in re.findall(r"(?<![\w/])/([a-z]+)\b", said))
    for flag in ("--bare", "--chrome", "--tmux", "--teleport"):
        assert "did you mean" not in cli.run("-p", "hi", flag).err


def test_one_word_may_be_a_message_all_the_same() -> None:
    for words in (["--", "sesions"], ["hello"], ["sessions?"], ["-p", "sesions"]):
        assert parse_options(words).prompt == words[-1]


@pytest.mark.slow
def test_rules_of_others_allow_what_they_say(cli: Cli) -> None:
    cli.script(WRITE)
    allowed = ("--allowedTools", "Bash(touch:*) Read")
    assert cli.run("-p", "go", "-m", "demo", *allowed, "--disallowedTools", "Bash(touch made)").code == 0
    assert not (cli.project / "made").exists()
    assert cli.run("-p", "go", "-m", "demo", *allowed, "--fail-on-denial").code == 0
    assert (cli.project / "made").exists()


def test_a_schema_may_be_given_as_it_is(cli: Cli, tmp_path: Path) -> None:
    cli.script(answers('{"a": 1}', '{"a": 1}'))
    schema = '{"$schema": "https://json-schema.org/draft/2020-12/schema", "required": ["a"]}'
    for flag in ("--json-schema", "--output-schema"):
        outcome = cli.run("-p", "hi", "-m", "demo", flag, schema, "--output-format", "json")
        assert (outcome.code, outcome.json["output"]) == (0, {"a": 1})
    cli.refused(2, "-p", "hi", "-m", "demo", "--json-schema", '{"type": 7}', words="not a JSON Schema")
