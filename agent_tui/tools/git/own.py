"""Git started for ourselves, so that a repository has no say in what runs.

Everything that can make git start a program is configuration, hooks or environment. So git is given a folder of our
own as its repository: a configuration we wrote, no hooks, a detached HEAD; only objects and the index are the real
ones, and they are data. What attributes name (filters, diff drivers) is defined nowhere then and is not run; without
a remote nothing is fetched; submodules are left alone. The environment is made anew, not inherited.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agent_tui.tools.git.repository import Repository, read_small
from agent_tui.tools.git.values import harmless, read_values, written

_EXCLUDES = 1_000_000
PINNED = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_PAGER": "cat",
    "LC_ALL": "C.UTF-8",
}


@dataclass(slots=True, frozen=True)
class OwnGit:
    """Git on one repository, as long as ``own_git`` is open."""

    _program: str
    _repository: Repository
    _private: Path

    def run(self, folder: Path, *arguments: str, timeout: float) -> bytes | None:
        """Standard output of a git that reads; None when it fails, is missing or takes longer than ``timeout``
        seconds."""
        try:
            done = subprocess.run(
                [self._program, "--no-pager", "--literal-pathspecs", *arguments],
                cwd=folder,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout if done.returncode == 0 else None

    def _environment(self) -> dict[str, str]:
        private = str(self._private)
        return PINNED | {
            "PATH": os.defpath,
            "HOME": private,
            "XDG_CONFIG_HOME": private,
            "TMPDIR": private,
            "GIT_DIR": private,
            "GIT_WORK_TREE": str(self._repository.tree),
            "GIT_INDEX_FILE": str(self._repository.own / "index"),
            "GIT_OBJECT_DIRECTORY": str(self._repository.common / "objects"),
        }


@contextlib.contextmanager
def own_git(repository: Repository) -> Iterator[OwnGit | None]:
    """None where git is missing, or the repository is not one to be looked at: bare, another project's, with parts
    that lie elsewhere, or kept in a format that is not read here."""
    tree = repository.tree
    program = find_git(tree) if tree is not None else None
    if program is None or repository.stranger or repository.other_format or _scattered(repository):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="agent-tui-git-") as name:
        private = Path(name).resolve()
        _furnish(private, repository)
        yield OwnGit(program, repository, private)


def find_git(tree: Path | None, path: str | None = None) -> str | None:
    """The absolute path of the user's git. One that lies in the project, or is found by where we stand, is not it.
    ``path`` are the folders to look in, instead of those of the environment."""
    for entry in (path or os.environ.get("PATH", os.defpath)).split(os.pathsep):
        candidate = Path(entry) / "git"
        if not entry or not candidate.is_absolute() or not os.access(candidate, os.X_OK) or not candidate.is_file():
            continue
        if tree is None or not (candidate.is_relative_to(tree) or candidate.resolve().is_relative_to(tree.resolve())):
            return str(candidate)
    return None


def outside_path(folders: Iterable[Path]) -> str:
    """The user's PATH without what lies in ``folders``, or depends on where we stand."""
    places = [folder.resolve() for folder in folders]
    found = [Path(entry) for entry in os.environ.get("PATH", os.defpath).split(os.pathsep)]
    kept = [str(p) for p in found if p.is_absolute() and not any(p.resolve().is_relative_to(one) for one in places)]
    return os.pathsep.join(kept) or os.defpath


def _scattered(repository: Repository) -> bool:
    """Objects or index are links to somewhere else: to read them would tell of another repository."""
    places = [(repository.own / "index", repository.own), (repository.common / "objects", repository.common)]
    return any(not path.resolve().is_relative_to(base.resolve()) for path, base in places)


def _furnish(private: Path, repository: Repository) -> None:
    """Makes ``private`` a repository that shares nothing with the real one but what is data."""
    values = _user_values() | harmless(read_values(read_small(repository.common / "config", repository.common)))
    excludes = values.pop("core.excludesfile", "")
    values["core.repositoryformatversion"] = "1" if "extensions.objectformat" in values else "0"
    values["core.bare"] = "false"
    values["core.hookspath"] = os.devnull
    values["core.fsmonitor"] = "false"
    values["core.excludesfile"] = excludes or os.devnull
    (private / "config").write_text(written(values), "utf-8", "surrogateescape")
    (private / "HEAD").write_text((repository.commit or "ref: refs/heads/unborn") + "\n")
    for folder in ("objects", "refs", "info"):
        (private / folder).mkdir()
    for name in ("info/exclude", "info/attributes", "shallow"):
        if text := read_small(repository.common / name, repository.common, _EXCLUDES):
            (private / name).write_text(text, "utf-8", "surrogateescape")
    # Of a split index the larger part; git looks for it beside its own configuration.
    for shared in sorted(repository.own.glob("sharedindex.*")):
        if shared.resolve().is_relative_to(repository.own.resolve()):
            (private / shared.name).symlink_to(shared)


def _user_values() -> dict[str, str]:
    """What the user's own configuration says about files: line ends, and where the ignore file is."""
    try:
        home = Path.home()
    except RuntimeError:
        return {}
    base = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git"
    found: dict[str, str] = {}
    for path in (base / "config", home / ".gitconfig"):
        found |= read_values(read_small(path, path.resolve().parent, _EXCLUDES))
    ignore = Path(found.get("core.excludesfile", "") or base / "ignore")
    with contextlib.suppress(RuntimeError):
        ignore = ignore.expanduser()
    return harmless(found) | ({"core.excludesfile": str(ignore)} if ignore.is_file() else {})
