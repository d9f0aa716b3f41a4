"""The user's editor: where it starts, and what comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_tui.commands.desktop import edit_text
from tests.support.starting import stand_alone

pytestmark = pytest.mark.quick


def test_an_editor_starts_in_a_folder_that_has_nothing_but_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_alone(monkeypatch, tmp_path)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    project = tmp_path / "project"
    project.mkdir()
    (project / ".exrc").write_text("!touch ran\n", "utf-8")
    monkeypatch.chdir(project)
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\n{ pwd; ls -A; } > "$1.new" && mv "$1.new" "$1"\n', "utf-8")
    editor.chmod(0o755)
    edited = edit_text("words", "prompt.md", str(editor))
    assert edited.problem == "" and edited.text is not None
    folder, *names = edited.text.splitlines()
    assert Path(folder) != project and set(names) == {"prompt.md", "prompt.md.new"}
