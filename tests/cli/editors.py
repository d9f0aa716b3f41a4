"""An editor that drives ``agent-tui acp``: the client side of the protocol's own package, and one that writes lines."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from agent_tui.options import Options
from tests.support.cli import Cli
from tests.support.lazily import LazyModule

acp = LazyModule("acp")
agent_acp = LazyModule("agent_tui.acp")


class Client:
    """An editor that answers each permission with the next of ``answers``: the kind of an option."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []
        self.elicited: list[tuple[str, Any]] = []
        self.updates: list[Any] = []

    async def request_permission(self, session_id: str, tool_call: Any, options: list[Any], **more: Any) -> Any:
        self.asked.append(tool_call)
        kind = self.answers.pop(0)
        chosen = next(option.option_id for option in options if option.kind == kind)
        outcome = acp.schema.AllowedOutcome(outcome="selected", option_id=chosen)
        return acp.schema.RequestPermissionResponse(outcome=outcome)

    async def create_elicitation(self, message: str, mode: Any, **more: Any) -> Any:
        self.elicited.append((message, mode))
        if isinstance(mode, acp.schema.ElicitationUrlSessionMode):
            return acp.schema.DeclineElicitationResponse(action="decline")
        return acp.schema.AcceptElicitationResponse(action="accept", content={"city": "Rome", "days": 2})

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        self.updates.append(update)

    def of(self, kind: str) -> list[Any]:
        return [each for each in self.updates if each.session_update == kind]

    def text(self, kind: str = "agent_message_chunk") -> str:
        return "".join(each.content.text for each in self.of(kind))


class Editor:
    """A session of an editor, and what it hears."""

    def __init__(self, agent: Any, client: Any, session: Any, folder: str) -> None:
        self.agent, self.client, self.session, self.folder = agent, client, session, folder
        self.id = session.session_id

    async def say(self, *blocks: Any) -> Any:
        return await self.agent.prompt(session_id=self.id, prompt=list(blocks))


@asynccontextmanager
async def started(client: Any, model: str = "demo", can: Any = None, *, trust: bool = False) -> AsyncIterator[Any]:
    """The editor's side of a connection to the program, which runs in this process."""
    ours, theirs = socket.socketpair()
    async with asyncio.timeout(60):
        with theirs, theirs.makefile("rb") as source, theirs.makefile("wb") as sink:
            reader, writer = await asyncio.open_connection(sock=ours)
            options = Options(model=model, editor=True, trust=trust)
            talking = asyncio.create_task(agent_acp.talk(options, agent_acp.AcpWire(source, sink)))
            connection = acp.core.ClientSideConnection(client, writer, reader, use_unstable_protocol=True)
            agent: Any = connection
            try:
                await agent.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities=can)
                yield agent
            finally:
                writer.write_eof()
                await talking
                await connection.close()
                writer.close()


@asynccontextmanager
async def opened(cli: Cli, *kinds: str, model: str = "demo", servers: Any = ()) -> AsyncIterator[Editor]:
    client: Any = Client(*kinds)
    # A server of the editor's may lie where commands write, as the repository itself may.
    async with started(client, model, trust=bool(servers)) as agent:
        session = await agent.new_session(cwd=str(cli.project), mcp_servers=list(servers))
        yield Editor(agent, client, session, str(cli.project))


class Raw:
    """A client that writes lines by hand to a program of its own, begun by ``start``."""

    def __init__(self, start: Callable[..., subprocess.Popen[str]]) -> None:
        self.process = start("acp", "-m", "demo", stdin=subprocess.PIPE)
        self.watchdog = threading.Timer(60, self.process.kill)
        self.watchdog.start()

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, **params: Any) -> None:
        self.say(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}))

    def tell(self, method: str, **params: Any) -> None:
        self.say(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    def answer(self, id: Any, **result: Any) -> None:
        self.say(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}))

    def next(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def until(self, key: str, value: object) -> Any:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if (found := json.loads(line)).get(key) == value:
                return found
        raise AssertionError(f"no {value} came")

    def end(self) -> int:
        self.process.communicate()
        self.watchdog.cancel()
        return self.process.returncode
