from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.config import McpServer
from agent_tui.models.requests import ToolSchema
from agent_tui.text.clean import plain
from agent_tui.tools.mcp.config import Plan, ProjectServers, plan_servers, servers_in
from agent_tui.tools.mcp.names import SCHEMA_LIMIT, safe_schema
from agent_tui.tools.mcp.protocol import ToolAnswer, ToolEntry
from agent_tui.tools.mcp.tool import McpTool, rank
from agent_tui.tools.mcp_names import server_part, tool_name
from tests.support.every import every

pytestmark = pytest.mark.quick


def plans(root: Path, configured: dict[str, McpServer] | None = None, trusted: bool = True) -> dict[str, Plan]:
    environ = {"TOKEN": "t0p", "EMPTY": ""}
    file = root / ".mcp.json"
    entries, problem = servers_in(file.read_text()) if file.exists() else ({}, "")
    brought = ProjectServers(entries, {} if trusted else dict.fromkeys(entries, ""), problem)
    return {plan.name: plan for plan in plan_servers(configured or {}, root, brought, environ)}


def write(root: Path, servers: Any) -> None:
    (root / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))


def test_variables_are_filled_in(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "web": {"type": "http", "url": "https://x/${PLACE:-mcp}", "headers": {"Authorization": "Bearer ${TOKEN}"}},
            "run": {"command": "${MISSING}", "args": []},
            "local": {
                "command": "run",
                "args": ["${EMPTY:-x}", "$TOKEN"],
                "cwd": "sub",
                "timeout": 3,
                "disabled": False,
            },
        },
    )
    found = plans(tmp_path)
    web, local = found["web"].server, found["local"].server
    assert web is not None and web.url == "https://x/mcp" and web.headers == {"Authorization": "Bearer t0p"}
    assert local is not None and local.args == ["", "$TOKEN"] and local.timeout == 3
    assert local.cwd == str(tmp_path / "sub")
    assert found["run"].state == "failed" and "MISSING is not set" in found["run"].detail


@every(
    "entry",
    [
        {"oauth": {"clientId": "us", "clientSecret": "${TOKEN}", "callbackPort": 8123}},
        {"client_id": "us", "client_secret": "${TOKEN}", "callback_port": 8123},
    ],
)
def test_how_a_sign_in_knows_us_is_read_in_both_spellings(tmp_path: Path, entry: Any) -> None:
    write(tmp_path, {"web": {"url": "https://x/mcp", **entry}})
    web = plans(tmp_path)["web"].server
    assert web is not None and (web.client_id, web.client_secret, web.callback_port) == ("us", "t0p", 8123)


@every(
    ("entry", "problem"),
    [
        ("x", "oauth must be an object"),
        ({"clientId": 3}, "clientId must be a text"),
        ({"callbackPort": "80"}, "callbackPort must be a port"),
        ({"callbackPort": True}, "callbackPort must be a port"),
        ({"callbackPort": 70_000}, "callbackPort must be a port"),
    ],
)
def test_a_bad_oauth_is_a_failed_server(tmp_path: Path, entry: Any, problem: str) -> None:
    write(tmp_path, {"web": {"url": "https://x/mcp", "oauth": entry}})
    assert plans(tmp_path)["web"].detail == f".mcp.json: {problem}"


def test_the_configuration_wins_and_an_untrusted_file_is_only_named(tmp_path: Path) -> None:
    write(tmp_path, {"a": {"command": "theirs"}, "b": {"command": "theirs"}})
    found = plans(tmp_path, {"a": McpServer(command="mine")}, trusted=False)
    assert found["a"].server is not None and found["a"].server.command == "mine"
    assert found["b"].state == "untrusted" and found["b"].server is None and "/trust" in found["b"].detail


@every(
    ("entry", "problem"),
    [
        (3, "must be an object"),
        ({}, "needs command or url"),
        ({"command": 3}, "command must be a text"),
        ({"command": "x", "args": "y"}, "args must be a list"),
        ({"command": "x", "env": {"a": 1}}, "env must be an object"),
        ({"type": "websocket", "url": "http://x"}, "'websocket' is not supported; stdio, http and sse are"),
        ({"type": ["sse"], "url": "http://x"}, "is not supported"),
        ({"type": "sse", "command": "x"}, "its type sse needs a url"),
        ({"type": "stdio", "url": "http://x"}, "its type stdio needs a command"),
        ({"url": "file:///etc/passwd"}, "Only http:// and https://"),
        ({"url": "https://user:hunter2@x.org/"}, "user name or password"),
        ({"command": "x\0y"}, "NUL"),
    ],
)
def test_a_bad_entry_is_a_failed_server(tmp_path: Path, entry: Any, problem: str) -> None:
    write(tmp_path, {"bad": entry, "good": {"command": "x"}})
    found = plans(tmp_path)
    assert found["bad"].state == "failed" and problem in found["bad"].detail
    assert found["good"].state == "starting"


@every("text", ["nope", "[]", '{"mcpServers": 3}', "[" * 100_000])
def test_a_bad_file_is_shown_as_a_failed_server(tmp_path: Path, text: str) -> None:
    (tmp_path / ".mcp.json").write_text(text)
    found = plans(tmp_path, {"a": McpServer(command="x")})
    assert found[".mcp.json"].state == "failed" and found["a"].state == "starting"


def test_plain_names_stay_as_they_are() -> None:
    assert tool_name("github", "create-issue_2") == "mcp__github__create-issue_2"


@pytest.mark.slow
@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=80), st.text(max_size=80))
def test_names_are_within_the_limits_and_never_collide(a: str, x: str, b: str, y: str) -> None:
    one, two = tool_name(a, x), tool_name(b, y)
    for name in (one, two):
        assert len(name) <= 64 and name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    assert (one == two) == ((a, x) == (b, y))


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_a_rule_for_one_server_never_covers_another(rule: str, server: str, tool: str) -> None:
    if server_part(rule) != server_part(server):
        assert not tool_name(server, tool).startswith(f"mcp__{server_part(rule)}__")


def test_descriptions_are_plain() -> None:
    assert plain("a\x1b]8;;http://x\x07b\u202e\u2066\U000e0041\x00\x9bc\n d", 100) == "ab\n d"
    assert plain("x" * 30, 10) == "x" * 9 + "…"


@every("schema", [None, [], "x", {}, {"type": "string"}, {"properties": []}])
def test_a_schema_is_always_an_object(schema: Any) -> None:
    safe = safe_schema(schema)
    assert safe["type"] == "object" and isinstance(safe["properties"], dict)


def test_huge_and_deep_schemas_are_not_sent() -> None:
    deep: dict[str, Any] = {}
    for _ in range(500):
        deep = {"properties": deep}
    huge = {"properties": {f"p{n}": {"description": "x" * 100} for n in range(SCHEMA_LIMIT // 100)}}
    for schema in (deep, huge):
        assert safe_schema(schema) == {"type": "object", "properties": {}, "additionalProperties": True}
    kept = safe_schema({"$schema": "x", "properties": {"a": {"description": "\u202ehi\x1b[1m"}}})
    assert kept == {"properties": {"a": {"description": "hi"}}, "type": "object"}


def test_the_search_ranks_names_over_descriptions() -> None:
    async def call(server: str, tool: str, arguments: dict[str, Any], progress: Callable[[str], None]) -> ToolAnswer:
        return ToolAnswer("")

    def tool(name: str, description: str, **properties: Any) -> McpTool:
        return McpTool("jira", ToolEntry(name, description, {"properties": properties}, False), call)

    tools = [
        tool("createIssue", "Make one"),
        tool("list_boards", "Boards of an issue tracker"),
        tool("attach", "Adds a file", issue={"type": "string"}),
        tool("ping", "Alive?"),
    ]

    def found(query: str) -> list[str]:
        return [t.schema.name.removeprefix("mcp__jira__") for t in rank(query, tools)]

    assert found("create issues") == ["createIssue", "list_boards", "attach"]
    assert found("jira") == ["attach", "createIssue", "list_boards", "ping"]
    assert rank("zebra", tools) == [] and rank("", tools) == []
    assert isinstance(tools[0].schema, ToolSchema)
