"""Flags of one run: what each does, its variable, and the one line for what it cannot take."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from agent_tui.cli.arguments import build_parser
from agent_tui.config.run_flags import FLAGS, VARIABLES
from agent_tui.errors import StoreUnwritableError
from agent_tui.headless.schema import _bounded, _TooLongError
from agent_tui.models.messages import TOLD_MODE
from agent_tui.options import Options
from agent_tui.store.store import Store
from agent_tui.store.tables.database import Database
from tests.support.cli import Cli

ECHO = """
[[step]]
match = "%s"
text = "Came."
"""

WRITE = """
[[step]]
tool_calls = [{ name = "bash", arguments = { command = "touch made" } }]
[[step]]
text = "Over."
"""

LIST = '[[step]]\nrepeat = 0\ntext = "Looking."\ntool_calls = [{ name = "list", arguments = { path = "." } }]\n'

SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def answers(*texts: str) -> str:
    return "".join(f"[[step]]\ntext = '''{text}'''\n" for text in texts)


def refused(cli: Cli, code: int, *arguments: str, words: str, stdin: bytes = b"") -> None:
    outcome = cli.run(*arguments, stdin=stdin)
    assert (outcome.code, outcome.out) == (code, "")
    assert words in outcome.error


def test_every_flag_has_a_field_and_a_variable_of_its_own() -> None:
    fields = set(Options.__dataclass_fields__)
    assert {flag.dest for flag in FLAGS} <= fields
    assert len(VARIABLES) == len(FLAGS)
    shown = build_parser().format_help()
    assert all(spelling in shown for flag in FLAGS for spelling in flag.spellings)
    assert all(flag.group in shown for flag in FLAGS)


def test_without_a_model_the_demo_does_not_stand_in(cli: Cli) -> None:
    for stdin in (b"", b"from a pipe"):
        outcome = cli.run("-p", "hi", stdin=stdin)
        assert (outcome.code, outcome.out) == (2, "")
        assert "ANTHROPIC_API_KEY" in outcome.error and "config init" in outcome.error and "-m demo" in outcome.error
    assert cli.run("sessions", "--json").json == []
    cli.setenv("AGENT_TUI_MODEL", "demo")
    assert cli.run("-p", "hi").code == 0


def test_a_model_that_is_configured_may_be_the_demo(cli: Cli) -> None:
    cli.config('default_model = "demo"\n')
    assert cli.run("-p", "hi").code == 0


def test_the_last_answer_alone_is_printed(cli: Cli) -> None:
    cli.script(
        '[[step]]\ntext = "I look."\ntool_calls = [{ name = "list", arguments = { path = "." } }]\n' + answers("Done.")
    )
    assert cli.run("-p", "look", "-m", "demo").out == "Done.\n"
    verbose = cli.run("-p", "look", "-m", "demo", "--verbose")
    assert verbose.out == "Done.\n"
    assert verbose.err.splitlines()[:2] == ["I look.", "list ."]
    assert cli.run("-p", "look", "-m", "demo", "--no-final").out == "I look.\nDone.\n"


def test_model_calls_are_limited(cli: Cli) -> None:
    cli.script(LIST)
    limited = cli.run("-p", "go", "-m", "demo", "--max-turns", "2", "--output-format", "json")
    assert (limited.code, limited.json["stop_reason"], limited.json["steps"]) == (53, "step_limit", 2)
    cli.setenv("AGENT_TUI_MAX_TURNS", "3")
    assert cli.run("-p", "go", "-m", "demo", "--output-format", "json").json["steps"] == 3
    assert cli.run("-p", "go", "-m", "demo", "--max-turns", "1", "--output-format", "json").json["steps"] == 1


def test_rules_of_the_command_line_allow_and_deny(cli: Cli) -> None:
    cli.script(WRITE)
    denied = cli.run("-p", "make it", "-m", "demo", "--output-format", "json")
    (notice,) = denied.json["notices"]
    assert denied.json["denied_calls"] == 1
    assert "--allow 'bash(touch made)'" in notice["text"] or "--allow 'bash(touch" in notice["text"]
    assert denied.err.count("\n") == 1
    assert not (cli.project / "made").exists()
    assert cli.run("-p", "make it", "-m", "demo", "--allow", "bash(touch *)", "--deny", "bash(touch made)").code == 0
    assert not (cli.project / "made").exists()
    cli.setenv("AGENT_TUI_ALLOW", '["bash(ls*)"]')
    assert cli.run("-p", "make it", "-m", "demo", "--allow", "bash(touch *)", "--fail-on-denial").code == 0
    assert (cli.project / "made").exists()


@pytest.mark.parametrize(
    ("mode", "call", "words"),
    [
        ("ask", 'name = "bash", arguments = { command = "touch made" }', "--allow 'bash(touch"),
        ("plan", 'name = "bash", arguments = { command = "touch made" }', "--permission-mode "),
        ("auto", 'name = "read", arguments = { path = "/etc/passwd" }', "--add-dir"),
        ("ask", 'name = "fetch", arguments = { url = "https://example.com/" }', "--allow 'fetch(example.com)'"),
    ],
)
def test_a_refusal_names_the_flag_that_would_allow_it(cli: Cli, mode: str, call: str, words: str) -> None:
    cli.script(f"[[step]]\ntool_calls = [{{ {call} }}]\n{answers('Over.')}")
    outcome = cli.run("-p", "go", "-m", "demo", "--permission-mode", mode, "--fail-on-denial")
    assert outcome.code == 56
    assert words in outcome.error
    assert f"--permission-mode {mode}" not in outcome.error


def test_a_denial_can_fail_the_run(cli: Cli) -> None:
    cli.script(WRITE)
    outcome = cli.run("-p", "make it", "-m", "demo", "--fail-on-denial")
    assert (outcome.code, outcome.out) == (56, "Over.\n")


def test_the_system_prompt_is_the_users(cli: Cli) -> None:
    (cli.project / "prompt.md").write_text("You are a clerk.", "utf-8")
    cli.script(answers("Came."))
    flags = ("--system-prompt-file", "prompt.md", "--append-system-prompt", "Be brief.")
    assert cli.run("-p", "hi", "-m", "demo", *flags).code == 0
    rows = {part["label"]: part for part in cli.run("export", cli.newest()).json["steps"][0]["fixed"]}
    assert rows["Appended instructions"]["row"] == "system"
    plain = cli.run("-p", "hi", "-m", "demo")
    assert plain.code == 0
    usual = {part["label"]: part for part in cli.run("export", cli.newest()).json["steps"][0]["fixed"]}
    assert rows["System prompt"]["fingerprint"] != usual["System prompt"]["fingerprint"]
    assert "Appended instructions" not in usual


def test_a_session_is_begun_and_gone_on_with_by_name(cli: Cli) -> None:
    cli.script(ECHO % "one" + ECHO % "two")
    first = cli.run("-p", "one", "-m", "demo", "--session", "ci-42", "--output-format", "json").json
    second = cli.run("-p", "two", "-m", "demo", "--session", "ci-42", "--output-format", "json").json
    assert first["session_id"] == second["session_id"] == "ci-42"
    assert [s["messages"] for s in cli.run("sessions", "--json").json] == [4]
    # A name is a name, not the beginning of one.
    assert (
        cli.run("-p", "one", "-m", "demo", "--session", "ci-4", "--output-format", "json").json["session_id"] == "ci-4"
    )


def test_a_session_that_another_process_begins_in_the_same_moment_is_gone_on_with(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.script(ECHO % "one" + ECHO % "two")
    assert cli.run("-p", "one", "-m", "demo", "--session", "ci-7").code == 0
    looked: list[str] = []
    there = Store.has_session

    def late(self: Store, session_id: str) -> bool:
        looked.append(session_id)
        return len(looked) > 1 and there(self, session_id)

    monkeypatch.setattr(Store, "has_session", late)
    assert cli.run("-p", "two", "-m", "demo", "--session", "ci-7").code == 0
    assert [s["messages"] for s in cli.run("sessions", "--json").json] == [4]


def test_an_ephemeral_session_leaves_nothing(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    cli.script(
        '[[step]]\ntool_calls = [{ name = "bash", arguments = { command = "seq 200000" } }]\n' + answers("Kept?")
    )
    flags = ("--ephemeral", "--allow", "bash(seq *)")
    assert cli.run("-p", "remember the word mango", "-m", "demo", *flags).out == "Kept?\n"
    assert cli.run("sessions", "--all", "--json").json == []
    left = [path for place in (scratch, cli.home) for path in place.rglob("*") if path.is_file()]
    assert [path for path in left if b"mango" in path.read_bytes()] == []
    assert [path for path in left if "output" in path.parts or scratch in path.parents] == []


@pytest.mark.parametrize("known", [True, False])
def test_an_ephemeral_session_needs_no_home_that_can_be_written(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """As in a container whose file system is read-only. A file where a folder belongs keeps even root from writing."""
    folder = cli.project / ".agent-tui" / "commands"
    folder.mkdir(parents=True)
    (folder / "greet.md").write_text("Say hello", "utf-8")
    if known:
        assert cli.run("-p", "hi", "-m", "demo", "--trust").code == 0
    long = 'tool_calls = [{ name = "bash", arguments = { command = "seq 200000" } }]\n'
    cli.script(f'[[step]]\nmatch = "Say hello"\n{long}' + answers("Came."))
    refuse_writing(cli.paths.database, cli.paths.cache, monkeypatch)
    flags = ("-m", "demo", "--allow", "bash(seq *)", "--output-format", "json")
    outcome = cli.run("-p", "/greet" if known else "Say hello", "--ephemeral", *flags)
    assert (outcome.code, outcome.json["text"]) == (0, "Came.")
    assert "199999" in outcome.json["tool_calls"][0]["result"]["text"]
    assert cli.run("-p", "hi", *flags).error.endswith("set AGENT_TUI_HOME to another one")


def refuse_writing(database: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder can be made where ``cache`` was, and the database says that it cannot be written."""
    if cache.exists():
        cache.rename(cache.with_name("old"))
    cache.parent.mkdir(parents=True, exist_ok=True)
    cache.write_text("in the way", "utf-8")
    opened = Database.open

    def refusing(path: Path, *more: Any) -> Database:
        if path == database:
            raise StoreUnwritableError(f"sessions cannot be stored in {path}; set AGENT_TUI_HOME to another one")
        return opened(path, *more)

    monkeypatch.setattr(Database, "open", refusing)


def test_a_cache_that_cannot_be_written_is_told_in_one_line(cli: Cli) -> None:
    cli.paths.cache.parent.mkdir(parents=True, exist_ok=True)
    cli.paths.cache.write_text("in the way", "utf-8")
    refused(cli, 1, "-p", "hi", "-m", "demo", words=f"nothing can be kept in {cli.paths.cache}")


def test_trust_holds_in_an_ephemeral_session(cli: Cli) -> None:
    folder = cli.project / ".agent-tui" / "commands"
    folder.mkdir(parents=True)
    (folder / "greet.md").write_text("Say hello", "utf-8")
    cli.script(ECHO % "Say hello")
    assert cli.run("-p", "hi", "-m", "demo", "--trust").code == 0
    assert cli.run("-p", "/greet", "-m", "demo", "--ephemeral").out == "Came.\n"


def test_another_folder_can_be_worked_in(cli: Cli) -> None:
    other = cli.project.parent / "other"
    other.mkdir()
    (other / "only-here.txt").write_text("x", "utf-8")
    cli.script('[[step]]\ntool_calls = [{ name = "list", arguments = { path = "." } }]\n' + answers("Seen."))
    before = Path.cwd()
    try:
        outcome = cli.run("-p", "look", "-m", "demo", "-C", "../other", "--output-format", "json")
    finally:
        os.chdir(before)
    assert "only-here.txt" in outcome.json["tool_calls"][0]["result"]["text"]


def test_pictures_go_with_the_prompt(cli: Cli) -> None:
    (cli.project / "a.png").write_bytes(PIXEL)
    cli.script(answers("Seen."))
    assert cli.run("-p", "what is it?", "-m", "demo", "--image", "a.png").code == 0
    parts = cli.run("export", cli.newest()).json["messages"][0]["parts"]
    attached = [part for part in parts if part["type"] == "attachment" and part["name"] != TOLD_MODE]
    assert [part["media_type"] for part in attached] == ["image/png"]


def test_an_empty_answer_has_a_code_of_its_own(cli: Cli) -> None:
    cli.script('[[step]]\ntext = ""\n')
    outcome = cli.run("-p", "hi", "-m", "demo")
    assert (outcome.code, outcome.out) == (55, "")
    assert outcome.err.count("\n") == 1


class TestSchema:
    @pytest.fixture
    def file(self, cli: Cli) -> str:
        (cli.project / "schema.json").write_text(json.dumps(SCHEMA), "utf-8")
        return "schema.json"

    def test_an_answer_that_fits_is_given_as_data(self, cli: Cli, file: str) -> None:
        cli.script(answers('```json\n{"ok": true}\n```'))
        outcome = cli.run("-p", "is it?", "-m", "demo", "--output-schema", file, "--output-format", "json")
        assert (outcome.code, outcome.json["output"]) == (0, {"ok": True})

    def test_one_that_does_not_is_asked_for_again(self, cli: Cli, file: str) -> None:
        cli.script(answers("yes", '{"ok": "yes"}', '{"ok": true}'))
        outcome = cli.run("-p", "is it?", "-m", "demo", "--output-schema", file)
        assert (outcome.code, outcome.out) == (0, '{"ok": true}\n')
        messages = cli.run("export", cli.newest()).json["messages"]
        asked = [m["parts"][0]["text"] for m in messages if m["role"] == "user"][1:]
        assert len(asked) == 2
        assert "not JSON" in asked[0] and "$.ok" in asked[1]

    def test_after_two_repairs_the_text_is_all_there_is(self, cli: Cli, file: str) -> None:
        cli.script('[[step]]\nrepeat = 0\ntext = "Never."\n')
        outcome = cli.run("-p", "is it?", "-m", "demo", "--output-schema", file)
        assert (outcome.code, outcome.out) == (1, "Never.\n")
        assert len(outcome.err.splitlines()) == 3
        data = cli.run("-p", "is it?", "-m", "demo", "--output-schema", file, "--output-format", "json").json
        assert (data["output"], data["text"], data["steps"]) == (None, "Never.", 3)

    def test_asking_again_keeps_to_the_limit_of_calls(self, cli: Cli, file: str) -> None:
        cli.script('[[step]]\nrepeat = 0\ntext = "Never."\n')
        for limit in (1, 2):
            flags = ("--output-schema", file, "--max-turns", str(limit), "--output-format", "json")
            outcome = cli.run("-p", "is it?", "-m", "demo", *flags)
            assert (outcome.code, outcome.json["steps"]) == (1, limit)
            assert f"--max-turns {limit} is used up" in outcome.err.splitlines()[-1]

    def test_the_model_is_told(self, cli: Cli, file: str) -> None:
        cli.script(answers('{"ok": false}'))
        cli.run("-p", "is it?", "-m", "demo", "--output-schema", file)
        rows = [part["label"] for part in cli.run("export", cli.newest()).json["steps"][0]["fixed"]]
        assert "Appended instructions" in rows

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("{", "not JSON"),
            ("[]", "must be an object"),
            ('{"type": "objekt"}', "no JSON Schema: type"),
            ('{"properties": 3}', "no JSON Schema: properties"),
        ],
    )
    def test_a_schema_that_is_none(self, cli: Cli, text: str, words: str) -> None:
        (cli.project / "bad.json").write_text(text, "utf-8")
        refused(cli, 2, "-p", "hi", "-m", "demo", "--output-schema", "bad.json", words=words)

    @pytest.mark.parametrize(
        ("schema", "words"),
        [
            ({"$ref": "http://127.0.0.1:9/schema.json"}, "cannot be applied: Unresolvable"),
            ({"$ref": "#"}, "go round in a circle"),
            ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, "in a circle"),
            ({"$ref": "#/$defs/nowhere"}, "cannot be applied"),
        ],
    )
    def test_a_schema_that_cannot_be_applied_asks_nobody(self, cli: Cli, schema: Any, words: str) -> None:
        (cli.project / "bad.json").write_text(json.dumps(schema), "utf-8")
        refused(cli, 2, "-p", "hi", "-m", "demo", "--output-schema", "bad.json", words=words)

    def test_a_schema_nested_without_end_is_one_line(self, cli: Cli) -> None:
        (cli.project / "bad.json").write_text('{"not":' * 300 + "{}" + "}" * 300, "utf-8")
        refused(cli, 2, "-p", "hi", "-m", "demo", "--output-schema", "bad.json", words="nested too deeply")

    @pytest.mark.parametrize(
        ("schema", "answer"),
        [
            ({"type": "string", "pattern": "^(a+)+$"}, json.dumps("a" * 60 + "!")),
            ({"patternProperties": {"^(a|a)*$": {"type": "null"}}}, json.dumps({"a" * 60 + "!": 1})),
            (
                {
                    "properties": {"a": {"$ref": "#/$defs/d0"}},
                    "$defs": {
                        **{f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)},
                        "d60": {"const": 1},
                    },
                },
                '{"a": 2}',
            ),
        ],
    )
    def test_checking_is_bounded_and_nobody_is_asked_again_for_it(
        self, cli: Cli, monkeypatch: pytest.MonkeyPatch, schema: Any, answer: str
    ) -> None:
        monkeypatch.setattr("agent_tui.headless.schema.CHECK_SECONDS", 0.3)
        (cli.project / "slow.json").write_text(json.dumps(schema), "utf-8")
        cli.script(answers(answer))
        outcome = cli.run("-p", "hi", "-m", "demo", "--output-schema", "slow.json", "--output-format", "json")
        assert (outcome.code, outcome.json["steps"], outcome.json["output"]) == (1, 1, None)
        assert "cannot be checked" in outcome.error

    @pytest.mark.parametrize("answer", ["NaN", "[Infinity]", "9" * 5_000, "[" * 5_000 + "]" * 5_000])
    def test_what_is_no_json_elsewhere_is_none_here(self, cli: Cli, answer: str) -> None:
        (cli.project / "any.json").write_text("{}", "utf-8")
        cli.script(answers(answer, "1"))
        outcome = cli.run("-p", "hi", "-m", "demo", "--output-schema", "any.json")
        assert (outcome.code, outcome.out) == (0, "1\n")

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    def test_checking_ends_where_the_first_alarm_is_lost(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("agent_tui.headless.schema.CHECK_SECONDS", 0.05)

        class Callback:
            def __del__(self) -> None:
                signal.pause()

        with pytest.raises(_TooLongError), _bounded():
            Callback()
            signal.pause()

    def test_a_schema_may_come_through_a_pipe(self, cli: Cli) -> None:
        pipe = cli.project / "pipe"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_text, args=(json.dumps(SCHEMA),))
        writer.start()
        cli.script(answers('{"ok": true}'))
        assert cli.run("-p", "hi", "-m", "demo", "--output-schema", "pipe").code == 0
        writer.join()

    def test_files_without_an_end_are_not_read_to_it(self, cli: Cli) -> None:
        refused(cli, 2, "-p", "hi", "-m", "demo", "--output-schema", "/dev/zero", words="larger than")
        refused(cli, 2, "-p", "hi", "-m", "demo", "--system-prompt-file", "/dev/zero", words="larger than")


class TestMessages:
    FLAGS = ("-p", "--input-format", "stream-json", "--output-format", "stream-json", "-m", "demo")

    def send(self, cli: Cli, *messages: Any) -> Any:
        lines = b"".join((m if isinstance(m, bytes) else json.dumps(m).encode()) + b"\n" for m in messages)
        return cli.run(*self.FLAGS, stdin=lines)

    def test_each_line_is_a_turn(self, cli: Cli) -> None:
        cli.script(answers("First.", "Second.", "Third."))
        image = {"type": "image", "source": {"type": "base64", "data": base64.b64encode(PIXEL).decode()}}
        outcome = self.send(
            cli,
            {"type": "user", "text": "one"},
            {"type": "user", "message": {"role": "user", "content": "two"}},
            {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "three"}, image]}},
        )
        ends = [line["text"] for line in outcome.lines if line["type"] == "turn_end"]
        assert (outcome.code, ends) == (0, ["First.", "Second.", "Third."])
        assert outcome.lines[-1]["type"] == "end"
        assert outcome.lines[-1]["steps"] == 3
        users = [m for m in cli.run("export", cli.newest()).json["messages"] if m["role"] == "user"]
        assert [part["type"] for part in users[2]["parts"]] == ["attachment", "text"]

    @pytest.mark.parametrize(
        ("line", "words"),
        [
            (b"hello", "line 2: not JSON"),
            (b"[1]", "not a JSON object"),
            (b'{"type": "robot"}', "neither"),
            (b'{"type": "user"}', '"text"'),
            (b'{"type": "user", "text": " "}', "says nothing"),
            (b"[" * 100_000, "not JSON"),
            (b'{"type": "user", "message": {"content": [{"type": "video"}]}}', "'video'"),
        ],
    )
    def test_a_line_that_is_no_message_ends_the_run_after_what_came_before(
        self, cli: Cli, line: bytes, words: str
    ) -> None:
        cli.script(answers("First."))
        outcome = self.send(cli, {"type": "user", "text": "one"}, line)
        assert outcome.code == 2
        assert words in outcome.error
        assert [entry["text"] for entry in outcome.lines if entry["type"] == "turn_end"] == ["First."]
        error, end = outcome.lines[-2:]
        assert (error["type"], error["kind"], end["type"], end["steps"]) == ("error", "input", "end", 1)
        assert words in error["message"]

    def test_a_stream_without_a_message_has_nothing_to_ask(self, cli: Cli) -> None:
        for stdin in ((), ({"type": "interrupt"},)):
            outcome = self.send(cli, *stdin)
            assert (outcome.code, outcome.lines[-1]["type"], outcome.lines[-1]["stop_reason"]) == (2, "end", "error")
            assert "Nothing to ask" in outcome.error

    def test_an_interrupt_is_for_what_was_sent_before_it(self, cli: Cli) -> None:
        cli.script('[[step]]\nmatch = "one"\nhang = true\n' + answers("Second."))
        outcome = self.send(
            cli, {"type": "user", "text": "one"}, {"type": "interrupt"}, {"type": "user", "text": "two"}
        )
        ends = [(entry["stop_reason"], entry["text"]) for entry in outcome.lines if entry["type"] == "turn_end"]
        assert (outcome.code, ends) == (130, [("interrupted", ""), ("end", "Second.")])

    def test_a_signal_between_turns_is_told(self, cli: Cli) -> None:
        cli.script(answers("First."))
        process = cli.start(*self.FLAGS, stdin=subprocess.PIPE)
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write('{"type": "user", "text": "one"}\n')
        process.stdin.flush()
        next(line for line in process.stdout if json.loads(line)["type"] == "turn_end")
        process.send_signal(signal.SIGTERM)
        end = json.loads(process.stdout.read().splitlines()[-1])
        assert (process.wait(timeout=60), end["type"], end["stop_reason"]) == (130, "end", "interrupted")
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()

    def test_the_first_failure_is_the_exit_code(self, cli: Cli) -> None:
        cli.script('[[step]]\ntext = "No."\nfinish = "refused"\n' + answers("Fine."))
        assert self.send(cli, {"type": "user", "text": "one"}, {"type": "user", "text": "two"}).code == 55

    def test_a_program_talks_while_it_listens(self, cli: Cli) -> None:
        cli.script(answers("First.", "Second."))
        process = cli.start(*self.FLAGS, stdin=subprocess.PIPE)
        assert process.stdin is not None and process.stdout is not None
        seen: list[str] = []
        for text in ("one", "two"):
            process.stdin.write(json.dumps({"type": "user", "text": text}) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                entry = json.loads(line)
                if entry["type"] == "turn_end":
                    seen.append(entry["text"])
                    break
        process.stdin.close()
        rest = process.stdout.read()
        assert process.wait(timeout=60) == 0
        assert seen == ["First.", "Second."]
        assert json.loads(rest.splitlines()[-1])["type"] == "end"
        process.stdout.close()
        assert process.stderr is not None
        process.stderr.close()


class TestStandardInput:
    def test_an_open_pipe_that_brings_nothing_is_not_waited_for(self, cli: Cli) -> None:
        cli.script(answers("Alone."))
        process = cli.start("-p", "hi", "-m", "demo", stdin=subprocess.PIPE)
        assert process.stdout is not None and process.stderr is not None and process.stdin is not None
        out, err = process.stdout.read(), process.stderr.read()
        assert (process.wait(timeout=60), out) == (0, "Alone.\n")
        assert "agent-tui -p PROMPT -" in err
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()

    def test_a_dash_waits_for_its_end(self, cli: Cli) -> None:
        cli.script(ECHO % "sum up\\n\\nlate")
        assert cli.run("-p", "sum up", "-", "-m", "demo", stdin=b"late\n").out == "Came.\n"
        assert cli.run("-p", "-", "-m", "demo", stdin=b"sum up\n\nlate\n").out == "Came.\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-p", "hi", "--max-turns", "0"), "--max-turns 0: at least 1"),
        (("-p", "hi", "--session", "../x"), "--session '../x'"),
        (("-p", "hi", "--session", "a", "-c"), "name two sessions"),
        (("-p", "hi", "--ephemeral", "-r", "x"), "name two sessions"),
        (("-p", "hi", "-C", "gone"), "--cd gone: No such file"),
        (("-p", "hi", "--allow", "bash("), "--allow: the rule 'bash('"),
        (("-p", "hi", "--deny", "(x)"), "--deny: the rule '(x)'"),
        (("-p", "hi", "--mcp-config", "gone.json"), "gone.json: no such file"),
        (("-p", "hi", "--system-prompt-file", "gone.md"), "--system-prompt-file gone.md: No such file"),
        (("-p", "hi", "--output-schema", "gone.json"), "--output-schema gone.json: No such file"),
        (("-p", "hi", "--image", "gone.png"), "--image gone.png: No such file"),
        (("-p", "hi", "--input-format", "stream-json"), "goes with --output-format stream-json"),
        (("-p", "/compcat", "-m", "demo"), "Unknown command /compcat. Did you mean /compact"),
        (("-p", "hi", "--session", ""), "--session ''"),
        (("--verbose",), "--verbose goes with -p/--print"),
        (("one", "two"), "Two prompts"),
        (("-",), "goes with -p"),
    ],
)
def test_what_does_not_fit_is_one_line(cli: Cli, arguments: tuple[str, ...], words: str) -> None:
    more = ("-m", "demo") if "-m" not in arguments else ()
    refused(cli, 2, *arguments, *more, words=words)


@pytest.mark.parametrize("flag", ["-C", "--add-dir", "--output-schema", "--image", "--mcp-config"])
def test_an_empty_path_is_a_variable_that_was_not_set(cli: Cli, flag: str) -> None:
    outcome = cli.run("-p", "hi", "-m", "demo", flag, "")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.splitlines()[-1].endswith(f"{flag if flag != '-C' else '-C/--cd'}: it is empty")


def test_a_full_disk_is_told_once(cli: Cli) -> None:
    with Path("/dev/full").open("w") as full:
        process = cli.start("-p", "hi", "-m", "demo", stdout=full)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (1, "agent-tui: standard output: No space left on device\n")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("AGENT_TUI_MAX_TURNS", "many", "AGENT_TUI_MAX_TURNS is a number"),
        ("AGENT_TUI_EPHEMERAL", "perhaps", "AGENT_TUI_EPHEMERAL is 1 or 0"),
        ("AGENT_TUI_OUTPUT_FORMAT", "xml", "AGENT_TUI_OUTPUT_FORMAT is one of"),
        ("AGENT_TUI_ALLOW", "[1]", "AGENT_TUI_ALLOW is a JSON list"),
        ("AGENT_TUI_MAX_TURNS", "-3", "environment: AGENT_TUI_MAX_TURNS -3: at least 1"),
        ("AGENT_TUI_SESSION", "../x", "environment: AGENT_TUI_SESSION '../x'"),
        ("AGENT_TUI_CD", "gone", "environment: AGENT_TUI_CD gone: No such"),
        ("AGENT_TUI_DENY", "nothing(x)", "environment: AGENT_TUI_DENY: 'nothing(x)' names no tool"),
        ("AGENT_TUI_IMAGE", "gone.png", "environment: AGENT_TUI_IMAGE gone.png: No such"),
        ("AGENT_TUI_MCP_CONFIG", "gone.json", "environment: AGENT_TUI_MCP_CONFIG gone.json: no such"),
        ("AGENT_TUI_OUTPUT_SCHEMA", "gone.json", "environment: AGENT_TUI_OUTPUT_SCHEMA gone.json: No such"),
        ("AGENT_TUI_SYSTEM_PROMPT_FILE", "gone.md", "environment: AGENT_TUI_SYSTEM_PROMPT_FILE gone.md: No such"),
        ("AGENT_TUI_ADD_DIR", "gone", "environment: AGENT_TUI_ADD_DIR gone: no such"),
        ("AGENT_TUI_CONFIG", "gone.toml", "gone.toml: no such file"),
    ],
)
def test_variables_that_do_not_fit_are_one_line(cli: Cli, name: str, value: str, words: str) -> None:
    cli.setenv(name, value)
    refused(cli, 2, "-p", "hi", "-m", "demo", words=words)


def test_what_is_typed_is_named_as_it_was_typed(cli: Cli) -> None:
    cli.setenv("AGENT_TUI_CD", str(cli.project))
    for typed in (("-C", "gone"), ("-Cgone",), ("--cd", "gone"), ("--cd=gone",)):
        refused(cli, 2, "-p", "hi", "-m", "demo", *typed, words="agent-tui: --cd gone: No such")


def test_a_session_that_is_typed_wins_over_one_of_a_variable(cli: Cli) -> None:
    cli.setenv("AGENT_TUI_SESSION", "ci")
    cli.script(answers("One.") + "[[step]]\nrepeat = 0\ntext = 'More.'\n")
    assert cli.run("-p", "hi", "-m", "demo").code == 0
    for typed in (("--ephemeral",), ("--session", "other"), ("-r", "ci"), ("-c",)):
        assert cli.run("-p", "hi", "-m", "demo", *typed).code == 0, typed
    assert {s["id"] for s in cli.run("sessions", "--json").json} == {"ci", "other"}
    cli.setenv("AGENT_TUI_EPHEMERAL", "1")
    refused(cli, 2, "-p", "hi", "-m", "demo", words="name two sessions")
    refused(cli, 2, "-p", "hi", "-m", "demo", "-c", "-r", "x", words="name two sessions")


def test_servers_of_a_file_are_started(cli: Cli) -> None:
    (cli.project / "servers.json").write_text(json.dumps({"mcpServers": {"x": {"command": 3}}}), "utf-8")
    refused(cli, 2, "-p", "hi", "-m", "demo", "--mcp-config", "servers.json", words="mcpServers.x: command must be")
    (cli.project / "servers.json").write_text(json.dumps({"mcpServers": {"x": {"command": "/nowhere"}}}), "utf-8")
    cli.script(answers("Went on."))
    outcome = cli.run("-p", "hi", "-m", "demo", "--mcp-config", "servers.json")
    assert (outcome.code, outcome.out) == (0, "Went on.\n")
    assert "MCP server x" in outcome.err


def test_what_subagents_used_is_in_the_bill(cli: Cli) -> None:
    cli.script("""
[[step]]
match = "delegate"
tool_calls = [{ name = "subagent", arguments = { description = "look", prompt = "look around" } }]
[[step]]
match = "look around"
text = "Found."
[[step]]
text = "Done."
""")
    data = cli.run("-p", "delegate", "-m", "demo", "--output-format", "json").json
    kinds = data["usage_by_kind"]
    assert (data["steps"], kinds["subagent"]["calls"], kinds["turn"]["calls"]) == (3, 1, 2)
    assert data["usage"]["input_tokens"] > kinds["subagent"]["input_tokens"] > 0
    assert (data["cost_usd"], data["cost_known_usd"], data["unpriced_calls"]) == (0.0, 0.0, 0)


PAID = '[models.paid]\nmodel = "demo"\nprices = { input = 3.0, output = 15.0, cache_read = 0.3 }\n'


def test_a_run_that_would_break_its_budget_ends_before_the_call(cli: Cli) -> None:
    cli.config(PAID)
    cli.script(LIST)
    outcome = cli.run("-p", "work", "-m", "paid", "--budget", "0.03", "--output-format", "json")
    data = outcome.json
    assert (outcome.code, data["stop_reason"]) == (54, "budget")
    assert 0 < data["cost_usd"] <= 0.03 and data["steps"] > 1
    assert "--budget = $0.0300" in outcome.error and "Ways on:" in outcome.error
    assert data["notices"][-1]["code"] == "budget"
    cli.setenv("AGENT_TUI_BUDGET", "0.001")
    assert cli.run("-p", "work", "-m", "paid").code == 54
    assert cli.run("-p", "work", "-m", "demo", "--max-turns", "1").code == 53, (
        "a free model breaks no budget in dollars"
    )


@pytest.mark.parametrize("amount", ["0", "-1", "nan", "inf"])
def test_a_budget_is_more_than_nothing(cli: Cli, amount: str) -> None:
    refused(cli, 2, "-p", "hi", "-m", "demo", f"--budget={amount}", words="--budget")


def test_the_figure_of_a_turn_is_told_where_the_run_is_verbose(cli: Cli) -> None:
    cli.config(PAID)
    cli.script(answers("One.", "Two."))
    outcome = cli.run("-p", "hi", "-m", "paid", "--verbose")
    (figure,) = [line for line in outcome.err.splitlines() if line.startswith("$")]
    assert figure.endswith("% cached") and outcome.out == "One.\n"
    assert "$" not in cli.run("-p", "hi", "-m", "demo", "--verbose").err


@pytest.mark.parametrize(
    ("own", "asked", "spent"), [("0.03", "0.001", False), ("0.001", "9.0", False), (None, "9.0", True)]
)
def test_a_project_makes_a_budget_smaller_and_never_larger(cli: Cli, own: str | None, asked: str, spent: bool) -> None:
    cli.config(PAID + (f"[budget]\nturn_usd = {own}\n" if own else ""))
    cli.script(answers("Came."))
    project = cli.project / ".agent-tui"
    project.mkdir()
    (project / "config.toml").write_text(f"[budget]\nturn_usd = {asked}\n", "utf-8")
    assert cli.run("-p", "hi", "-m", "paid", "--trust").code == (0 if spent else 54)


def test_a_project_does_not_say_what_calls_cost_where_its_user_has_a_budget(cli: Cli) -> None:
    project = cli.project / ".agent-tui"
    project.mkdir()
    (project / "config.toml").write_text(
        '[models.paid]\nmodel = "demo"\nprices = { input = 0.0, output = 0.0 }\n', "utf-8"
    )
    cli.config(PAID)
    assert cli.run("-p", "hi", "-m", "paid", "--trust").code == 0
    cli.config(PAID + "[budget]\nturn_usd = 0.001\n")
    refused(cli, 2, "-p", "hi", "-m", "paid", "--trust", words="take models.paid.prices out there")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[budget]\nturn_usd = 0\n", "budget.turn_usd: must be greater than 0"),
        ("[budget]\nweek_usd = 1.0\n", "unknown key budget.week_usd"),
        ('[models.x]\nmodel = "demo"\nprices = { input = 3.0 }\n', "needs both input and output"),
        ('[models.x]\nmodel = "demo"\nprices = { input = -3.0, output = 1.0 }\n', "at least 0"),
    ],
)
def test_budgets_and_prices_that_make_no_sense_are_one_line(cli: Cli, text: str, words: str) -> None:
    cli.config(text)
    refused(cli, 2, "-p", "hi", "-m", "demo", words=words)
