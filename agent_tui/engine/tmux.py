"""Asks the tmux that runs around this program."""

from __future__ import annotations

import subprocess

from agent_tui.pipes.programs import find_program
from agent_tui.pipes.start import run

TMUX_PATIENCE = 2.0
"""Seconds that it is waited for."""


def ask_tmux(*words: str) -> str:
    """Runs a tmux command and returns what tmux says; empty where it says nothing, or is not there."""
    program = find_program("tmux")
    if program is None:
        return ""
    try:
        done = run([program, *words], capture_output=True, timeout=TMUX_PATIENCE)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace").strip()
