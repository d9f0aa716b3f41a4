"""A repository, of which every file may be anyone's: what can be read of it without git, whether git would run programs
that it names, and a git of our own that it has no say in.

Sizes are bounded, devices and pipes are not opened, and what leads out of the repository is not followed.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import agent_tui
from agent_tui.paths import belongs_to_user, git_folder
from agent_tui.records import dataclass

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
        commit = (package / "commit").read_text("ascii").strip()
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

    worktree = read_values(read_small(own / "config", own)).get("core.worktree", "")
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
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except (OSError, RuntimeError, ValueError):
        return ""
    with os.fdopen(descriptor, "rb") as file:
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return ""
            data = file.read(limit + 1)
        except OSError:
            return ""
    return data.decode("utf-8", "surrogateescape") if len(data) <= limit else ""


_SECTION = re.compile(r'\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_VALUE = re.compile(r'([A-Za-z][\w-]*)\s*=\s*("?)([^"\\]*?)\2\s*')
_COMMENT = re.compile(r"\s[;#][^\"]*$")
_BOOLEAN = re.compile(r"true|false|yes|no|on|off|1|0")
_SAFE = {
    "core.filemode": _BOOLEAN,
    "core.ignorecase": _BOOLEAN,
    "core.symlinks": _BOOLEAN,
    "core.precomposeunicode": _BOOLEAN,
    "core.autocrlf": re.compile(r"true|false|input"),
    "core.eol": re.compile(r"lf|crlf|native"),
    "extensions.objectformat": re.compile(r"sha1|sha256"),
}


def config_lines(text: str) -> Iterator[tuple[str, bool, str]]:
    """The lines of a configuration behind what says their section: its name in small letters, and whether it has a
    second one."""
    section, named = "", False
    for raw in text.splitlines():
        line = raw.strip()
        while match := _SECTION.match(line):
            section, named, line = match[1].lower(), match[2] is not None, line[match.end() :].strip()
        yield section, named, line


def read_values(text: str) -> dict[str, str]:
    """``section.key`` (in small letters) and value of each plain line; sections with a name of their own, values over
    several lines or with escapes, and includes are left out."""
    found: dict[str, str] = {}
    for section, named, line in config_lines(text):
        value = _VALUE.fullmatch(_COMMENT.sub("", line))
        if section and not named and value is not None:
            found[f"{section}.{value[1].lower()}"] = value[3].strip()
    return found


def harmless(values: dict[str, str]) -> dict[str, str]:
    """Those that say how files and objects are to be read, with a value that can mean nothing else."""
    return {key: value for key, value in values.items() if key in _SAFE and _SAFE[key].fullmatch(value.lower())}


def as_config(settings: Iterable[tuple[str, str]]) -> str:
    """A configuration with these values, in this order."""
    lines: list[str] = []
    for key, value in settings:
        section, _, rest = key.partition(".")
        name, dot, last = rest.rpartition(".")
        below = ' "' + name.replace("\\", "\\\\").replace('"', '\\"') + '"' if dot else ""
        quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        lines.append(f'[{section}{below}]\n\t{last} = "{quoted}"\n')
    return "".join(lines)


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
        done = subprocess.run(
            [*config, "--null", "--list"],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    entries = [entry.partition("\n") for entry in done.stdout.decode("utf-8", "surrogateescape").split("\0") if entry]
    return [(key, value if line else "true") for key, line, value in entries] if done.returncode == 0 else None


def read_config(text: str, path: str) -> list[tuple[str, str]]:
    """Keys and values as git reads them from a file of this text, without those it includes; empty where it cannot.
    ``path`` are the folders in which git is."""
    program = find_git(None, path)
    if program is None or not text.strip():
        return []
    with tempfile.TemporaryDirectory(prefix="agent-tui-git-") as name:
        file = Path(name) / "config"
        file.write_text(text, "utf-8", "surrogateescape")
        env = PINNED | {"PATH": path, "HOME": name, "GIT_CEILING_DIRECTORIES": str(Path(name).parent)}
        return listed([program, "config", "--file", str(file), "--no-includes"], env, Path(name)) or []


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
            done = subprocess.run(
                [self._program, "--no-pager", "--literal-pathspecs", *arguments],
                cwd=folder,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout,
                check=False,
            )
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
        found |= read_values(read_small(path, path.resolve().parent, _EXCLUDES))
    ignore = Path(found.get("core.excludesfile", "") or base / "ignore")
    with contextlib.suppress(RuntimeError):
        ignore = ignore.expanduser()
    return harmless(found) | ({"core.excludesfile": str(ignore)} if ignore.is_file() else {})


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
        if (place / ".git").is_dir() or (place / ".git").is_file():
            return git_places(place)[1]
        if (place / "HEAD").is_file() and (place / "objects").is_dir():
            return place  # a bare repository, which may lie in any folder
    return None


def git_places(tree: Path) -> tuple[Path, Path]:
    """Git's own folder of ``tree``, and the one whose configuration counts: others where ``.git`` is a worktree's or
    submodule's file that says where they are, which is believed. Raises OSError, ValueError."""
    git = tree / ".git"
    if not git.is_file():
        return git, git
    own = tree / git.read_text("utf-8", "replace")[:4_096].partition("gitdir:")[2].strip()
    common = own / "commondir"
    return own, own / common.read_text("utf-8", "replace")[:4_096].strip() if common.is_file() else own


def _in_file(path: Path, pattern: re.Pattern[bytes] = _PROGRAM) -> bool:
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return False
    return len(data) > MAX_BYTES or pattern.search(_HARMLESS.sub(b"", data)) is not None
