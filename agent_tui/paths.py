"""Where files live. ``AGENT_TUI_HOME`` moves everything under one folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

APP = "agent-tui"


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
        """Where files go that are written on a key, without a path."""
        return self.data / "exports"

    @property
    def themes(self) -> Path:
        return self.config / "themes"


def user_paths() -> Paths:
    """The folders of this user, honouring ``AGENT_TUI_HOME``. Nothing is created."""
    home = os.environ.get("AGENT_TUI_HOME")
    if home:
        base = Path(home).expanduser().absolute()
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
    """The project a folder belongs to: the nearest parent that holds ``.git`` or ``.agent-tui``, else the folder."""
    cwd = cwd.resolve()
    home = Path.home()
    for folder in (cwd, *cwd.parents):
        if (folder / ".git").exists() or ((folder / ".agent-tui").is_dir() and folder != home):
            return folder
    return cwd


def in_project(path: str, folder: Path) -> str:
    """A path as people are shown it: relative to the project's or the working ``folder`` where it lies in it."""
    named = Path(path)
    return str(named.relative_to(folder)) if named.is_absolute() and named.is_relative_to(folder) else path
