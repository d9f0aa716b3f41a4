"""The environment in which a git that somebody else starts runs nothing that a folder nobody trusts names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from agent_tui.pipes.programs import with_git_config
from agent_tui.tools.git.repository import descends, names_programs, nearest_git

_ANYWHERE = (("safe.bareRepository", "explicit"),)
"""Also in a trusted folder: files that look like a repository are data there."""

_UNTRUSTED = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", os.devnull),
    ("core.pager", "cat"),
    ("credential.helper", ""),
    ("submodule.recurse", "false"),
    ("diff.ignoreSubmodules", "all"),
    ("status.submoduleSummary", "false"),
    ("protocol.ext.allow", "never"),
)


def harmless_git(folder: Path, environ: Mapping[str, str], *, trusted: bool) -> dict[str, str]:
    """``environ`` for what is started in ``folder``. Where nobody trusts that, every git finds the one repository the
    folder is in, wherever it is called (those below have configurations of their own), and none where it may name
    programs: filters, aliases and the like have names of their own."""
    given = with_git_config(environ, [*_ANYWHERE, *(() if trusted else _UNTRUSTED)])
    return given if trusted else {**given, "GIT_NO_LAZY_FETCH": "1", **_held_to(folder)}


def _held_to(folder: Path) -> dict[str, str]:
    none = {"GIT_DIR": os.devnull}
    try:
        git = nearest_git(folder)
        if git is None or git.name != ".git" or names_programs(folder) or descends(git, git.parent):
            return none
    except (OSError, ValueError):
        return none
    return {"GIT_DIR": str(git), "GIT_WORK_TREE": str(git.parent)}
