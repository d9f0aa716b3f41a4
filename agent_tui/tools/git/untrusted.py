"""The environment in which a git that somebody else starts runs nothing that a folder nobody trusts names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from agent_tui.tools.git.repository import names_programs

_ANYWHERE = (("safe.bareRepository", "explicit"),)
"""Also in a trusted folder: files that look like a repository are data there."""

_UNTRUSTED = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", os.devnull),
    ("core.pager", "cat"),
    ("diff.external", ""),
    ("credential.helper", ""),
    ("submodule.recurse", "false"),
    ("diff.ignoreSubmodules", "all"),
    ("status.submoduleSummary", "false"),
    ("protocol.ext.allow", "never"),
)


def harmless_git(folder: Path, environ: Mapping[str, str], *, trusted: bool) -> dict[str, str]:
    """``environ`` for what is started in ``folder``. Filters, aliases and the like have names of their own: where an
    untrusted repository names programs by any, a git in it finds no repository."""
    pairs = [*_ANYWHERE, *(() if trusted else _UNTRUSTED)]
    count = environ.get("GIT_CONFIG_COUNT", "0")
    start = int(count) if count.isdecimal() else 0
    given = {**environ, "GIT_CONFIG_COUNT": str(start + len(pairs))}
    for at, (key, value) in enumerate(pairs, start):
        given |= {f"GIT_CONFIG_KEY_{at}": key, f"GIT_CONFIG_VALUE_{at}": value}
    return given | ({"GIT_DIR": os.devnull} if not trusted and names_programs(folder) else {})
