"""Asks the tmux that runs around this program."""

from __future__ import annotations

import shutil
import subprocess
from threading import Thread

PATIENCE = 2.0
"""Seconds that it is waited for."""


def ask_tmux(*words: str) -> str:
    """What tmux says to a command; empty where it says nothing, or is not there."""
    program = shutil.which("tmux")
    if program is None:
        return ""
    try:
        done = subprocess.run(
            [program, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace").strip()


def tell_tmux(*words: str) -> None:
    """The same without waiting for what it says."""
    Thread(target=ask_tmux, args=words, name="tmux", daemon=True).start()
