"""Git as a test uses it, with an author and without a signature."""

from __future__ import annotations

import subprocess
from pathlib import Path

IDENTITY = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]


def git(root: Path, *arguments: str) -> str:
    """What the command prints, without the last line break. Raises CalledProcessError."""
    command = ["git", "-C", str(root), *IDENTITY, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.rstrip("\n")
