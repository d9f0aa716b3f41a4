"""Starting the provider worker. Imports next to nothing, so that it can be done before the program's own imports: the
worker then gets ready meanwhile."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from agent_tui.pipes.start import command as command_of
from agent_tui.pipes.start import start

LOG_VARIABLE = "AGENT_TUI_WORKER_LOG"
"""Environment variable naming the file that takes whatever libraries print; without it that is thrown away."""

COMMAND = command_of("agent_tui.providers.worker.serve")

_early: subprocess.Popen[bytes] | None = None


def environment(log_file: Path | None) -> dict[str, str]:
    """The worker's environment: ours, for it needs the keys, and where its log goes."""
    return {**os.environ, **({LOG_VARIABLE: str(log_file)} if log_file is not None else {})}


def start_early(log_file: Path) -> None:
    """Starts the worker that ``take_early`` hands over. A failure shows when it is needed, not here. It ends when our
    end of its input closes, however we end."""
    global _early
    if _early is None:
        with suppress(OSError):
            _early = start(COMMAND, environment(log_file))


def take_early(command: Sequence[str]) -> subprocess.Popen[bytes] | None:
    """The worker that was started early, once, where it still runs and is the one that ``command`` would start."""
    global _early
    found, _early = _early, None
    usable = found is not None and tuple(command) == COMMAND and found.poll() is None
    return found if usable else None
