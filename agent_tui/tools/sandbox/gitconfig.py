"""The part of the user's git configuration that commands in a sandbox may know: who they are and what they like.

The file itself is not readable inside: it can hold tokens and name programs.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

from agent_tui.tools.git.own import find_git

KEPT = re.compile(
    r"user\.(?:name|email)|init\.defaultbranch|core\.(?:autocrlf|eol|quotepath|abbrev|filemode|ignorecase)|color\.ui"
    r"|pull\.(?:rebase|ff)|push\.default|fetch\.prune|merge\.(?:conflictstyle|ff)|rebase\.(?:autosquash|autostash)"
    r"|diff\.(?:algorithm|renames|colormoved|mnemonicprefix|noprefix)|log\.date|safe\.directory|advice\.[a-z]+"
)
"""Keys whose values neither run anything nor let anyone in."""

_FRESH = 300.0


def write_git_config(target: Path, path: str) -> None:
    """Writes what is kept of the user's configuration to ``target``, unless that was done lately; ``path`` are the
    folders in which git is. Raises OSError."""
    try:
        if time.time() - target.stat().st_mtime < _FRESH:
            return
    except FileNotFoundError:
        pass
    temporary = target.with_name(f"{target.name}.{os.getpid()}")
    temporary.write_text(_text(_listed(path)), "utf-8")
    temporary.replace(target)


def _listed(path: str) -> list[tuple[str, str]]:
    """The global configuration. It names files to include at most, so reading it runs nothing."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            [find_git(None, path) or "git", "config", "--global", "--includes", "--list", "-z"],
            cwd="/",
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    entries = (entry.partition("\n") for entry in done.stdout.decode("utf-8", "replace").split("\0"))
    return [(key, value) for key, _, value in entries if KEPT.fullmatch(key.lower())]


def _text(entries: list[tuple[str, str]]) -> str:
    lines = []
    for key, value in entries:
        section, _, name = key.partition(".")
        quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        lines.append(f'[{section}]\n\t{name} = "{quoted}"\n')
    return "".join(lines)
