"""Every option of the Claude Agent SDK, as its client (0.2.189) writes it on the command line: taken, or refused in a
sentence."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent_tui.bootstrap import load_settings
from agent_tui.cli import parse_options
from agent_tui.cli.agent_sdk import in_flags
from agent_tui.cli.arguments import is_driven
from agent_tui.driver_options import DriverOptions
from agent_tui.errors import ConfigError
from agent_tui.headless.incoming import ControlRequest, Wrong, incoming, parse
from agent_tui.options import Options
from agent_tui.paths import user_paths
from tests.support.cli import Cli
from tests.support.every import every

pytestmark = pytest.mark.quick

BEGINS = ["--output-format", "stream-json", "--verbose", "--system-prompt", ""]
ENDS = ["--input-format", "stream-json"]
THERE = {"CLAUDE_AGENT_SDK_VERSION": "0.2.189"}


def options(*flags: str) -> Options:
    return parse_options(*in_flags([*BEGINS, *flags, *ENDS]))


def said(**values: Any) -> tuple[Mapping[str, Any], DriverOptions]:
    """Fields of the options, those of the driver named ``driver_…``."""
    driver = {name.removeprefix("driver_"): value for name, value in values.items() if name.startswith("driver_")}
    return {name: value for name, value in values.items() if not name.startswith("driver_")}, DriverOptions(**driver)


TAKEN: Mapping[str, tuple[list[str], tuple[Mapping[str, Any], DriverOptions]]] = {
    "nothing": ([], said()),
    "tools=[]": (["--tools", ""], said(driver_tools=[])),
    "tools=[…]": (["--tools", "Read,Bash,NotebookEdit"], said(driver_tools=["read", "bash", "jobs"])),
    "tools preset": (["--tools", "default"], said()),
    "allowed_tools": (
        ["--allowedTools", "Read,Bash(git *),mcp__calc__add"],
        said(allow=["read", "bash(git *)", "mcp__calc__add"]),
    ),
    "skills": (["--allowedTools", "Skill,Skill(pdf)", "--setting-sources=user,project"], said()),
    "disallowed_tools": (["--disallowedTools", "Bash,WebFetch"], said(deny=["bash", "fetch"])),
    "model": (["--model", "demo"], said(model="demo")),
    "max_turns": (["--max-turns", "3"], said(max_turns=3)),
    "max_budget_usd": (["--max-budget-usd", "0.5"], said(budget=0.5)),
    "can_use_tool": (["--permission-prompt-tool", "stdio"], said(permission_prompt_tool="stdio", can_ask=True)),
    "permission_mode": (["--permission-mode", "acceptEdits"], said(permission_mode="accept-edits")),
    "dontAsk": (
        ["--permission-prompt-tool", "stdio", "--permission-mode", "dontAsk"],
        said(permission_mode="ask", can_ask=False),
    ),
    "continue": (["--continue"], said(continue_newest=True)),
    "resume": (["--resume=abc"], said(resume="abc")),
    "session_id": (["--session-id=abc"], said(session="abc")),
    "fork_session": (["--resume=abc", "--fork-session"], said(resume="abc", driver_fork=True)),
    "settings": (
        [
            "--settings",
            '{"model": "demo", "permissions": {"allow": ["Read"], "deny": ["Bash(rm:*)"], "ask": ["WebFetch"],'
            ' "defaultMode": "plan", "additionalDirectories": ["/x"]}}',
        ],
        said(
            model="demo",
            allow=["read"],
            deny=["bash(rm *)"],
            permission_mode="plan",
            add_dirs=[Path("/x")],
            driver_ask=["fetch"],
        ),
    ),
    "sandbox": (
        ["--settings", '{"sandbox": {"enabled": true, "allowUnsandboxedCommands": false}}'],
        said(deny=["outside"], driver_sandbox="auto"),
    ),
    "sandbox off": (["--settings", '{"sandbox": {"enabled": false}}'], said(driver_sandbox="off")),
    "mcp_servers": (
        ["--mcp-config", '{"mcpServers": {"x": {"type": "stdio", "command": "true"}}}', "--strict-mcp-config"],
        said(driver_mcp_servers={"x": {"type": "stdio", "command": "true"}}, driver_strict_mcp=True),
    ),
    "mcp_servers path": (["--mcp-config", "m.json"], said(mcp_config=[Path("m.json")])),
    "add_dirs": (["--add-dir", "/a", "--add-dir", "/b"], said(add_dirs=[Path("/a"), Path("/b")])),
    "include_partial_messages": (["--include-partial-messages"], said(final=False)),
    "replay": (["--replay-user-messages"], said(driver_replays=True)),
    "setting_sources": (["--setting-sources=user,project,local"], said()),
    "thinking adaptive": (["--thinking", "adaptive", "--thinking-display", "summarized"], said()),
    "thinking disabled": (["--thinking", "disabled"], said(driver_effort="off")),
    "max_thinking_tokens=0": (["--max-thinking-tokens", "0"], said(driver_effort="off")),
    "effort": (["--effort", "high"], said(driver_effort="high")),
    "output_format": (["--json-schema", '{"type": "object"}'], said(output_schema='{"type": "object"}')),
    "system_prompt": (["--system-prompt", "Be brief."], said(system_prompt="Be brief.")),
    "system_prompt file": (["--system-prompt-file", "p.md"], said(system_prompt_file=Path("p.md"))),
    "system_prompt append": (["--append-system-prompt", "Hi"], said(append_system_prompt="Hi")),
}


@every(("flags", "means"), TAKEN.values())
def test_what_means_the_same_is_taken(flags: list[str], means: tuple[Mapping[str, Any], DriverOptions]) -> None:
    found, (plain, driver) = options(*flags), means
    usual = Options(headless=True, output_format="claude-json", input_format="stream-json", verbose=True, can_ask=False)
    for name in Options.__slots__:
        if name not in ("driver", "variables"):
            wanted = plain.get(name, "" if name == "system_prompt" else getattr(usual, name))
            assert getattr(found, name) == wanted, name
    assert found.driver == driver


@every(
    ("flags", "words"),
    [
        (["--betas", "context-1m-2025-08-07"], "betas is not taken: "),
        (["--fallback-model", "b"], "fallback_model is not taken: "),
        (["--task-budget", "1000"], "task_budget is not taken: "),
        (["--include-hook-events"], "include_hook_events is not taken: "),
        (["--resume=a", "--resume-session-at=m"], "resume_session_at is not taken: "),
        (["--resume=a", "--resume-drops-turn="], "resume_drops_turn is not taken: "),
        (["--session-mirror"], "session_store is not taken: "),
        (["--plugin-dir", "/p"], "plugins is not taken: "),
        (["--permission-prompt-tool", "mcp__a__b"], "permission_prompt_tool_name is not taken: "),
        (["--setting-sources="], "setting_sources is not taken without both"),
        (["--setting-sources=project"], "setting_sources is not taken without both"),
        (["--setting-sources=users"], "'users' is none of"),
        (["--effort", "max"], "effort 'max' is not taken"),
        (["--max-thinking-tokens", "8000"], "max_thinking_tokens, and thinking with budget_tokens, are not taken"),
        (["--thinking", "adaptive", "--thinking-display", "omitted"], "display 'omitted' is not taken"),
        (["--tools", "Read,Teleport"], "tools: 'Teleport' is no tool here"),
        (["--mcp-config", '{"mcpServers": []}'], "no object `mcpServers`"),
        (["--settings", "{"], "settings: not valid JSON"),
        (["--settings", "/no/such.json"], "settings /no/such.json: No such file"),
        (["--settings", '{"env": {"A": "1"}}'], "settings: 'env' is not taken"),
        (["--settings", '{"permissions": {"allow": "Read"}}'], "must be a list of texts"),
        (["--settings", '{"permissions": {"disableBypass": true}}'], "permissions.disableBypass is not taken"),
        (["--settings", '{"sandbox": {"autoAllowBashIfSandboxed": true}}'], "permission_mode='auto'"),
        (["--settings", '{"sandbox": {"excludedCommands": ["git"]}}'], "'excludedCommands' is not taken"),
        (["--nonsense"], "Unrecognized arguments: --nonsense."),
        (["--permission-mode", "loud"], "invalid choice: 'loud'"),
    ],
)
def test_what_does_not_is_refused_in_a_sentence(flags: list[str], words: str) -> None:
    with pytest.raises(ConfigError) as error:
        options(*flags)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_a_refusal_is_the_result_that_the_sdk_reads(cli: Cli) -> None:
    for name, value in THERE.items():
        cli.setenv(name, value)
    ran = cli.run(*BEGINS, "--betas", "b", *ENDS)
    (result,) = ran.lines
    assert ran.code == 2 and (result["type"], result["is_error"]) == ("result", True)
    assert result["errors"][0].startswith("betas is not taken: ") and result["errors"][0] in ran.error
    assert {"subtype", "duration_ms", "duration_api_ms", "num_turns", "session_id"} <= result.keys()


def test_the_sdk_is_known_by_how_it_starts_the_program() -> None:
    assert is_driven([*BEGINS, *ENDS], THERE) and is_driven(["-p", "--output-format=claude-json"], {})
    for arguments, environ in (
        ([*BEGINS, *ENDS], {}),
        (["-p", "--output-format", "stream-json", *ENDS], THERE),
        (["-p", "hi"], THERE),
        ([], THERE),
    ):
        assert not is_driven(arguments, environ), arguments


def test_what_is_said_holds_in_the_settings(cli: Cli) -> None:
    cli.config('[tools]\ndisabled = ["grep"]\n[mcp.mine]\ncommand = "true"\n')
    entries = json.dumps({"mcpServers": {"given": {"command": "true"}}})
    said = options("--tools", "Read,Grep,Edit", "--mcp-config", entries, "--strict-mcp-config")
    settings = load_settings(said, user_paths(), None)
    assert {"bash", "write", "subagent", "grep"} <= set(settings.tools.disabled)
    assert not {"read", "edit", "apply_patch"} & set(settings.tools.disabled), "what the user switched off stays off"
    assert list(settings.mcp) == ["given"]


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"forwardSubagentText": True}, "forward_subagent_text is not taken"),
        ({"excludeDynamicSections": True}, "exclude_dynamic_sections is not taken"),
        ({"systemPromptSnapshot": True}, "snapshot of a system prompt is not taken"),
    ],
)
def test_what_initialize_brings_is_refused_alike(request_: dict[str, Any], words: str) -> None:
    line = {"type": "control_request", "request_id": "1", "request": {"subtype": "initialize", **request_}}
    with pytest.raises(ValueError, match=words):
        parse(json.dumps(line).encode())
    line["request"] = {"subtype": "initialize", "hooks": None, "excludeDynamicSections": False}
    assert isinstance(parse(json.dumps(line).encode()), ControlRequest)


@every(
    ("subtype", "more"),
    [
        ("interrupt", {}),
        ("set_model", {"model": None}),
        ("set_permission_mode", {"mode": "plan"}),
        ("get_context_usage", {}),
        ("mcp_status", {}),
        ("mcp_reconnect", {"serverName": "a"}),
        ("stop_task", {"task_id": "j1"}),
        ("rewind_files", {"user_message_id": "m"}),
    ],
)
def test_every_method_of_the_client_asks_what_is_known(subtype: str, more: dict[str, Any]) -> None:
    line = {"type": "control_request", "request_id": "1", "request": {"subtype": subtype, **more}}
    assert isinstance(parse(json.dumps(line).encode()), ControlRequest)


def test_a_message_that_cannot_be_used_is_told_from_other_lines() -> None:
    lines = [b'{"type": "user", "message": {"content": [{"type": "document"}]}}', b'{"type": "control_response"}']

    async def read() -> list[bool]:
        found = [item async for item in incoming(io.BytesIO(b"\n".join(lines) + b"\n"))]
        return [item.is_message for item in found if isinstance(item, Wrong)]

    assert asyncio.run(read()) == [True, False]
