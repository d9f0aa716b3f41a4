"""The command line as a user meets it: a home, a project folder, and runs with their output."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from agent_tui.cli import main
from agent_tui.paths import Paths, user_paths
from tests.support.nursery import PROGRAM, stand_in

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(slots=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """stream-json, line by line."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self) -> str:
        """What was said on stderr, which must be one line."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        return lines[0]


@dataclass(slots=True)
class Cli:
    """Runs the program in this process (``run``) or in one of its own: a new one (``start``) or one that is forked
    (``fork``)."""

    home: Path
    project: Path
    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch
    nursery: Callable[[], str]
    env: dict[str, str] = field(default_factory=dict)

    @property
    def paths(self) -> Paths:
        return user_paths()

    def config(self, text: str) -> None:
        self.paths.config_file.parent.mkdir(parents=True, exist_ok=True)
        self.paths.config_file.write_text(text, "utf-8")

    def script(self, text: str) -> None:
        """What the demo model answers."""
        file = self.home.parent / "script.toml"
        file.write_text(text, "utf-8")
        self.setenv("AGENT_TUI_DEMO_SCRIPT", str(file))

    def setenv(self, name: str, value: str) -> None:
        self.env[name] = value
        self.monkeypatch.setenv(name, value)

    def run(self, *arguments: str, stdin: bytes | BinaryIO = b"") -> Outcome:
        source = io.BytesIO(stdin) if isinstance(stdin, bytes) else stdin
        with self.monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(source, "utf-8"))
            try:
                code = main(arguments)
            except SystemExit as error:
                code = error.code if isinstance(error.code, int) else 1
            finally:
                reset_logging()
        captured = self.capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """A process of its own, with pipes for its output unless told otherwise."""
        return self._process([sys.executable, "-m", "agent_tui", *arguments], options)

    def fork(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """The same for a third of the time: for tests that send no signal and do not ask how it starts."""
        return self._process(stand_in(self.nursery(), PROGRAM, *arguments), options)

    def _process(self, command: list[str], options: dict[str, Any]) -> subprocess.Popen[str]:
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(
            command,
            cwd=self.project,
            env=environment(self.env),
            text=True,
            encoding="utf-8",
            **{**pipes, **options},
        )

    def refused(self, code: int, *arguments: str, words: str) -> None:
        """A run that ends with this code and one line, in which the words stand, and prints nothing."""
        outcome = self.run(*arguments)
        assert (outcome.code, outcome.out) == (code, "")
        assert words in outcome.error

    def newest(self) -> str:
        """The id of the newest session."""
        found: str = self.run("sessions", "--json").json[0]["id"]
        return found


LOOKING = "".join(
    f'[[step]]\ntext = "Looking."\ntool_calls = [{{ name = "list", arguments = {{ path = ".", depth = {depth} }} }}]\n'
    for depth in range(1, 100)
)
"""A script in which the demo model looks around for a long time."""


def came(match: str) -> str:
    """A step of a script: the demo model says that ``match`` came, once it did."""
    return f'[[step]]\nmatch = "{match}"\ntext = "Came."\n'


def answers(*texts: str) -> str:
    """A script in which the demo model says these, one after another."""
    return "".join(f"[[step]]\ntext = '''{text}'''\n" for text in texts)


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without settings and keys, with ``extra``."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("AGENT_TUI_") and not k.endswith("_API_KEY")}
    return {**kept, "PYTHONPATH": str(REPOSITORY), "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring", **extra}


def reset_logging() -> None:
    """Takes back what ``start_logging`` did to this process."""
    logger = logging.getLogger("agent_tui")
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        handler.close()
    logger.propagate = True
    logger.setLevel(logging.NOTSET)
