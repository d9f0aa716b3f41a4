"""Tools from outside that come and go."""

from __future__ import annotations

from collections.abc import Callable

from agent_tui.models.requests import OfferedTool, ToolSchema
from agent_tui.models.usage import Limits
from agent_tui.tools.base import Tool

SEARCH = ToolSchema("search_tickets", "Searches tickets. " * 20, {"type": "object", "properties": {}})


class Tickets:
    """A server whose one tool is offered while ``on``, and can come while the model works."""

    def __init__(self, *, on: bool) -> None:
        self.on = on
        self.changed: Callable[[], None] = lambda: None
        self.starting = False

    def late(self) -> list[str]:
        return []

    def tools(self) -> list[Tool]:
        return []

    def offered(self, limits: Limits) -> list[OfferedTool]:
        return [OfferedTool(SEARCH, "mcp:tickets")] if self.on else []

    def start(self, changed: Callable[[], None]) -> None:
        self.changed = changed

    def recall(self) -> bool:
        return False

    async def close(self) -> None:
        return None

    def come(self) -> None:
        self.on = True
        self.changed()
