"""The Agent Client Protocol: editors drive sessions over standard input and output, one JSON-RPC message per line."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

import acp
from acp import RequestError, helpers, schema
from acp.core import AgentSideConnection

from agent_tui import __version__
from agent_tui.commands import registry
from agent_tui.commands.context import rows_text
from agent_tui.commands.info import Info
from agent_tui.config import PERMISSION_MODES
from agent_tui.control.control import ControlEvent, Option, Question
from agent_tui.control.lines import lines, own_input
from agent_tui.errors import AgentError, ConfigError
from agent_tui.headless.incoming import image_part
from agent_tui.models.events import (
    CompactionEnded,
    ContextChanged,
    Event,
    MessageAdded,
    Notice,
    PartDelta,
    StepEnded,
    StopReason,
    ToolOutput,
    ToolStarted,
    TurnEnded,
)
from agent_tui.models.failure import Failure
from agent_tui.models.messages import AttachmentPart, Message, Metadata, ToolCallPart, ToolResultPart
from agent_tui.options import Options
from agent_tui.paths import user_paths
from agent_tui.session import Session
from agent_tui.store.repair import open_for_reading
from agent_tui.tools.arguments import parse_arguments

_KINDS: dict[str, schema.ToolKind] = {
    "read": "read",
    "list": "search",
    "glob": "search",
    "grep": "search",
    "edit": "edit",
    "write": "edit",
    "apply_patch": "edit",
    "bash": "execute",
    "fetch": "fetch",
}
_REASONS: dict[StopReason, schema.StopReason] = {
    "end": "end_turn",
    "step_limit": "max_turn_requests",
    "interrupted": "cancelled",
    "refused": "refusal",
    "length": "max_tokens",
    "budget": "max_turn_requests",
    "error": "end_turn",
}
_COMMANDS = ("context", "compact", "usage")
"""Commands of the chat that an editor has too; they answer with text."""
_FAILED = -32603
"""The code of JSON-RPC for an internal error."""
_OUTPUT = 10_000
"""Characters of a running command's output that an editor shows."""


class Wire:
    """Standard input and output, which are the protocol's alone; a line that is no message gets an error."""

    def __init__(self, source: BinaryIO, sink: BinaryIO) -> None:
        self._lines = lines(source)
        self._sink = sink
        self._writing = asyncio.Lock()

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None at the end."""
        async for line in self._lines:
            if line is not None and not line.strip():
                continue
            message = None
            with suppress(ValueError, RecursionError):
                message = json.loads(line or b"")
            if isinstance(message, dict):
                return message
            what = "line too long" if line is None else "not a JSON object"
            await self.send(
                {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": f"Parse error: {what}"}}
            )
        return None

    async def send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        async with self._writing:
            await asyncio.to_thread(self._write, data)

    def _write(self, data: bytes) -> None:
        self._sink.write(data)
        self._sink.flush()

    async def close(self) -> None:
        """Nothing is left open: the process ends."""


class Editor:
    """The agent's side: each session of the editor is a ``Session`` in its folder."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._sessions: dict[str, Session] = {}
        self._client: Any = None
        self._elicits: Any = None

    def on_connect(self, conn: Any) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **more: Any) -> schema.InitializeResponse:
        self._elicits = getattr(more.get("client_capabilities"), "elicitation", None)
        return schema.InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION,
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(image=True, embedded_context=True),
                session_capabilities=schema.SessionCapabilities(list=schema.SessionListCapabilities()),
            ),
            agent_info=schema.Implementation(name="agent-tui", title="agent-tui", version=__version__),
        )

    async def new_session(
        self, cwd: str, mcp_servers: Sequence[Any] | None = None, **more: Any
    ) -> schema.NewSessionResponse:
        session = await self._open(cwd, mcp_servers)
        return schema.NewSessionResponse(session_id=session.id, modes=_modes(session), config_options=_models(session))

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Sequence[Any] | None = None, **more: Any
    ) -> schema.LoadSessionResponse:
        if (open_already := self._sessions.pop(session_id, None)) is not None:
            await open_already.__aexit__(None, None, None)
        session = await self._open(cwd, mcp_servers, session_id)
        for message in session.agent.conversation.path:
            for update in _told(message, session.agent.cwd):
                await self._client.session_update(session_id, update)
        return schema.LoadSessionResponse(modes=_modes(session), config_options=_models(session))

    async def list_sessions(self, cwd: str | None = None, **more: Any) -> schema.ListSessionsResponse:
        with open_for_reading(user_paths().database) as store:
            listed = store.sessions.all(cwd, 100, empty=False)
        found = [
            schema.SessionInfo(
                session_id=info.id,
                cwd=info.project,
                title=info.title or info.preview or None,
                updated_at=datetime.fromtimestamp(info.updated, UTC).isoformat(),
            )
            for info in listed
        ]
        return schema.ListSessionsResponse(sessions=found)

    async def set_session_mode(self, session_id: str, mode_id: str, **more: Any) -> schema.SetSessionModeResponse:
        await _done(self._session(session_id).set_mode(mode_id))
        return schema.SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **more: Any
    ) -> schema.SetSessionConfigOptionResponse:
        session = self._session(session_id)
        if config_id != "model":
            raise RequestError.invalid_params({"error": f"No option {config_id[:60]!r}; there is model."})
        await _done(session.set_model(str(value)))
        return schema.SetSessionConfigOptionResponse(config_options=_models(session))

    async def prompt(self, session_id: str, prompt: Sequence[Any], **more: Any) -> schema.PromptResponse:
        session = self._session(session_id)
        reason: schema.StopReason = "end_turn"
        failure: Failure | None = None
        output: dict[str, str] = {}
        text, attachments = _message_of(prompt)
        try:
            if text.startswith("/") and registry.split(text)[0] in _COMMANDS:
                line = helpers.update_agent_message_text(await _answered(session, text))
                await self._client.session_update(session_id, line)
                return await _response(session, reason)
            async for event in session.send(text, attachments):
                if isinstance(event, Question):
                    await self._ask(session_id, event)
                elif isinstance(event, TurnEnded):
                    reason, failure = _REASONS[event.stop_reason], event.failure
                elif isinstance(event, ToolOutput):
                    # Each update has all that is to be shown.
                    output[event.call_id] = (output.get(event.call_id, "") + event.text)[-_OUTPUT:]
                    event = ToolOutput(event.call_id, output[event.call_id])
                for update in _updates(event, session.agent.cwd):
                    await self._client.session_update(session_id, update)
        except AgentError as error:
            raise RequestError.invalid_params({"error": str(error)}) from None
        if failure is not None:
            raise RequestError(_FAILED, failure.message, {"kind": failure.kind})
        return await _response(session, reason)

    async def cancel(self, session_id: str, **more: Any) -> None:
        if session_id in self._sessions:
            await self._sessions[session_id].interrupt()

    async def close(self) -> None:
        """Ends all sessions."""
        for session in self._sessions.values():
            await session.__aexit__(None, None, None)
        self._sessions.clear()

    def _session(self, session_id: str) -> Session:
        if session_id not in self._sessions:
            raise RequestError.invalid_params({"error": "No such session is open: use session/new or session/load."})
        return self._sessions[session_id]

    async def _open(self, cwd: str, servers: Sequence[Any] | None, resume: str | None = None) -> Session:
        with TemporaryDirectory() as folder:
            # The model that is named at the start is that of new sessions.
            options = self._options if resume is None else replace(self._options, model=None)
            if servers:
                file = Path(folder) / "mcp.json"
                file.write_text(json.dumps({"mcpServers": {s.name: _server(s) for s in servers}}), "utf-8")
                options = replace(options, mcp_config=[*options.mcp_config, file])
            session = Session(cwd, options=options, resume=resume)
            await _done(session.__aenter__())
        self._sessions[session.id] = session
        theirs = [(own.name, own.description or own.name, "") for own in session.agent.project.user_commands()]
        ours = [(found.name, found.summary, found.args) for name in _COMMANDS if (found := registry.find(name))]
        commands = [
            schema.AvailableCommand(
                name=name,
                description=what,
                input=schema.AvailableCommandInput(schema.UnstructuredCommandInput(hint=args)) if args else None,
            )
            for name, what, args in [*ours, *theirs]
        ]
        told = schema.AvailableCommandsUpdate(session_update="available_commands_update", available_commands=commands)
        await self._client.session_update(session.id, told)
        return session

    async def _ask(self, session_id: str, question: Question) -> None:
        """Asks the user of the editor; what gets no answer is declined."""
        if question.kind == "server" and await self._elicit(session_id, question):
            return
        title = question.text if question.kind == "permission" else f"{question.text}\n{question.url}".strip()[:4_000]
        call = schema.ToolCallUpdate(
            tool_call_id=question.call_id or question.id,
            title=title,
            kind=_KINDS.get(question.tool, "other"),
            content=_content(question.display, question.input, self._session(session_id).agent.cwd),
            raw_input=question.input or None,
            field_meta={"reason": question.reason} if question.reason else None,
        )
        options = [
            schema.PermissionOption(option_id=option.id, name=option.label, kind=_option_kind(option))
            for option in question.options
            if not option.asks  # an editor has no field for it
        ]
        said = await self._client.request_permission(session_id=session_id, tool_call=call, options=options)
        if isinstance(said.outcome, schema.AllowedOutcome):
            with suppress(AgentError):  # it waits no more, or there is no such option: then it is declined
                question.answer(said.outcome.option_id)

    async def _elicit(self, session_id: str, question: Question) -> bool:
        """Puts what an MCP server wants where the editor has a place for it, or passes over what it has none for."""
        mode: Any = None
        form, scope = question.schema, {"sessionId": session_id, "elicitationId": question.id}
        if question.url and getattr(self._elicits, "url", None) is not None:
            mode = schema.ElicitationUrlSessionMode.model_validate({**scope, "url": question.url})
        elif form.get("properties") and getattr(self._elicits, "form", None) is not None:
            mode = schema.ElicitationFormSessionMode.model_validate({**scope, "requestedSchema": form})
        if mode is not None:
            said = (await self._client.create_elicitation(f"{question.server}: {question.text}", mode)).model_dump()
            with suppress(AgentError):
                question.answer(said["action"], values=said.get("content") or {})
        return mode is not None or bool(form.get("required"))


async def _response(session: Session, reason: schema.StopReason) -> schema.PromptResponse:
    context = await session.context()
    numbers = {name: context[name] for name in ("total", "low", "high", "limit", "window")}
    return schema.PromptResponse(stop_reason=reason, field_meta={"context": numbers})


async def _answered(session: Session, line: str) -> str:
    """What a command of the chat says. Raises AgentError for what cannot be done."""
    said: list[str] = []

    def heard(event: Event) -> None:
        if isinstance(event, CompactionEnded):
            said.append(event.text)

    end = session.agent.subscribe(heard)
    try:
        match await registry.run(session.agent, line):
            case registry.Text(text) | Info(text=text):
                said.append(text)
            case registry.OpenScreen("context"):
                await session.agent.context.refresh()
                said.append(rows_text(session.agent))
            case registry.OpenScreen(name):
                raise ConfigError(f"{name} opens in the chat only.")
    finally:
        end()
    text = "\n".join(said)
    return f"```\n{text}\n```"


async def _done(work: Any) -> Any:
    try:
        return await work
    except AgentError as error:
        raise RequestError.invalid_params({"error": str(error)}) from None


def _option_kind(option: Option) -> schema.PermissionOptionKind:
    return (
        "reject_once" if option.kind == "reject" else "allow_always" if option.kind == "allow_always" else "allow_once"
    )


def _server(server: Any) -> Metadata:
    """A server of the editor's as ``.mcp.json`` has it."""
    if (url := getattr(server, "url", None)) is not None:
        return {
            "type": getattr(server, "type", "http"),
            "url": url,
            "headers": {each.name: each.value for each in server.headers},
        }
    return {"command": server.command, "args": server.args, "env": {each.name: each.value for each in server.env}}


def _modes(session: Session) -> schema.SessionModeState:
    modes = [schema.SessionMode(id=mode, name=mode) for mode in PERMISSION_MODES if mode != "bypass"]
    now = session.agent.mode.now
    return schema.SessionModeState(
        current_mode_id=now, available_modes=[*modes, *([schema.SessionMode(id=now, name=now)] * (now == "bypass"))]
    )


def _models(session: Session) -> list[Any]:
    keys = dict.fromkeys([session.agent.models.spec.key, *(spec.key for spec in session.agent.models.all())])
    options = [schema.SessionConfigSelectOption(value=key, name=key) for key in keys]
    current = session.agent.models.spec.key
    return [
        schema.SessionConfigOptionSelect(
            id="model", name="Model", category="model", type="select", current_value=current, options=options
        )
    ]


def _message_of(prompt: Sequence[Any]) -> tuple[str, list[AttachmentPart]]:
    """The blocks of a prompt as text and attachments; a link is named, and the agent reads it where it may."""
    texts: list[str] = []
    attached: list[AttachmentPart] = []
    for block in prompt:
        match block.type:
            case "text":
                texts.append(block.text)
            case "image":
                try:
                    attached.append(image_part(block.data, len(attached) + 1))
                except ValueError as error:
                    raise RequestError.invalid_params({"error": f"Cannot read the image: {error}."}) from None
            case "resource_link":
                texts.append(_place(block.uri))
            case "resource" if isinstance(block.resource, schema.TextResourceContents):
                place = _place(block.resource.uri)
                attached.append(AttachmentPart(Path(place).name or place, "text/plain", text=block.resource.text))
            case kind:
                raise RequestError.invalid_params({"error": f"Blocks of type {kind} are not supported."})
    return "\n\n".join(texts), attached


def _place(uri: str) -> str:
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" else uri


def _content(display: Metadata, arguments: Metadata, folder: Path) -> list[Any]:
    """A change as a diff, anything else as text. Paths are absolute, as editors want them."""
    text = str(display.get("text") or "")
    if display.get("kind") != "diff":
        return [helpers.tool_content(helpers.text_block(text))] if text else []
    path = str(folder / str(display.get("path") or arguments.get("path") or ""))
    old: list[str] = []
    new: list[str] = []
    fresh = False
    for line in text.splitlines():
        if line.startswith("@@"):
            fresh = fresh or re.match(r"@@ -0,0 ", line) is not None
        elif line.startswith(("+++ ", "--- ")) and not (old or new):
            continue
        elif line[:1] in ("-", "+"):
            (old if line[0] == "-" else new).append(line[1:])
        elif not line.startswith("\\"):
            old.append(line[1:])
            new.append(line[1:])
    return [helpers.tool_diff_content(path, "\n".join(new), None if fresh else "\n".join(old))]


def _call(call: ToolCallPart, folder: Path) -> list[Any]:
    try:
        arguments = parse_arguments(call.arguments)
    except AgentError:
        arguments = {}
    found: list[Any] = []
    path = arguments.get("path")
    found.append(
        helpers.start_tool_call(
            call.call_id,
            call.name,
            kind=_KINDS.get(call.name, "other"),
            status="pending",
            locations=[schema.ToolCallLocation(path=str(folder / path))] if isinstance(path, str) else None,
            raw_input=arguments,
        )
    )
    todos = next((v for v in arguments.values() if isinstance(v, list)), []) if call.name == "todo" else []
    entries = [
        helpers.plan_entry(str(item.get("content") or item.get("text") or ""), status=_status(item.get("status")))
        for item in todos
        if isinstance(item, dict)
    ]
    return [*found, *([helpers.update_plan(entries)] if entries else [])]


def _status(status: object) -> schema.PlanEntryStatus:
    return {"done": "completed", "completed": "completed", "in_progress": "in_progress", "doing": "in_progress"}.get(
        str(status), "pending"
    )  # type: ignore[return-value]


def _result(result: ToolResultPart, folder: Path) -> Any:
    display = result.display or {}
    content = _content(display, {}, folder) if display.get("kind") == "diff" else []
    content = content or [helpers.tool_content(helpers.text_block(result.text))]
    return helpers.update_tool_call(
        result.call_id, status="failed" if result.is_error else "completed", content=content
    )


def _updates(event: ControlEvent, folder: Path) -> list[Any]:
    match event:
        case PartDelta(_, delta) if delta.text and delta.kind == "text":
            return [helpers.update_agent_message_text(delta.text)]
        case PartDelta(_, delta) if delta.text and delta.kind == "reasoning":
            return [helpers.update_agent_thought_text(delta.text)]
        case StepEnded(_, message):
            return [update for call in message.tool_calls for update in _call(call, folder)]
        case ToolStarted(call_id, _, summary):
            return [helpers.update_tool_call(call_id, title=summary, status="in_progress")]
        case ToolOutput(call_id, text):
            return [helpers.update_tool_call(call_id, content=[helpers.tool_content(helpers.text_block(text))])]
        case MessageAdded(message) if message.tool_result is not None:
            return [_result(message.tool_result, folder)]
        case Notice(level, text) if level != "info":
            return [helpers.update_agent_thought_text(f"{text}\n")]
        case ContextChanged(usage) if usage.window:
            return [schema.UsageUpdate(session_update="usage_update", used=usage.total, size=usage.window)]
    return []


def _told(message: Message, folder: Path) -> list[Any]:
    """A stored message, as it was told when it came."""
    if message.tool_result is not None:
        return [_result(message.tool_result, folder)]
    if message.role == "user":
        return [helpers.update_user_message_text(message.text)] if message.text else []
    thought = [helpers.update_agent_thought_text(message.reasoning)] if message.reasoning else []
    said = [helpers.update_agent_message_text(message.text)] if message.text else []
    return [*thought, *said, *(update for call in message.tool_calls for update in _call(call, folder))]


async def serve(options: Options) -> None:
    """Talks to one editor until it leaves. What else is printed goes to standard error."""
    sys.stdout.flush()
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    editor = Editor(options)
    connection = AgentSideConnection(editor, Wire(own_input(), sink), listening=False)  # type: ignore[arg-type]
    try:
        await connection.listen()
    finally:
        with suppress(ConnectionError, OSError):
            await connection.close()
        await editor.close()
