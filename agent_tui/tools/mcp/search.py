"""Deferred MCP tools: found with ``tool_search``, called with ``mcp_call``.

Schemas that would fill a good part of the window are not sent. The search answers with the schemas that match, and
``mcp_call`` calls any of them at once; so what is sent with every request never changes on the way, and the prompt
cache and signed reasoning stay valid.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agent_tui.errors import ToolError
from agent_tui.models.messages import Metadata
from agent_tui.models.requests import ToolSchema
from agent_tui.text.clean import plain_line
from agent_tui.text.numbers import plural
from agent_tui.tools.arguments import parse_arguments, validate
from agent_tui.tools.base import Intent, Tool, ToolContext, ToolOutcome

SEARCH, CALL = "tool_search", "mcp_call"
DEFAULT_RESULTS = 5
MAX_RESULTS = 20
NAMED = 30
"""Servers that are named to the model."""

_WORD = re.compile(r"[a-z0-9]+")


@dataclass(slots=True)
class SearchArguments:
    query: str
    limit: int = DEFAULT_RESULTS


@dataclass(slots=True)
class CallArguments:
    name: str
    arguments: Metadata | str = field(default_factory=dict)


class ToolSearchTool:
    """Its description names the servers there are: without it a model does not know what to look for."""

    group = "mcp"

    def __init__(self, tools: Callable[[], Sequence[Tool]]) -> None:
        self._tools = tools

    @property
    def schema(self) -> ToolSchema:
        return ToolSchema(
            SEARCH,
            f"Find more tools, of MCP servers ({self._servers()}), by what they do or by server; call what it finds "
            f"with {CALL}.",
            {
                "type": "object",
                "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
                "required": ["query"],
            },
        )

    def _servers(self) -> str:
        counted = Counter(tool.group.removeprefix("mcp:") for tool in self._tools())
        named = [f"{name}: {plural(count, 'tool')}" for name, count in sorted(counted.items())[:NAMED]]
        if len(counted) > NAMED:
            named.append(f"{len(counted) - NAMED} more")
        return ", ".join(named) or "none now"

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        args = validate(SearchArguments, arguments, SEARCH)
        return Intent("internal", f"search tools: {plain_line(args.query, 80)}")

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        args = validate(SearchArguments, arguments, SEARCH)
        tools = self._tools()
        found = rank(args.query, tools)[: max(1, min(args.limit, MAX_RESULTS))]
        display: Metadata = {"kind": "text", "summary": f"{len(found)} of {len(tools)} tools"}
        if not found:
            return ToolOutcome(f"No tool matches. Servers: {self._servers()}. Try other words.", display=display)
        lines = [json.dumps(_entry(tool), ensure_ascii=False, separators=(",", ":")) for tool in found]
        return ToolOutcome(f"Call one with {CALL}(name, arguments):\n" + "\n".join(lines), display=display)


class McpCallTool:
    """Stands for the tool it calls: the permissions judge that one, by its own name."""

    group = "mcp"
    schema = ToolSchema(
        CALL,
        f"Call a tool that {SEARCH} found.",
        {
            "type": "object",
            "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
            "required": ["name", "arguments"],
        },
    )

    def __init__(self, tools: Callable[[], Sequence[Tool]]) -> None:
        self._tools = tools

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        tool, inner = self._resolve(arguments)
        intent = tool.intent(inner, context)
        intent.tool = tool.schema.name
        return intent

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        tool, inner = self._resolve(arguments)
        return await tool.run(inner, context)

    def _resolve(self, arguments: Metadata) -> tuple[Tool, Metadata]:
        args = validate(CallArguments, arguments, CALL)
        inner = parse_arguments(args.arguments) if isinstance(args.arguments, str) else args.arguments
        for tool in self._tools():
            if tool.schema.name == args.name:
                return tool, inner
        raise ToolError(f"There is no tool named {plain_line(args.name, 100)!r}; find one with {SEARCH}.")


def rank(query: str, tools: Sequence[Tool]) -> list[Tool]:
    """The tools that match any word of the query, best first. Words in the name count most, then the description,
    then the names of the arguments."""
    wanted = set(_words(query))
    scored: list[tuple[float, str, Tool]] = []
    for tool in tools:
        schema = tool.schema
        properties = schema.parameters.get("properties")
        places = (
            (4.0, set(_words(schema.name))),
            (2.0, set(_words(schema.description))),
            (1.0, set(_words(" ".join(properties) if isinstance(properties, dict) else ""))),
        )
        score = 0.0
        for word in wanted:
            score += max((weight * _fit(word, words) for weight, words in places), default=0.0)
        if query.strip() == schema.name:
            score += 100.0
        if score > 0:
            scored.append((-score, schema.name, tool))
    return [tool for _, _, tool in sorted(scored, key=lambda item: item[:2])]


def _fit(word: str, words: set[str]) -> float:
    if word in words:
        return 1.0
    return (
        0.5 if len(word) > 2 and any(w.startswith(word) or (len(w) > 3 and word.startswith(w)) for w in words) else 0.0
    )


def _words(text: str) -> list[str]:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return [word for word in _WORD.findall(spaced.lower()) if word != "mcp"]


def _entry(tool: Tool) -> Metadata:
    schema = tool.schema
    return {"name": schema.name, "description": schema.description, "parameters": schema.parameters}
