"""``--output-schema``: an answer as data, asked for again where it does not fit, and checked within bounds."""

from __future__ import annotations

import json
import os
import signal
import threading
from typing import Any

import pytest

from agent_tui.headless.schema import _bounded, _TooLongError
from tests.support.cli import Cli, answers
from tests.support.forms import one_of

SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}


@pytest.fixture
def file(cli: Cli) -> str:
    (cli.project / "schema.json").write_text(json.dumps(SCHEMA), "utf-8")
    return "schema.json"


def test_an_answer_that_fits_is_given_as_data(cli: Cli, file: str) -> None:
    cli.script(answers('```json\n{"ok": true}\n```'))
    outcome = cli.run("-p", "is it?", "-m", "demo", "--output-schema", file, "--output-format", "json")
    assert (outcome.code, outcome.json["output"]) == (0, {"ok": True})


@pytest.mark.quick
def test_one_that_does_not_is_asked_for_again(cli: Cli, file: str) -> None:
    cli.script(answers("yes", '{"ok": "yes"}', '{"ok": true}'))
    outcome = cli.run("-p", "is it?", "-m", "demo", "--output-schema", file)
    assert (outcome.code, outcome.out) == (0, '{"ok": true}\n')
    messages = cli.run("export", cli.newest()).json["messages"]
    asked = [m["parts"][0]["text"] for m in messages if m["role"] == "user"][1:]
    assert len(asked) == 2
    assert "not JSON" in asked[0] and "$.ok" in asked[1]


def test_after_two_repairs_the_text_is_all_there_is(cli: Cli, file: str) -> None:
    cli.script('[[step]]\nrepeat = 0\ntext = "Never."\n')
    outcome = cli.run("-p", "is it?", "-m", "demo", "--output-schema", file)
    assert (outcome.code, outcome.out) == (1, "Never.\n")
    assert len(outcome.err.splitlines()) == 3
    data = cli.run("-p", "is it?", "-m", "demo", "--output-schema", file, "--output-format", "json").json
    assert (data["output"], data["text"], data["steps"]) == (None, "Never.", 3)


def test_asking_again_keeps_to_the_limit_of_calls(cli: Cli, file: str) -> None:
    cli.script('[[step]]\nrepeat = 0\ntext = "Never."\n')
    for limit in (1, 2):
        flags = ("--output-schema", file, "--max-turns", str(limit), "--output-format", "json")
        outcome = cli.run("-p", "is it?", "-m", "demo", *flags)
        assert (outcome.code, outcome.json["steps"]) == (1, limit)
        assert f"--max-turns {limit} reached" in outcome.err.splitlines()[-1]


def test_the_model_is_told(cli: Cli, file: str) -> None:
    cli.script(answers('{"ok": false}'))
    cli.run("-p", "is it?", "-m", "demo", "--output-schema", file)
    rows = [part["label"] for part in cli.run("export", cli.newest()).json["steps"][0]["fixed"]]
    assert "Appended instructions" in rows


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ("[]", "must be an object"),
        ('{"type": "objekt"}', "not a JSON Schema: type"),
        ('{"properties": 3}', "not a JSON Schema: properties"),
    ],
)
def test_a_schema_that_is_none(cli: Cli, text: str, words: str) -> None:
    (cli.project / "bad.json").write_text(text, "utf-8")
    cli.refused(2, "-p", "hi", "-m", "demo", "--output-schema", "bad.json", words=words)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$ref": "http://127.0.0.1:9/schema.json"}, "cannot be applied: Unresolvable"),
        ({"$ref": "#"}, "are circular"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, "are circular"),
        ({"$ref": "#/$defs/nowhere"}, "cannot be applied"),
    ],
)
def test_a_schema_that_cannot_be_applied_asks_nobody(cli: Cli, schema: Any, words: str) -> None:
    (cli.project / "bad.json").write_text(json.dumps(schema), "utf-8")
    cli.refused(2, "-p", "hi", "-m", "demo", "--output-schema", "bad.json", words=words)


def test_a_schema_nested_without_end_is_one_line(cli: Cli) -> None:
    (cli.project / "bad.json").write_text('{"not":' * 300 + "{}" + "}" * 300, "utf-8")
    cli.refused(2, "-p", "hi", "-m", "demo", "--output-schema", "bad.json", words="nested too deeply")


@pytest.mark.parametrize(
    ("schema", "answer"),
    one_of(
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
        ]
    ),
)
def test_checking_is_bounded_and_nobody_is_asked_again_for_it(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, schema: Any, answer: str
) -> None:
    monkeypatch.setattr("agent_tui.headless.schema.CHECK_SECONDS", 0.3)
    (cli.project / "slow.json").write_text(json.dumps(schema), "utf-8")
    cli.script(answers(answer))
    outcome = cli.run("-p", "hi", "-m", "demo", "--output-schema", "slow.json", "--output-format", "json")
    assert (outcome.code, outcome.json["steps"], outcome.json["output"]) == (1, 1, None)
    assert "cannot be checked" in outcome.error


DIGITS = "".join(map(str, range(1_000, 3_000)))
"""More than Python reads as a number, and no piece again and again."""


@pytest.mark.forms(1)
@pytest.mark.parametrize("answer", one_of(["NaN", "[Infinity]", DIGITS, "[" * 1_900 + "]" * 1_900], 2))
def test_what_is_no_json_elsewhere_is_none_here(cli: Cli, answer: str) -> None:
    (cli.project / "any.json").write_text("{}", "utf-8")
    cli.script(answers(answer, "1"))
    outcome = cli.run("-p", "hi", "-m", "demo", "--output-schema", "any.json")
    assert (outcome.code, outcome.out) == (0, "1\n")


@pytest.mark.quick
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_checking_ends_where_the_first_alarm_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_tui.headless.schema.CHECK_SECONDS", 0.05)

    class Callback:
        def __del__(self) -> None:
            signal.pause()

    with pytest.raises(_TooLongError), _bounded():
        Callback()
        signal.pause()


def test_a_schema_may_come_through_a_pipe(cli: Cli) -> None:
    pipe = cli.project / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(json.dumps(SCHEMA),))
    writer.start()
    cli.script(answers('{"ok": true}'))
    assert cli.run("-p", "hi", "-m", "demo", "--output-schema", "pipe").code == 0
    writer.join()


def test_files_without_an_end_are_not_read_to_it(cli: Cli) -> None:
    cli.refused(2, "-p", "hi", "-m", "demo", "--output-schema", "/dev/zero", words="larger than")
    cli.refused(2, "-p", "hi", "-m", "demo", "--system-prompt-file", "/dev/zero", words="is not a regular file")
