"""The files of a project, for completion: what git knows, or a walk that respects .gitignore."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.tools.git.repository import find_repository, own_git

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

LIMIT = 200_000
_LIST = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
SKIPPED = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".ruff_cache"})


def project_files(root: Path, limit: int = LIMIT) -> list[str]:
    """Paths below ``root``, relative, with ``/``, sorted; at most ``limit``. Slow on large trees: call in a thread."""
    found = _git_files(root)
    if found is None:
        found = _walk(root, limit)
    return sorted(found)[:limit]


def _git_files(root: Path) -> list[str] | None:
    repository = find_repository(root)
    if repository is None:
        return None
    with own_git(repository) as git:
        names = git.run(root, *_LIST, timeout=20) if git else None
    return None if names is None else list({os.fsdecode(name) for name in names.split(b"\0") if name})


def _walk(root: Path, limit: int) -> list[str]:
    found: list[str] = []
    specs: list[tuple[str, GitIgnoreSpec]] = []
    for folder, folders, names in os.walk(root):
        here = os.path.relpath(folder, root).replace(os.sep, "/")
        prefix = "" if here == "." else here + "/"
        specs = [(base, spec) for base, spec in specs if prefix.startswith(base)]
        if ".gitignore" in names:
            own = _spec(Path(folder, ".gitignore"))
            if own is not None:
                specs.append((prefix, own))
        folders[:] = [f for f in folders if f not in SKIPPED and not _ignored(specs, f"{prefix}{f}/")]
        found += [prefix + name for name in names if not _ignored(specs, prefix + name)]
        if len(found) >= limit:
            break
    return found


def _spec(path: Path) -> GitIgnoreSpec | None:
    from pathspec import GitIgnoreSpec

    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        return GitIgnoreSpec.from_lines(lines)
    except (OSError, ValueError):
        return None


def _ignored(specs: list[tuple[str, GitIgnoreSpec]], path: str) -> bool:
    return any(spec.match_file(path[len(base) :]) for base, spec in specs)
