"""A run that is driven as the SDK of Claude Code drives its program: the same flags, lines and answers."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.drivers import Driver, driven
from tests.support.cli import Cli, answers
from tests.support.forms import one_of
from tests.support.mcp_servers import ASKING

FLAGS = (
    *("--output-format", "stream-json", "--verbose", "--system-prompt", "", "--allowedTools", "Read,Bash(ls:*)"),
    *("--permission-prompt-tool", "stdio", "--output-format", "claude-json", "--input-format", "stream-json"),
    *("--model", "demo"),
)
SCHEMA = "error_max_structured_output_retries"
WRITE = """
[[step]]
text = "I write it."
tool_calls = [{ name = "write", arguments = { path = "a.txt", content = "one\\n" } }]
[[step]]
text = "Done."
"""


def begin(driver: Driver, text: str = "write") -> None:
    assert driver.ask("initialize", hooks=None)["subtype"] == "success"
    say(driver, text)


def say(driver: Driver, text: str) -> None:
    message = {"role": "user", "content": text}
    driver.say({"type": "user", "message": message, "parent_tool_use_id": None, "session_id": "default"})


def blocks(entry: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = entry["message"]["content"]
    return found


@pytest.mark.quick
def test_a_call_is_asked_about_by_its_name_there_and_runs_as_it_was_made(cli: Cli) -> None:
    cli.script(WRITE * 2)
    path = str(cli.project / "a.txt")
    with driven(cli, *FLAGS) as driver:
        begin(driver)
        assert driver.until("system")["subtype"] == "init" and "Write" in driver.seen[-1]["tools"]
        for changed in (True, False):
            text, call = blocks(driver.until("assistant"))
            assert (text["text"], call["name"], call["input"]["file_path"]) == ("I write it.", "Write", path)
            asked = driver.until("control_request")
            request = asked["request"]
            assert (request["subtype"], request["tool_name"], request["tool_use_id"]) == (
                "can_use_tool",
                "Write",
                call["id"],
            )
            assert request["input"] == {"file_path": path, "content": "one\n"}
            made = {**request["input"], **({"content": "two\n"} if changed else {})}
            driver.reply(asked, behavior="allow", updatedInput=made)
            (result,) = blocks(driver.until("user"))
            assert (result["tool_use_id"], result["is_error"]) == (call["id"], changed)
            end = driver.until("result")
            assert (end["subtype"], end["is_error"], end["result"], end["num_turns"]) == ("success", False, "Done.", 2)
            assert end["usage"]["output_tokens"] > 0 and end["session_id"] and end["uuid"]
            assert (cli.project / "a.txt").exists() is not changed
            if changed:
                say(driver, "as you made it")
        told = driver.ask("get_context_usage")["response"]
        assert told["total"] > 0
    kinds = {entry["type"] for entry in driver.seen}
    assert kinds == {"system", "assistant", "user", "result", "control_request", "control_response"}


INSIDE = ("--mcp-config", json.dumps({"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}}))
CALL = """
[[step]]
tool_calls = [{ name = "mcp__calc__add", arguments = { a = 1 } }]
[[step]]
text = "Done."
"""


def serve_until_called(driver: Driver) -> dict[str, Any]:
    """Answers as the server ``calc`` inside the program would; the first call of its tool, which waits."""
    results: dict[str, Any] = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "calc", "version": "1"},
        },
        "tools/list": {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]},
    }
    while True:
        asked = driver.until("control_request")
        message = asked["request"].get("message", {})
        if message.get("method") == "tools/call":
            assert (message["params"]["name"], message["params"]["arguments"]) == ("add", {"a": 1})
            return asked
        assert (asked["request"]["subtype"], asked["request"]["server_name"]) == ("mcp_message", "calc")
        answer = {"jsonrpc": "2.0", "id": message.get("id"), "result": results.get(message["method"], {})}
        driver.reply(asked, mcp_response=answer)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"mcp_response": {"result": {"content": [{"type": "text", "text": "Two."}]}}}, "Two."),
        ({"mcp_response": {"error": {"code": 7, "message": "no paper"}}}, "calc: no paper (error 7)"),
        ({"mcp_response": {"error": "no paper"}}, "breaks the protocol"),
        ({"mcp_response": {"result": {"content": 7}}}, "cannot be read"),
        ({"mcp_response": {"method": "x"}}, "breaks the protocol"),
        ({"mcp_response": "x"}, "answered without an mcp_response"),
    ],
)
def test_what_a_server_inside_the_program_answers_is_the_result(cli: Cli, said: dict[str, Any], words: str) -> None:
    cli.script(CALL)
    with driven(cli, *FLAGS, *INSIDE, "--allow", "mcp(calc.add)") as driver:
        begin(driver)
        driver.reply(serve_until_called(driver), **said)
        assert words in blocks(driver.until("user"))[0]["content"]
        assert driver.until("result")["result"] == "Done."


@pytest.mark.slow
def test_a_server_inside_the_program_hears_that_a_call_was_cancelled(cli: Cli) -> None:
    cli.script(CALL)
    with driven(cli, *FLAGS, *INSIDE, "--allow", "mcp(calc.add)") as driver:
        begin(driver)
        call = serve_until_called(driver)
        assert driver.ask("interrupt")["subtype"] == "success"
        driver.until("control_cancel_request")
        driver.end()
        said = {entry["type"]: entry for entry in driver.seen}  # either may come first
        assert said["control_cancel_request"]["request_id"] == call["request_id"] and said["result"]["is_error"]
        told = [entry["request"].get("message", {}) for entry in driver.seen if entry["type"] == "control_request"]
        cancelled = [message["params"] for message in told if message.get("method") == "notifications/cancelled"]
        assert [each["requestId"] for each in cancelled] == [call["request"]["message"]["id"]]


@pytest.mark.slow
def test_a_call_ends_when_the_program_does(cli: Cli) -> None:
    cli.script(CALL)
    with driven(cli, *FLAGS, *INSIDE, "--allow", "mcp(calc.add)") as driver:
        begin(driver)
        serve_until_called(driver)
        assert driver.end() == 0
        (result,) = [block for entry in driver.seen if entry["type"] == "user" for block in blocks(entry)]
        assert "The program that drives this run answers no more." in result["content"]


def test_plans_and_questions_are_the_tools_that_they_are_there(cli: Cli) -> None:
    cli.script(
        '[[step]]\ntool_calls = [{ name = "present_plan", arguments = { plan = "Mend it." } }]\n'
        '[[step]]\ntool_calls = [{ name = "ask", arguments = { question = "Which?", choices = ["red", "blue"] } }]\n'
        + answers("Good.")
    )
    with driven(cli, *FLAGS, "--permission-mode", "plan") as driver:
        begin(driver)
        plan = driver.until("control_request")
        assert (plan["request"]["tool_name"], plan["request"]["input"]) == ("ExitPlanMode", {"plan": "Mend it."})
        driver.reply(plan, behavior="allow", updatedInput=plan["request"]["input"])
        asked = driver.until("control_request")
        (question,) = asked["request"]["input"]["questions"]
        assert [each["label"] for each in question["options"]] == ["red", "blue"]
        driver.reply(asked, behavior="allow", updatedInput={"answers": {"Which?": "blue"}})
        assert "blue" in blocks(driver.until("user"))[0]["content"]
        assert driver.until("result")["result"] == "Good."


@pytest.mark.slow
def test_an_answer_that_cannot_be_used_is_a_no(cli: Cli) -> None:
    cli.script(WRITE * 3)
    wrong: tuple[dict[str, Any], ...] = ({}, {"behavior": "deny", "message": 7}, {"options": ["gone"]})
    with driven(cli, *FLAGS) as driver:
        for said in wrong:
            begin(driver)
            driver.reply(driver.until("control_request"), **said)
            assert blocks(driver.until("user"))[0]["is_error"], said
            assert driver.until("result")["result"] == "Done.", said
    assert not (cli.project / "a.txt").exists()


@pytest.mark.slow
def test_what_a_server_asks_is_never_allowed_unseen(cli: Cli) -> None:
    cli.config(f"[mcp.asks]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(ASKING)}]\nrequired = true\n")
    call = '[[step]]\ntool_calls = [{ name = "mcp__asks__plan_again", arguments = {} }]\n' + answers("Done.")
    cli.script(call * 3)
    with driven(cli, *FLAGS, "--allow", "mcp(asks.*)") as driver:
        for said, result in (
            (None, "decline"),  # the SDK knows no such question
            ({"behavior": "allow"}, "decline"),  # a form with a required field
            ({"behavior": "allow", "values": {"city": "Rome"}}, "accept {'days': 3"),
        ):
            begin(driver, "plan")
            asked = driver.until("control_request")
            request = asked["request"]
            assert (request["subtype"], request["server"]) == ("ask_user", "asks")
            assert "city" in request["schema"]["properties"] and request["text"] == "Where do you want to go?"
            if said is None:
                refused = {"subtype": "error", "request_id": asked["request_id"], "error": "Unsupported"}
                driver.say({"type": "control_response", "response": refused})
            else:
                driver.reply(asked, **said)
            assert blocks(driver.until("user"))[0]["content"].startswith(result)
            assert driver.until("result")["result"] == "Done."


def test_a_failure_is_a_result_and_the_run_goes_on(cli: Cli) -> None:
    cli.script('[[step]]\nerror = { kind = "auth", message = "The key was refused." }\n' + answers("Good."))
    with driven(cli, *FLAGS, "--include-partial-messages") as driver:
        begin(driver)
        asked = driver.until("control_request")  # the SDK knows no such question
        driver.say(
            {
                "type": "control_response",
                "response": {"subtype": "error", "request_id": asked["request_id"], "error": "Unsupported"},
            }
        )
        end = driver.until("result")
        assert (end["subtype"], end["is_error"], end["errors"]) == (
            "error_during_execution",
            True,
            ["The key was refused."],
        )
        driver.say({"type": "user", "message": {"role": "user", "content": "again"}})
        assert driver.until("result")["result"] == "Good."
        pieces = [e["event"]["delta"]["text"] for e in driver.seen if e["type"] == "stream_event"]
        assert "".join(pieces) == "Good."


CANNOT_BE_BROUGHT: tuple[tuple[dict[str, Any], str], ...] = (
    ({"hooks": {"PostToolUseFailure": []}}, "there is no hook at 'PostToolUseFailure'"),
    ({"hooks": {"Stop": [{"matcher": "("}]}}, "a hook at Stop must have"),
    ({"hooks": {"Stop": [{"matcher": "(", "hookCallbackIds": ["h"]}]}}, "not a regular expression"),
    ({"hooks": {"Stop": [{"hookCallbackIds": ["h"], "timeout": -1}]}}, "more than 0 seconds"),
    ({"agents": {"a": {"description": "d", "prompt": "p", "maxTurns": 2}}}, "agents: a: maxTurns is not taken"),
    ({"agents": {"a b": {"description": "d", "prompt": "p"}}}, "its name may have"),
    ({"agents": {"a": {"description": "d", "prompt": ""}}}, "must say something"),
    ({"agents": {"a": {"description": "d", "prompt": "p", "tools": ["Fly"]}}}, "there is no tool Fly here"),
    ({"skills": "pdf"}, "skills must be a list"),
)


def test_what_a_driver_cannot_bring_is_refused(cli: Cli) -> None:
    with driven(cli, *FLAGS) as driver:
        refused = [(driver.ask("initialize", **brings), words) for brings, words in CANNOT_BE_BROUGHT]
    assert [(r, words) for r, words in refused if r["subtype"] != "error" or words not in r["error"]] == []


def test_hooks_of_the_driver_are_asked_and_obeyed(cli: Cli) -> None:
    cli.script(WRITE)
    hooks = {
        "PreToolUse": [{"matcher": "Write", "hookCallbackIds": ["h0"]}],
        "Stop": [{"matcher": None, "hookCallbackIds": ["h1"], "onFailure": "block"}],
    }
    with driven(cli, *FLAGS) as driver:
        answer = driver.ask("initialize", hooks=hooks, agents={"rev": {"description": "d", "prompt": "Look."}})
        assert answer["response"]["hook_on_failure_supported"] is True
        assert answer["response"]["agents"] == [{"name": "rev", "description": "d"}]
        driver.say({"type": "user", "message": {"role": "user", "content": "write"}})
        asked = driver.until("control_request")
        request = asked["request"]
        assert (request["subtype"], request["callback_id"]) == ("hook_callback", "h0")
        assert request["tool_use_id"] == request["input"]["tool_use_id"]
        transcript = Path(request["input"]["transcript_path"])
        written = [json.loads(line) for line in transcript.read_text().splitlines()]
        assert [line["type"] for line in written] == ["user", "assistant"]
        denied = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "No."}
        driver.reply(asked, hookSpecificOutput=denied)
        assert "No." in blocks(driver.until("user"))[0]["content"]
        stop = driver.until("control_request")
        assert (stop["request"]["callback_id"], stop["request"]["input"]["last_assistant_message"]) == ("h1", "Done.")
        driver.reply(stop)
        assert driver.until("result")["result"] == "Done."
        session = driver.seen[-1]["session_id"]
        assert driver.end() == 0
    assert not (cli.project / "a.txt").exists()
    assert stat.S_IMODE(transcript.stat().st_mode) == 0o600 and transcript.stat().st_nlink == 1
    cli.run("sessions", "delete", session, "--yes")
    assert not transcript.parent.exists()


def test_the_methods_of_the_client_are_answered_in_its_shapes(cli: Cli) -> None:
    cli.script(WRITE)
    with driven(cli, *FLAGS, "--replay-user-messages", "--allow", "write") as driver:
        begin(driver)
        message = driver.until("user")
        assert message["message"]["content"] == "write" and message["isReplay"]
        driver.until("result")
        told = driver.ask("get_context_usage")["response"]
        assert sum(each["tokens"] for each in told["categories"]) == told["rawMaxTokens"]
        assert 0 < told["percentage"] < 100 and told["maxTokens"] <= told["rawMaxTokens"] and told["model"] == "demo"
        assert driver.ask("mcp_status")["response"] == {"mcpServers": []}
        assert driver.ask("set_model", model=None)["response"] == {"model": "demo"}
        for subtype, more, words in (
            ("set_permission_mode", {"mode": "dontAsk"}, "Unknown mode 'dontAsk'"),
            ("mcp_toggle", {"serverName": "a", "enabled": False}, "`enabled` in the configuration"),
            ("mcp_reconnect", {"serverName": "a"}, "no MCP server a"),
            ("stop_task", {"task_id": "j9"}, "nothing in the background"),
            ("rewind_files", {"user_message_id": "x"}, "only rewind to a message of yours"),
            ("fly", {}, "Unknown control request 'fly'"),
        ):
            refused = driver.ask(subtype, **more)
            assert refused["subtype"] == "error" and words in refused["error"]
        assert (cli.project / "a.txt").exists()
        assert driver.ask("rewind_files", user_message_id=message["uuid"])["subtype"] == "success"
        assert not (cli.project / "a.txt").exists()


def test_a_message_that_cannot_be_used_has_a_result(cli: Cli) -> None:
    cli.script(answers("Good."))
    with driven(cli, *FLAGS) as driver:
        driver.say({"type": "user", "message": {"role": "user", "content": [{"type": "document"}]}})
        end = driver.until("result")
        assert end["is_error"] and "of type 'document'" in end["errors"][0]
        begin(driver)
        assert driver.until("result")["result"] == "Good."
        assert driver.end() == 0


@pytest.mark.parametrize(
    ("script", "flags", "code", "subtype", "words"),
    one_of(
        [
            (WRITE, ("--max-turns", "1"), 53, "error_max_turns", "max_turns"),
            (answers("no JSON") * 3, ("--json-schema", '{"type": "object"}'), 1, SCHEMA, "does not fit the schema"),
            ('[[step]]\ntext = ""\n' * 3, (), 55, "success", "empty"),
        ]
    ),
)
def test_an_exit_code_that_tells_of_an_error_has_a_result_that_says_which(
    cli: Cli, script: str, flags: tuple[str, ...], code: int, subtype: str, words: str
) -> None:
    cli.script(script)
    with driven(cli, *FLAGS, "--allow", "write", *flags) as driver:
        begin(driver)
        end = driver.until("result")
        assert (end["is_error"], end["subtype"]) == (True, subtype) and words in end["errors"][0]
        assert driver.end() == code


def test_a_system_prompt_is_given_as_text(cli: Cli) -> None:
    prints = []
    for text in ("You are a pirate.", "", None):
        cli.script(answers("Hi."))
        cli.run("-p", "hi", "-m", "demo", *([] if text is None else ["--system-prompt", text]))
        fixed = cli.run("export", cli.newest()).json["steps"][0]["fixed"]
        prints.append(next(part["fingerprint"] for part in fixed if part["label"] == "System prompt"))
    assert prints[0] != prints[1] == prints[2], "an empty one says nothing"
    cli.refused(2, "-p", "hi", "--system-prompt", "a", "--system-prompt-file", "b", words="cannot be combined")
