"""Names of MCP servers' tools are built and taken apart in one place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import agent_tui
from agent_tui.tools import mcp_names as owner
from agent_tui.tools.mcp_names import (
    is_mcp_name,
    server_part,
    short_name,
    split_tool_name,
    tool_name,
    tool_prefix,
    with_all_tools,
)
from tests.support.every import every

pytestmark = pytest.mark.quick

SERVERS = ["docs", "my-server", "a__b", "_x_", "mcp", "mcp__docs", "über", "s" * 60, "."]


def test_no_other_file_of_the_program_knows_the_prefix() -> None:
    root = Path(agent_tui.__file__).parent
    knowing = [path for path in root.rglob("*.py") if "mcp__" in path.read_text("utf-8")]
    assert knowing == [Path(owner.__file__)]


@every("server", SERVERS)
@every("tool", ["add", "a__b", "__x", "mcp__y", "get.it", "t" * 90])
def test_what_was_built_is_taken_apart(server: str, tool: str) -> None:
    name = tool_name(server, tool)
    assert is_mcp_name(name) and name.startswith(tool_prefix(server))
    part, called = split_tool_name(name)
    assert part == server_part(server) and name == tool_prefix(server) + called
    assert short_name(name) == f"{part}__{called}" and with_all_tools(name) == name


@every("server", SERVERS)
def test_a_name_is_what_every_provider_takes_and_is_of_one_tool_alone(server: str) -> None:
    tools = ["get.it", "get_it", "get-it", "g\u00e9t", "", "t" * 90, "t" * 91, "t" * 64, "t" * 65]
    names = [tool_name(server, tool) for tool in tools]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names) and len({*names}) == len(tools)


@every(
    ("name", "parts", "whole"),
    [
        ("mcp__docs", ("docs", ""), "mcp__docs__*"),
        ("mcp__docs__", ("docs", ""), "mcp__docs__*"),
        ("mcp__docs__*", ("docs", "*"), "mcp__docs__*"),
        ("mcp__mcp", ("mcp", ""), "mcp__mcp__*"),
        ("docs__add", ("docs", "add"), "docs__add"),
        ("mcp__", ("", ""), "mcp__*"),
    ],
)
def test_names_that_users_write(name: str, parts: tuple[str, str], whole: str) -> None:
    assert split_tool_name(name) == parts
    assert with_all_tools(name) == whole
