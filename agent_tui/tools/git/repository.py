"""A repository, of which every file may be anyone's: what can be read of it without git, whether git would run programs
that it names, and a git of our own that it has no say in.

Sizes are bounded, devices and pipes are not opened, and what leads out of the repository is not followed.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import agent_tui
from agent_tui.paths import belongs_to_user, git_folder, read_regular
from agent_tui.pipes.programs import find_program
from agent_tui.pipes.start import run
from agent_tui.records import dataclass
from agent_tui.tools.git.configuration import about_files, as_config, config_of, read_config, runs_nothing

SMALL = 65_536
_LARGEST = 50_000_000  # packed-refs of very many branches
OBJECT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
"""The name of an object."""
_HEADS = "refs/heads/"
_MAX_LINKS = 5  # of symbolic references, as git


@dataclass(slots=True, frozen=True)
class Repository:
    """``tree`` is the folder with the files, None in a bare repository. ``own`` holds HEAD and the index, ``common``
    objects, references and configuration; they differ in a linked worktree only. ``stranger``: ``own`` lies elsewhere
    and does not know ``tree``, so that it is perhaps another project's."""

    tree: Path | None
    own: Path
    common: Path
    stranger: bool = False

    @property
    def file(self) -> list[Path]:
        """The ``.git`` of the tree."""
        return [self.tree / ".git"] if self.tree is not None else []

    @property
    def branch(self) -> str:
        """``HEAD`` when none is checked out; empty when it cannot be read."""
        head = read_small(self.own / "HEAD", self.own).strip()
        if head.startswith("ref: " + _HEADS):
            name = head.removeprefix("ref: " + _HEADS)
            return "" if name == ".invalid" else name  # written where references are kept in another format
        return "HEAD" if OBJECT.fullmatch(head) else ""

    @property
    def commit(self) -> str:
        """The name of the commit that is checked out; empty before the first one and where it cannot be read."""
        name = "HEAD"
        for _ in range(_MAX_LINKS):
            value = self._reference(name)
            if not value.startswith("ref: "):
                return value if OBJECT.fullmatch(value) else ""
            name = value.removeprefix("ref: ").strip()
            if not name.startswith("refs/") or ".." in name:
                return ""
        return ""

    @property
    def other_format(self) -> bool:
        """References are kept in a format that is not read here (reftable)."""
        return (self.common / "reftable").is_dir()

    def _reference(self, name: str) -> str:
        for folder in (self.own, self.common):
            if text := read_small(folder / name, folder).strip():
                return text
        for line in read_small(self.common / "packed-refs", self.common, _LARGEST).splitlines():
            commit, _, packed = line.partition(" ")
            if packed == name:
                return commit
        return ""


def version_and_commit() -> str:
    """This program's version and the commit it was built from, which the wheel says, or that is checked out."""
    package = Path(agent_tui.__file__).parent
    try:
        commit = read_regular(package / "commit", 100).decode("ascii").strip()
    except OSError:
        here = find_repository(package) if (package.parent / ".git").exists() else None
        commit = here.commit[:12] if here is not None else ""
    return agent_tui.__version__ + (f" (commit {commit})" if commit else "")


def find_repository(folder: Path) -> Repository | None:
    """The repository ``folder`` is in; None when it is in none, and where the nearest is another user's: git would
    not look into that either."""
    found = _nearest(folder)
    if found is None or not belongs_to_user(found.tree or found.own, found.own, *found.file):
        return None
    return found


def _nearest(folder: Path) -> Repository | None:
    for place in (folder, *folder.parents):
        git = place / ".git"
        if git.is_dir() and git_folder(place) is not None:
            # A commondir in a plain .git is how a worktree says where the rest is; here it would be a trick.
            return Repository(place, git, git)
        if git.is_file():
            return _linked(place, git)
        if is_git(place):
            return Repository(None, place, place)
    return None


def is_git(folder: Path) -> bool:
    """Returns whether a folder is git's own."""
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def _linked(place: Path, file: Path) -> Repository | None:
    """A worktree's or submodule's: ``.git`` is a file that says where the repository is."""
    text = read_small(file, place)
    if not text.startswith("gitdir:"):
        return None
    own = _joined(place, text.removeprefix("gitdir:").strip())
    if own is None or not (own / "HEAD").is_file():
        return None
    pointer = read_small(own / "commondir", own).strip()
    common = (_joined(own, pointer) if pointer else own) or own
    return Repository(place, own, common, not _knows(own, common, place))


def _knows(own: Path, common: Path, place: Path) -> bool:
    """Returns whether a repository elsewhere says that ``place`` is a worktree or submodule of its own."""
    back = read_small(own / "gitdir", own).strip()
    if back:
        return own.is_relative_to(common) and _joined(own, back) == (place / ".git").resolve()

    worktree = dict(config_of(read_small(own / "config", own))).get("core.worktree", "")
    return bool(worktree) and _joined(own, worktree) == place.resolve()


def _joined(base: Path, name: str) -> Path | None:
    try:
        return (base / name).resolve() if name and "\0" not in name else None
    except (OSError, RuntimeError, ValueError):
        return None


def read_small(path: Path, within: Path, limit: int = SMALL) -> str:
    """The text of a regular file that really lies below ``within``; empty for anything else, and for what is larger
    than ``limit`` bytes."""
    try:
        real = path.resolve()
        if not real.is_relative_to(within.resolve()):
            return ""
        data = read_regular(real, limit + 1)
    except (OSError, RuntimeError, ValueError):
        return ""
    return data.decode("utf-8", "surrogateescape") if len(data) <= limit else ""


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


def listed(config: Sequence[str], env: Mapping[str, str], folder: Path = Path("/")) -> list[tuple[str, str]] | None:
    """Keys and values that a ``git config`` of these words lists; a key without a value is a switch that is on. None
    where it fails."""
    try:
        done = run([*config, "--null", "--list"], env, cwd=folder, capture_output=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    entries = [entry.partition("\n") for entry in done.stdout.decode("utf-8", "surrogateescape").split("\0") if entry]
    return [(key, value if line else "true") for key, line, value in entries] if done.returncode == 0 else None


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
            return self.answer(folder, *arguments, timeout=timeout)
        except subprocess.TimeoutExpired:
            return None

    def answer(self, folder: Path, *arguments: str, timeout: float) -> bytes | None:
        """The same. Raises TimeoutExpired where it takes too long."""
        try:
            command = [self._program, "--no-pager", "--literal-pathspecs", *arguments]
            done = run(command, self._environment(), cwd=folder, capture_output=True, timeout=timeout)
        except OSError:
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
    program = find_program("git") if tree is not None else None
    if program is None or repository.stranger or repository.other_format or _scattered(repository):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="agent-tui-git-") as name:
        private = Path(name).resolve()
        _furnish(private, repository)
        yield OwnGit(program, repository, private)


def _scattered(repository: Repository) -> bool:
    """Objects or index are links to somewhere else: to read them would tell of another repository."""
    places = [(repository.own / "index", repository.own), (repository.common / "objects", repository.common)]
    return any(not path.resolve().is_relative_to(base.resolve()) for path, base in places)


def _furnish(private: Path, repository: Repository) -> None:
    """Makes ``private`` a repository that shares nothing with the real one but what is data."""
    values = _user_values() | about_files(config_of(read_small(repository.common / "config", repository.common)))
    excludes = values.pop("core.excludesfile", "")
    values["core.repositoryformatversion"] = "1" if "extensions.objectformat" in values else "0"
    values["core.bare"] = "false"
    values["core.hookspath"] = os.devnull
    values["core.fsmonitor"] = "false"
    values["core.excludesfile"] = excludes or os.devnull
    (private / "config").write_text(as_config(values.items()), "utf-8", "surrogateescape")
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
    """Returns the settings about files in the user's own configuration: line ends, and where the ignore file is."""
    try:
        home = Path.home()
    except RuntimeError:
        return {}
    base = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git"
    found: dict[str, str] = {}
    for path in (base / "config", home / ".gitconfig"):
        found |= config_of(read_small(path, path.resolve().parent, _EXCLUDES))
    ignore = Path(found.get("core.excludesfile", "") or base / "ignore")
    with contextlib.suppress(RuntimeError):
        ignore = ignore.expanduser()
    return about_files(found.items()) | ({"core.excludesfile": str(ignore)} if ignore.is_file() else {})


_LARGEST_CONFIG = 200_000


def names_programs(folder: Path) -> bool:
    """True when the configuration of the repository that ``folder`` is in may name programs, or cannot be read."""
    try:
        found = nearest_git(folder)
        if found is None:
            return False
        own, common = git_places(found)
        return not all(_runs_nothing(file) for file in (common / "config", own / "config.worktree"))
    except (OSError, ValueError):
        return True


def starts_when_fetched(folder: Path) -> bool:
    """True when git, talking to a remote in ``folder``, would run what the repository names: hooks, or programs in its
    configuration; and when that cannot be read."""
    try:
        found = nearest_git(folder)
        if found is None:
            return False
        hooks = git_places(found)[1] / "hooks"
        return names_programs(folder) or (
            hooks.is_dir() and any(entry.suffix != ".sample" for entry in hooks.iterdir())
        )
    except (OSError, ValueError):
        return True


def nearest_git(folder: Path) -> Path | None:
    """The ``.git`` that git finds from ``folder`` on upwards, or the bare repository, whether it may be believed or
    not: one that is no repository is passed over, as git does. Raises OSError, ValueError."""
    for place in (folder, *folder.parents):
        for git in (place / ".git", place):
            if git.name == ".git" and git.is_file():
                return git
            if (git / "HEAD").is_symlink():
                raise ValueError("a link, which git follows or not")
            if (git / "HEAD").is_file() and _HEAD.match(read_regular(git / "HEAD", 255)):
                common = git_places(git)[1]
                if all(os.access(common / name, os.X_OK) for name in ("objects", "refs")):
                    return git
    return None


_HEAD = re.compile(rb"ref:\s*refs/|[0-9a-fA-F]{40}")


def git_places(git: Path) -> tuple[Path, Path]:
    """Git's own folder behind a ``.git``, and the one whose configuration counts: others where files say where they
    are, which is believed. Raises OSError, ValueError."""
    own = git
    if git.is_file():
        own = git.parent / _path_in(git).partition("gitdir: ")[2]
    common = own / "commondir"
    if not common.is_file():
        return own, own
    return own, own / _path_in(common)


def _path_in(file: Path) -> str:
    return read_regular(file, 4_096).decode("utf-8", "surrogateescape").rstrip("\r\n")


def descends(git: Path, tree: Path) -> bool:
    """True where git, asked about ``tree``, may ask in submodules too, although it is told not to: ``.gitmodules`` has
    the last word. Where that is not there git takes it from the index, which is looked at for a submodule's mode.
    Raises OSError, ValueError."""
    file = tree / ".gitmodules"
    if file.is_file() and not file.is_symlink():
        settings = read_config(_text_of(file))
        return not runs_nothing((key, value) for key, value in settings if key.endswith(".ignore"))
    own = git_places(git)[0]
    return any(b"\0\0\xe0\0" in read_regular(index, -1) for index in own.glob("*index*") if index.is_file())


def _runs_nothing(file: Path) -> bool:
    return not (file.is_symlink() or file.exists()) or runs_nothing(read_config(_text_of(file)))


def _text_of(file: Path) -> str:
    """Raises ValueError for what is no file, or a large one."""
    data = read_regular(file, _LARGEST_CONFIG + 1) if file.is_file() else None
    if data is None or len(data) > _LARGEST_CONFIG:
        raise ValueError("no configuration")
    return data.decode("utf-8", "surrogateescape")
