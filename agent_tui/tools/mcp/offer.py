"""What an MCP server offers, taken from the host's word for it and made safe to show and to send."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agent_tui.text.clean import plain_line
from agent_tui.tools.mcp.tool import Caller, McpTool


@dataclass(slots=True, frozen=True)
class McpResource:
    server: str
    uri: str
    name: str
    description: str = ""
    media_type: str = ""


@dataclass(slots=True, frozen=True)
class McpPrompt:
    """``arguments`` are the names of its arguments, in order; ``required`` those that must be given."""

    server: str
    name: str
    description: str = ""
    arguments: tuple[str, ...] = ()
    required: frozenset[str] = frozenset()


@dataclass(slots=True, frozen=True)
class Offer:
    """Tools by name, without doubles; resources and prompts in the server's order."""

    tools: list[McpTool] = field(default_factory=list)
    resources: list[McpResource] = field(default_factory=list)
    prompts: list[McpPrompt] = field(default_factory=list)

    def __str__(self) -> str:
        counts = [(len(self.tools), "tool"), (len(self.resources), "resource"), (len(self.prompts), "prompt")]
        return ", ".join(f"{n} {what}{'s' * (n != 1)}" for n, what in counts if n) or "offers nothing"


def read_offer(server: str, message: dict[str, Any], call: Caller) -> Offer:
    """The offer in the host's message that ``server`` is connected."""
    tools: dict[str, McpTool] = {}
    for entry in message.get("tools", []):
        tool = McpTool(server, entry, call)
        tools.setdefault(tool.schema.name, tool)
    return Offer(
        sorted(tools.values(), key=lambda t: t.schema.name),
        [_resource(server, entry) for entry in message.get("resources", [])],
        [_prompt(server, entry) for entry in message.get("prompts", [])],
    )


def _resource(server: str, entry: dict[str, Any]) -> McpResource:
    uri, kind = plain_line(entry["uri"], 2_000), plain_line(entry["type"], 100)
    return McpResource(server, uri, plain_line(entry["name"]), plain_line(entry["description"]), kind)


def _prompt(server: str, entry: dict[str, Any]) -> McpPrompt:
    arguments = entry["arguments"]
    return McpPrompt(
        server,
        str(entry["name"]),
        plain_line(entry["description"]),
        tuple(str(a["name"]) for a in arguments),
        frozenset(str(a["name"]) for a in arguments if a["required"]),
    )
