"""A command line in a home of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.cli import Cli


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    for name in list(os.environ):
        if name.startswith("AGENT_TUI_") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    cli = Cli(tmp_path / "home", project, capsys, monkeypatch)
    cli.setenv("AGENT_TUI_HOME", str(cli.home))
    return cli
