"""Tests do not depend on what the environment of whoever runs them says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.every import every
from tests.support.surroundings import settle

NOISE = {
    **dict.fromkeys(("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLORTERM", "CI", "TMUX"), "1"),
    **dict.fromkeys(("EDITOR", "VISUAL", "PAGER", "GIT_DIR", "GIT_CONFIG_GLOBAL", "SSH_CONNECTION", "DISPLAY"), "x"),
    **dict.fromkeys(("http_proxy", "HTTPS_PROXY", "ALL_PROXY", "OPENAI_API_KEY", "AGENT_TUI_MODEL", "LC_ALL"), "x"),
    "TERM": "dumb",
    "COLUMNS": "40",
    "LINES": "9",
    "TZ": "Pacific/Kiritimati",
    "PYTHONWARNINGS": "error",
}


def test_only_what_is_on_the_list_gets_through(tmp_path: Path) -> None:
    let_in = {"PATH": "/bin", "AGENT_TUI_TEST_MEANS": "all", "HOME": str(tmp_path), "PYTEST_CURRENT_TEST": "a"}
    (tmp_path / "a b").mkdir()
    for temporary in (f"/tmp/{'long' * 20}", str(tmp_path / "a b"), "/no/such"):
        variables = {**NOISE, **let_in, "TMPDIR": temporary}
        settle(variables)
        assert variables == {**let_in, "TERM": "xterm-256color", "LANG": "C.UTF-8", "TZ": "UTC", "SHELL": "/bin/sh"}


@every("home", [{}, {"HOME": "/no/such/home"}, {"HOME": "here"}, {"HOME": ""}])
def test_a_home_that_cannot_be_written_is_replaced(home: dict[str, str]) -> None:
    settle(home)
    assert Path(home["HOME"]).is_dir() and os.access(home["HOME"], os.W_OK)
    Path(home["HOME"]).rmdir()


def test_what_a_test_starts_hears_nothing_of_it_either() -> None:
    told = subprocess.run([sys.executable, "-c", "import os; print(*os.environ)"], capture_output=True, text=True)
    assert NOISE.keys() & set(told.stdout.split()) <= {
        "TERM",
        "TZ",
        "COLUMNS",
        "LINES",
    }  # the last two: Textual, of its own size
