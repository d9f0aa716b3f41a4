"""A command line in a home of its own."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from tests.support.cli import Cli


@pytest.fixture
def cli(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    forked_worker: None,
    request: pytest.FixtureRequest,
) -> Cli:
    for name in list(os.environ):
        if name.startswith("AGENT_TUI_") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    # That of programs is made for the first that is forked.
    cli = Cli(tmp_path / "home", project, capsys, monkeypatch, partial(request.getfixturevalue, "program_nursery"))
    cli.setenv("AGENT_TUI_HOME", str(cli.home))
    return cli
