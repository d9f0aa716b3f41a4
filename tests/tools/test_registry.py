from __future__ import annotations

import pytest

from agent_tui.errors import ToolError
from agent_tui.models.requests import ToolSchema
from agent_tui.tools.arguments import parse_arguments
from agent_tui.tools.base import Tool
from agent_tui.tools.builtin.find import ListTool
from agent_tui.tools.builtin.read import ReadTool
from agent_tui.tools.registry import ToolRegistry, builtin_tools
from tests.support.every import every

pytestmark = pytest.mark.quick


class Other(ReadTool):
    def __init__(self, name: str) -> None:
        self.schema = ToolSchema(name, "", {"type": "object"})


def test_the_order_of_schemas_does_not_depend_on_the_order_of_arrival() -> None:
    extra: list[Tool] = [Other("z"), Other("b"), Other("list")]
    registry = ToolRegistry([ReadTool(), ListTool()], lambda: extra, disabled=["z"])
    assert [t.schema.name for t in registry.tools()] == ["read", "list", "b"]
    assert isinstance(registry.get("list"), ListTool)
    extra.reverse()
    assert [t.schema.name for t in registry.tools()] == ["read", "list", "b"]


def test_an_unknown_tool_names_the_nearest() -> None:
    registry = ToolRegistry(builtin_tools())
    with pytest.raises(ToolError, match="Did you mean read"):
        registry.get("reed")
    with pytest.raises(ToolError, match="There are: read"):
        registry.get("\x1b[31mqqqqq")


@every("raw", ['{"a":', "[1]", "null", "nope", "[" * 100_000, '"x"'])
def test_unusable_arguments_are_refused_with_a_reason(raw: str) -> None:
    with pytest.raises(ToolError, match="arguments"):
        parse_arguments(raw)


def test_no_arguments_are_an_empty_object() -> None:
    assert parse_arguments("") == parse_arguments("  ") == parse_arguments("{}") == {}


def test_a_tool_of_a_server_that_still_starts_is_not_unknown() -> None:
    registry = ToolRegistry([ReadTool()], coming=lambda name: "docs" if name.startswith("mcp__docs__") else "")
    with pytest.raises(ToolError, match="The MCP server docs is still starting"):
        registry.get("mcp__docs__add")
    with pytest.raises(ToolError, match="There is no tool named"):
        registry.get("mcp__other__add")
