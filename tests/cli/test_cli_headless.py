"""One prompt without a screen: what is printed in each format, and the exit codes."""

from __future__ import annotations

import json
import os

import pytest

from agent_tui.headless.output import bill
from agent_tui.models.messages import TOLD_MODE
from agent_tui.models.steps import Step
from agent_tui.models.usage import TokenUsage
from tests.support.cli import Cli
from tests.support.forms import one_of

HELLO = """
[[step]]
reasoning = "They greet."
text = "Hello there."
"""

TOOL = """
[[step]]
text = "I look."
tool_calls = [{ name = "list", arguments = { path = "." } }]
[[step]]
text = "Nothing here."
"""

FAILURE = """
[[step]]
repeat = 0
error = { kind = "%s", message = "The demo refuses." }
"""

KEYS = {
    "session_id",
    "model",
    "text",
    "reasoning",
    "stop_reason",
    "steps",
    "usage",
    "cost_usd",
    "cost_known_usd",
    "unpriced_calls",
    "usage_by_kind",
    "doubted_reports",
    "compactions",
    "context",
    "tool_calls",
    "denied_calls",
    "notices",
}
EVENTS = {
    "session",
    "step_start",
    "text",
    "reasoning",
    "tool_call",
    "tool_result",
    "usage",
    "notice",
    "compaction",
    "error",
    "turn_end",
    "end",
}


@pytest.mark.quick
@pytest.mark.versions
def test_text_is_the_answer_and_nothing_else(cli: Cli) -> None:
    cli.script(HELLO)
    outcome = cli.run("-p", "hi", "-m", "demo")
    assert (outcome.code, outcome.out, outcome.err) == (0, "Hello there.\n", "")


@pytest.mark.quick
@pytest.mark.versions
def test_json_has_the_fixed_keys(cli: Cli) -> None:
    cli.script(HELLO)
    outcome = cli.run("-p", "hi", "-m", "demo", "--output-format", "json")
    data = outcome.json
    assert outcome.code == 0
    assert set(data) == KEYS
    assert (data["text"], data["reasoning"], data["stop_reason"]) == ("Hello there.", "They greet.", "end")
    assert (data["model"], data["tool_calls"], data["notices"]) == ("demo", [], [])
    assert set(data["usage"]) == {
        "input_tokens",
        "output_tokens",
        "reasoning_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "cache_write_1h_tokens",
        "source",
    }
    assert data["usage"]["input_tokens"] > 0
    context = data["context"]
    assert set(context) == {"total", "low", "high", "limit", "window"}
    assert context["low"] <= context["total"] <= context["high"] and context["limit"] < context["window"]


def test_numbers_nobody_reported_are_null(cli: Cli) -> None:
    cli.script('[[step]]\ntext = "x"\nusage = false\n')
    data = cli.run("-p", "hi", "-m", "demo", "--output-format", "json").json
    assert data["usage"] is None
    usages = [TokenUsage(100, 3), TokenUsage(50, 2, cache_read=40), None]
    steps = [Step("stp", "turn", "m", "p", "a", "m", status="complete", usage=usage, cost_usd=0.1) for usage in usages]
    assert bill(steps)["usage"] == {
        "input_tokens": 150,
        "output_tokens": 5,
        "reasoning_tokens": None,
        "cache_read_tokens": 40,
        "cache_write_tokens": None,
        "cache_write_1h_tokens": None,
        "source": "provider",
    }


@pytest.mark.quick
@pytest.mark.versions
def test_stream_json_is_one_event_a_line(cli: Cli) -> None:
    cli.script(TOOL)
    (cli.project / "a.txt").write_text("x", "utf-8")
    outcome = cli.run("-p", "look", "-m", "demo", "--output-format", "stream-json")
    lines = outcome.lines
    assert outcome.code == 0
    assert all(line["v"] == 1 for line in lines)
    assert {line["type"] for line in lines} <= EVENTS
    kinds = [line["type"] for line in lines]
    assert (kinds[0], kinds[-1]) == ("session", "end")
    assert kinds.index("tool_call") < kinds.index("tool_result") < kinds.index("text", kinds.index("tool_result"))
    assert "".join(line["text"] for line in lines if line["type"] == "text") == "I look.Nothing here."
    (call,) = (line for line in lines if line["type"] == "tool_call")
    (result,) = (line for line in lines if line["type"] == "tool_result")
    assert (call["name"], call["arguments"]) == ("list", {"path": "."})
    assert result["call_id"] == call["id"]
    assert "a.txt" in result["text"]
    assert lines[-1]["stop_reason"] == "end"
    assert set(lines[-1]) == KEYS | {"type", "v"}


@pytest.mark.slow
def test_a_compaction_is_fields_and_not_a_sentence(cli: Cli) -> None:
    long = "".join(f"All of this can be told again in {n} words. " for n in range(130))
    decided = f'[[step]]\ntext = "We decided to use SQLite for the store. {long}"\n'
    summary = '[[step]]\nkind = "compaction"\ntext = "## Goal\\nTalk."\nrepeat = 0\n'
    cli.script(f'window = 9000\nmax_output = 1000\n{summary}{decided}[[step]]\ntext = "{long}"\nrepeat = 0\n')
    messages = [{"type": "user", "text": f"Never touch old_{n}.py."} for n in range(8)]
    said = "".join(json.dumps(message) + "\n" for message in messages).encode()
    flags = ("-p", "--input-format", "stream-json", "--output-format")
    lines = cli.run(*flags, "stream-json", "-m", "demo", stdin=said).lines
    ended = [line for line in lines if line["type"] == "compaction" and line["phase"] == "end"]
    assert ended and lines[-1]["compactions"] == [made for line in ended for made in line["compactions"]]
    for made in lines[-1]["compactions"]:
        assert made["before_low_tokens"] <= made["before_tokens"] <= made["before_high_tokens"]
        assert made["after_low_tokens"] <= made["after_tokens"] <= made["after_high_tokens"] < made["before_tokens"]
    made = next(made for made in lines[-1]["compactions"] if made["kind"] == "summary")
    assert made["messages"] and made["cost_usd"] == 0 and made["warm"] is not None
    assert made["cache_read_tokens"] is None or made["cache_read_tokens"] <= made["input_tokens"]
    session = lines[-1]["session_id"]
    stored = cli.run("context", "--session", session, "--json").json["session"]["compactions_made"]
    assert stored == lines[-1]["compactions"], "the same form everywhere"


@pytest.mark.slow
def test_standard_input_goes_after_the_prompt(cli: Cli) -> None:
    cli.script('[[step]]\nmatch = "sum it up\\n\\nline one\\nline two$"\ntext = "Both came."\n')
    assert cli.run("-p", "sum it up", "-m", "demo", stdin=b"line one\nline two\n").out == "Both came.\n"
    assert cli.run("-p", "-m", "demo", stdin="grüße\n".encode()).code == 0


def test_input_that_is_not_utf8_is_said_and_still_used(cli: Cli) -> None:
    cli.script('[[step]]\nmatch = "a\ufffdb"\ntext = "Came."\n')
    outcome = cli.run("-p", "-m", "demo", stdin=b"a\xffb")
    assert (outcome.code, outcome.out) == (0, "Came.\n")
    assert "not UTF-8" in outcome.error


@pytest.mark.quick
def test_nothing_to_ask_is_wrong_usage(cli: Cli) -> None:
    for stdin in (b"", b"  \n"):
        outcome = cli.run("-p", "", stdin=stdin)
        assert outcome.code == 2
        assert "No prompt" in outcome.error


def test_files_named_in_the_prompt_are_attached(cli: Cli) -> None:
    (cli.project / "a.txt").write_text("content of a", "utf-8")
    cli.script(HELLO)
    cli.run("-p", "read @a.txt", "-m", "demo")
    exported = cli.run("export", cli.newest()).json
    assert any(part.get("text") == "content of a" for part in exported["messages"][0]["parts"])


def attached(cli: Cli) -> list[str]:
    exported = cli.run("export", cli.newest()).json
    parts = [part for part in exported["messages"][0]["parts"] if part["type"] == "attachment"]
    return [part["text"] for part in parts if part["name"] != TOLD_MODE]


def test_only_what_the_user_wrote_names_files(cli: Cli) -> None:
    (cli.project / "a.txt").write_text("content of a", "utf-8")
    (cli.project / "b.txt").write_text("content of b", "utf-8")
    folder = cli.paths.config / "commands"
    folder.mkdir(parents=True)
    (folder / "look.md").write_text("Look at @b.txt and $ARGUMENTS", "utf-8")
    cli.script(HELLO)
    cli.run("-p", "what is this?", "-m", "demo", stdin=b"see @a.txt and @/etc/hostname")
    assert attached(cli) == []
    cli.run("-p", "-m", "demo", stdin=b"see @a.txt")
    assert attached(cli) == []
    cli.run("-p", "/look @a.txt", "-m", "demo", stdin=b"@b.txt")
    assert attached(cli) == ["content of a"]


@pytest.mark.quick
@pytest.mark.versions
def test_files_outside_the_project_need_a_flag(cli: Cli) -> None:
    secret = cli.project.parent / "keys" / "id_rsa"
    secret.parent.mkdir()
    secret.write_text("PRIVATE", "utf-8")
    (cli.project / "link").symlink_to(secret)
    cli.script(HELLO)
    outcome = cli.run("-p", f"read @{secret} and @link", "-m", "demo", "--output-format", "json")
    assert attached(cli) == []
    texts = [n["text"] for n in outcome.json["notices"] if n["code"] == "attachment"]
    assert len(texts) == 2 and all("outside the project" in t and f"--add-dir {secret.parent}" in t for t in texts)
    cli.run("-p", f"read @{secret}", "-m", "demo", "--add-dir", str(secret.parent))
    assert attached(cli) == ["PRIVATE"]


def test_commands_of_the_chat_are_not_messages(cli: Cli) -> None:
    outcome = cli.run("-p", "/compact now", "-m", "demo")
    assert outcome.code == 2
    assert "/compact" in outcome.error


def test_commands_of_the_user_are_expanded(cli: Cli) -> None:
    folder = cli.paths.config / "commands"
    folder.mkdir(parents=True)
    (folder / "review.md").write_text("Review $ARGUMENTS with care", "utf-8")
    cli.script('[[step]]\nmatch = "Review main.py with care"\ntext = "Done."\n')
    assert cli.run("-p", "/review main.py", "-m", "demo").out == "Done.\n"


def test_what_would_be_asked_is_refused_and_said(cli: Cli) -> None:
    cli.script("""
[[step]]
tool_calls = [{ name = "bash", arguments = { command = "touch made" } }]
[[step]]
text = "Refused."
""")
    outcome = cli.run("-p", "make it", "-m", "demo", "--output-format", "json")
    assert outcome.code == 0
    assert not (cli.project / "made").exists()
    (notice,) = outcome.json["notices"]
    assert notice["code"] == "permission_denied"
    assert "--permission-mode" in notice["text"]
    assert notice["text"] in outcome.err
    assert outcome.json["tool_calls"][0]["result"]["is_error"]


def test_the_mode_decides_what_is_refused(cli: Cli) -> None:
    script = """
[[step]]
tool_calls = [{ name = "write", arguments = { path = "made.txt", content = "x" } }]
[[step]]
text = "Over."
"""
    cli.script(script)
    cli.run("-p", "make it", "-m", "demo", "--permission-mode", "plan")
    assert not (cli.project / "made.txt").exists()
    cli.run("-p", "make it", "-m", "demo", "--permission-mode", "accept-edits")
    assert (cli.project / "made.txt").exists()


@pytest.mark.parametrize(
    ("kind", "code"), one_of([("auth", 1), ("invalid_request", 1), ("overloaded", 75), ("rate_limit", 75)], 2)
)
def test_failures_have_their_exit_codes(cli: Cli, kind: str, code: int) -> None:
    cli.config("[agent]\nretries = 1\n")
    cli.script(FAILURE % kind)
    outcome = cli.run("-p", "hi", "-m", "demo", "--output-format", "json")
    assert outcome.code == code
    data = outcome.json
    assert data["stop_reason"] == "error"
    assert {"level": "error", "text": "The demo refuses.", "code": kind} in data["notices"]
    assert "The demo refuses." in outcome.err


def test_a_failure_is_an_event_of_the_stream(cli: Cli) -> None:
    cli.script(FAILURE % "auth")
    lines = cli.run("-p", "hi", "-m", "demo", "--output-format", "stream-json").lines
    assert [line["type"] for line in lines[-3:]] == ["error", "turn_end", "end"]
    assert lines[-3]["kind"] == "auth"


@pytest.mark.quick
@pytest.mark.versions
def test_a_refused_answer_is_an_error(cli: Cli) -> None:
    cli.script('[[step]]\ntext = "No."\nfinish = "refused"\n')
    outcome = cli.run("-p", "hi", "-m", "demo", "--output-format", "json")
    assert (outcome.code, outcome.json["stop_reason"]) == (55, "refused")


def test_an_answer_cut_at_its_limit_is_said(cli: Cli) -> None:
    cli.script('[[step]]\ntext = "Once upon"\nfinish = "length"\n')
    outcome = cli.run("-p", "hi", "-m", "demo", "--output-format", "json")
    assert (outcome.code, outcome.json["stop_reason"]) == (0, "length")
    assert "cut off" in outcome.err and "agent-tui -c -p continue" in outcome.err and "/rewind" not in outcome.err


def test_the_step_limit_has_its_exit_code(cli: Cli) -> None:
    cli.config("[agent]\nstep_limit = 2\n")
    cli.script('[[step]]\nrepeat = 0\ntool_calls = [{ name = "list", arguments = { path = "." } }]\n')
    outcome = cli.run("-p", "go", "-m", "demo", "--output-format", "json")
    assert (outcome.code, outcome.json["stop_reason"]) == (53, "step_limit")


@pytest.mark.parametrize("last", one_of(["", "It is done."]))
def test_what_was_said_on_the_way_is_not_the_answer(cli: Cli, last: str) -> None:
    step = '[[step]]\ntext = "Let me look."\ntool_calls = [{ name = "list", arguments = { path = "." } }]\n'
    said = {}
    for form in ("text", "json", "stream-json"):
        cli.script(step + f'[[step]]\nrepeat = 0\ntext = "{last}"\n')
        said[form] = cli.run("-p", "done?", "-m", "demo", "--output-format", form)
    end = {line["type"]: line for line in said["stream-json"].lines}
    assert (
        said["text"].out.strip() == said["json"].json["text"] == end["turn_end"]["text"] == end["end"]["text"] == last
    )
    assert {one.code == 0 for one in said.values()} == {bool(last)}


BREAKS = """
[[step]]
text = "Hello wo"
chunk = 4
after = 5
error = { kind = "interrupted_stream", message = "It broke. What arrived is kept. Try again.", retry_after = 0.0 }
[[step]]
text = "Hello world."
"""


def test_an_answer_that_breaks_off_is_said_once_in_every_form(cli: Cli) -> None:
    """What was printed as it came cannot be taken back, which is said."""
    said = {}
    for form, flags in {"text": (), "json": (), "stream-json": (), "streamed": ("--no-final",)}.items():
        cli.script(BREAKS)
        output = form if form != "streamed" else "text"
        said[form] = cli.run("-p", "hi", "-m", "demo", "--output-format", output, *flags)
        assert said[form].code == 0 and "It broke. Trying again in 0" in said[form].err
    assert said["text"].out == "Hello world.\n" and said["json"].json["text"] == "Hello world."
    assert said["json"].json["usage_by_kind"]["attempt"]["calls"] == 1
    assert said["streamed"].out == "Hello wo\n[Interrupted. The answer begins again.]\n\nHello world.\n"
    assert "What was printed of it before does not count." in said["streamed"].err
    kinds = [line["type"] for line in said["stream-json"].lines]
    assert kinds[kinds.index("interrupted") - 1 :][:3] == ["text", "interrupted", "notice"]


def test_an_answer_that_ends_in_an_unknown_way_is_no_success(cli: Cli) -> None:
    cli.script('[[step]]\ntext = "So far"\nfinish = "unknown"\n')
    outcome = cli.run("-p", "hi", "-m", "demo")
    assert outcome.code != 0 and outcome.out == "So far\n" and "may not be complete" in outcome.err


@pytest.mark.slow
def test_a_session_goes_on(cli: Cli) -> None:
    first = cli.run("-p", "one", "-m", "demo", "--output-format", "json").json["session_id"]
    for flags in (("-c",), ("-r", first), ("--resume", first[:12])):
        more = cli.run("-p", "more", *flags, "-m", "demo", "--output-format", "json")
        assert more.json["session_id"] == first
    assert cli.run("sessions", "--json").json[0]["messages"] == 8


def test_a_reserve_over_a_quarter_of_the_window_is_refused(cli: Cli) -> None:
    cli.config("[context]\nmax_output_reserve = 8000\n")
    outcome = cli.run("-p", "hi", "-m", "demo", "--output-format", "json")
    assert [n["code"] for n in outcome.json["notices"]] == ["reserve"]
    assert "max_output_reserve" in outcome.err


BACKGROUND = """
[[step]]
tool_calls = [{ name = "bash", arguments = { command = "echo x > started; exec cat hold", background = true } }]
[[step]]
tool_calls = [{ name = "bash", arguments = { command = "while [ ! -s started ]; do :; done" } }]
[[step]]
text = "Started."
"""


def test_a_command_in_the_background_ends_with_the_run(cli: Cli) -> None:
    os.mkfifo(cli.project / "hold")
    cli.script(BACKGROUND)
    outcome = cli.run("-p", "go", "-m", "demo", "--permission-mode", "auto")
    assert (outcome.code, outcome.out) == (0, "Started.\n")
    assert (cli.project / "started").exists()
    with pytest.raises(OSError, match="No such device"):  # nobody reads there any more
        os.open(cli.project / "hold", os.O_WRONLY | os.O_NONBLOCK)


PLANNED = """
[[step]]
text = "Let me plan."
tool_calls = [{ name = "present_plan", arguments = { plan = "# Mend it\\n\\n1. change a.txt" } }]
[[step]]
text = "never"
"""


@pytest.mark.quick
@pytest.mark.versions
def test_a_plan_is_the_answer_where_nobody_can_approve_it(cli: Cli) -> None:
    cli.script(PLANNED)
    plan = "# Mend it\n\n1. change a.txt"
    outcome = cli.run("-p", "mend it", "-m", "demo", "--permission-mode", "plan")
    assert (outcome.code, outcome.out, outcome.err) == (0, plan + "\n", "")
    outcome = cli.run("-p", "mend it", "-m", "demo", "--permission-mode", "plan", "--output-format", "json")
    assert (outcome.json["text"], outcome.json["stop_reason"], outcome.json["steps"]) == (plan, "end", 1)
    lines = cli.run("-p", "mend it", "-m", "demo", "--permission-mode", "plan", "--output-format", "stream-json").lines
    assert {line["type"] for line in lines} <= EVENTS
    assert [line["text"] for line in lines if line["type"] == "text"][-1] == plan
    assert lines[-1]["text"] == plan and next(x for x in lines if x["type"] == "turn_end")["text"] == plan


def test_a_question_that_nobody_can_answer_is_refused_and_the_work_goes_on(cli: Cli) -> None:
    cli.script(
        '[[step]]\ntool_calls = [{ name = "ask", arguments = { question = "Which?", choices = ["a", "b"] } }]\n'
        '[[step]]\ntext = "I took a."\n'
    )
    outcome = cli.run("-p", "choose", "-m", "demo", "--output-format", "json")
    (call,) = outcome.json["tool_calls"]
    assert call["result"]["is_error"] and call["result"]["text"].startswith("Nobody can answer here.")
    assert (outcome.code, outcome.json["text"]) == (0, "I took a.")
