"""Flags of one run and their variables: what each does to what is asked and what is printed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agent_tui.cli.arguments import build_parser
from agent_tui.config import FLAGS, VARIABLES
from agent_tui.models.messages import TOLD_MODE
from agent_tui.options import Options
from tests.support.cli import LOOKING, Cli, answers
from tests.support.forms import one_of
from tests.support.pixel import PIXEL


@pytest.mark.quick
def test_every_flag_has_a_field_and_a_variable_of_its_own() -> None:
    fields = set(Options.__dataclass_fields__)
    assert {flag.dest for flag in FLAGS} <= fields
    assert len(VARIABLES) == len(FLAGS)
    shown = build_parser().format_help()
    assert all(spelling in shown for flag in FLAGS for spelling in flag.spellings)
    assert all(flag.group in shown for flag in FLAGS)


@pytest.mark.quick
def test_without_a_model_the_demo_does_not_stand_in(cli: Cli) -> None:
    for stdin in (b"", b"from a pipe"):
        outcome = cli.run("-p", "hi", stdin=stdin)
        assert (outcome.code, outcome.out) == (2, "")
        assert "ANTHROPIC_API_KEY" in outcome.error and "config init" in outcome.error and "-m demo" in outcome.error
    assert cli.run("sessions", "--json").json == []
    cli.setenv("AGENT_TUI_MODEL", "demo")
    assert cli.run("-p", "hi").code == 0


def test_a_model_that_is_configured_may_be_the_demo(cli: Cli) -> None:
    cli.config('default_model = "demo"\n')
    assert cli.run("-p", "hi").code == 0


@pytest.mark.slow
def test_the_last_answer_alone_is_printed(cli: Cli) -> None:
    cli.script(
        '[[step]]\ntext = "I look."\ntool_calls = [{ name = "list", arguments = { path = "." } }]\n' + answers("Done.")
    )
    assert cli.run("-p", "look", "-m", "demo").out == "Done.\n"
    verbose = cli.run("-p", "look", "-m", "demo", "--verbose")
    assert verbose.out == "Done.\n"
    assert verbose.err.splitlines()[:2] == ["I look.", "list ."]
    assert cli.run("-p", "look", "-m", "demo", "--no-final").out == "I look.\nDone.\n"


def test_a_call_that_failed_is_told_as_such(cli: Cli) -> None:
    read = r'{ name = "read", arguments = { path = "a\u001bc.txt" } }'
    write = '{ name = "write", arguments = { path = "b", content = "x" } }'
    cli.script(f"[[step]]\ntool_calls = [{read}, {write}]\n" + answers("Done."))
    told = cli.run("-p", "look", "-m", "demo", "--verbose").err
    failed = [line for line in told.splitlines() if line.startswith("Tool ")]
    assert "\x1b" not in told and failed[0].startswith("Tool read a") and ": failed: " in failed[0]
    assert failed[1].startswith("Tool write b: refused: it needs permission")


@pytest.mark.quick
def test_model_calls_are_limited(cli: Cli) -> None:
    cli.script(LOOKING)
    limited = cli.run("-p", "go", "-m", "demo", "--max-turns", "2", "--output-format", "json")
    assert (limited.code, limited.json["stop_reason"], limited.json["steps"]) == (53, "step_limit", 2)
    cli.setenv("AGENT_TUI_MAX_TURNS", "3")
    assert cli.run("-p", "go", "-m", "demo", "--output-format", "json").json["steps"] == 3
    assert cli.run("-p", "go", "-m", "demo", "--max-turns", "1", "--output-format", "json").json["steps"] == 1


def test_the_system_prompt_is_the_users(cli: Cli) -> None:
    (cli.project / "prompt.md").write_text("You are a clerk.", "utf-8")
    cli.script(answers("Came."))
    flags = ("--system-prompt-file", "prompt.md", "--append-system-prompt", "Be brief.")
    assert cli.run("-p", "hi", "-m", "demo", *flags).code == 0
    rows = {part["label"]: part for part in cli.run("export", cli.newest()).json["steps"][0]["fixed"]}
    assert rows["Appended instructions"]["row"] == "system"
    plain = cli.run("-p", "hi", "-m", "demo")
    assert plain.code == 0
    usual = {part["label"]: part for part in cli.run("export", cli.newest()).json["steps"][0]["fixed"]}
    assert rows["System prompt"]["fingerprint"] != usual["System prompt"]["fingerprint"]
    assert "Appended instructions" not in usual


def test_another_folder_can_be_worked_in(cli: Cli) -> None:
    other = cli.project.parent / "other"
    other.mkdir()
    (other / "only-here.txt").write_text("x", "utf-8")
    cli.script('[[step]]\ntool_calls = [{ name = "list", arguments = { path = "." } }]\n' + answers("Seen."))
    before = Path.cwd()
    try:
        outcome = cli.run("-p", "look", "-m", "demo", "-C", "../other", "--output-format", "json")
    finally:
        os.chdir(before)
    assert "only-here.txt" in outcome.json["tool_calls"][0]["result"]["text"]


def test_pictures_go_with_the_prompt(cli: Cli) -> None:
    (cli.project / "a.png").write_bytes(PIXEL)
    cli.script(answers("Seen."))
    assert cli.run("-p", "what is it?", "-m", "demo", "--image", "a.png").code == 0
    parts = cli.run("export", cli.newest()).json["messages"][0]["parts"]
    attached = [part for part in parts if part["type"] == "attachment" and part["name"] != TOLD_MODE]
    assert [part["media_type"] for part in attached] == ["image/png"]


def test_an_empty_answer_has_a_code_of_its_own(cli: Cli) -> None:
    cli.script('[[step]]\ntext = ""\nrepeat = 0\n')
    outcome = cli.run("-p", "hi", "-m", "demo")
    assert (outcome.code, outcome.out) == (55, "")
    assert outcome.err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.usefixtures("forked_host")
def test_servers_of_a_file_are_started(cli: Cli) -> None:
    def servers(**entries: object) -> None:
        (cli.project / "servers.json").write_text(json.dumps({"mcpServers": entries}), "utf-8")

    run = ("-p", "hi", "-m", "demo", "--mcp-config", "servers.json")
    cli.script(answers("Went on."))
    for bad, words in (
        ({"command": 3}, "MCP server x: servers.json: command must be a text"),
        ({"type": "websocket", "url": "http://x"}, "type 'websocket' is not supported"),
        ({"command": "/nowhere"}, "MCP server x"),
    ):
        servers(x=bad)
        outcome = cli.run(*run)
        assert (outcome.code, outcome.out) == (0, "Went on.\n") and words in outcome.err
    # One that never answers delays nothing, and is said.
    servers(x={"command": "sleep", "args": ["60"]})
    outcome = cli.run(*run, "--output-format", "json")
    line = "MCP server x is still starting; its tools join when it is ready."
    assert outcome.code == 0 and line in [notice["text"] for notice in outcome.json["notices"]] and line in outcome.err


@pytest.mark.usefixtures("forked_host")
@pytest.mark.parametrize(
    ("entry", "why"),
    one_of(
        [
            ({"command": "sleep", "args": ["60"], "timeout": 0.2}, "no answer within 0.2 s"),
            ({"command": "/nowhere"}, "/nowhere: no such program or folder"),
            ({"command": 3}, "command must be a text"),
            ({"command": "$no", "url": "http://x"}, "has both command and url"),
        ]
    ),
)
def test_a_run_does_not_begin_without_a_required_server(cli: Cli, entry: dict[str, object], why: str) -> None:
    (cli.project / "servers.json").write_text(json.dumps({"mcpServers": {"x": {**entry, "required": True}}}), "utf-8")
    cli.script(answers("Never said."))
    run = ("-p", "hi", "-m", "demo", "--mcp-config", "servers.json")
    outcome = cli.run(*run, "--output-format", "json")
    assert outcome.code == 57 and "Never said" not in outcome.out
    *_, last = outcome.err.splitlines()
    assert last.startswith("agent-tui: The required MCP server x is not there: ") and why in last


def test_what_subagents_used_is_in_the_bill(cli: Cli) -> None:
    cli.script("""
[[step]]
match = "delegate"
tool_calls = [{ name = "subagent", arguments = { description = "look", prompt = "look around" } }]
[[step]]
match = "look around"
text = "Found."
[[step]]
text = "Done."
""")
    data = cli.run("-p", "delegate", "-m", "demo", "--output-format", "json").json
    kinds = data["usage_by_kind"]
    assert (data["steps"], kinds["subagent"]["calls"], kinds["turn"]["calls"]) == (3, 1, 2)
    assert data["usage"]["input_tokens"] > kinds["subagent"]["input_tokens"] > 0
    assert (data["cost_usd"], data["cost_known_usd"], data["unpriced_calls"]) == (0.0, 0.0, 0)
