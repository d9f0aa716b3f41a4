"""Writes the commit that is built into the wheel and the source archive: ``agent-tui --version`` says it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Commit(BuildHookInterface):  # type: ignore[misc]
    """The source archive holds the file already; a wheel made of it takes it from there."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self._file = Path(self.directory, ".commit")
        commit = commit_of(Path(self.root))
        if version != "editable" and commit:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_text(commit + "\n", "ascii")
            build_data["force_include"][str(self._file)] = "agent_tui/commit"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._file.unlink(missing_ok=True)


def commit_of(root: Path) -> str:
    """With ``+`` behind it where files are not as they were committed; empty where this is no clone of its own."""
    if not (root / ".git").exists():
        return ""
    try:
        commit, changed = (
            subprocess.run(["git", *asked], cwd=root, capture_output=True, text=True, check=True).stdout.strip()
            for asked in (("rev-parse", "--short=12", "HEAD"), ("status", "--porcelain", "--untracked-files=no"))
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return commit + ("+" if changed else "")
