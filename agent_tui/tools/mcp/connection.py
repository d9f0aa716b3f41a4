"""Keeps one MCP server connected for the tool host: lists it, calls it, brings its results into our form, and connects
again when it dies."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import chain
from typing import Any

import mcp_types as types
from mcp.client.client import Client
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, URL_ELICITATION_REQUIRED
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from agent_tui.config import McpServer
from agent_tui.text.clean import plain
from agent_tui.tools.mcp.asking import Put, ServerQuestions, nobody
from agent_tui.tools.mcp.lenient import LenientAnswers, repeats
from agent_tui.tools.mcp.patience import Patience
from agent_tui.tools.mcp.protocol import (
    DATA_LIMIT,
    TEXT_LIMIT,
    Contents,
    Entries,
    Image,
    PromptAnswer,
    PromptArgument,
    PromptEntry,
    ResourceContent,
    ResourceEntry,
    ServerChange,
    ServerState,
    ToolAnswer,
    ToolEntry,
)
from agent_tui.tools.mcp.transport import ENDED, STAND_INS, Link, was_closed

LISTED = 1_000
"""Tools, resources or prompts of one server that are looked at."""


def _tool_entry(tool: types.Tool) -> ToolEntry:
    claims = tool.annotations or types.ToolAnnotations()
    return ToolEntry(
        tool.name,
        tool.description or tool.title or "",
        tool.input_schema,
        read_only=claims.read_only_hint is True,
        destructive=claims.destructive_hint is not False,
        open_world=claims.open_world_hint is not False,
    )


def _resource_entry(resource: types.Resource) -> ResourceEntry:
    name = resource.title or resource.name
    return ResourceEntry(resource.uri, name, resource.description or "", resource.mime_type or "")


def _prompt_entry(prompt: types.Prompt) -> PromptEntry:
    arguments = [PromptArgument(a.name, bool(a.required)) for a in prompt.arguments or []]
    return PromptEntry(prompt.name, prompt.description or prompt.title or "", arguments)


def _content(blocks: Iterable[types.ContentBlock]) -> tuple[list[str], list[Image]]:
    texts: list[str] = []
    images: list[Image] = []
    for block in blocks:
        if isinstance(block, types.TextContent):
            texts.append(block.text)
        elif isinstance(block, types.ImageContent):
            if len(block.data) > DATA_LIMIT:
                texts.append(f"[an image of {len(block.data) * 3 // 4:,} bytes, too large to show]")
            else:
                images.append(Image(block.mime_type, block.data))
        elif isinstance(block, types.AudioContent):
            texts.append(f"[audio, {block.mime_type}, {len(block.data) * 3 // 4:,} bytes, not shown]")
        elif isinstance(block, types.ResourceLink):
            about = f": {block.description}" if block.description else ""
            texts.append(f"[resource {block.title or block.name} {block.uri}{about}]")
        else:
            entry = _resource(block.resource)
            if entry.data is None:
                texts.append(f"[resource {entry.uri}]\n{entry.text}")
            elif entry.media_type.startswith("image/"):
                images.append(Image(entry.media_type, entry.data))
            else:
                texts.append(f"[resource {entry.uri}, {entry.media_type}, binary, not shown]")
    return texts, images


def _resource(entry: types.TextResourceContents | types.BlobResourceContents) -> ResourceContent:
    if isinstance(entry, types.TextResourceContents):
        return ResourceContent(entry.uri, entry.mime_type or "text/plain", text=_cut(entry.text))
    if len(entry.blob) > DATA_LIMIT:
        return ResourceContent(entry.uri, "text/plain", text=f"[{len(entry.blob) * 3 // 4:,} bytes, too large to show]")
    return ResourceContent(entry.uri, entry.mime_type or "application/octet-stream", data=entry.blob)


def _cut(text: str) -> str:
    if len(text) <= TEXT_LIMIT:
        return text
    return f"{text[:TEXT_LIMIT]}\n[… {len(text) - TEXT_LIMIT:,} characters left out …]"


log = logging.getLogger("agent_tui.host")

RETRIES = (0.2, 1.0, 4.0)
"""Seconds before connecting again to a server that died; once it stays away that long it has failed."""

STABLE = 60.0
"""Seconds a connection must have lasted for the retries to begin anew."""

RELIST_PAUSE = 0.25
"""Seconds between two listings of a server that says its lists changed."""

PROGRESS_PAUSE = 0.1
"""Seconds between two reports of progress that are passed on; the ones between are left out."""

LISTEN_PATIENCE = 2.0
"""Seconds a server gets to confirm that it will tell of changes, before it is listed all the same."""

ERROR_LIMIT = 2_000
"""Characters of an error's message, and of what comes with it."""

INSTRUCTIONS_READ = 20_000
"""Characters of a server's instructions that are looked at."""

ROUNDS = "InputRequiredRoundsExceededError"
"""The SDK's error where a server answers a request with questions too often; it has no public name."""

NO_WAY_BACK = "no back-channel"
"""What a server says that asks by a request although the protocol of 2026 is spoken."""

_PAGES = 100
MOST_URLS = 3
"""Addresses that a failed request may want to be opened."""
_LIST_CHANGES = (
    types.ToolListChangedNotification,
    types.ResourceListChangedNotification,
    types.PromptListChangedNotification,
)


class CallFailed(Exception):
    """A request to a server failed; the text says why, for the model or the user."""


class Connection:
    """``report`` gets each change: a state with its reason and, once connected, what the server offers. ``ask`` hands
    on what it asks, and says before a start whether it may; ``roots`` are the folders that it is told of."""

    def __init__(
        self,
        name: str,
        server: McpServer,
        report: Callable[[ServerChange], None],
        ask: Put = nobody,
        roots: Sequence[str] = (),
    ) -> None:
        self.name, self.server, self._report, self._ask = name, server, report, ask
        self._client: Client | None = None
        self._link: Link | None = None
        self._answers: LenientAnswers | None = None
        self._patience = Patience()
        self._asking = ServerQuestions(name, ask, self._patience, self._enough)
        self._asking.roots = list(roots)
        self._wake = asyncio.Event()
        self._lost = self._changed = self._stopping = self._connecting = False
        self._sse = server.type == "sse"
        self._older = False
        """It is spoken to in the protocol of 2025, in which a server asks by requests of its own."""
        self._why = ""
        self._probe: asyncio.Task[None] | None = None
        self._telling: set[asyncio.Task[None]] = set()
        self._task = asyncio.create_task(self._run(), name=f"mcp {name}")

    async def close(self) -> None:
        """Ends the connection and the server's process."""
        self._stopping = True
        self._wake.set()
        if self._connecting:
            self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    @property
    def tokens(self) -> list[str]:
        """What came of a sign-in to it."""
        return self._link.tokens if self._link is not None else []

    # Life

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        failures = 0
        self._say("starting")
        while not self._stopping:
            began = loop.time()
            connected, reason = await self._session()
            if self._stopping:
                return
            if not connected and not self.server.type and self._link is not None and self._link.knows_no_http:
                self._sse = True
                connected, older = await self._session()
                if self._stopping:
                    return
                self._sse, reason = connected, older if connected or self._link.asks_to_sign_in else reason
            failures = 1 if connected and loop.time() - began > STABLE else failures + 1
            if failures > len(RETRIES) or (not connected and failures == 1):
                self._say("failed", reason)
                return
            self._say("starting", f"{reason}; reconnecting")
            with suppress(TimeoutError):
                async with asyncio.timeout(RETRIES[failures - 1]):
                    while not self._stopping:
                        self._wake.clear()
                        await self._wake.wait()

    async def _session(self) -> tuple[bool, str]:
        """One connection from beginning to end: whether it came about, and why it ended."""
        self._lost = self._changed = False
        self._why = ""
        self._wake.clear()
        link = self._link = Link(self.name, self.server, self._ended, self._sse, self._ask)
        connected = False
        self._connecting = True
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self.server.timeout):
                    client = Client(
                        link.transport(),
                        message_handler=self._message,
                        mode="legacy" if self._older or link.is_carried else "auto",
                        elicitation_callback=self._asking.elicit,
                        list_roots_callback=self._asking.list_roots,
                        client_info=types.Implementation(name="agent-tui", version="1"),
                        cache=None,
                    )
                    await stack.enter_async_context(client)
                    self._client = client
                    self._answers = LenientAnswers(client)
                    await self._begin_listening(client, stack)
                    offer = await self._list(client)
                connected, self._connecting = True, False
                self._say("connected", offer=offer)
                await self._attend(client)
                self._client = None
            return connected, self._why or link.reason(MCPError(CONNECTION_CLOSED, ENDED))
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            if not isinstance(error, Exception) and not isinstance(error, BaseExceptionGroup):
                raise
            log.info("MCP server %s: %r", self.name, error)
            return connected, self._why or link.reason(error)
        finally:
            self._client, self._connecting = None, False

    async def _attend(self, client: Client) -> None:
        """Waits until the connection is lost or no longer wanted; lists anew when the server says so."""
        while not (self._lost or self._stopping):
            await self._wake.wait()
            self._wake.clear()
            if self._changed and not (self._lost or self._stopping):
                self._changed = False
                try:
                    async with asyncio.timeout(self.server.timeout):
                        self._say("connected", offer=await self._list(client))
                except (MCPError, TimeoutError) as error:
                    log.warning("MCP server %s cannot be listed again: %s", self.name, error)
                await asyncio.sleep(RELIST_PAUSE)

    async def _begin_listening(self, client: Client, stack: AsyncExitStack) -> None:
        """Newer servers send changes only to those who listen; a change after the listing must not be missed."""
        heard = asyncio.Event()
        task = asyncio.create_task(self._listen(client, heard), name=f"mcp {self.name} changes")

        async def stop() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        stack.push_async_callback(stop)
        with suppress(TimeoutError):
            async with asyncio.timeout(LISTEN_PATIENCE):
                await heard.wait()

    async def _listen(self, client: Client, heard: asyncio.Event) -> None:
        try:
            with suppress(ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError):
                async with client.listen(
                    tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
                ) as events:
                    heard.set()
                    async for _ in events:
                        self._list_changed()
        finally:
            heard.set()

    async def _message(self, message: IncomingMessage) -> None:
        if isinstance(message, _LIST_CHANGES):
            self._list_changed()

    def _list_changed(self) -> None:
        self._changed = True
        self._wake.set()

    def _enough(self, why: str) -> None:
        """The server asks without end."""
        self._why = self._why or why
        self._ended()

    def tell_roots(self, roots: Sequence[str]) -> None:
        """The folders of the project are others now."""
        if self._asking.roots == list(roots):
            return
        self._asking.roots = list(roots)
        if (client := self._client) is not None:
            task = asyncio.create_task(_tell_roots(client), name=f"mcp {self.name} roots")
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    def _ended(self) -> None:
        if self._client is not None and not (self._lost or self._stopping or self._connecting):
            # Told at once, so that what is asked of it from here on waits.
            why = self._why or (self._link.reason(MCPError(CONNECTION_CLOSED, ENDED)) if self._link else ENDED)
            self._say("starting", f"{why}; reconnecting")
        self._lost = True
        self._wake.set()

    def _say(self, state: ServerState, detail: str = "", offer: Entries | None = None) -> None:
        self._report(ServerChange(self.name, state, detail, offer))

    # What it offers

    async def _list(self, client: Client) -> Entries:
        can = client.server_capabilities
        offer = Entries(instructions=(client.instructions or "")[:INSTRUCTIONS_READ], reads=can.resources is not None)
        if can.tools is not None:
            for tool in await _pages(client.list_tools, "tools"):
                if tool.execution is not None and tool.execution.task_support == "required":
                    offer.left_out.append(f"{tool.name} (runs only as a task)")
                else:
                    offer.tools.append(_tool_entry(tool))
        # These two are extras: a server that fails to list them is still of use.
        if offer.reads:
            with suppress(MCPError):
                offer.resources.extend(map(_resource_entry, await _pages(client.list_resources, "resources")))
        if can.prompts is not None:
            with suppress(MCPError):
                offer.prompts.extend(map(_prompt_entry, await _pages(client.list_prompts, "prompts")))
        if self._answers is not None:
            offer.left_out.extend(chain.from_iterable(self._answers.left_out.values()))
        return offer

    # Requests

    async def call(self, tool: str, arguments: dict[str, Any], tell: Callable[[str], None]) -> ToolAnswer:
        """Structured content is passed on where no text says the same."""

        clock, told = asyncio.get_running_loop().time, -PROGRESS_PAUSE

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            nonlocal told
            if clock() - told < PROGRESS_PAUSE and progress != total:
                return
            told, message = clock(), message and message[:ERROR_LIMIT]
            share = f"{progress:g}/{total:g}" if total else f"{progress:g}"
            tell(f"{share} {message}".strip() if message else share)

        async with self._request(self.server.call_timeout) as client:
            result = await client.call_tool(tool, arguments, progress_callback=on_progress)
            texts, images = _content(result.content)
            if result.structured_content is not None and not repeats(texts, result.structured_content):
                texts.append(json.dumps(result.structured_content, ensure_ascii=False, indent=1))
            return ToolAnswer(_cut("\n".join(texts)), bool(result.is_error), images)

    async def read(self, uri: str) -> Contents:
        async with self._request(self.server.timeout) as client:
            result = await client.read_resource(uri)
            return Contents([_resource(entry) for entry in result.contents[:LISTED]])

    async def prompt(self, name: str, arguments: dict[str, str]) -> PromptAnswer:
        texts: list[str] = []
        async with self._request(self.server.timeout) as client:
            for message in (await client.get_prompt(name, arguments)).messages:
                who = "(assistant) " if message.role == "assistant" else ""
                texts += [f"{who}{text}" for text in _content([message.content])[0]]
        return PromptAnswer(_cut("\n".join(texts)))

    @asynccontextmanager
    async def _request(self, seconds: float) -> AsyncIterator[Client]:
        """The client, to ask the server within so many seconds, in which the user is not waited for, and bring its
        result into our form. Raises CallFailed where either fails."""
        client, link = self._client, self._link
        if client is None or link is None:
            raise CallFailed(f"The MCP server {self.name} is not connected.")
        self._asking.begin()
        try:
            async with self._patience.limit(seconds):
                yield client
        except TimeoutError as error:
            raise CallFailed(f"The MCP server {self.name} did not answer in time.") from error
        except MCPError as error:
            if error.code == URL_ELICITATION_REQUIRED:
                raise CallFailed(f"{self.name}: {await self._need_url(error)}") from error
            if NO_WAY_BACK in error.message and client.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
                self._older = True
                self._enough("it asks by the older protocol")
                raise CallFailed(f"{self.name} was reconnected with the older protocol; call it again.") from error
            if was_closed(error) or (self.server.url and error.message in STAND_INS):
                reason = self._why or link.reason(error)
                if self.server.url:
                    self._verify(client)
                elif client is self._client:
                    self._ended()
                raise CallFailed(f"The MCP server {self.name} failed: {reason}.") from error
            raise CallFailed(f"{self.name}: {_in_its_words(error)}") from error
        except Exception as error:
            if type(error).__name__ == ROUNDS:
                raise CallFailed(f"{self.name} asked again and again, and was given up.") from error
            self._verify(client)
            raise CallFailed(f"The MCP server {self.name} failed: {link.reason(error)}.") from error

    def _verify(self, client: Client) -> None:
        """Looks whether a server reached by HTTP is still there after a failed request: nothing else would tell."""
        if self.server.url and client is self._client:
            self._probe = asyncio.create_task(self._probe_http(client))

    async def _need_url(self, error: MCPError) -> str:
        """The server wants an address to be opened before it does what it was asked for; what became of that."""
        try:
            needed = types.ElicitationRequiredErrorData.model_validate(error.error.data).elicitations
        except ValueError:
            return _in_its_words(error)
        answers = [await self._asking.elicit(None, params) for params in needed[:MOST_URLS]]
        if all(isinstance(answer, types.ElicitResult) and answer.action == "accept" for answer in answers):
            return "the user was asked to open an address first, and agreed. Call again once they say it is done."
        return "the user has to open an address first, and did not want to."

    async def _probe_http(self, client: Client) -> None:
        try:
            async with asyncio.timeout(self.server.timeout):
                await client.list_tools()
        except Exception as error:
            if client is self._client:
                self._why = self._link.reason(error) if self._link is not None else str(error)
                self._ended()


def _in_its_words(error: MCPError) -> str:
    """Returns the error that a server answered in the place of a result, with what it added."""
    data = error.error.data
    more = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str) if data else ""
    said = plain(error.message, ERROR_LIMIT) or "an error without a message"
    return f"{said} (error {error.code})" + (f": {plain(more, ERROR_LIMIT)}" if more else "")


async def _tell_roots(client: Client) -> None:
    if client.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:  # newer servers ask with each request
        with suppress(MCPError):
            await client.session.send_notification(types.RootsListChangedNotification())


async def _pages(fetch: Callable[..., Awaitable[Any]], field: str) -> list[Any]:
    """All entries of a listing, however many pages it has, within reason."""
    entries: list[Any] = []
    cursor: str | None = None
    for _ in range(_PAGES):
        page = await fetch(cursor=cursor)
        entries += getattr(page, field)
        cursor = page.next_cursor
        if cursor is None or len(entries) >= LISTED:
            break
    return entries[:LISTED]
