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

import acp
from acp import RequestError, helpers, schema
from acp.core import AgentSideConnection

from agent_tui import __version__
from agent_tui.acp_updates import (
    COMMANDS,
    REASONS,
    asked,
    commands,
    config_options,
    filled,
    form,
    message_of,
    modes,
    server_entry,
    told_again,
    updates,
    usage,
    wrong,
)
from agent_tui.commands import registry
from agent_tui.commands.context import rows_text
from agent_tui.commands.info import Info
from agent_tui.control.control import Question
from agent_tui.control.lines import lines, own_input
from agent_tui.errors import AgentError, ConfigError
from agent_tui.headless.incoming import request_of
from agent_tui.models.events import (
    CompactionEnded,
    ContextChanged,
    Event,
    SessionChanged,
    StopReason,
    ToolOutput,
    TurnEnded,
)
from agent_tui.models.failure import Failure
from agent_tui.models.messages import Metadata
from agent_tui.options import Options
from agent_tui.paths import project_root, user_paths
from agent_tui.session import Session
from agent_tui.store.reading import open_for_reading

CONTROL = "agent-tui/control"
"""Method of ours, sent as ``_agent-tui/control``: a control request of stream-json for what the protocol has no word
for, such as steering."""
_OWN_ID = re.compile("ses_[0-9a-f]{22}")
_LISTED = 100
"""Sessions on a page of the list."""
_FAILED = -32603
"""The code of JSON-RPC for an internal error."""
_OUTPUT = 10_000
"""Characters of a running command's output that an editor shows."""


class AcpWire:
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
            try:
                message = json.loads(line or b"")
            except (ValueError, RecursionError):
                message = None
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


class Open:
    """A session that an editor has open, and what it was told of it."""

    def __init__(self, session: Session, client: Any, elicits: schema.ElicitationCapabilities) -> None:
        self.session = session
        self.agent = session.agent
        self.id = session.id
        self._client = client
        self._elicits = elicits
        self._output: dict[str, str] = {}
        self._told: dict[str, Any] = {}
        for update in self._facts():  # it stands in the answer that opens it
            self._is_news(update)

    async def tell(self, *told: Any) -> None:
        for update in told:
            await self._client.session_update(self.id, update)

    async def tell_event(self, event: Any) -> None:
        """Tells what has happened, and what has changed by it."""
        match event:
            case ToolOutput(call_id, text):
                # Each update has all that is to be shown.
                self._output[call_id] = (self._output.get(call_id, "") + text)[-_OUTPUT:]
                event = ToolOutput(call_id, self._output[call_id])
            case TurnEnded():
                self._output.clear()
        await self.tell(*updates(event, self.agent.cwd))
        if isinstance(event, SessionChanged | TurnEnded):
            await self.tell_facts()
        if isinstance(event, ContextChanged | TurnEnded):
            await self.tell_usage()

    async def tell_facts(self, known: str = "") -> None:
        """Tells what has changed of mode, options, title and commands; the editor has the update ``known`` already."""
        news = [update for update in self._facts() if self._is_news(update)]
        await self.tell(*[update for update in news if update.session_update != known])

    async def tell_usage(self) -> None:
        found = usage(self.agent)
        if found is not None and self._is_news(found):
            await self.tell(found)

    def _facts(self) -> list[Any]:
        info = self.agent.conversation.info
        return [
            helpers.update_current_mode(self.agent.mode.now),
            schema.ConfigOptionUpdate(session_update="config_option_update", config_options=config_options(self.agent)),
            schema.SessionInfoUpdate(session_update="session_info_update", title=info.title or info.preview or None),
            commands(self.agent),
        ]

    def _is_news(self, update: Any) -> bool:
        before = self._told.get(update.session_update)
        self._told[update.session_update] = update
        return bool(update != before)

    async def ask(self, question: Question) -> None:
        """Asks the user of the editor; what gets no answer is declined."""
        with suppress(RequestError, ConnectionError, ValueError, AgentError):
            # A refusal, no editor any more, nonsense; it waits no more, or there is no such option.
            if question.kind == "choice" and self._elicits.form is not None:
                await self._ask_form(question)
            elif question.kind != "server" or not await self._elicit(question):
                await self._ask_permission(question)

    async def _ask_form(self, question: Question) -> None:
        mode = schema.ElicitationFormSessionMode(session_id=self.id, requested_schema=form(question))
        said = await self._client.create_elicitation(message=question.text, mode=mode)
        if isinstance(said, schema.AcceptElicitationResponse):
            options, text = filled(question, said.content or {})
            question.answer(*options, text=text)

    async def _ask_permission(self, question: Question) -> None:
        call, options = asked(question, self.agent.cwd)
        said = await self._client.request_permission(session_id=self.id, tool_call=call, options=options)
        if isinstance(said.outcome, schema.AllowedOutcome):
            question.answer(said.outcome.option_id)

    async def _elicit(self, question: Question) -> bool:
        """Puts what an MCP server wants where the editor has a place for it, or passes over what it has none for."""
        mode: Any = None
        wanted, scope = question.schema, {"sessionId": self.id, "elicitationId": question.id}
        if question.url and self._elicits.url is not None:
            mode = schema.ElicitationUrlSessionMode.model_validate({**scope, "url": question.url})
        elif wanted.get("properties") and self._elicits.form is not None:
            mode = schema.ElicitationFormSessionMode.model_validate({**scope, "requestedSchema": wanted})
        if mode is not None:
            said = (await self._client.create_elicitation(f"{question.server}: {question.text}", mode)).model_dump()
            question.answer(said["action"], values=said.get("content") or {})
        return mode is not None or bool(wanted.get("required"))


class EditorAgent:
    """The agent's side: each session of the editor is a ``Session`` in its folder."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._sessions: dict[str, Open] = {}
        self._client: Any = None
        self._telling: set[asyncio.Task[None]] = set()
        self._elicits = schema.ElicitationCapabilities()

    def on_connect(self, conn: Any) -> None:
        self._client = conn

    async def initialize(
        self, protocol_version: int, client_capabilities: schema.ClientCapabilities | None = None, **more: Any
    ) -> schema.InitializeResponse:
        if client_capabilities is not None and client_capabilities.elicitation is not None:
            self._elicits = client_capabilities.elicitation
        return schema.InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION,
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(image=True, embedded_context=True),
                mcp_capabilities=schema.McpCapabilities(http=True, sse=True),
                session_capabilities=schema.SessionCapabilities(
                    list=schema.SessionListCapabilities(),
                    resume=schema.SessionResumeCapabilities(),
                    close=schema.SessionCloseCapabilities(),
                    fork=schema.SessionForkCapabilities(),
                    additional_directories=schema.SessionAdditionalDirectoriesCapabilities(),
                ),
            ),
            agent_info=schema.Implementation(name="agent-tui", title="agent-tui", version=__version__),
        )

    async def new_session(self, cwd: str, **more: Any) -> schema.NewSessionResponse:
        opened = await self._open(cwd, more)
        self._tell_commands(opened)
        return schema.NewSessionResponse(
            session_id=opened.id, modes=modes(opened.agent), config_options=config_options(opened.agent)
        )

    async def load_session(self, cwd: str, session_id: str, **more: Any) -> schema.LoadSessionResponse:
        opened = await self._open_again(cwd, session_id, more)
        for message in opened.agent.conversation.path:
            await opened.tell(*told_again(message, opened.agent.cwd))
        await opened.tell_usage()
        self._tell_commands(opened)
        return schema.LoadSessionResponse(modes=modes(opened.agent), config_options=config_options(opened.agent))

    async def resume_session(self, session_id: str, cwd: str, **more: Any) -> schema.ResumeSessionResponse:
        opened = await self._open_again(cwd, session_id, more)
        self._tell_commands(opened)
        return schema.ResumeSessionResponse(modes=modes(opened.agent), config_options=config_options(opened.agent))

    async def fork_session(self, session_id: str, cwd: str, **more: Any) -> schema.ForkSessionResponse:
        opened = await self._open(cwd, more, session_id, fork=True)
        self._tell_commands(opened)
        return schema.ForkSessionResponse(
            session_id=opened.id, modes=modes(opened.agent), config_options=config_options(opened.agent)
        )

    async def close_session(self, session_id: str, **more: Any) -> schema.CloseSessionResponse:
        self._session(session_id)
        await self._leave(session_id)
        return schema.CloseSessionResponse()

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **more: Any
    ) -> schema.ListSessionsResponse:
        try:
            begin = max(0, int(cursor or 0))
        except ValueError:
            raise wrong("This is no place in the list.") from None
        root = None if cwd is None else await asyncio.to_thread(project_root, Path(cwd))
        with open_for_reading(user_paths().database) as store:
            listed = store.sessions.all(root, begin + _LISTED + 1, empty=False)[begin:]
        found = [
            schema.SessionInfo(
                session_id=info.id,
                cwd=info.project,
                title=info.title or info.preview or None,
                updated_at=datetime.fromtimestamp(info.updated, UTC).isoformat(),
            )
            for info in listed[:_LISTED]
        ]
        more_to_come = str(begin + _LISTED) if len(listed) > _LISTED else None
        return schema.ListSessionsResponse(sessions=found, next_cursor=more_to_come)

    async def set_session_mode(self, session_id: str, mode_id: str, **more: Any) -> schema.SetSessionModeResponse:
        opened = self._session(session_id)
        await _done(opened.session.set_mode(mode_id))
        await opened.tell_facts("current_mode_update")
        return schema.SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **more: Any
    ) -> schema.SetSessionConfigOptionResponse:
        opened = self._session(session_id)
        session = opened.session
        setters = {"mode": session.set_mode, "model": session.set_model, "thinking": session.set_thinking}
        if config_id not in setters:
            raise wrong(f"No option {config_id[:60]!r}; there are {', '.join(setters)}.")
        await _done(setters[config_id](str(value)))
        await opened.tell_facts("config_option_update")
        return schema.SetSessionConfigOptionResponse(config_options=config_options(session.agent))

    async def prompt(self, session_id: str, prompt: Sequence[Any], **more: Any) -> schema.PromptResponse:
        opened = self._session(session_id)
        reason: StopReason = "end"
        failure: Failure | None = None
        text, attachments = message_of(prompt)
        try:
            if text.startswith("/") and registry.split(text)[0] in COMMANDS:
                await opened.tell(helpers.update_agent_message_text(await _answered(opened.session, text)))
                await opened.tell_facts()
            else:
                async for event in opened.session.send(text, attachments):
                    if isinstance(event, TurnEnded):
                        reason, failure = event.stop_reason, event.failure
                    await opened.tell_event(event)
            await opened.tell_usage()
        except AgentError as error:
            raise wrong(str(error)) from None
        if failure is not None:
            raise RequestError(_FAILED, failure.message, {"kind": failure.kind})
        context = await opened.session.context()
        numbers = {name: context[name] for name in ("total", "low", "high", "limit", "window")}
        return schema.PromptResponse(stop_reason=REASONS[reason], field_meta={"context": numbers})

    async def cancel(self, session_id: str, **more: Any) -> None:
        if session_id in self._sessions:
            await self._sessions[session_id].session.interrupt()

    async def ext_method(self, method: str, params: Metadata) -> Metadata:
        if method != CONTROL:
            raise RequestError.method_not_found(f"_{method}")
        session, request = self._session(str(params.get("sessionId"))).session, params.get("request")
        try:
            done: Metadata = await session.control.do(request_of(request if isinstance(request, dict) else {}))
        except (AgentError, ValueError) as error:
            raise wrong(str(error)) from None
        return done

    async def close(self) -> None:
        """Ends all sessions."""
        for session_id in list(self._sessions):
            await self._leave(session_id)

    def _session(self, session_id: str) -> Open:
        if session_id not in self._sessions:
            raise wrong("No such session is open: use session/new or session/load.")
        return self._sessions[session_id]

    async def _leave(self, session_id: str) -> None:
        if (opened := self._sessions.pop(session_id, None)) is not None:
            await opened.session.__aexit__(None, None, None)

    async def _open_again(self, cwd: str, session_id: str, more: Metadata) -> Open:
        await self._leave(session_id)
        return await self._open(cwd, more, session_id)

    async def _open(self, cwd: str, more: Metadata, stored: str | None = None, fork: bool = False) -> Open:
        added = [Path(folder) for folder in more.get("additional_directories") or ()]
        options = replace(self._options, add_dirs=[*self._options.add_dirs, *added])
        if stored is not None:
            # The model that is named at the start is that of new sessions. One in which nothing was said is not
            # stored: it begins again.
            again = not fork and _OWN_ID.fullmatch(stored) is not None
            session_id, resumed = (stored, None) if again else (None, stored)
            options = replace(options, model=None, session=session_id, resume=resumed)
        with TemporaryDirectory() as folder:
            if servers := more.get("mcp_servers"):
                file = Path(folder) / "mcp.json"
                file.write_text(json.dumps({"mcpServers": {s.name: server_entry(s) for s in servers}}), "utf-8")
                options = replace(options, mcp_config=[*options.mcp_config, file])
            opened: list[Open] = []
            session = Session(cwd, options=options, on_question=lambda question: opened[0].ask(question))
            await _done(session.__aenter__())
        if fork:
            await _done(session.agent.sessions.fork())
        opened.append(Open(session, self._client, self._elicits))
        self._sessions[session.id] = opened[0]
        return opened[0]

    def _tell_commands(self, opened: Open) -> None:
        """Tells them once the answer is out, which is on its way before any task begun last: an editor passes over
        updates of a session that it does not know yet."""
        task = asyncio.create_task(_tell_at_last(opened), name="commands")
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)


async def _tell_at_last(opened: Open) -> None:
    with suppress(ConnectionError):  # the editor has left already
        await opened.tell(commands(opened.agent))


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
    fence = "`" * (1 + max((len(run) for run in re.findall("`{2,}", text)), default=2))
    return f"{fence}\n{text}\n{fence}"


async def _done(work: Any) -> Any:
    try:
        return await work
    except AgentError as error:
        raise wrong(str(error)) from None


async def serve(options: Options) -> None:
    """Talks to one editor until it leaves. What else is printed goes to standard error."""
    sys.stdout.flush()
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    await talk(options, AcpWire(own_input(), sink))


async def talk(options: Options, wire: AcpWire) -> None:
    """Talks to the editor at the other end of the wire until it leaves, and ends its sessions."""
    editor = EditorAgent(options)
    connection = AgentSideConnection(editor, wire, listening=False, use_unstable_protocol=True)  # type: ignore[arg-type]
    try:
        await connection.listen()
    finally:
        with suppress(ConnectionError, OSError):
            await connection.close()
        await editor.close()
