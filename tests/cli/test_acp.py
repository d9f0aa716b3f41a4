"""``agent-tui acp``, driven by the client side of the protocol's own package."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from typing import Any

import pytest
from acp import PROTOCOL_VERSION, schema, spawn_agent_process, text_block

from tests.support.cli import Cli, environment

WRITE = """
[[step]]
text = "I write it."
tool_calls = [{ name = "write", arguments = { path = "a.txt", content = "one\\n" } }]
[[step]]
text = "Done."
"""


class Client:
    """An editor that answers each permission with the next of ``answers``: the kind of an option."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []
        self.updates: list[Any] = []

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **more: Any
    ) -> schema.RequestPermissionResponse:
        self.asked.append(tool_call)
        kind = self.answers.pop(0)
        chosen = next(option.option_id for option in options if option.kind == kind)
        outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        self.updates.append(update)

    def text(self) -> str:
        return "".join(each.content.text for each in self.updates if each.session_update == "agent_message_chunk")


async def test_a_permission_is_refused_and_a_diff_accepted(cli: Cli) -> None:
    cli.script(WRITE + WRITE)
    client: Any = Client("reject_once", "allow_once")
    program = (sys.executable, "-m", "agent_tui", "acp", "-m", "demo")
    async with asyncio.timeout(60), spawn_agent_process(client, *program, env=environment(cli.env)) as (agent, _):
        told = await agent.initialize(protocol_version=PROTOCOL_VERSION)
        assert told.agent_capabilities is not None and told.agent_capabilities.load_session
        session = await agent.new_session(cwd=str(cli.project), mcp_servers=[])
        first = await agent.prompt(session_id=session.session_id, prompt=[text_block("write")])
        assert first.stop_reason == "end_turn" and first.field_meta is not None
        assert first.field_meta["context"]["total"] > 0
        assert not (cli.project / "a.txt").exists()
        assert [each.status for each in client.updates if each.session_update == "tool_call_update"][-1] == "failed"
        await agent.prompt(session_id=session.session_id, prompt=[text_block("write after all")])
        assert (cli.project / "a.txt").read_text() == "one\n"
        (diff,) = client.asked[1].content
        assert (diff.type, diff.old_text, diff.new_text) == ("diff", None, "one")
        assert diff.path == str(cli.project / "a.txt")
        assert client.text() == "I write it.Done." * 2
        client.updates.clear()
        await agent.load_session(cwd=str(cli.project), session_id=session.session_id, mcp_servers=[])
        assert client.text() == "I write it.Done." * 2
        assert client.updates[0].content.text == "write"


class Raw:
    """A client that writes lines by hand."""

    def __init__(self, cli: Cli) -> None:
        self.process = cli.start("acp", "-m", "demo", stdin=subprocess.PIPE)
        self.watchdog = threading.Timer(60, self.process.kill)
        self.watchdog.start()

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, **params: Any) -> None:
        self.say(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}))

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


@pytest.mark.slow
def test_nonsense_gets_an_error_and_the_end_of_input_ends_it(cli: Cli) -> None:
    client = Raw(cli)
    for nonsense in ("nonsense", "[1]", "[" * 100_000):
        client.say(nonsense)
        assert client.until("id", None)["error"]["code"] == -32700
    client.ask("session/prompt", sessionId="none", prompt=[{"type": "text", "text": "hi"}])
    assert "No such session" in str(client.until("id", "session/prompt")["error"])
    client.ask("initialize", protocolVersion=1)
    assert client.until("id", "initialize")["result"]["protocolVersion"] == 1
    assert client.end() == 0


@pytest.mark.slow
def test_an_editor_that_leaves_in_the_middle_of_a_question_says_no(cli: Cli) -> None:
    cli.script(WRITE)
    client = Raw(cli)
    client.ask("initialize", protocolVersion=1)
    client.ask("session/new", cwd=str(cli.project), mcpServers=[])
    session = client.until("id", "session/new")["result"]["sessionId"]
    client.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "write"}])
    client.until("method", "session/request_permission")
    assert client.end() == 0
    assert list(cli.project.iterdir()) == []
