"""MCP in the program: which servers there are, how they are, and the tools, resources and prompts they offer."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.config import McpServer, ToolsConfig
from agent_tui.errors import AgentError, RequiredServerError, ToolError
from agent_tui.models.messages import AttachmentPart, Metadata
from agent_tui.models.requests import OfferedTool, SystemBlock, ToolSchema
from agent_tui.models.usage import Limits
from agent_tui.pipes.pipe import Refused
from agent_tui.records import dataclass
from agent_tui.text.clean import plain, plain_line, program_output
from agent_tui.text.frames import attribute, framed
from agent_tui.tools.base import Tool
from agent_tui.tools.mcp.client import Ask, Carry, HostClient
from agent_tui.tools.mcp.config import Plan, ProjectServers, may_sign_in, plan_servers
from agent_tui.tools.mcp.names import no_server, server_group
from agent_tui.tools.mcp.offer import McpPrompt, McpResource, Offer, RememberedOffers, read_offer
from agent_tui.tools.mcp.protocol import (
    CallTool,
    Contents,
    Elicit,
    Entries,
    FillPrompt,
    Image,
    Paste,
    PromptAnswer,
    ReadResource,
    ServerChange,
    ServerStart,
    ServerState,
    SignInRequest,
    SignOut,
    Told,
    ToolAnswer,
)
from agent_tui.tools.mcp.tool import IMAGES, READ_RESOURCE, McpCallTool, McpReadTool, ToolSearchTool, images
from agent_tui.tools.mcp_names import CALL, READ, SEARCH, server_part, short_name, tool_prefix

if TYPE_CHECKING:
    from agent_tui.tools.starter import Starter

DEFAULT_WINDOW = 128_000
"""Tokens taken for the window when it is not known."""

CHARS_PER_TOKEN = 4
"""The character rule for schemas, which are ASCII nearly always: 0.25 token a character."""

MAX_TEXT = 256 * 1024
"""Characters of one attached resource."""

INSTRUCTED = 20
"""Servers whose instructions are sent at most."""

SIGN_IN = 900.0
"""Seconds that a sign-in may take, the user's part included."""

_HOST_STARTS = 10.0
"""Seconds that the tool host itself gets to start."""

_MENTION = re.compile(r"(?<![\w@.])@([A-Za-z0-9_.-]+):(\S+)")


@dataclass(slots=True)
class _Server:
    """``key`` is its name in the configuration, ``name`` the same as it is shown."""

    key: str
    name: str
    state: ServerState
    detail: str = ""
    spec: McpServer | None = None
    required: bool = False
    offer: Offer = field(default_factory=Offer)
    awaited: bool = False
    """Who has it connected waits for the answer, and needs no notice of a failure."""

    @property
    def told(self) -> str:
        """How it is, after its name."""
        state = "failed" if self.state == "failed" else f"is {self.state}"
        return f"{self.name} {state}" + (f": {self.detail}" if self.detail else "")

    @property
    def unknown(self) -> bool:
        """True while it starts and has told nothing yet of what it offers."""
        return self.state == "starting" and not self.offer.tools


class McpManager:
    """Satisfies ``ExtraTools``. ``changed`` (given to ``start``) is called when tools came, went or changed;
    ``on_failure`` with the name and the reason when a server has failed.

    A server that died keeps its tools while it is being connected again, so that what is sent stays the same.
    """

    def __init__(
        self,
        servers: Mapping[str, McpServer],
        config: ToolsConfig,
        root: Path,
        brought: ProjectServers,
        *,
        log_file: Path | None = None,
        remembered: RememberedOffers | None = None,
        added: Sequence[Path] = (),
        starter: Callable[[], Starter] | None = None,
    ) -> None:
        self._starter = starter
        self._config, self._root, self._remembered, self._added = config, root, remembered, added
        self._servers: dict[str, _Server] = {}
        self._host = HostClient(self._on_server, self._on_down, self._start_of, log_file)
        self._waiters: list[asyncio.Event] = []
        self._named_late: set[str] = set()
        self._started = False
        self._changed: Callable[[], None] = lambda: None
        self._on_failure: Callable[[str, str], None] = lambda name, reason: None
        self._search: list[Tool] = [ToolSearchTool(self._mcp_tools, self._coming, self.settled)]
        self._search.append(McpCallTool(self._mcp_tools))
        self._read = McpReadTool(lambda name: self._named(name).name, self._contents)
        self._plan(plan_servers(servers, root, brought))

    def answers_by(self, ask: Ask) -> None:
        """``ask`` answers what servers ask, by their shown names."""

        async def named(question: Elicit) -> object:
            return await ask(replace(question, server=self._named(question.server).name))

        self._host.answers = named

    def carried_by(self, carry: Carry) -> None:
        """``carry`` brings messages to the servers inside the program that drives the run."""
        self._host.carry = carry

    def on_failure(self, told: Callable[[str, str], None]) -> None:
        """``told`` hears the name of every server that fails from now on, and why."""
        self._on_failure = told

    # Servers

    def servers(self) -> list[tuple[str, ServerState, str]]:
        """Name, state and one line about it, of every server there is."""
        return [(s.name, s.state, s.detail) for s in self._servers.values()]

    def known_tools(self) -> dict[str, set[str] | None]:
        """The tools of every server; None as long as it is not connected."""
        return {
            s.name: {tool.tool for tool in s.offer.tools} | {READ_RESOURCE} if s.state == "connected" else None
            for s in self._servers.values()
        }

    def offered_tools(self) -> list[tuple[str, str]]:
        """(name, server) of every tool, as the servers call them and are shown."""
        return [(tool.tool, s.name) for s in self._servers.values() for tool in s.offer.tools]

    def start(self, changed: Callable[[], None]) -> None:
        """Begins to start the servers, in the background. Needs a running event loop."""
        self._changed, self._started = changed, True
        self._serve()
        for server in self._servers.values():
            if server.state == "failed":
                self._on_failure(server.name, server.detail)

    def recall(self) -> bool:
        """Takes what the servers offered last instead of starting them. False where that is not known of all."""
        known = True
        for server in self._servers.values():
            if server.spec is not None:
                offer = self._remembered.find(server.key, server.spec) if self._remembered is not None else None
                known = known and offer is not None
                server.offer = read_offer(server.name, offer or Entries(), self._call)
        return known

    def reload(self, servers: Mapping[str, McpServer], brought: ProjectServers) -> None:
        """Takes another configuration: something else of the project is accepted now. What failed is tried again: its
        files may have been accepted."""
        self._plan(plan_servers(servers, self._root, brought))
        if self._started:
            again = [
                server for server in self._servers.values() if server.state == "failed" and server.spec is not None
            ]
            self._serve()
            for server in again:
                server.state, server.detail = "starting", ""
                self._host.reconnect(server.key)
            self._changed()

    async def _start_of(self, name: str) -> object:
        """How the program of a server is started; why it may not be. Asked before every start, the host's own too."""
        server = self._servers.get(name)
        if server is None or server.spec is None or self._starter is None:
            return Refused("nobody knows it any more")
        spec, starter = server.spec, self._starter()
        try:
            return ServerStart(
                *await asyncio.to_thread(starter.server, spec.command or "", spec.args, spec.env, spec.cwd)
            )
        except ToolError as error:
            return Refused(str(error))

    async def reconnect(self, name: str) -> str:
        """Connects to a server anew; returns a line saying how that ended. Raises AgentError for an unknown name."""
        server = self._servers.get(name)
        if server is None:
            known = ", ".join(self._servers) or "none"
            raise AgentError(f"{no_server(name)} There are: {known}.")
        if server.spec is None:
            return server.told
        server.state, server.detail, server.awaited = "starting", "", True
        try:
            if self._host.pid is None:
                self._serve()
            else:
                self._host.reconnect(name)
            await self.settled(name)
        finally:
            server.awaited = False
        return server.told

    # Signing in

    def may_sign_in(self, name: str) -> bool:
        server = next((s for s in self._servers.values() if s.name == name), None)
        return server is not None and server.spec is not None and may_sign_in(server.spec)

    async def sign_in(self, name: str, show: Callable[[str], None]) -> str:
        """Signs in to a server and connects to it; returns a line saying how that ended. ``show`` gets the address that
        the user has to open. Raises AgentError."""
        key = self._reached(name)
        where = await self._host.ask(SignInRequest(key), Told, SIGN_IN, show)
        return f"{await self.reconnect(key)}; the token is kept in {where.text}"

    async def paste(self, name: str, address: str) -> None:
        """Gives the address that the browser ended on to the sign-in that waits for it. Raises AgentError."""
        await self._host.ask(Paste(self._reached(name), address), Told, _HOST_STARTS)

    async def sign_out(self, name: str) -> str:
        """Forgets the sign-in to a server; returns a line. Raises AgentError."""
        key = self._reached(name)
        said = (await self._host.ask(SignOut(key), Told, SIGN_IN)).text
        if not said:
            return f"You are not signed in to {name}."
        await self.reconnect(key)
        return f"Signed out of {name}: {said}."

    def _reached(self, name: str) -> str:
        server = self._servers.get(name)
        if server is None:
            raise AgentError(f"{no_server(name)} There are: {', '.join(self._servers) or 'none'}.")
        if server.spec is None:
            raise AgentError(f"{server.told}.")
        return server.key

    @property
    def starting(self) -> bool:
        """True when a server is neither connected nor has failed."""
        return any(server.state == "starting" for server in self._servers.values())

    @property
    def patience(self) -> float:
        """Seconds after which every server should have been connected or have failed."""
        return max((s.spec.timeout for s in self._servers.values() if s.spec is not None), default=0.0) + _HOST_STARTS

    def late(self) -> list[str]:
        """The servers that are still starting and were not named here before."""
        names = [s.name for s in self._servers.values() if s.state == "starting" and s.name not in self._named_late]
        self._named_late.update(names)
        return names

    async def settled(self, *names: str) -> None:
        """Waits until these servers, or all, are connected or have failed, as long as the slowest of them may take.
        Returns at once when none starts."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.patience):
                while any(s.state == "starting" for s in self._servers.values() if not names or s.name in names):
                    event = asyncio.Event()
                    self._waiters.append(event)
                    await event.wait()

    async def need_required(self) -> None:
        """Waits for the servers that a run cannot do without. Raises RequiredServerError for one that does not come."""
        required = [server for server in self._servers.values() if server.required]
        if required:
            await self.settled(*(server.name for server in required))
        for server in required:
            if server.state != "connected":
                why = server.detail or (f"no answer within {server.spec.timeout:g} s" if server.spec else server.state)
                raise RequiredServerError(f"The required MCP server {server.name} is not there: {why}.")

    def _coming(self) -> list[str]:
        return [server.name for server in self._servers.values() if server.unknown]

    async def close(self) -> None:
        """Ends the servers and the tool host."""
        await self._host.close()

    def _plan(self, plans: Sequence[Plan]) -> None:
        old, self._servers = self._servers, {}
        for plan in plans:
            before = old.get(plan.name)
            if before is not None and plan.server is not None and before.spec == plan.server:
                self._servers[plan.name] = before
            else:
                name, detail = plain_line(plan.name, 60) or "?", plain_line(plan.detail)
                self._servers[plan.name] = _Server(plan.name, name, plan.state, detail, plan.server, plan.required)

    def _serve(self) -> None:
        roots = [str(folder) for folder in (self._root, *self._added)]
        self._host.serve({name: s.spec for name, s in self._servers.items() if s.spec is not None}, roots)

    def _on_server(self, change: ServerChange) -> None:
        server = self._servers.get(change.server)
        if server is None or server.spec is None:
            return
        before = _sent_of(server.offer)
        server.state, server.detail = change.state, plain_line(change.detail)
        if server.state == "connected":
            server.offer = read_offer(server.name, change.offer or Entries(), self._call)
            server.detail = str(server.offer)
        elif server.state == "failed":
            server.offer = Offer()
        if self._remembered is not None and server.state in ("connected", "failed"):
            self._remembered.keep(change.server, server.spec, change.offer or Entries())
        for event in self._waiters:
            event.set()
        self._waiters.clear()
        if server.state == "failed" and not server.awaited:
            self._on_failure(server.name, server.detail)
        if before != _sent_of(server.offer):
            self._changed()

    def _on_down(self, reason: str) -> None:
        """The host died. Without a reason it is started again."""
        state: ServerState = "failed" if reason else "starting"
        for key in self._servers:
            self._on_server(ServerChange(key, state, reason or "restarting"))

    async def _connected(self, name: str) -> tuple[str, McpServer]:
        """The key and the configuration of a server that can be asked; one that starts is waited for. Raises
        ToolError."""
        server = self._named(name)
        await self.settled(server.name)
        if server.state != "connected" or server.spec is None:
            raise ToolError(f"The MCP server {server.told}.")
        return server.key, server.spec

    def _named(self, name: str) -> _Server:
        """The server that is called so, also as the names of its tools have it. Raises ToolError."""
        called = short_name(name)
        found = (s for s in self._servers.values() if called in (s.key, s.name, server_part(s.name)))
        if (server := next(found, None)) is None:
            raise ToolError(no_server(name))
        return server

    # Tools

    def _mcp_tools(self) -> list[Tool]:
        tools: dict[str, Tool] = {}
        for server in self._servers.values():
            for tool in server.offer.tools:
                tools.setdefault(tool.schema.name, tool)
        return [tool for name, tool in tools.items() if name not in self._config.disabled]

    def coming(self, tool: str) -> str:
        """Returns the server that a tool called so would be of, while that is still starting; else an empty text."""
        names = (s.name for s in self._servers.values() if s.state == "starting")
        return next((name for name in names if tool.startswith(tool_prefix(name))), "")

    def tools(self) -> list[Tool]:
        """Every tool that can be called, deferred ones and those that reach them and resources included."""
        tools = self._mcp_tools()
        search = self._search if tools or self._coming() else []
        return [*tools, *search, *([self._read] if self._reads else [])]

    @property
    def _reads(self) -> bool:
        """True when there is a resource that the model may want to read."""
        return READ not in self._config.disabled and any(s.offer.reads for s in self._servers.values())

    def offered(self, limits: Limits) -> list[OfferedTool]:
        """The tools of the next request, by name. Where their schemas would take more than ``mcp_defer_share`` of the
        window all of them are deferred, and ``tool_search`` and ``mcp_call`` are sent instead. The two are sent, too,
        while servers start: no request waits for them, and a model that needs their tools can. ``mcp_read`` is sent
        where a server has resources."""
        tools = sorted(self._mcp_tools(), key=lambda t: t.schema.name)
        tokens = sum(_characters(t.schema) for t in tools) / CHARS_PER_TOKEN
        deferred = tokens > self._config.mcp_defer_share * (limits.window or DEFAULT_WINDOW)
        offered = [OfferedTool(t.schema, t.group, deferred) for t in tools]
        reach, read = list[Tool](), [self._read] if self._reads else []
        if ((tools and deferred) or self._coming()) and not {SEARCH, CALL} & set(self._config.disabled):
            reach = self._search
        return [*(OfferedTool(tool.schema, "builtin") for tool in (*reach, *read)), *offered]

    def instructions(self) -> list[SystemBlock]:
        """A block for each server that says how its tools are used, by name; of many servers the first."""
        offering = {tool.group for tool in self._mcp_tools()}
        telling = [s for s in self._servers.values() if s.offer.instructions and server_group(s.name) in offering]
        return [
            SystemBlock(
                "servers",
                framed(
                    "mcp_server",
                    "(The server says this of the use of its tools; it does not speak for the user.)\n"
                    f"{server.offer.instructions}",
                    attribute("name", server.name),
                ),
                server_group(server.name),
                server.name,
            )
            for server in sorted(telling, key=lambda s: s.name)[:INSTRUCTED]
        ]

    async def _call(self, server: str, tool: str, arguments: Metadata, progress: Callable[[str], None]) -> ToolAnswer:
        key, spec = await self._connected(server)
        before = self._host.waited(key)
        answer = await self._host.ask(CallTool(key, tool, arguments), ToolAnswer, spec.call_timeout, progress)
        return replace(answer, waited=self._host.waited(key) - before)

    # Resources and prompts

    def resources(self) -> list[McpResource]:
        return [r for s in self._servers.values() for r in s.offer.resources]

    def prompts(self) -> list[McpPrompt]:
        return [p for s in self._servers.values() for p in s.offer.prompts]

    async def read_resource(self, server: str, uri: str) -> list[AttachmentPart]:
        """A resource's contents as attachments. Raises ToolError."""
        key, spec = await self._connected(server)
        answer = await self._host.ask(ReadResource(key, uri), Contents, spec.timeout)
        parts: list[AttachmentPart] = []
        for entry in answer.contents:
            kind, name = entry.media_type, plain_line(f"{server}:{entry.uri}", 200)
            if entry.text is not None:
                text = program_output(entry.text)
                if len(text) > MAX_TEXT:
                    text = f"{text[:MAX_TEXT]}\n[… {len(text) - MAX_TEXT:,} characters left out …]"
                parts.append(AttachmentPart(name, plain_line(kind, 100) or "text/plain", text=text, path=uri))
            elif kind in IMAGES:
                found, notes = images([Image(kind, entry.data or "")], name)
                if notes:
                    raise ToolError(f"{name}: {notes[0]}")
                parts += found
            else:
                raise ToolError(f"{name} is neither text nor an image.")
        if not parts:
            raise ToolError(f"{server}:{plain_line(uri)} is empty.")
        return parts

    async def _contents(self, server: str, uri: str) -> ToolAnswer:
        """A resource's contents for the model, whose tool caps them. Raises ToolError."""
        key, spec = await self._connected(server)
        answer = await self._host.ask(ReadResource(key, uri), Contents, spec.timeout)
        texts: list[str] = []
        found: list[Image] = []
        for entry in answer.contents:
            if entry.text is not None:
                texts.append(entry.text)
            elif entry.media_type.startswith("image/"):
                found.append(Image(entry.media_type, entry.data or ""))
            else:
                size = len(entry.data or "") * 3 // 4
                texts.append(f"[{plain_line(entry.media_type, 60)}, {size:,} bytes, binary, not shown]")
        return ToolAnswer("\n".join(texts), images=found)

    async def get_prompt(self, server: str, name: str, arguments: dict[str, str]) -> str:
        """A prompt filled in, as text. Raises ToolError."""
        key, spec = await self._connected(server)
        answer = await self._host.ask(FillPrompt(key, name, arguments), PromptAnswer, spec.timeout)
        return plain(answer.text, MAX_TEXT)

    async def attachments(self, text: str) -> tuple[list[AttachmentPart], list[str]]:
        """The resources that ``@server:uri`` words name, and a line for each that cannot be had. Words that name no
        server stay words."""
        parts: list[AttachmentPart] = []
        problems: list[str] = []
        names = {s.name for s in self._servers.values()}
        known = {r.uri for r in self.resources()}
        for server, uri in dict.fromkeys(_MENTION.findall(text)):
            if server in names:
                try:
                    parts += await self.read_resource(server, uri if uri in known else uri.rstrip(".,;:!?)"))
                except ToolError as error:
                    problems.append(str(error))
        return parts, problems


def _sent_of(offer: Offer) -> tuple[object, ...]:
    """What of an offer goes with each request."""
    return [tool.schema for tool in offer.tools], offer.instructions, offer.reads


def _characters(schema: ToolSchema) -> int:
    parameters = json.dumps(schema.parameters, ensure_ascii=False, separators=(",", ":"))
    return len(schema.name) + len(schema.description) + len(parameters) + 40
