"""Nothing that the program prints can drive a terminal, wherever the words come from."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass

import pytest

from agent_tui.models.messages import user_message
from agent_tui.store.store import Store
from tests.support.cli import REPOSITORY, Cli
from tests.support.sources import matching

PACKAGE = REPOSITORY / "agent_tui"
NOT_THE_TERMINAL = {
    "terminal_output.py": "the file itself",
    "tools/builtin/pdf.py": "text to its parent",
    "tools/builtin/searcher.py": "lines of JSON to its parent",
}
STREAMS = {"stdout", "stderr", "__stdout__", "__stderr__"}
PRINTERS = {"print", "input", "getpass"}
WRITES = re.compile(rf"\b({'|'.join(PRINTERS)})\s*\(|\b({'|'.join(STREAMS)})\s*\.\s*(write|buffer)|\bArgumentParser\b")
"""What a file has that does."""

ESC = "\x1b]0;owned\x07\x1b[31m\x9b2J\u202e\x08\r"


def bare_prints(source: str) -> list[int]:
    """Lines that print, ask or write to a standard stream themselves."""
    found: list[int] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            function = node.func
            if (
                (isinstance(function, ast.Name) and function.id in PRINTERS)
                or (
                    isinstance(function, ast.Attribute)
                    and function.attr in ("write", "writelines", "buffer")
                    and isinstance(function.value, ast.Attribute)
                    and function.value.attr in STREAMS
                )
                or (isinstance(function, ast.Attribute) and function.attr == "ArgumentParser")
            ):
                found.append(node.lineno)
    return found


@pytest.mark.quick
def test_the_walk_finds_what_it_looks_for() -> None:
    for line in (
        "print(1)",
        "sys.stdout.write('')",
        "sys.stderr.writelines([])",
        "input()",
        "argparse.ArgumentParser()",
    ):
        assert bare_prints(f"import sys\n{line}\n") == [2]
    assert bare_prints("terminal_output.say('')\nself.print('')\n") == []
    assert all((PACKAGE / name).is_file() for name in NOT_THE_TERMINAL)


def test_every_print_goes_through_the_door() -> None:
    files = {name: text for name, text in matching(WRITES).items() if not name.startswith("tools/sandbox/")}
    assert set(NOT_THE_TERMINAL) <= set(files), "what is looked for is found"
    sources = {name: text for name, text in files.items() if name not in NOT_THE_TERMINAL}
    assert [(name, line) for name, text in sources.items() for line in bare_prints(text)] == []


def harmless(text: str) -> None:
    active = re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert active == [], text


@dataclass(slots=True)
class Hostile:
    """A project, a session and a configuration full of escape sequences."""

    cli: Cli

    def say(self, *arguments: str) -> tuple[str, str]:
        """What the program says on its two streams."""
        done = self.cli.run(*arguments)
        return done.out, done.err


@pytest.fixture
def hostile(cli: Cli) -> Hostile:
    project = cli.project / f"p{ESC}"
    project.mkdir()
    cli.monkeypatch.chdir(project)
    cli.config(
        'default_model = "m"\n[models.m]\nmodel = "demo"\n'
        f'["models"."k{encoded(ESC)}"]\nmodel = "openai/x{encoded(ESC)}"\napi_base = "http://127.0.0.1:1"\n'
    )
    cli.script(f'[[step]]\nmatch = ""\ntext = "answer {encoded(ESC)} end"\n')
    with Store.open(cli.paths.database) as store:
        info = store.sessions.create(str(project), f"m{ESC}")
        info.title = f"title{ESC}"
        store.sessions.save(info)
        message = user_message(f"text{ESC}")
        store.messages.add(info.id, message)
        info.head_id, info.messages = message.id, 1
        store.sessions.save(info)
    return Hostile(cli)


def encoded(text: str) -> str:
    """For TOML."""
    return "".join(f"\\u{ord(c):04x}" if not c.isprintable() or c == "\\" else c for c in text)


COMMANDS = [
    ("doctor",),
    ("models",),
    ("sessions", "--all"),
    ("config", "show"),
    ("config", "path"),
    ("context",),
    ("-p", f"say {ESC}", "-m", "demo"),
    ("-p", "hi", "-m", f"unknown{ESC}"),
    ("-p", "hi", "-m", f"openai/{ESC}"),
    ("-p", "hi", "--config", f"no{ESC}"),
    ("-p", "hi", "--add-dir", f"no{ESC}"),
    ("-p", f"see @{ESC}", "-m", "demo"),
    (f"--unknown{ESC}",),
    ("config", f"bad{ESC}"),
    ("export", f"ses_{ESC}"),
    ("export", "ses", "--format", f"md{ESC}"),
    ("sessions", "delete", f"ses_{ESC}", "--yes"),
    ("auth", "set", f"p{ESC}"),
    ("auth", "remove", f"p{ESC}"),
    ("-p", "one", f"two{ESC}"),
]


@pytest.mark.quick
def test_hostile_names_drive_no_terminal(hostile: Hostile) -> None:
    for arguments in COMMANDS:
        out, err = hostile.say(*arguments)
        harmless(out)
        harmless(err)
        assert "Traceback" not in err and out + err, arguments
        assert arguments not in COMMANDS[:6] or ("is not valid" not in err and out), arguments


def test_json_says_everything_and_is_ascii(hostile: Hostile) -> None:
    out, _ = hostile.say("sessions", "--all", "--json")
    harmless(out)
    assert any(row["title"] == f"title{ESC}" for row in json.loads(out))
    for form in ("json", "stream-json"):
        out, _ = hostile.say("-p", "hi", "-m", "demo", "--output-format", form)
        harmless(out)
        assert out.isascii() and json.loads(out.splitlines()[-1])["text"].startswith("answer \x1b]0;owned")


def test_exports_drive_no_terminal(hostile: Hostile) -> None:
    hostile.say("-p", f"say {ESC}", "-m", "demo")
    with Store.open(hostile.cli.paths.database) as store:
        newest = store.sessions.all()[0].id
    for form in ("md", "html", "json"):
        out, _ = hostile.say("export", newest, "--format", form)
        harmless(out)
        assert "answer" in out
