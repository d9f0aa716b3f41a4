"""A tool of an MCP server as the model, the permissions and the transcript see it."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field

from agent_tui.errors import ToolError
from agent_tui.models.messages import AttachmentPart, Metadata
from agent_tui.models.requests import ToolSchema
from agent_tui.records import dataclass
from agent_tui.text.clean import pictured, pictured_line, plain, plain_line, program_output
from agent_tui.text.numbers import plural
from agent_tui.tools.arguments import INTEGER, TEXT, parameters, parse_arguments, validate
from agent_tui.tools.base import Intent, ServerTool, Tool, ToolContext, ToolOutcome
from agent_tui.tools.mcp.names import DESCRIPTION_LIMIT, safe_schema, server_group
from agent_tui.tools.mcp.protocol import Image, ToolAnswer, ToolEntry
from agent_tui.tools.mcp_names import CALL, READ, SEARCH, tool_name
from agent_tui.tools.output import cap

READ_RESOURCE = "read_resource"
"""What stands in rules for reading any resource of a server."""
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

    def __init__(
        self,
        tools: Callable[[], Sequence[Tool]],
        coming: Callable[[], Sequence[str]],
        settled: Callable[..., Awaitable[None]],
    ) -> None:
        self._tools, self._coming, self._settled = tools, coming, settled

    @property
    def schema(self) -> ToolSchema:
        return ToolSchema(
            SEARCH,
            f"Find more tools, of MCP servers ({self._servers()}), by what they do or by server; call what it finds "
            f"with {CALL}.",
            parameters({"query": TEXT, "limit": INTEGER}, "query"),
        )

    def _servers(self) -> str:
        counted = Counter(tool.group.removeprefix("mcp:") for tool in self._tools())
        named = [f"{name}: {plural(count, 'tool')}" for name, count in sorted(counted.items())[:NAMED]]
        if len(counted) > NAMED:
            named.append(f"{len(counted) - NAMED} more")
        named += [f"{plain_line(name, 60)}: still starting" for name in self._coming()[:NAMED]]
        return ", ".join(named) or "none now"

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        args = validate(SearchArguments, arguments, SEARCH)
        return Intent("internal", f"search tools: {plain_line(args.query, 80)}")

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        args = validate(SearchArguments, arguments, SEARCH)
        if coming := self._coming():
            context.emit(f"waiting for {', '.join(plain_line(name, 60) for name in coming[:NAMED])}\n")
            await self._settled(*coming)
        tools = self._tools()
        found = rank(args.query, tools)[: max(1, min(args.limit, MAX_RESULTS))]
        display: Metadata = {"kind": "text", "summary": f"{len(found)} of {len(tools)} tools"}
        if not found:
            return ToolOutcome(f"No tool matches. Servers: {self._servers()}. Try other words.", display=display)
        lines = [tool.schema.text for tool in found]
        return ToolOutcome(f"Call one with {CALL}(name, arguments):\n" + "\n".join(lines), display=display)


class McpCallTool:
    """Stands for the tool it calls: the permissions judge that one, by its own name."""

    group = "mcp"
    schema = ToolSchema(
        CALL,
        f"Call a tool that {SEARCH} found.",
        parameters({"name": TEXT, "arguments": {"type": "object"}}, "name", "arguments"),
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


@dataclass(slots=True)
class ResourceArguments:
    server: str
    uri: str


class McpReadTool:
    """Reads what a result links to, or what a server lists. Rules know it as ``mcp(server.read_resource)``."""

    group = "mcp"
    schema = ToolSchema(
        READ,
        "Read a resource of an MCP server: what stands in its results as [resource … uri].",
        parameters({"server": TEXT, "uri": TEXT}, "server", "uri"),
    )

    def __init__(self, server: Callable[[str], str], read: Callable[[str, str], Awaitable[ToolAnswer]]) -> None:
        self._server, self._read = server, read

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        args = validate(ResourceArguments, arguments, READ)
        server, uri = self._server(args.server), pictured(args.uri)
        display = {"kind": "text", "text": f"{plain_line(server, 60)}\n{uri}"}
        called = ServerTool(server, READ_RESOURCE, only_looks=True)
        summary = f"{plain_line(server, 60)}: read {pictured_line(args.uri)[:80]}"
        return Intent("mcp", summary, display=display, tool=tool_name(server, READ_RESOURCE), server=called)

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        args = validate(ResourceArguments, arguments, READ)
        return outcome(await self._read(self._server(args.server), args.uri), "resource", context)


def rank(query: str, tools: Sequence[Tool]) -> list[Tool]:
    """The tools that match any word of the query, best first. Words in the name count most, then the description,
    then the names of the arguments."""
    wanted = _words(query)
    scored: list[tuple[float, str, Tool]] = []
    for tool in tools:
        schema = tool.schema
        properties = schema.parameters.get("properties")
        arguments = " ".join(properties) if isinstance(properties, dict) else ""
        places = ((4.0, _words(schema.name)), (2.0, _words(schema.description)), (1.0, _words(arguments)))
        score = sum(max(weight * _fit(word, words) for weight, words in places) for word in wanted)
        if query.strip() == schema.name:
            score += 100.0
        if score > 0:
            scored.append((-score, schema.name, tool))
    return [tool for _, _, tool in sorted(scored, key=lambda item: item[:2])]


def _fit(word: str, words: set[str]) -> float:
    if word in words:
        return 1.0
    near = len(word) > 2 and any(w.startswith(word) or (len(w) > 3 and word.startswith(w)) for w in words)
    return 0.5 if near else 0.0


def _words(text: str) -> set[str]:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return set(_WORD.findall(spaced.lower())) - {"mcp"}


IMAGES = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}
_SHOWN = 4_000


Caller = Callable[[str, str, Metadata, Callable[[str], None]], Awaitable[ToolAnswer]]
"""Calls a tool: its server, its name, its arguments, and who hears of the progress. Raises ToolError."""


class McpTool:
    """A tool of an MCP server. The server's claims about it are shown, and alone never a reason not to ask."""

    def __init__(self, server: str, entry: ToolEntry, call: Caller) -> None:
        self.server, self.tool, self.group = server, entry.name, server_group(server)
        self._called = ServerTool(server, entry.name, only_looks=entry.read_only, open_world=entry.open_world)
        self._claims, self._call = _claims(entry), call
        self.schema = ToolSchema(
            tool_name(server, self.tool), plain(entry.description, DESCRIPTION_LIMIT), safe_schema(entry.schema)
        )

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        line = json.dumps(arguments, ensure_ascii=False) if arguments else ""
        name = f"{plain_line(self.server, 60)}: {plain_line(self.tool, 80)}"
        summary = f"{name} {pictured(line)}".strip()
        text = json.dumps(arguments, ensure_ascii=False, indent=2)
        shown = pictured(text[:_SHOWN]) + ("\n…" if len(text) > _SHOWN else "")
        display = {"kind": "text", "text": f"{name}\n{shown}\n{self._claims}"}
        return Intent(
            "mcp", summary if len(summary) <= 120 else summary[:119] + "…", display=display, server=self._called
        )

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        answer = await self._call(
            self.server, self.tool, arguments, lambda text: context.emit(program_output(text) + "\n")
        )
        return outcome(answer, plain_line(self.tool, 40), context)


def _claims(entry: ToolEntry) -> str:
    """Returns the words of a server about its tool, as its claim."""
    does = "only reads" if entry.read_only else "may destroy" if entry.destructive else "adds and destroys nothing"
    reaches = "may reach beyond the server" if entry.open_world else "stays within the server"
    return f"(the server claims: it {does}, and {reaches})"


def outcome(answer: ToolAnswer, name: str, context: ToolContext) -> ToolOutcome:
    """A server's answer as the tool's: text capped and made harmless, images as attachments."""
    text = program_output(answer.text)
    attachments, notes = images(answer.images, name)
    text = "\n".join(t for t in (text, *notes) if t)
    capped = cap(context.secrets.mask(text), context.config.output_limit, context.spill_dir, "mcp")
    parts = [plural(capped.lines, "line")] if capped.lines else []
    if attachments:
        parts.append(plural(len(attachments), "image"))
    summary = "error" if answer.is_error else ", ".join(parts) or "done"
    display: Metadata = {"kind": "text", "summary": summary} | capped.counted()
    text = capped.text or ("[no text]" if attachments else "[no output]")
    return ToolOutcome(text, answer.is_error, display, attachments, waited=answer.waited)


def images(found: Sequence[Image], name: str) -> tuple[list[AttachmentPart], list[str]]:
    """Images as attachments, and a line for each that cannot be one."""
    attachments: list[AttachmentPart] = []
    notes: list[str] = []
    for image in found:
        kind = image.media_type.lower()
        if kind not in IMAGES:
            notes.append(f"[an image of type {plain_line(kind, 40)!r}, which cannot be shown]")
            continue
        try:
            raw = base64.b64decode(image.data, validate=True)
        except (binascii.Error, ValueError):
            notes.append("[an image that is not valid base64]")
            continue
        numbered = f"{name}-{len(attachments) + 1}.{IMAGES[kind]}"
        attachments.append(AttachmentPart(numbered, kind, data=base64.b64encode(raw).decode()))
    return attachments, notes
