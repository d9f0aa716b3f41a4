"""The published client of the Claude Agent SDK drives this program: every option and every method of it.

Needs `pip install claude-agent-sdk`; what its client writes on the command line is tried without it in
`flags/test_agent_sdk.py`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Cli, answers, environment

sdk: Any = pytest.importorskip("claude_agent_sdk", reason="needs pip install claude-agent-sdk")
pytestmark = pytest.mark.slow

WRITE = """
[[step]]
tool_calls = [{ name = "write", arguments = { path = "a.txt", content = "one\\n" } }]
[[step]]
text = "Done."
"""
RESUMED = {"resume": "none"}


async def allow(*_: object) -> Any:
    return sdk.PermissionResultAllow()


async def nothing(*_: object) -> dict[str, Any]:
    return {}


def calculator() -> Any:
    """A server inside this program."""

    @sdk.tool("add", "Adds two numbers", {"a": int, "b": int})  # type: ignore[untyped-decorator, unused-ignore]
    async def add(given: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": f"It is {given['a'] + given['b']}."}]}

    @sdk.tool("fail", "Fails", {})  # type: ignore[untyped-decorator, unused-ignore]
    async def fail(given: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("out of paper")

    return sdk.create_sdk_mcp_server("calc", "1.0", [add, fail])


def values() -> Mapping[str, list[tuple[Any, str]]]:
    """For each option some values, each with words of the error; empty where the run ends well."""
    local: list[tuple[Any, str]] = [(["user", "project"], ""), ([], "setting_sources is not taken")]
    schema = {"type": "json_schema", "schema": {"type": "object"}}
    gone = {"calc": {"type": "sdk", "name": "calc", "instance": None}}
    return {
        "tools": [
            ([], ""),
            (["Read"], ""),
            ({"type": "preset", "preset": "claude_code"}, ""),
            (["Fly"], "no tool here"),
        ],
        "allowed_tools": [(["Read", "Bash(git *)", "mcp__calc__add"], "")],
        "disallowed_tools": [(["Bash"], "")],
        "system_prompt": [
            ("Be brief.", ""),
            ({"type": "preset", "preset": "claude_code", "append": "Hi"}, ""),
            ({"type": "preset", "preset": "claude_code", "exclude_dynamic_sections": True}, "is not taken"),
        ],
        "mcp_servers": [({}, ""), ({"calc": calculator()}, ""), (gone, "The required MCP server calc is not there")],
        "strict_mcp_config": [(True, "")],
        "permission_mode": [
            *((mode, "") for mode in ("default", "acceptEdits", "plan", "bypassPermissions", "dontAsk", "auto"))
        ],
        "continue_conversation": [(True, "")],
        "resume": [("none", "no such session")],
        "session_id": [("5f3c0000-0000-4000-8000-000000000001", "")],
        "fork_session": [(True, "")],
        "resume_session_at": [("m", "resume_session_at is not taken")],
        "resume_drops_turn": [("m", "resume_drops_turn is not taken")],
        "max_turns": [(3, "")],
        "max_budget_usd": [(0.5, "")],
        "task_budget": [({"total": 1000}, "task_budget is not taken")],
        "model": [("demo", ""), ("nope/x y", "Unknown provider")],
        "fallback_model": [("demo", "fallback_model is not taken")],
        "betas": [(["context-1m-2025-08-07"], "betas is not taken")],
        "permission_prompt_tool_name": [("mcp__a__b", "permission_prompt_tool_name is not taken")],
        "settings": [('{"permissions": {"deny": ["Bash"]}}', ""), ('{"env": {}}', "settings: 'env' is not taken")],
        "add_dirs": [(["/"], "")],
        "extra_args": [({"verbose": None}, ""), ({"nonsense": None}, "Unrecognized arguments: --nonsense")],
        "can_use_tool": [(allow, "")],
        "hooks": [
            ({"PreToolUse": [sdk.HookMatcher(hooks=[nothing])]}, ""),
            ({"SubagentStart": [sdk.HookMatcher(hooks=[nothing])]}, "there is no hook at 'SubagentStart'"),
        ],
        "include_partial_messages": [(True, "")],
        "include_hook_events": [(True, "include_hook_events is not taken")],
        "forward_subagent_text": [(True, "forward_subagent_text is not taken")],
        "verbatim_prompts": [(True, "")],
        "agents": [
            ({"a": sdk.AgentDefinition(description="d", prompt="p")}, ""),
            ({"a": sdk.AgentDefinition(description="d", prompt="p", maxTurns=2)}, "maxTurns is not taken"),
        ],
        "setting_sources": local,
        "skills": [("all", ""), (["pdf"], "")],
        "sandbox": [({"enabled": True}, ""), ({"excludedCommands": ["git"]}, "'excludedCommands' is not taken")],
        "plugins": [([{"type": "local", "path": "/"}], "plugins is not taken")],
        "max_thinking_tokens": [(8000, "are not taken"), (0, "")],
        "thinking": [({"type": "adaptive"}, ""), ({"type": "disabled"}, "")],
        "effort": [("high", ""), ("max", "effort 'max' is not taken")],
        "output_format": [(schema, "does not fit the schema")],
        "enable_file_checkpointing": [(True, "")],
        "session_store": [(sdk.InMemorySessionStore(), "session_store is not taken")],
        "user": [(None, "")],
    }


NOT_OURS = {
    *("cwd", "cli_path", "env", "stderr", "debug_stderr", "max_buffer_size", "client_app", "load_timeout_ms"),
    "session_store_flush",
}
"""Options that the client keeps to itself, or that are given to every run."""


def made(cli: Cli, **options: Any) -> Any:
    program = cli.home.parent / "agent-tui"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m agent_tui "$@"\n')
    program.chmod(0o755)
    given = {"model": "demo", "cli_path": str(program), "cwd": str(cli.project), "stderr": lambda _: None}
    return sdk.ClaudeAgentOptions(**{**given, "env": environment(cli.env), **options})


async def prompt(text: str = "hello") -> AsyncIterator[dict[str, Any]]:
    yield {"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": None}


def test_the_table_has_every_option() -> None:
    fields = {field.name for field in dataclasses.fields(sdk.ClaudeAgentOptions)}
    assert fields - NOT_OURS - values().keys() == set()


@pytest.mark.parametrize(
    ("option", "number"), [(name, at) for name, each in values().items() for at in range(len(each))]
)
def test_each_option_is_taken_or_refused_in_a_sentence(cli: Cli, option: str, number: int) -> None:
    value, words = values()[option][number]
    cli.script(answers("Good.") * 3)

    async def run() -> Any:
        more = RESUMED if option.startswith("resume_") else {}
        async with asyncio.timeout(60):
            return [m async for m in sdk.query(prompt=prompt(), options=made(cli, **more, **{option: value}))][-1]

    if not words:
        last = asyncio.run(run())
        assert (type(last), last.is_error, last.result) == (sdk.ResultMessage, False, "Good.")
        return
    with pytest.raises(Exception) as error:
        asyncio.run(run())
    assert words in str(error.value) and type(error.value).__name__ in ("ResultError", "Exception")


def test_each_method_of_the_client_answers(cli: Cli) -> None:
    cli.script(WRITE + answers("Again."))
    seen: list[tuple[str, str]] = []

    async def hook(told: Any, tool: str | None, _: object) -> dict[str, Any]:
        assert Path(told["transcript_path"]).is_file()
        seen.append((told["hook_event_name"], told.get("tool_name", "")))
        return {}

    async def can(tool: str, *_: object) -> Any:
        seen.append(("can_use_tool", tool))
        return sdk.PermissionResultAllow()

    async def drive() -> None:
        hooks = {event: [sdk.HookMatcher(hooks=[hook])] for event in ("PreToolUse", "PostToolUse")}
        options = made(cli, can_use_tool=can, hooks=hooks, extra_args={"replay-user-messages": None})
        async with asyncio.timeout(60), sdk.ClaudeSDKClient(options) as client:
            assert {"commands", "output_style", "models"} <= (await client.get_server_info()).keys()
            await client.query("write")
            messages = [message async for message in client.receive_response()]
            (mine, *_), last = [m for m in messages if isinstance(m, sdk.UserMessage) and m.uuid], messages[-1]
            assert last.result == "Done." and (cli.project / "a.txt").exists()
            usage = await client.get_context_usage()
            assert usage["totalTokens"] > 0 and usage["categories"] and usage["percentage"] < 100
            assert await client.get_mcp_status() == {"mcpServers": []}
            await client.set_permission_mode("acceptEdits")
            await client.set_model(None)
            await client.interrupt()
            await client.rewind_files(mine.uuid)
            assert not (cli.project / "a.txt").exists()
            refused: list[Callable[[], Any]] = [
                lambda: client.set_permission_mode("bypassPermissions"),
                lambda: client.set_model("nope/x y"),
                lambda: client.rewind_files("x"),
                lambda: client.reconnect_mcp_server("x"),
                lambda: client.toggle_mcp_server("x", False),
                lambda: client.stop_task("x"),
            ]
            for call in refused:
                with pytest.raises(Exception, match=r"[a-z]+ [a-z]+"):
                    await call()
            await client.query("again")
            assert [m async for m in client.receive_response()][-1].result == "Again."

    asyncio.run(drive())
    assert seen == [("PreToolUse", "Write"), ("can_use_tool", "Write"), ("PostToolUse", "Write")]


def test_functions_of_the_program_are_tools(cli: Cli) -> None:
    calls = "".join(
        f'[[step]]\ntool_calls = [{{ name = "mcp__calc__{name}", arguments = {{ a = 2, b = 3 }} }}]\n'
        for name in ("add", "fail")
    )
    cli.script(calls + answers("Good."))

    async def drive() -> list[tuple[str, bool]]:
        options = made(cli, mcp_servers={"calc": calculator()}, allowed_tools=["mcp__calc__*"])
        async with asyncio.timeout(60), sdk.ClaudeSDKClient(options) as client:
            await client.query("go")
            messages = [message async for message in client.receive_response()]
            (status,) = (await client.get_mcp_status())["mcpServers"]
            assert (status["status"], status["tools"]) == ("connected", [{"name": "add"}, {"name": "fail"}])
            tools = (await client.get_context_usage())["mcpTools"]
            assert [tool["name"] for tool in tools] == ["mcp__calc__add", "mcp__calc__fail"]
            await client.reconnect_mcp_server("calc")
        return [(b.content, b.is_error) for m in messages if isinstance(m, sdk.UserMessage) for b in m.content]

    assert asyncio.run(drive()) == [("It is 5.", False), ("out of paper", True)]
