"""Whether git, in a folder, would run programs that the repository itself names: it may be anyone's."""

from __future__ import annotations

import re
from pathlib import Path

MAX_BYTES = 200_000

# Of filters, textconv and external diffs, monitors, pagers, aliases and hooks; includes may hold any of them.
_PROGRAM = re.compile(
    rb"^[^#;\n]*?\b(?:fsmonitor|external|textconv|command|pager|clean|smudge|process|hookspath|program|askpass|editor"
    rb"|sshcommand|driver)\s*=|^\s*\[\s*(?:include|alias)",
    re.IGNORECASE | re.MULTILINE,
)
_HARMLESS = re.compile(rb"^\s*fsmonitor\s*=\s*(?:true|false)\s*$", re.IGNORECASE | re.MULTILINE)


def names_programs(folder: Path) -> bool:
    """True when the configuration of the repository that ``folder`` is in names programs, or cannot be read."""
    try:
        git = _git_folder(folder)
        return git is not None and any(_in_file(git / name) for name in ("config", "config.worktree"))
    except (OSError, ValueError):
        return True


_REACHING = re.compile(
    rb"^[^#;\n]*?\b(?:uploadpack|receivepack|vcs|gitproxy|helper|insteadof)\s*=|=\s*\"?[\w-]+::",
    re.IGNORECASE | re.MULTILINE,
)


def starts_when_fetched(folder: Path) -> bool:
    """True when git, talking to a remote in ``folder``, would run what the repository names: hooks, or programs in its
    configuration; and when that cannot be read."""
    try:
        git = _git_folder(folder)
        if git is None:
            return False
        hooks = (
            (entry for entry in (git / "hooks").iterdir() if entry.suffix != ".sample")
            if (git / "hooks").is_dir()
            else ()
        )
        return names_programs(folder) or any(hooks) or _in_file(git / "config", _REACHING)
    except (OSError, ValueError):
        return True


def _git_folder(folder: Path) -> Path | None:
    for place in (folder, *folder.parents):
        if (place / ".git").is_dir():
            return place / ".git"
        if (place / ".git").is_file():
            return _linked(place)
        if (place / "HEAD").is_file() and (place / "objects").is_dir():
            return place  # a bare repository, which may lie in any folder
    return None


def _linked(place: Path) -> Path:
    """The folder that a worktree's or submodule's ``.git`` file points at, whose configuration counts."""
    text = (place / ".git").read_text("utf-8", "replace")[:4_096]
    git = place / text.partition("gitdir:")[2].strip()
    common = git / "commondir"
    return git / common.read_text("utf-8", "replace")[:4_096].strip() if common.is_file() else git


def _in_file(path: Path, pattern: re.Pattern[bytes] = _PROGRAM) -> bool:
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return False
    return len(data) > MAX_BYTES or pattern.search(_HARMLESS.sub(b"", data)) is not None
