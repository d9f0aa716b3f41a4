"""A run that another program drives by stream-json: it asks, answers, steers and looks at the context."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest

from agent_tui import Session
from agent_tui.control import lines as control_lines
from agent_tui.models.events import PartDelta
from tests.cli.drivers import driven
from tests.recordings import needs_recordings
from tests.support import recorded
from tests.support.cli import Cli, answers
from tests.support.end_to_end import calls, reply
from tests.support.loopback import Loopback
from tests.support.mcp_servers import ASKING
from tests.support.model_calls import KEY

FLAGS = ("-p", "--input-format", "stream-json", "--output-format", "stream-json", "-m", "demo")
ASKS = (*FLAGS, "--permission-prompt-tool", "stdio")
WRITE = """
[[step]]
text = "I write it."
tool_calls = [{ name = "write", arguments = { path = "a.txt", content = "one\\n" } }]
[[step]]
text = "Done."
"""


REFUSED = '[[step]]\nerror = { kind = "auth", message = "The key was refused." }\n'


@pytest.mark.quick
def test_a_permission_is_asked_and_the_answer_decides(cli: Cli) -> None:
    cli.script(WRITE + WRITE)
    with driven(cli, *ASKS) as driver:
        driver.say({"type": "user", "text": "write"})
        question = driver.until("control_request")
        asked = question["request"]
        assert (asked["subtype"], asked["tool_name"]) == ("can_use_tool", "write")
        assert asked["input"] == {"path": "a.txt", "content": "one\n"}
        assert asked["display"]["kind"] == "diff" and "one" in asked["display"]["text"]
        driver.reply(question, behavior="deny", message="Not there.")
        assert "Not there." in driver.until("tool_result")["text"]
        assert driver.until("turn_end")["text"] == "Done."
        assert not (cli.project / "a.txt").exists()

        driver.say({"type": "user", "text": "write after all"})
        question = driver.until("control_request")
        driver.reply(question, behavior="allow", updatedInput=question["request"]["input"])
        driver.until("turn_end")
        assert (cli.project / "a.txt").read_text() == "one\n"
        assert driver.end() == 0
    assert "control_cancel_request" not in [entry["type"] for entry in driver.seen]


def test_a_second_answer_and_one_that_changes_the_call_are_error_events(cli: Cli) -> None:
    cli.script(WRITE)
    with driven(cli, *ASKS) as driver:
        driver.say({"type": "user", "text": "write"})
        question = driver.until("control_request")
        driver.reply(question, behavior="allow", updatedInput={"path": "b.txt", "content": "two"})
        assert "updatedInput" in driver.until("error")["message"]
        driver.reply(question, options=["nonsense"])
        assert "nonsense" in driver.until("error")["message"]
        driver.reply(question, behavior="deny")
        driver.reply(question, behavior="allow")
        assert "is closed" in driver.until("error")["message"]
        assert driver.until("turn_end")["stop_reason"] == "end"
        assert driver.end() == 2
    assert list(cli.project.iterdir()) == []


def test_a_driver_that_goes_away_in_the_middle_of_a_question_says_no(cli: Cli) -> None:
    cli.script(WRITE)
    with driven(cli, *ASKS) as driver:
        driver.say({"type": "user", "text": "write"})
        driver.until("control_request")
        assert driver.end() == 0
    assert not (cli.project / "a.txt").exists()
    assert driver.seen[-1]["type"] == "end" and driver.seen[-1]["stop_reason"] == "end"


def test_an_interrupt_takes_its_question_back(cli: Cli) -> None:
    cli.script(WRITE)
    with driven(cli, *ASKS) as driver:
        driver.say({"type": "user", "text": "write"})
        question = driver.until("control_request")
        driver.say({"type": "control_request", "request_id": "i", "request": {"subtype": "interrupt"}})
        assert driver.until("control_cancel_request")["request_id"] == question["request_id"]
        assert driver.until("turn_end")["stop_reason"] == "interrupted"
        assert driver.end() == 130


def test_a_question_of_the_model_is_answered_by_the_driver(cli: Cli) -> None:
    cli.script(
        '[[step]]\ntool_calls = [{ name = "ask_user", arguments = { question = "Which?", choices = ["a", "b"] } }]\n'
        + answers("Good.")
    )
    with driven(cli, *ASKS) as driver:
        driver.say({"type": "user", "text": "ask"})
        question = driver.until("control_request")
        assert question["request"]["kind"] == "choice"
        chosen = next(one["id"] for one in question["request"]["options"] if one["label"] == "b")
        driver.reply(question, options=[chosen])
        assert "b" in driver.until("tool_result")["text"]
        assert driver.until("turn_end")["text"] == "Good."
        assert driver.end() == 0


def test_a_turn_that_stopped_goes_on_as_the_driver_says(cli: Cli) -> None:
    cli.script(REFUSED + answers("Good."))
    with driven(cli, *ASKS) as driver:
        driver.say({"type": "user", "text": "one"})
        question = driver.until("control_request")
        asked = question["request"]
        assert (asked["subtype"], asked["kind"]) == ("ask_user", "stop")
        assert {option["id"]: option["asks"] for option in asked["options"]} == {
            "t": "",
            "m": "The name of a model",
            "n": "",
        }
        driver.reply(question, behavior="allow")
        assert "takes options" in driver.until("error")["message"], "no yes raises a budget"
        driver.reply(question, options=["t"])
        ended = driver.until("turn_end")
        assert (ended["stop_reason"], ended["text"]) == ("end", "Good.")
        assert driver.end() == 2


def test_a_stop_that_is_not_answered_ends_the_turn(cli: Cli) -> None:
    cli.script(REFUSED * 5 + answers("Second.") + REFUSED)
    with driven(cli, *ASKS) as driver:

        def stops() -> dict[str, Any]:
            driver.say({"type": "user", "text": "one"})
            return driver.until("control_request")

        def ends(text: str = "") -> None:
            if text:
                assert text in driver.until("notice")["text"]
            assert driver.until("turn_end")["stop_reason"] == "error"

        driver.reply(stops(), behavior="deny")
        ends()
        stops()
        assert driver.ask("interrupt")["response"] == {"interrupted": True}
        ends()
        driver.reply(stops(), options=["m"], text="nonsense")
        ends("nonsense")
        driver.reply(stops(), options=["m"], text="demo")
        ends("stopped with")
        stops()
        driver.say({"type": "user", "text": "two"})
        ends()
        assert driver.until("turn_end")["text"] == "Second."
        stops()
        driver.end()
    assert [entry["type"] for entry in driver.seen if entry["type"] in ("turn_end", "end")][-2:] == ["turn_end", "end"]
    assert next(e for e in reversed(driver.seen) if e["type"] == "turn_end")["stop_reason"] == "error"


def test_a_message_that_waits_answers_a_stop(cli: Cli) -> None:
    cli.script(REFUSED + answers("Second."))
    said = "".join(json.dumps({"type": "user", "text": text}) + "\n" for text in ("one", "two"))
    outcome = cli.run(*ASKS, stdin=said.encode())
    ends = [entry["stop_reason"] for entry in outcome.lines if entry["type"] == "turn_end"]
    assert ends == ["error", "end"] and outcome.lines[-1]["text"] == "Second."
    assert "control_request" not in [entry["type"] for entry in outcome.lines]


def test_a_driver_sees_and_changes_the_session(cli: Cli) -> None:
    cli.script(answers("First."))
    with driven(cli, *FLAGS) as driver:
        told = driver.ask("initialize")["response"]
        assert told["model"] == "demo" and told["mode"] == "ask"
        assert driver.ask("set_permission_mode", mode="acceptEdits")["response"] == {"mode": "accept-edits"}
        assert "bypass" in driver.ask("set_permission_mode", mode="bypassPermissions")["error"]
        assert driver.ask("set_model", model="no such/model")["subtype"] == "error"
        assert driver.ask("set_model", model="demo")["response"] == {"model": "demo"}
        assert "initialize" in driver.ask("reload")["error"], "names those that there are"
        assert driver.ask("set_model", model=7)["error"].startswith("set_model: model must be a text")
        assert "No turn is running" in driver.ask("steer", text="faster")["error"]
        driver.say({"type": "user", "text": "one"})
        driver.until("turn_end")
        before = driver.ask("get_context")["response"]
        assert before["total"] > 0 and before["rows"]
        message = cli.run("export", told["session_id"]).json["messages"][0]["id"]
        assert driver.ask("edit_context", edit="drop", ids=[message])["subtype"] == "success"
        after = driver.ask("get_context")["response"]
        assert after["total"] < before["total"] and len(after["dropped"]) == 1
        driver.reply({"request_id": "x"}, behavior="allow")
        assert "is closed" in driver.until("error")["message"]
        assert driver.end() == 2


@pytest.mark.slow
def test_output_of_a_command_comes_while_it_runs(cli: Cli) -> None:
    command = "echo early; until test -e go; do :; done; echo late"
    cli.script(
        f'[[step]]\ntool_calls = [{{ name = "bash", arguments = {{ command = "{command}" }} }}]\n' + answers("Done.")
    )
    with driven(cli, *FLAGS, "--permission-mode", "bypass") as driver:
        driver.say({"type": "user", "text": "run"})
        assert driver.until("tool_start")["name"] == "bash"
        assert "early" in driver.until("tool_output")["text"]
        (cli.project / "go").touch()
        assert "late" in driver.until("tool_result")["text"]
        driver.until("turn_end")
        assert driver.end() == 0


@pytest.mark.quick
def test_a_line_without_an_end_costs_an_error_and_no_memory(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_lines, "MAX_LINE", 1 << 20)
    cli.script(answers("First."))
    said = b"[" * (3 << 20) + b"\n" + json.dumps({"type": "user", "text": "one"}).encode() + b"\n"
    outcome = cli.run(*FLAGS, stdin=said)
    assert [entry["kind"] for entry in outcome.lines if entry["type"] == "error"] == ["input"]
    assert outcome.code == 2 and "longer than" in outcome.error
    assert outcome.lines[-1]["text"] == "First."


@pytest.mark.quick
def test_questions_need_a_stream_for_the_answers(cli: Cli) -> None:
    cli.refused(2, "-p", "hi", "--permission-prompt-tool", "stdio", words="needs --input-format stream-json")


@pytest.mark.slow
@needs_recordings
def test_a_recorded_stream_arrives_whole_in_every_form(cli: Cli) -> None:
    name = "anthropic-sonnet4-thinking-tool-cache"
    expected, last = recorded.load(name)["expected"], recorded.load(f"{name}.step2")["expected"]["text"]
    question = "What's the weather in Florence?"
    with Loopback(posts_only=True) as server:
        server.serve("*", *[reply(each) for _ in range(3) for each in (name, f"{name}.step2")])
        cli.config(
            '[models.x]\nmodel = "anthropic/claude-sonnet-4-20250514"\n'
            f'api_base = "{server.url}/v1"\napi_key_env = "MY_KEY"\n'
        )
        cli.setenv("MY_KEY", KEY)
        lines = ("-p", "--input-format", "stream-json", "-m", "x", "--output-format")
        with driven(cli, *lines, "stream-json") as driver:
            driver.say({"type": "user", "text": question})
            assert driver.until("turn_end")["text"] == last
            ours = driver.seen
        with driven(cli, *lines, "claude-json") as driver:
            driver.say({"type": "user", "message": {"role": "user", "content": question}})
            assert driver.until("result")["result"] == last
            theirs = [block for e in driver.seen if e["type"] == "assistant" for block in e["message"]["content"]]
        python = asyncio.run(_heard(cli, question))
        assert len(calls(server)) == 6
    thought = "".join(e["text"] for e in ours if e["type"] == "reasoning")
    assert thought.startswith(expected["reasoning"]) and python[0] == thought
    (call,) = [e for e in ours if e["type"] == "tool_call"]
    assert call["arguments"] == expected["tool_calls"][0]["arguments"]
    assert [b["input"] for b in theirs if b["type"] == "tool_use"] == [call["arguments"]]
    assert "".join(b["thinking"] for b in theirs if b["type"] == "thinking") == thought
    assert python[1].endswith(last) and "".join(e["text"] for e in ours if e["type"] == "text") == python[1]


async def _heard(cli: Cli, question: str) -> tuple[str, str]:
    """The reasoning and the text that a Python program hears."""
    heard = {"reasoning": "", "text": ""}
    async with Session(cli.project, "x") as session:
        async for event in session.send(question):
            if isinstance(event, PartDelta) and event.delta.kind in heard:
                heard[event.delta.kind] += event.delta.text
    return heard["reasoning"], heard["text"]


@pytest.mark.slow
def test_what_a_server_asks_is_answered_by_the_driver(cli: Cli) -> None:
    cli.config(f"[mcp.asks]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(ASKING)}]\nrequired = true\n")
    call = '[[step]]\ntool_calls = [{ name = "mcp__asks__plan_again", arguments = {} }]\n' + answers("Done.")
    cli.script(call + call)
    with driven(cli, *ASKS, "--allow", "mcp(asks.*)") as driver:
        for said, result in (
            ({"options": ["accept"], "values": {"city": "Rome"}}, "accept {'days': 3"),
            ({"behavior": "deny"}, "decline"),
        ):
            driver.say({"type": "user", "text": "plan"})
            question = driver.until("control_request")
            request = question["request"]
            assert (request["subtype"], request["kind"], request["server"]) == ("ask_user", "server", "asks")
            assert request["schema"]["properties"]["days"]["maximum"] == 30 and request["url"] == ""
            driver.reply(question, **said)
            assert driver.until("tool_result")["text"].startswith(result)
            driver.until("turn_end")
