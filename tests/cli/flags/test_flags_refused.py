"""What a flag or its variable cannot take is one line that names it."""

from __future__ import annotations

import pytest

from tests.support.cli import Cli


@pytest.mark.quick
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-p", "hi", "--max-turns", "0"), "--max-turns 0: must be at least 1"),
        (("-p", "hi", "--session", "../x"), "--session '../x'"),
        (("-p", "hi", "--session", "a", "-c"), "cannot be combined"),
        (("-p", "hi", "--ephemeral", "-r", "x"), "cannot be combined"),
        (("-p", "hi", "-C", "gone"), "--cd gone: No such file"),
        (("-p", "hi", "--allow", "bash("), "--allow: the rule 'bash('"),
        (("-p", "hi", "--deny", "(x)"), "--deny: the rule '(x)'"),
        (("-p", "hi", "--mcp-config", "gone.json"), "gone.json: no such file"),
        (("-p", "hi", "--system-prompt-file", "gone.md"), "--system-prompt-file gone.md cannot be read: No such file"),
        (("-p", "hi", "--output-schema", "gone.json"), "--output-schema gone.json: No such file"),
        (("-p", "hi", "--image", "gone.png"), "--image gone.png cannot be read: No such file"),
        (("-p", "hi", "--input-format", "stream-json"), "needs --output-format stream-json"),
        (("-p", "/compcat", "-m", "demo"), "Unknown command /compcat. Did you mean /compact"),
        (("-p", "/memory", "-m", "demo"), "Unknown command /memory. Edit AGENTS.md"),
        (("-p", "/bashes", "-m", "demo"), "/bashes is a chat command"),
        (("-p", "hi", "--session", ""), "--session ''"),
        (("--verbose",), "--verbose needs -p/--print"),
        (("one", "two"), "Two prompts"),
        (("-",), "needs -p"),
    ],
)
def test_what_does_not_fit_is_one_line(cli: Cli, arguments: tuple[str, ...], words: str) -> None:
    more = ("-m", "demo") if "-m" not in arguments else ()
    cli.refused(2, *arguments, *more, words=words)


@pytest.mark.parametrize("flag", ["-C", "--add-dir", "--output-schema", "--image", "--mcp-config"])
def test_an_empty_path_is_a_variable_that_was_not_set(cli: Cli, flag: str) -> None:
    outcome = cli.run("-p", "hi", "-m", "demo", flag, "")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.splitlines()[-1].endswith(f"{flag if flag != '-C' else '-C/--cd'}: is empty")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("AGENT_TUI_MAX_TURNS", "many", "AGENT_TUI_MAX_TURNS must be a number"),
        ("AGENT_TUI_EPHEMERAL", "perhaps", "AGENT_TUI_EPHEMERAL must be 1 or 0"),
        ("AGENT_TUI_OUTPUT_FORMAT", "xml", "AGENT_TUI_OUTPUT_FORMAT must be one of"),
        ("AGENT_TUI_ALLOW", "[1]", "AGENT_TUI_ALLOW must be a JSON list"),
        ("AGENT_TUI_MAX_TURNS", "-3", "environment: AGENT_TUI_MAX_TURNS -3: must be at least 1"),
        ("AGENT_TUI_SESSION", "../x", "environment: AGENT_TUI_SESSION '../x'"),
        ("AGENT_TUI_CD", "gone", "environment: AGENT_TUI_CD gone: No such"),
        ("AGENT_TUI_DENY", "nothing(x)", "environment: AGENT_TUI_DENY: 'nothing(x)' names no tool"),
        ("AGENT_TUI_IMAGE", "gone.png", "environment: AGENT_TUI_IMAGE gone.png cannot be read: No such"),
        ("AGENT_TUI_MCP_CONFIG", "gone.json", "environment: AGENT_TUI_MCP_CONFIG gone.json: no such"),
        ("AGENT_TUI_OUTPUT_SCHEMA", "gone.json", "environment: AGENT_TUI_OUTPUT_SCHEMA gone.json: No such"),
        (
            "AGENT_TUI_SYSTEM_PROMPT_FILE",
            "gone.md",
            "environment: AGENT_TUI_SYSTEM_PROMPT_FILE gone.md cannot be read:",
        ),
        ("AGENT_TUI_ADD_DIR", "gone", "environment: AGENT_TUI_ADD_DIR gone: no such"),
        ("AGENT_TUI_CONFIG", "gone.toml", "gone.toml: no such file"),
    ],
)
def test_variables_that_do_not_fit_are_one_line(cli: Cli, name: str, value: str, words: str) -> None:
    cli.setenv(name, value)
    cli.refused(2, "-p", "hi", "-m", "demo", words=words)


@pytest.mark.quick
def test_what_is_typed_is_named_as_it_was_typed(cli: Cli) -> None:
    cli.setenv("AGENT_TUI_CD", str(cli.project))
    for typed in (("-C", "gone"), ("-Cgone",), ("--cd", "gone"), ("--cd=gone",)):
        cli.refused(2, "-p", "hi", "-m", "demo", *typed, words="agent-tui: --cd gone: No such")
