"""Sessions of editors beyond the first: kept, copied, changed under way, and editors that answer wrongly."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from agent_tui.options import Options
from tests.cli.editors import Client, Raw, opened, started
from tests.support.cli import Cli, answers
from tests.support.forms import one_of
from tests.support.lazily import LazyModule
from tests.support.pixel import PIXEL_BASE64

acp = LazyModule("acp")
agent_acp = LazyModule("agent_tui.acp")

WRITE = """
[[step]]
tool_calls = [{ name = "write", arguments = { path = "a.txt", content = "one\\n" } }]
[[step]]
text = "Done."
"""
PLAN = """
[[step]]
tool_calls = [{ name = "present_plan", arguments = { plan = "Mend it." } }]
[[step]]
text = "Mended."
"""


@pytest.mark.slow
async def test_a_session_without_a_word_and_a_copy_are_opened_again(cli: Cli) -> None:
    cli.script(answers("First.", "Second.", "Third."))
    below = cli.project / "below"
    below.mkdir()
    (cli.project / ".agent-tui").mkdir()
    async with opened(cli) as editor:
        quiet = editor.id
    client: Any = Client()
    async with started(client) as agent:
        await agent.load_session(cwd=str(below), session_id=quiet, mcp_servers=[])
        await agent.prompt(session_id=quiet, prompt=[acp.text_block("one")])
        copy = (await agent.fork_session(cwd=str(below), session_id=quiet, mcp_servers=[])).session_id
        assert copy != quiet
        await agent.prompt(session_id=copy, prompt=[acp.text_block("two")])
        await agent.close_session(session_id=copy)
        with pytest.raises(acp.RequestError, match="No such session is open"):
            await agent.prompt(session_id=copy, prompt=[acp.text_block("three")])
        client.updates.clear()
        await agent.resume_session(cwd=str(below), session_id=copy, mcp_servers=[])
        assert not client.of("user_message_chunk"), "what is resumed is not told again"
        await agent.prompt(session_id=copy, prompt=[acp.text_block("three")])
        assert client.text() == "First.", "its script begins anew"
        for place in (cli.project, below):
            listed = (await agent.list_sessions(cwd=str(place))).sessions
            assert {each.session_id for each in listed} == {quiet, copy}
        with pytest.raises(acp.RequestError, match="no such session"):
            await agent.fork_session(cwd=str(below), session_id="ses_none", mcp_servers=[])


def test_the_list_has_pages(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_tui.acp._LISTED", 2)
    for _ in range(5):
        cli.script(answers("One."))
        cli.run("-p", "hi", "-m", "demo")
    editor = agent_acp.EditorAgent(Options())

    async def all_of_them() -> list[str]:
        found: list[str] = []
        cursor: str | None = None
        while page := await editor.list_sessions(cursor=cursor):
            found += [each.session_id for each in page.sessions]
            if (cursor := page.next_cursor) is None:
                break
        with pytest.raises(acp.RequestError, match="no place"):
            await editor.list_sessions(cursor="nonsense")
        return found

    found = asyncio.run(all_of_them())
    assert len(found) == len(set(found)) == 5


async def test_a_mode_that_an_answer_changes_is_told(cli: Cli) -> None:
    cli.script(PLAN)
    async with opened(cli, "allow_once") as editor:
        await editor.agent.set_session_mode(session_id=editor.id, mode_id="plan")
        await editor.say(acp.text_block("mend"))
        assert editor.client.asked[0].title == "Mend it."
        (mode,) = [each.current_mode_id for each in editor.client.of("current_mode_update")][-1:]
        (options,) = [each.config_options for each in editor.client.of("config_option_update")][-1:]
        assert mode == options[0].current_value != "plan"
        assert [each.title for each in editor.client.of("session_info_update")] == ["mend"]
        told = [(each.used, each.cost) for each in editor.client.of("usage_update")]
        assert all(one != other for one, other in pairwise(told)), "the same is not told twice"


@pytest.mark.quick
async def test_a_wrong_answer_is_a_no_and_the_turn_goes_on(cli: Cli) -> None:
    wrong: list[Any] = [[7], {"outcome": 7}, {"outcome": "selected", "optionId": "?"}, {"outcome": "cancelled"}]

    class Wrong(Client):
        async def request_permission(self, session_id: str, tool_call: Any, options: list[Any], **more: Any) -> Any:
            if not wrong:
                raise acp.RequestError(-32603, "no dialog here")
            return {"outcome": wrong.pop()}

    cli.script(WRITE * 5)
    client: Any = Wrong()
    async with started(client) as agent:
        session = await agent.new_session(cwd=str(cli.project), mcp_servers=[])
        for _ in range(5):
            done = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("write")])
            assert done.stop_reason == "end_turn"
    assert client.text() == "Done." * 5 and list(cli.project.iterdir()) == []


@pytest.mark.slow
def test_an_editor_that_cancels_and_answers_later_and_twice(cli: Cli) -> None:
    cli.script(WRITE + answers("On."))
    client = Raw(cli.fork)
    client.ask("initialize", protocolVersion=1)
    client.ask("session/new", cwd=str(cli.project), mcpServers=[])
    session = client.until("id", "session/new")["result"]["sessionId"]
    client.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "write"}])
    asked = client.until("method", "session/request_permission")["id"]
    client.tell("session/cancel", sessionId=session)
    assert client.until("id", "session/prompt")["result"]["stopReason"] == "cancelled"
    for _ in range(2):
        client.answer(asked, outcome={"outcome": "selected", "optionId": "y"})
    client.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "go on"}])
    assert client.until("id", "session/prompt")["result"]["stopReason"] == "end_turn"
    assert client.end() == 0
    assert list(cli.project.iterdir()) == []


async def test_what_a_session_shows_when_it_is_loaded(cli: Cli) -> None:
    cli.script(answers("Seen."))
    async with opened(cli) as editor:
        link = acp.resource_link_block("a.py", f"file://{cli.project}/a%20b.py")
        await editor.say(
            acp.text_block("Look at "), link, acp.text_block("and this"), acp.image_block(PIXEL_BASE64, "image/png")
        )
    loaded: Any = Client()
    async with started(loaded) as agent:
        await agent.load_session(cwd=str(cli.project), session_id=editor.id, mcp_servers=[])
    text, image = (each.content for each in loaded.of("user_message_chunk"))
    assert text.text == f"Look at {cli.project}/a b.py and this"
    assert (image.type, image.mime_type) == ("image", "image/png")
    assert [each.content.text for each in loaded.of("agent_message_chunk")] == ["Seen."]


@pytest.mark.quick
async def test_each_place_of_a_change_is_a_diff_of_its_own(cli: Cli) -> None:
    lines = [f"{number}\n" for number in range(40)]
    (cli.project / "a.txt").write_text("".join(lines))
    (cli.project / "b.txt").write_text("-- old\n")
    patch = (
        "*** Begin Patch\n*** Update File: a.txt\n@@\n-2\n+two\n@@\n-30\n+thirty\n"
        "*** Update File: b.txt\n@@\n--- old\n+-- new\n*** Add File: c.txt\n+three\n*** End Patch"
    )
    cli.script(
        "[[step]]\ntool_calls = [{ name = 'apply_patch', arguments = { patch = '''"
        + patch
        + "''' } }]\n"
        + answers("Done.")
    )
    async with opened(cli, "allow_once") as editor:
        await editor.say(acp.text_block("patch"))
        done = [each for each in editor.client.of("tool_call_update") if each.status == "completed"]
        assert done, [each.content for each in editor.client.of("tool_call_update")]
        told = [(each.path.rpartition("/")[2], each.old_text, each.new_text) for each in done[0].content]
    assert [name for name, _, _ in told] == ["a.txt", "a.txt", "b.txt", "c.txt"]
    assert (told[0][1] or "").splitlines()[-4:] == ["2", "3", "4", "5"] and "two" in told[0][2].splitlines()
    assert told[2:] == [("b.txt", "-- old", "-- new"), ("c.txt", None, "three")]


@pytest.mark.slow
async def test_output_of_a_command_comes_while_it_runs(cli: Cli) -> None:
    command = "echo early; until test -e go; do :; done; echo late"
    cli.script(
        f'[[step]]\ntool_calls = [{{ name = "bash", arguments = {{ command = "{command}" }} }}]\n' + answers("Ran.")
    )

    class Watching(Client):
        async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
            await super().session_update(session_id, update, **more)
            if update.session_update == "tool_call_update" and "early" in str(update.content):
                (cli.project / "go").touch()

    client: Any = Watching("allow_once")
    async with started(client) as agent:
        session = await agent.new_session(cwd=str(cli.project), mcp_servers=[])
        await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("run")])
    assert client.text() == "Ran."
    whole = client.of("tool_call_update")[-1]
    assert whole.status == "completed" and "late" in whole.content[0].content.text


async def test_an_editor_steers_and_edits_the_context(cli: Cli) -> None:
    cli.script('[[step]]\ntext = "Long."\nhang = true\nafter = 3\n' + answers("Steered."))

    async def control(editor: Any, **request: Any) -> Any:
        return await editor.agent.ext_method("agent-tui/control", {"sessionId": editor.id, "request": request})

    async with opened(cli) as editor:
        with pytest.raises(acp.RequestError, match="No turn is running"):
            await control(editor, subtype="steer", text="faster")
        with pytest.raises(acp.RequestError, match="Unknown control request"):
            await control(editor, subtype="nonsense")
        saying = asyncio.create_task(editor.say(acp.text_block("one")))
        while not editor.client.text() and not saying.done():
            await asyncio.wait({saying}, timeout=0.01)
        await control(editor, subtype="steer", text="faster")
        with pytest.raises(acp.RequestError, match="already running"):
            await editor.say(acp.text_block("two"))
        await editor.agent.cancel(session_id=editor.id)
        assert (await saying).stop_reason == "cancelled"
        total = (await control(editor, subtype="get_context"))["total"]
        first = next(row for row in (await editor.agent.list_sessions(cwd=str(cli.project))).sessions)
        assert first.session_id == editor.id and total > 0
        await editor.say(acp.text_block("/context"))
        assert "tokens" in editor.client.text()


@pytest.mark.parametrize(
    ("filled", "told"),
    one_of(
        [
            ({"choices": ["red", "blue"], "text": "and green"}, "red; blue"),
            ({"text": "green"}, "green"),
            ({"choices": ["pink"]}, "declined"),
            (None, "declined"),
        ],
        2,
    ),
)
async def test_a_question_of_the_model_is_a_form_where_the_editor_has_those(
    cli: Cli, filled: dict[str, Any] | None, told: str
) -> None:
    class Forms(Client):
        async def create_elicitation(self, message: str, mode: Any, **more: Any) -> Any:
            assert message.startswith("Which?") and set(mode.requested_schema.properties) == {"choices", "text"}
            if filled is None:
                return acp.schema.DeclineElicitationResponse(action="decline")
            return acp.schema.AcceptElicitationResponse(action="accept", content=filled)

    call = '{ name = "ask", arguments = { question = "Which?", choices = ["red", "blue"], several = true } }'
    cli.script(f"[[step]]\ntool_calls = [{call}]\n" + answers("Good."))
    client: Any = Forms()
    can = acp.schema.ClientCapabilities(
        elicitation=acp.schema.ElicitationCapabilities(form=acp.schema.ElicitationFormCapabilities())
    )
    async with started(client, can=can) as agent:
        session = await agent.new_session(cwd=str(cli.project), mcp_servers=[])
        await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("ask")])
    assert client.text() == "Good." and told in client.of("tool_call_update")[-1].content[0].content.text


async def test_a_folder_is_trusted_in_the_editor(cli: Cli) -> None:
    (cli.project / ".claude/commands").mkdir(parents=True)
    (cli.project / ".claude/commands/hi.md").write_text("Say hi")
    cli.script(answers("First.", "Hi!"))
    async with opened(cli) as editor:
        await editor.say(acp.text_block("one"))
        assert "not trusted" in editor.client.text("agent_thought_chunk")
        with pytest.raises(acp.RequestError, match="Unknown command"):
            await editor.say(acp.text_block("/hi"))
        await editor.say(acp.text_block("/trust yes"))
        said = editor.client.text()
        assert "was not shown before" in said and "command /hi in .claude/commands" in said and "Say hi" in said
        await editor.say(acp.text_block("/trust yes"))
        assert "hi" in [each.name for each in editor.client.of("available_commands_update")[-1].available_commands]
        editor.client.updates.clear()
        await editor.say(acp.text_block("/hi"))
        assert editor.client.text() == "Hi!"


async def test_a_session_that_is_open_elsewhere_says_so(cli: Cli) -> None:
    cli.script(answers("First.", "Second."))
    async with opened(cli) as editor:
        await editor.say(acp.text_block("one"))
        other: Any = Client()
        async with started(other) as agent:
            await agent.load_session(cwd=str(cli.project), session_id=editor.id, mcp_servers=[])
            with pytest.raises(acp.RequestError, match="open in another window"):
                await agent.prompt(session_id=editor.id, prompt=[acp.text_block("two")])


async def test_more_folders_and_what_is_not_taken(cli: Cli) -> None:
    other = cli.project.parent / "other"
    other.mkdir()
    cli.script(answers("First."))
    async with opened(cli) as editor:
        folders: Any = {"additional_directories": [str(other)]}
        session = await editor.agent.new_session(cwd=str(cli.project), mcp_servers=[], **folders)
        assert session.session_id != editor.id
        with pytest.raises(acp.RequestError, match="no such folder"):
            await editor.agent.new_session(
                cwd=str(cli.project), mcp_servers=[], additional_directories=[str(other / "none")]
            )
        with pytest.raises(acp.RequestError, match="no such folder"):
            await editor.agent.new_session(cwd=str(other / "none"), mcp_servers=[])
        with pytest.raises(acp.RequestError, match="audio"):
            await editor.say(acp.schema.AudioContentBlock(type="audio", data="", mime_type="audio/wav"))
        with pytest.raises(acp.RequestError, match="through the editor alone"):
            await editor.agent.new_session(
                cwd=str(cli.project), mcp_servers=[acp.schema.AcpMcpServer(type="acp", name="x", server_id="1")]
            )
