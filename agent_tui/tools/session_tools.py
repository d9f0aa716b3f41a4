"""The tools that come and go during a session: those of MCP servers, and ``skill`` while there are skills."""

from __future__ import annotations

from collections.abc import Callable

from agent_tui.models.requests import OfferedTool
from agent_tui.models.usage import Limits
from agent_tui.tools.base import Tool
from agent_tui.tools.builtin.skill import SkillTool
from agent_tui.tools.mcp.manager import McpManager


class SessionTools:
    """Satisfies the engine's ``ExtraTools``. The ``skill`` tool counts among the built-ins."""

    def __init__(self, mcp: McpManager, skill: SkillTool) -> None:
        self._mcp, self._skill = mcp, skill

    @property
    def starting(self) -> bool:
        return self._mcp.starting

    def late(self) -> list[str]:
        return self._mcp.late()

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
