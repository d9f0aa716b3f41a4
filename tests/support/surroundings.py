"""What a test may know of where it runs: a short list of variables. Whatever else the environment says (colours, the
language, editors, keys, proxies, CI, a multiplexer, git's own) is gone before anything reads it, for what tests start
as well."""

from __future__ import annotations

import os
import pwd
import re
import tempfile
from collections.abc import Mapping, MutableMapping
from fnmatch import fnmatchcase
from pathlib import Path

_LET_IN = (
    *("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "SYSTEMROOT"),
    *("AGENT_TUI_RECORDINGS", "AGENT_TUI_TEST_*", "AGENT_TUI_LONG_*", "AGENT_TUI_STRICT_PIPES"),
    *("RUSTUP_*", "CARGO_HOME", "GOROOT", "JAVA_HOME", "PYENV_*"),
    *("PYTEST_*", "_PYTEST_*", "TEXTUAL_SNAPSHOT_*", "COV_*", "COVERAGE_*", "HYPOTHESIS_*", "PLAYWRIGHT_*"),
    "DEBUG_RECORDED",
)
"""Where programs are, whose they are, and how these tests are run."""
_SAID: Mapping[str, str] = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "TZ": "UTC", "SHELL": "/bin/sh"}
"""What every machine says of itself."""
_TEMPORARY = re.compile(r"[\w./-]{1,40}", re.ASCII)
"""A temporary folder: paths of sockets below it have room for a hundred characters, and lines of shell in tests name it
as it is. Tests of names with blanks and other signs make them."""


def settle(variables: MutableMapping[str, str]) -> None:
    """Leaves in an environment what tests may know of it."""
    for name in list(variables):
        if not any(fnmatchcase(name, pattern) for pattern in _LET_IN):
            del variables[name]
    variables.update(_SAID)
    temporary = variables.get("TMPDIR", "")
    if not _TEMPORARY.fullmatch(temporary) or not _is_usable(temporary):
        variables.pop("TMPDIR", None)
        tempfile.tempdir = None  # pytest has asked before
    if not _is_usable(variables.get("HOME", "")):
        own = pwd.getpwuid(os.getuid()).pw_dir
        variables["HOME"] = own if _is_usable(own) else tempfile.mkdtemp(prefix="agent-tui-home-")


def _is_usable(folder: str) -> bool:
    return Path(folder).is_absolute() and os.access(folder, os.W_OK | os.X_OK)
