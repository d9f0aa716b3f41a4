"""A CI job as people write them: ten calls of the program in processes of their own, told apart by their exit codes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.cli import Cli

TOUCH = '[[step]]\ntool_calls = [{ name = "bash", arguments = { command = "touch made" } }]\n[[step]]\ntext = "Over."\n'
LOOP = '[[step]]\nrepeat = 0\ntool_calls = [{ name = "list", arguments = { path = "." } }]\n'
SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


def says(text: str, more: str = "") -> str:
    return f"[[step]]\nrepeat = 0\ntext = {json.dumps(text)}\n{more}"


CALLS: Mapping[str, tuple[str, tuple[str, ...], str, int, str]] = {
    "no model": ("", ("-p", "hi"), "", 2, ""),
    "an answer": (says("Fine."), ("-p", "hi", "-m", "demo"), "", 0, "Fine.\n"),
    "piped in": (says("Seen."), ("-p", "review", "-m", "demo"), "diff --git a b\n", 0, "Seen.\n"),
    "fits the schema": (
        says('{"ok": true}'),
        ("-p", "?", "-m", "demo", "--output-schema", "s.json"),
        "",
        0,
        '{"ok": true}\n',
    ),
    "never fits": (says("No."), ("-p", "?", "-m", "demo", "--output-schema", "s.json"), "", 1, "No.\n"),
    "a refused call": (TOUCH, ("-p", "go", "-m", "demo", "--fail-on-denial"), "", 56, "Over.\n"),
    "an allowed call": (
        TOUCH,
        ("-p", "go", "-m", "demo", "--allow", "bash(touch *)", "--fail-on-denial"),
        "",
        0,
        "Over.\n",
    ),
    "too many turns": (LOOP, ("-p", "go", "-m", "demo", "--max-turns", "2"), "", 53, ""),
    "says nothing": (says(""), ("-p", "hi", "-m", "demo"), "", 55, ""),
    "refuses": (says("No.", 'finish = "refused"\n'), ("-p", "hi", "-m", "demo"), "", 55, "No.\n"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_job_can_rely_on_the_exit_code(cli: Cli, name: str) -> None:
    script, arguments, stdin, code, out = CALLS[name]
    (cli.project / "s.json").write_text(json.dumps(SCHEMA), "utf-8")
    if script:
        cli.script(script)
    options: dict[str, Any] = {"stdin": subprocess.PIPE}
    process = (cli.start if name == "an answer" else cli.fork)(*arguments, **options)
    said, told = process.communicate(stdin, timeout=120)
    assert (process.returncode, said) == (code, out)
    assert "Traceback" not in told
    assert bool(told) is (code != 0), "quiet where all is well, words where it is not"
    assert (cli.project / "made").exists() is (name == "an allowed call")
