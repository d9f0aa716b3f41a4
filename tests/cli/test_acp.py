"""``agent-tui acp``, driven by the client side of the protocol's own package."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_tui.control.control import Question
from agent_tui.models.events import AnswerInterrupted
from agent_tui.models.messages import Message, SearchPart, TextPart
from agent_tui.store.store import Store
from tests.cli.editors import Client, Raw, opened, started
from tests.recordings import needs_recordings
from tests.support import recorded
from tests.support.cli import Cli, answers
from tests.support.end_to_end import calls, reply
from tests.support.lazily import LazyModule
from tests.support.loopback import Loopback
from tests.support.mcp_servers import ASKING, SERVER
from tests.support.model_calls import KEY
from tests.support.nursery import stand_in
from tests.support.pixel import PIXEL_BASE64

acp = LazyModule("acp")
acp_updates = LazyModule("agent_tui.acp_updates")

WRITE = """
[[step]]
text = "I write it."
tool_calls = [{ name = "write", arguments = { path = "a.txt", content = "one\\n" } }]
[[step]]
text = "Done."
"""


@pytest.mark.quick
async def test_a_permission_is_refused_and_a_diff_accepted(cli: Cli) -> None:
    cli.script(WRITE + WRITE)
    client: Any = Client("reject_once", "allow_once")
    async with started(client) as agent:
        told = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        assert told.agent_capabilities is not None and told.agent_capabilities.load_session
        session = await agent.new_session(cwd=str(cli.project), mcp_servers=[])
        first = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("write")])
        assert first.stop_reason == "end_turn" and first.field_meta is not None
        assert first.field_meta["context"]["total"] > 0
        assert not (cli.project / "a.txt").exists()
        assert [each.status for each in client.updates if each.session_update == "tool_call_update"][-1] == "failed"
        await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("write after all")])
        assert (cli.project / "a.txt").read_text() == "one\n"
        (diff,) = client.asked[1].content
        assert (diff.type, diff.old_text, diff.new_text) == ("diff", None, "one")
        assert diff.path == str(cli.project / "a.txt")
        assert client.text() == "I write it.Done." * 2
        client.updates.clear()
        await agent.load_session(cwd=str(cli.project), session_id=session.session_id, mcp_servers=[])
        assert client.text() == "I write it.Done." * 2
        assert client.text("user_message_chunk") == "writewrite after all"
    with Store.open(cli.paths.database) as store, store.locks.take(session.session_id):
        pass  # who left holds no session


@pytest.mark.quick
def test_nonsense_gets_an_error_and_the_end_of_input_ends_it(cli: Cli) -> None:
    """The program as an editor starts it."""
    client = Raw(cli.start)
    for nonsense in ("nonsense", "[1]", "[" * 100_000):
        client.say(nonsense)
        assert client.until("id", None)["error"]["code"] == -32700
    client.ask("session/prompt", sessionId="none", prompt=[{"type": "text", "text": "hi"}])
    assert "No such session" in str(client.until("id", "session/prompt")["error"])
    client.ask("initialize", protocolVersion=1)
    assert client.until("id", "initialize")["result"]["protocolVersion"] == 1
    client.ask("session/new", cwd=str(cli.project), mcpServers=[])
    session = client.until("id", "session/new")["result"]["sessionId"]
    assert client.next()["params"]["update"]["sessionUpdate"] == "available_commands_update", "once it is known"
    cli.script(answers("Hello."))
    client.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "hi"}])
    assert client.until("id", "session/prompt")["result"]["stopReason"] == "end_turn"
    assert client.end() == 0


@pytest.mark.slow
def test_an_editor_that_leaves_in_the_middle_of_a_question_says_no(cli: Cli) -> None:
    cli.script(WRITE)
    client = Raw(cli.fork)
    client.ask("initialize", protocolVersion=1)
    client.ask("session/new", cwd=str(cli.project), mcpServers=[])
    session = client.until("id", "session/new")["result"]["sessionId"]
    client.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "write"}])
    client.until("method", "session/request_permission")
    assert client.end() == 0
    assert list(cli.project.iterdir()) == []


async def test_a_turn_that_stopped_goes_on_or_fails_with_its_reason(cli: Cli) -> None:
    refused = '[[step]]\nerror = { kind = "auth", message = "The key was refused." }\n'
    cli.script(refused + answers("Good.") + refused)
    async with opened(cli, "allow_once", "reject_once") as editor:
        assert (await editor.say(acp.text_block("one"))).stop_reason == "end_turn"
        assert editor.client.text() == "Good."
        with pytest.raises(acp.RequestError, match="The key was refused"):
            await editor.say(acp.text_block("two"))
        await editor.say(acp.text_block("/context"))


async def test_modes_models_and_sessions_are_listed_and_changed(cli: Cli) -> None:
    cli.config('[models.other]\nmodel = "demo"\n')
    cli.script(answers("First."))
    async with opened(cli) as editor:
        assert editor.session.modes.current_mode_id == "ask"
        await editor.agent.set_session_mode(session_id=editor.id, mode_id="plan")
        with pytest.raises(acp.RequestError):
            await editor.agent.set_session_mode(session_id=editor.id, mode_id="bypass")
        mode, model = editor.session.config_options  # the demo model has no levels of thinking
        assert [(each.id, each.current_value) for each in (mode, model)] == [("mode", "ask"), ("model", "demo")]
        assert {"demo", "other"} <= {each.value for each in model.options}
        changed = await editor.agent.set_config_option(config_id="model", session_id=editor.id, value="other")
        assert [each.current_value for each in changed.config_options] == ["plan", "other"]
        await editor.agent.set_config_option(config_id="mode", session_id=editor.id, value="ask")
        with pytest.raises(acp.RequestError):
            await editor.agent.set_config_option(config_id="model", session_id=editor.id, value="no such/model")
        await editor.say(acp.text_block("one"))
    listed: Any = Client()
    async with started(listed) as agent:
        (session,) = (await agent.list_sessions(cwd=str(cli.project))).sessions
        assert (session.session_id, session.title) == (editor.id, "one")
        loaded = await agent.load_session(cwd=session.cwd, session_id=session.session_id, mcp_servers=[])
        assert loaded.config_options is not None and loaded.config_options[1].current_value == "other"
    assert cli.run("export", editor.id).json["session"]["kind"] == "user", "what was said in an editor is a chat"


async def test_commands_answer_and_own_ones_are_sent(cli: Cli) -> None:
    commands = cli.paths.config_file.parent / "commands"
    commands.mkdir(parents=True)
    (commands / "shout.md").write_text("Say $ARGUMENTS loudly.", "utf-8")
    cli.script(answers("HI!"))
    async with opened(cli) as editor:
        assert (await editor.say(acp.text_block("/context"))).stop_reason == "end_turn"
        (told,) = editor.client.of("available_commands_update")
        assert {"context", "compact", "usage", "shout"} <= {each.name for each in told.available_commands}
        assert "tokens" in editor.client.text() and "System prompt" in editor.client.text()
        editor.client.updates.clear()
        await editor.say(acp.text_block("/shout hi"))
        assert editor.client.text() == "HI!"
        with pytest.raises(acp.RequestError, match="No compactions yet"):
            await editor.say(acp.text_block("/compact show 9"))


@pytest.mark.quick
def test_servers_of_the_editor_are_written_as_files_have_them() -> None:
    schema = acp.schema
    header, variable = schema.HttpHeader(name="X-Team", value="a"), schema.EnvVariable(name="HOME", value="/h")
    reached = [
        schema.HttpMcpServer(name="web", url="https://mcp.example/", headers=[header], type="http"),
        schema.SseMcpServer(name="old", url="https://sse.example/", headers=[], type="sse"),
        schema.McpServerStdio(name="own", command="run", args=["-x"], env=[variable]),
    ]
    assert [acp_updates.server_entry(server) for server in reached] == [
        {"type": "http", "url": "https://mcp.example/", "headers": {"X-Team": "a"}},
        {"type": "sse", "url": "https://sse.example/", "headers": {}},
        {"command": "run", "args": ["-x"], "env": {"HOME": "/h"}},
    ]
    with pytest.raises(acp.RequestError):
        acp_updates.server_entry(schema.AcpMcpServer(name="within", server_id="s", type="acp"))


@pytest.mark.slow
async def test_images_files_plans_and_servers_arrive(cli: Cli, server_nursery: str, forked_host: None) -> None:
    todo = '{ items = [{ content = "Look", status = "in_progress" }, { content = "Mend", status = "pending" }] }'
    cli.script(f'[[step]]\ntool_calls = [{{ name = "todo", arguments = {todo} }}]\n' + answers("Planned."))
    command, *rest = stand_in(server_nursery, SERVER)
    server = acp.schema.McpServerStdio(name="own", command=command, args=rest, env=[])
    async with opened(cli, servers=[server]) as editor:
        file = acp.resource_block(acp.embedded_text_resource("file:///elsewhere/notes.md", "Never forget."))
        await editor.say(acp.text_block("look"), acp.image_block(PIXEL_BASE64, "image/png"), file)
        (plan,) = editor.client.of("plan")
        assert [(each.content, each.status) for each in plan.entries] == [("Look", "in_progress"), ("Mend", "pending")]
        with pytest.raises(acp.RequestError):
            await editor.say(acp.image_block("bm9uZQ==", "image/png"))
        with pytest.raises(acp.RequestError, match="Unknown command"):
            await editor.say(acp.text_block("/own:nonsense"))  # no request waits for a server, but one that names it
        await editor.say(acp.text_block("/context"))
        assert "own" in editor.client.text()
    sent = json.loads(cli.run("export", editor.id).out)["messages"][0]["parts"]
    names = [part["name"] for part in sent if part["type"] == "attachment"]
    assert names == ["permission mode", "image 1", "notes.md"]


@pytest.mark.slow
@pytest.mark.parametrize("able", [True, False])
async def test_what_a_server_asks_is_put_where_the_editor_has_a_place_for_it(cli: Cli, able: bool) -> None:
    cli.config(f"[mcp.asks]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(ASKING)}]\nrequired = true\n")
    tools = ", ".join(f'{{ name = "mcp__asks__{name}", arguments = {{}} }}' for name in ("plan_again", "pay_again"))
    cli.script(f"[[step]]\ntool_calls = [{tools}]\n" + answers("Done."))
    # An editor without forms is asked about the address alone, as about a permission.
    client: Any = Client("allow_once", "allow_once", *([] if able else ["reject_once"]))
    places = acp.schema.ElicitationCapabilities(
        form=acp.schema.ElicitationFormCapabilities(), url=acp.schema.ElicitationUrlCapabilities()
    )
    can = acp.schema.ClientCapabilities(elicitation=places if able else None)
    async with started(client, can=can) as agent:
        session = await agent.new_session(cwd=str(cli.project), mcp_servers=[])
        await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("plan")])
    results = [update.content[0].content.text for update in client.of("tool_call_update") if update.content]
    assert results[-2].startswith("accept {'days': 2, 'train': False" if able else "decline")
    assert results[-1] == "decline"
    if not able:
        assert client.elicited == []
        assert client.asked[-1].title == "asks: https://pay.example.com/start?id=1\nPay there."
        return
    (asked, form), (_, page) = client.elicited
    assert asked == "asks: Where do you want to go?" and form.requested_schema.required == ["city"]
    assert str(page.url) == "https://pay.example.com/start?id=1"


@pytest.mark.quick
@pytest.mark.parametrize(
    ("question", "begins"),
    [
        (Question("q", "server", "", (), server="asks", reason="demo: at most $0.10"), "asks: demo: at most $0.10\n"),
        (Question("q", "server", "", (), server="asks", url="https://pay.example.com/"), "asks: https://pay.exa"),
        (Question("q", "plan", "", ()), "words words"),
    ],
)
def test_a_long_question_is_told_in_full(tmp_path: Path, question: Question, begins: str) -> None:
    text = "words " * 60_000 + "the end"
    call, _ = acp_updates.asked(replace(question, text=text), tmp_path)
    assert call.title is not None and call.title.startswith(begins)
    assert len(call.title) <= 4_000 and call.title.endswith("…")
    (below,) = call.content or []
    assert isinstance(below, acp.schema.ContentToolCallContent) and isinstance(
        below.content, acp.schema.TextContentBlock
    )
    assert below.content.text.startswith(begins) and below.content.text.endswith(text)
    short, _ = acp_updates.asked(replace(question, text="words words"), tmp_path)
    assert short.title is not None and short.title.endswith("words words") and not short.content


async def test_cancel_ends_the_turn(cli: Cli) -> None:
    cli.script('[[step]]\ntext = "Long."\nhang = true\nafter = 3\n')
    async with opened(cli) as editor:
        saying = asyncio.create_task(editor.say(acp.text_block("one")))
        while not editor.client.text() and not saying.done():
            await asyncio.wait({saying}, timeout=0.01)
        await editor.agent.cancel(session_id=editor.id)
        assert (await saying).stop_reason == "cancelled"


@needs_recordings
async def test_a_recorded_stream_arrives_whole(cli: Cli) -> None:
    name = "anthropic-sonnet4-thinking-tool-cache.step2"
    expected = recorded.load("anthropic-sonnet4-thinking-tool-cache")["expected"]
    with Loopback(posts_only=True) as server:
        server.serve("*", reply("anthropic-sonnet4-thinking-tool-cache"), reply(name))
        cli.config(
            '[models.x]\nmodel = "anthropic/claude-sonnet-4-20250514"\n'
            f'api_base = "{server.url}/v1"\napi_key_env = "MY_KEY"\n'
        )
        cli.setenv("MY_KEY", KEY)
        async with opened(cli, model="x") as editor:
            done = await editor.say(acp.text_block("What's the weather in Florence?"))
        assert len(calls(server)) == 2
    assert editor.client.text("agent_thought_chunk").startswith(expected["reasoning"])
    assert editor.client.text().endswith(recorded.load(name)["expected"]["text"])
    (call,) = editor.client.of("tool_call")
    made = expected["tool_calls"][0]
    assert call.title.startswith(made["name"]) and call.raw_input == made["arguments"]
    assert [each.used for each in editor.client.of("usage_update")][-1] == done.field_meta["context"]["total"]


@pytest.mark.quick
def test_a_search_at_the_provider_is_a_call_that_is_complete(tmp_path: Path) -> None:
    call = SearchPart({"id": "s", "query": "who won"})
    found = SearchPart({"id": "s", "sources": [["A", "https://a.example/"]]})
    message = Message("m", "assistant", [call, found, TextPart("They won.")])
    started, ended, said = acp_updates.told_again(message, tmp_path)
    assert (started.tool_call_id, started.raw_input) == ("s", {"query": "who won"})
    assert (ended.tool_call_id, ended.status) == ("s", "completed")
    assert said.content.text == "They won."


@pytest.mark.quick
def test_an_interrupted_answer_is_said_where_nothing_can_be_taken_back() -> None:
    (update,) = acp_updates.updates(AnswerInterrupted("m"), Path("/p"))
    assert update.session_update == "agent_message_chunk" and "The answer begins again" in update.content.text
