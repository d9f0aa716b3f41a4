"""The tools of a session by name, in the order their schemas are sent."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from agent_tui.config import ToolsConfig
from agent_tui.errors import ToolError
from agent_tui.models.requests import OfferedTool
from agent_tui.models.usage import Limits
from agent_tui.tools.aliases import own_name
from agent_tui.tools.base import Tool

if TYPE_CHECKING:
    from agent_tui.tools.builtin.conversation import SkillTool
    from agent_tui.tools.mcp.manager import McpManager


class ToolRegistry:
    """Built-ins first, in a fixed order, then the others by name: the schemas are byte-stable while the set is the
    same, so the provider's prompt cache holds. ``extra`` is asked each time, as servers come and go; ``coming`` names
    the server of a tool that is still starting."""

    def __init__(
        self,
        builtins: Sequence[Tool],
        extra: Callable[[], Iterable[Tool]] = lambda: (),
        disabled: Iterable[str] = (),
        coming: Callable[[str], str] = lambda tool: "",
    ) -> None:
        self._builtins = list(builtins)
        self._extra = extra
        self._disabled = set(disabled)
        self._coming = coming

    def tools(self) -> list[Tool]:
        """Every tool that may be called. A built-in wins over another tool of the same name."""
        found: dict[str, Tool] = {}
        for tool in [*self._builtins, *sorted(self._extra(), key=lambda t: t.schema.name)]:
            if tool.schema.name not in self._disabled:
                found.setdefault(tool.schema.name, tool)
        return list(found.values())

    def get(self, name: str) -> Tool:
        """The tool called ``name``, here or by other agents. Raises ToolError, naming the nearest ones."""
        tools = {tool.schema.name: tool for tool in self.tools()}
        if found := tools.get(name) or tools.get(own_name(name)):
            return found
        if server := self._coming(name):
            raise ToolError(f"The MCP server {server} is still starting: {name[:100]!r} is there once it is ready.")
        near = difflib.get_close_matches(name, tools, n=3, cutoff=0.5)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"There are: {', '.join(tools) or 'none'}."
        raise ToolError(f"There is no tool named {name[:100]!r}. {hint}")


def builtin_tools(config: ToolsConfig | None = None, types: Callable[[], Mapping[str, str]] = dict) -> list[Tool]:
    """The tools every session has, in the order they are sent (of ``edit`` and ``apply_patch`` the one that the model
    is trained on); ``config`` holds the limits they speak of, ``types`` are those of subagents with their
    descriptions."""
    from agent_tui.tools.builtin.bash import BashTool, JobsTool
    from agent_tui.tools.builtin.context import ContextTool
    from agent_tui.tools.builtin.conversation import AskTool, PresentPlanTool, SubagentTool, TodoTool
    from agent_tui.tools.builtin.edit import ApplyPatchTool, EditTool, WriteTool
    from agent_tui.tools.builtin.fetch import FetchTool
    from agent_tui.tools.builtin.find import GlobTool, GrepTool, ListTool
    from agent_tui.tools.builtin.read import ReadTool
    from agent_tui.tools.builtin.recall import RecallTool
    from agent_tui.tools.builtin.web_search import WebSearchTool, is_endpoint

    return [
        ReadTool(),
        WriteTool(),
        EditTool(),
        ApplyPatchTool(),
        ListTool(),
        GlobTool(),
        GrepTool(),
        BashTool(config=config),
        JobsTool(),
        FetchTool(),
        *([WebSearchTool()] if config is not None and is_endpoint(config) else []),
        TodoTool(),
        SubagentTool(types),
        AskTool(),
        PresentPlanTool(),
        RecallTool(),
        ContextTool(),
    ]


class SessionTools:
    """Satisfies the engine's ``ExtraTools``. The ``skill`` tool counts among the built-ins."""

    def __init__(self, mcp: McpManager, skill: SkillTool) -> None:
        self._mcp, self._skill = mcp, skill

    @property
    def starting(self) -> bool:
        return self._mcp.starting

    def late(self) -> list[str]:
        return self._mcp.late()

    def coming(self, tool: str) -> str:
        return self._mcp.coming(tool)

    def tools(self) -> list[Tool]:
        own: list[Tool] = [self._skill] if self._skill.names() else []
        return own + self._mcp.tools()

    def offered(self, limits: Limits) -> list[OfferedTool]:
        """The MCP tools of the next request."""
        return self._mcp.offered(limits)

    def start(self, changed: Callable[[], None]) -> None:
        self._mcp.start(changed)

    def recall(self) -> bool:
        """Has the tools of servers as they were last seen; False where that is not known."""
        return self._mcp.recall()

    async def close(self) -> None:
        await self._mcp.close()
