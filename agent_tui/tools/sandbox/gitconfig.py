"""What a sandbox takes from git's configuration: who the user is and what they like, which commands may know, and where
hooks lie, which commands may not change.

The user's own file is not readable inside: it can hold tokens and name programs.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

from agent_tui.tools.git.repository import find_git

KEPT = re.compile(
    r"user\.(?:name|email)|init\.defaultbranch|core\.(?:autocrlf|eol|quotepath|abbrev|filemode|ignorecase)|color\.ui"
    r"|pull\.(?:rebase|ff)|push\.default|fetch\.prune|merge\.(?:conflictstyle|ff)|rebase\.(?:autosquash|autostash)"
    r"|diff\.(?:algorithm|renames|colormoved|mnemonicprefix|noprefix)|log\.date|safe\.directory|advice\.[a-z]+"
)
"""Keys whose values neither run anything nor let anyone in."""

_FRESH = 300.0
_SECTION = re.compile(r"\s*\[\s*([\w.-]+)[^\]]*\]")
_VALUE = re.compile(r'\s*([\w-]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^#;]*)')
_MAX_BYTES = 200_000
_INCLUDES = 5


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


def led_to(folder: Path) -> list[Path]:
    """Places in ``folder``, a worktree, that git's configuration names: the folder of hooks and files to include. Read
    as data, no git is asked; what a condition would leave out is in it, too."""
    git = folder / ".git"
    try:
        if git.is_file():
            own = folder / git.read_text("utf-8", "replace")[:4_096].partition("gitdir:")[2].strip()
            common = own / "commondir"
            shared = own / common.read_text("utf-8", "replace")[:4_096].strip() if common.is_file() else own
            files = [shared / "config", own / "config.worktree"]
        else:
            files = [git / "config", git / "config.worktree"]
    except (OSError, ValueError):
        return []
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    found: set[Path] = set()
    for file in (*files, Path.home() / ".gitconfig", base / "git" / "config"):
        _follow(file, folder, found, _INCLUDES)
    return sorted(path for path in found if path.is_relative_to(folder) and path != folder)


def _follow(file: Path, folder: Path, found: set[Path], depth: int) -> None:
    try:
        with file.open("rb") as opened:
            text = opened.read(_MAX_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return
    section = ""
    for line in text.replace("\\\n", "").splitlines():
        if heading := _SECTION.match(line):
            section, line = heading[1].lower(), line[heading.end() :]
        value = _VALUE.match(line)
        if value is None:
            continue
        named = Path(value[2].strip().strip('"')).expanduser()
        if section == "core" and value[1].lower() == "hookspath":
            found.add(Path(os.path.normpath(folder / named)))
        elif section.startswith("include") and value[1].lower() == "path" and depth:
            found.add(Path(os.path.normpath(file.parent / named)))
            _follow(file.parent / named, folder, found, depth - 1)
