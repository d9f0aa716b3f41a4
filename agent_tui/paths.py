"""The folders and files of the program. ``AGENT_TUI_HOME`` moves everything under one folder."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

APP = "agent-tui"
PROJECT_CONFIG = Path(".agent-tui") / "config.toml"
"""The configuration that a project brings along, in its root."""
CLAUDE_SETTINGS = (Path(".claude") / "settings.json", Path(".claude") / "settings.local.json")
"""Those of another agent, of which the hooks are read."""


class Paths(NamedTuple):
    """The user's folders: configuration, data (sessions), state (logs, prompt history), cache."""

    config: Path
    data: Path
    state: Path
    cache: Path

    @property
    def config_file(self) -> Path:
        return self.config / "config.toml"

    @property
    def database(self) -> Path:
        return self.data / "sessions.db"

    @property
    def log_file(self) -> Path:
        return self.state / "agent-tui.log"

    @property
    def exports(self) -> Path:
        """The folder for files that are written on a key, without a path."""
        return self.data / "exports"

    @property
    def themes(self) -> Path:
        return self.config / "themes"


def with_home(path: str | Path) -> Path:
    """A path with the home folder for ``~``. A ``~name`` of nobody stays as it is: there is no such file."""
    return Path(os.path.expanduser(path))  # noqa: PTH111  (Path.expanduser raises for it)


def settle_home() -> None:
    """Gives a process whose user has no home folder (a container's, without ``HOME``) one that does not exist. A
    ``HOME`` that is empty or no whole path names none: it would be another folder with each step."""
    if not os.environ.get("HOME", "/").startswith("/"):
        del os.environ["HOME"]
    try:
        Path.home()
    except RuntimeError:
        os.environ["HOME"] = "/nonexistent"


def user_paths() -> Paths:
    """The folders of this user, honouring ``AGENT_TUI_HOME``. Nothing is created."""
    home = os.environ.get("AGENT_TUI_HOME")
    if home:
        base = with_home(home).absolute()
        return Paths(base / "config", base / "data", base / "state", base / "cache")
    from platformdirs import PlatformDirs

    dirs = PlatformDirs(APP, appauthor=False)
    return Paths(
        Path(dirs.user_config_dir), Path(dirs.user_data_dir), Path(dirs.user_state_dir), Path(dirs.user_cache_dir)
    )


def package_themes() -> Path:
    """The themes that come with the program: inside the wheel, or at the root of a checkout."""
    package = Path(__file__).resolve().parent
    inside = package / "themes"
    return inside if inside.is_dir() else package.parent / "themes"


def home_as_tilde(folder: Path) -> str:
    """A folder as people write it."""
    try:
        below = folder.relative_to(Path.home())
    except (ValueError, RuntimeError):
        return str(folder)
    return f"~/{below}" if below.parts else "~"


def shown_path(path: Path, root: Path) -> str:
    """A path as people write it, that of a file of the project without the project's ``root``."""
    return str(path.relative_to(root)) if path.is_relative_to(root) else home_as_tilde(path)


def private_dir(path: Path) -> Path:
    """Creates a folder only its owner may enter, and returns it. Raises ``OSError`` when that is impossible."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path


def write_new(folder: Path, stem: str, suffix: str, text: str) -> Path:
    """Writes a file that was not there before, ``stem-2`` where ``stem`` was taken, and returns its path. Raises
    ``OSError`` when that is impossible."""
    number = 1
    while True:
        path = folder / f"{stem}{'' if number == 1 else f'-{number}'}{suffix}"
        try:
            with path.open("x", encoding="utf-8", errors="replace") as file:
                file.write(text)
        except FileExistsError:
            number += 1
        else:
            return path


def project_root(cwd: Path) -> Path:
    """The project a folder belongs to: the nearest parent that is a repository of the user's or holds an ``.agent-tui``
    of theirs, else the folder itself."""
    return next((folder for folder, theirs in _roots(cwd.resolve()) if theirs), cwd.resolve())


def strangers_root(cwd: Path) -> Path | None:
    """The nearer parent that would be the project if it were the user's, and is somebody else's; None where there is
    none."""
    folder, theirs = next(_roots(cwd.resolve()), (cwd, True))
    return None if theirs or folder == cwd.resolve() else folder


def _roots(cwd: Path) -> Iterator[tuple[Path, bool]]:
    """The folders upwards that look like a project, and whether each is the user's."""
    home = Path.home()
    for folder in (cwd, *cwd.parents):
        git, own = git_folder(folder), folder / ".agent-tui"
        if folder != cwd and _is_shared(folder):
            continue
        if git is not None:
            yield folder, belongs_to_user(folder, folder / ".git", git)
        elif own.is_dir() and folder != home:
            yield folder, belongs_to_user(folder, own)


def git_folder(folder: Path) -> Path | None:
    """The repository that ``folder`` is the top of, as git tells it: with a HEAD, objects and references, also where
    ``.git`` is a file that says where it lies. None for anything else that is called ``.git``."""
    git = folder / ".git"
    try:
        if git.is_file():
            with git.open("rb") as file:
                word, _, place = os.fsdecode(file.read(4_096)).partition(":")
            git = folder / place.strip() if word == "gitdir" and place.strip() else git
        pointer = git / "commondir"
        common = git / pointer.read_text("utf-8", "surrogateescape")[:4_096].strip() if pointer.is_file() else git
        whole = (git / "HEAD").is_file() and (common / "objects").is_dir() and (common / "refs").is_dir()
    except (OSError, ValueError):
        return None
    return git if whole else None


def belongs_to_user(folder: Path, *parts: Path) -> bool:
    """Returns whether a project folder and the ``parts`` of it that make it one are the user's own, by git's rule:
    owned by them (under sudo also by whoever called it), or named by ``safe.directory`` of their git configuration."""
    users = {os.geteuid()}
    if 0 in users and (caller := os.environ.get("SUDO_UID", "")).isdecimal():
        users.add(int(caller))
    try:
        if all(os.lstat(place).st_uid in users for place in (folder, *parts)):
            return True
    except OSError:
        return False
    name = str(folder)
    return any(
        safe == "*" or name == safe or (safe.endswith("/*") and name.startswith(safe[:-1]))
        for safe in _safe_directories()
    )


def _is_shared(folder: Path) -> bool:
    """Returns whether anyone may put something into a folder, as into /tmp: nobody's project lies all over it."""
    try:
        mode = folder.stat().st_mode
    except OSError:
        return True
    return bool(mode & stat.S_IWOTH and mode & stat.S_ISVTX)


def from_a_stranger(path: Path) -> bool:
    """Returns whether a file in a folder that anyone may write into is another user's."""
    try:
        return _is_shared(path.parent) and path.lstat().st_uid != os.geteuid()
    except OSError:
        return True


def _safe_directories() -> list[str]:
    """``safe.directory`` of the system's and the user's git configuration; what these include is not read."""
    home = Path.home()
    base = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    users = os.environ.get("GIT_CONFIG_GLOBAL")
    files = [Path(os.environ.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig")]
    files += [Path(users)] if users else [base / "git" / "config", home / ".gitconfig"]
    found: list[str] = []
    for file in files:
        section = ""
        with contextlib.suppress(OSError):
            for line in read_regular(file, 1_000_000).decode("utf-8", "surrogateescape").splitlines():
                if heading := re.match(r"\s*\[\s*([\w.-]+)\s*(\"|\])", line):
                    section = heading[1].lower() if heading[2] == "]" else ""
                value = re.match(r"(?:\s*\[[^]]*\])?\s*directory\s*=\s*(.*?)\s*$", line, re.IGNORECASE)
                if section == "safe" and value is not None:
                    said = value[1].strip('"')
                    # An empty one takes back what was named before.
                    found = [*found, os.path.expanduser(said)] if said else []  # noqa: PTH111
    return found


def read_regular(path: Path, limit: int) -> bytes:
    """At most ``limit`` bytes of a regular file (-1: all of it), wherever links lead. Raises OSError, also for a pipe
    or a device, which may never begin or never end."""
    return read_opened(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), limit)[0]


def read_opened(descriptor: int, limit: int) -> tuple[bytes, os.stat_result]:
    """The same of an open file, which is closed, and its state."""
    info = os.fstat(descriptor)
    if not stat.S_ISREG(info.st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    with os.fdopen(descriptor, "rb") as file:
        return file.read(limit), info


def in_project(path: str, folder: Path) -> str:
    """A path as people are shown it: relative to the project's or the working ``folder`` where it lies in it."""
    named = Path(path)
    return str(named.relative_to(folder)) if named.is_absolute() and named.is_relative_to(folder) else path
