"""The files of a project that decide what runs later: changing them always asks, whatever the mode allows.

One list for all who need it: the permission rules, the sandbox (which makes them read-only) and the hash of what a
trusted folder brings along. To it come the places that git's configuration names, which is read as data, and the
configuration of git for held commands.
"""

from __future__ import annotations

import os
import re
import time
from itertools import pairwise
from pathlib import Path, PurePath

from agent_tui.paths import read_regular, with_home
from agent_tui.pipes.programs import find_program
from agent_tui.tools.git.configuration import as_config, config_of
from agent_tui.tools.git.repository import git_places, listed

FOLDERS = frozenset(
    {
        # Version control: hooks, filters, aliases and the places code is fetched from.
        *(".git", ".hg", ".svn", ".githooks", ".husky", ".lefthook"),
        # Agents, ours and others': rules, hooks, servers and commands that run with the next session.
        *(".agent-tui", ".agents", ".claude", ".codex", ".gemini", ".cursor", ".windsurf", ".continue"),
        *(".kiro", ".qwen", ".amazonq", ".kilocode", ".junie", ".trae", ".factory", ".roo", ".opencode", ".crush"),
        # Editors and containers: tasks, debuggers and set-up commands that run when the folder is opened.
        *(".vscode", ".idea", ".zed", ".fleet", ".nvim", ".emacs.d", ".devcontainer", ".direnv", ".mise"),
        # Build machines run these with the secrets of the repository.
        *(".circleci", ".buildkite", ".woodpecker"),
    }
)
"""Names of folders; everything in them is protected, at every depth: a folder below may be opened on its own, too.
``.git`` may also be a file that names the true folder."""

FILES = frozenset(
    {
        *(".gitmodules", ".gitconfig", ".pre-commit-config.yaml", ".pre-commit-config.yml"),
        *("lefthook.yml", ".lefthook.yml", "lefthook.yaml", ".lefthook.yaml", "lefthook.toml", ".lefthook.toml"),
        *(".mcp.json", ".aider.conf.yml", ".crush.json", "crush.json", "opencode.json", "opencode.jsonc"),
        # Read by shells, version managers and package managers when somebody enters the folder or calls them there.
        *(".envrc", ".mise.toml", "mise.toml", ".mise.local.toml", "mise.local.toml", ".rtx.toml", ".miserc.toml"),
        *(".autoenv", ".autoenv.zsh", ".gdbinit", ".lldbinit"),
        *(".bashrc", ".bash_profile", ".profile", ".zshrc", ".zshenv", ".zprofile", ".bash_login", ".bash_logout"),
        *(".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".ripgreprc"),
        *(".exrc", ".vimrc", ".nvimrc", ".nvim.lua", ".lvimrc", ".dir-locals.el", ".devcontainer.json"),
        *(".gitlab-ci.yml", ".travis.yml", "jenkinsfile", ".drone.yml", ".drone.jsonnet", ".woodpecker.yml"),
        *(".woodpecker.yaml", "azure-pipelines.yml", "azure-pipelines.yaml", "bitbucket-pipelines.yml", ".cirrus.yml"),
    }
)
"""Names of files, at every depth. Not among them is what runs only when its own code is run, such as ``Makefile``,
``package.json`` or ``conftest.py``: they are the project's source, and changing source is what edits are for."""

_FORMS = re.compile(r".+\.code-workspace|\.?mise\..+\.toml")
"""Names of files that have many forms."""

PATHS = (
    *(((forge, place)) for forge in (".github", ".gitea", ".forgejo") for place in ("workflows", "actions")),
    *((".cargo", "config.toml"), (".cargo", "config"), (".yarn", "releases"), (".yarn", "plugins")),
    *((".config", "mise"), (".config", "mise.toml"), (".config", "mise.local.toml"), ("mise", "config.toml")),
)
"""Two names in a row. A workflow runs elsewhere with the repository's secrets: it is worth the one question. The rest
of ``.github`` is text."""

_IGNORABLE = dict.fromkeys((0x00AD, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF))


def is_protected(path: PurePath) -> bool:
    """True for a path, relative to the project or not, that lies at or below one of the places above.

    Upper and lower case are the same here, as on the file systems of macOS and Windows, and so are names with
    characters that some file systems leave out.
    """
    parts = [_plain(part) for part in path.parts]
    if not parts:
        return False
    return (
        any(part in FOLDERS for part in parts)
        or parts[-1] in FILES
        or _FORMS.fullmatch(parts[-1]) is not None
        or any(pair in PATHS for pair in pairwise(parts))
    )


def root_places() -> list[str]:
    """The places below a project's own root as relative paths, sorted: what a sandbox can make read-only by name.
    Files known by a form of names, and places deeper down, are not in it."""
    return sorted({*FOLDERS, *FILES, *("/".join(pair) for pair in PATHS)})


def _plain(name: str) -> str:
    return name.translate(_IGNORABLE).rstrip(". ").casefold() or name


KEPT = re.compile(
    r"user\.(?:name|email)|init\.defaultbranch|core\.(?:autocrlf|eol|quotepath|abbrev|filemode|ignorecase)|color\.ui"
    r"|pull\.(?:rebase|ff)|push\.default|fetch\.prune|merge\.(?:conflictstyle|ff)|rebase\.(?:autosquash|autostash)"
    r"|diff\.(?:algorithm|renames|colormoved|mnemonicprefix|noprefix)|log\.date|safe\.directory|advice\.[a-z]+"
)
"""Keys whose values neither run anything nor let anyone in."""

_FRESH = 300.0
_MAX_BYTES = 200_000
_INCLUDES = 5


def write_git_config(target: Path) -> None:
    """Writes what is kept of the user's configuration to ``target``, unless that was done lately. Raises OSError."""
    try:
        if time.time() - target.stat().st_mtime < _FRESH:
            return
    except FileNotFoundError:
        pass
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    # It names files to include at most, so reading it runs nothing.
    found = listed([find_program("git") or "git", "config", "--global", "--includes"], env) or ()
    temporary = target.with_name(f"{target.name}.{os.getpid()}")
    kept = as_config((key, value) for key, value in found if KEPT.fullmatch(key.lower()))
    temporary.write_text(kept, "utf-8", "surrogateescape")
    temporary.replace(target)


def led_to(folder: Path) -> list[Path]:
    """Places in ``folder``, a worktree, that git's configuration names: the folder of hooks and files to include. Read
    as data, no git is asked; what a condition would leave out is in it, too."""
    try:
        own, common = git_places(folder / ".git")
    except (OSError, ValueError):
        return []
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    found: set[Path] = set()
    for file in (common / "config", own / "config.worktree", Path.home() / ".gitconfig", base / "git" / "config"):
        _follow(file, folder, found, _INCLUDES)
    return sorted(path for path in found if path.is_relative_to(folder) and path != folder)


def _follow(file: Path, folder: Path, found: set[Path], depth: int) -> None:
    try:
        text = read_regular(file, _MAX_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return
    for key, value in config_of(text):
        named = with_home(value)
        if key == "core.hookspath":
            found.add(Path(os.path.normpath(folder / named)))
        elif key.startswith(("include.", "includeif.")) and key.endswith(".path") and depth:
            found.add(Path(os.path.normpath(file.parent / named)))
            _follow(file.parent / named, folder, found, depth - 1)
