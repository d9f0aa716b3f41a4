"""The log file: everything that goes wrong once, with secrets removed. Nothing is ever logged to the terminal."""

from __future__ import annotations

import logging
import logging.handlers
import os
from collections.abc import Callable
from pathlib import Path

from agent_tui.paths import private_dir

MAX_BYTES = 2_000_000
KEPT_FILES = 2


class CleanFormatter(logging.Formatter):
    """Formats records and takes secrets out of the result."""

    def __init__(self, clean: Callable[[str], str]) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._clean = clean

    def format(self, record: logging.LogRecord) -> str:
        return self._clean(super().format(record))


def start_logging(file: Path, clean: Callable[[str], str]) -> None:
    """Sends the package's log to ``file`` (rotated at 2 MB, mode 0600). ``clean`` removes secrets from lines.

    A file that cannot be written silences the log instead of disturbing the session.
    """
    logger = logging.getLogger("agent_tui")
    logger.propagate = False
    logger.setLevel(os.environ.get("AGENT_TUI_LOG_LEVEL", "INFO").upper())
    for old in list(logger.handlers):
        logger.removeHandler(old)
    handler: logging.Handler
    try:
        private_dir(file.parent)
        handler = logging.handlers.RotatingFileHandler(
            file, maxBytes=MAX_BYTES, backupCount=KEPT_FILES, encoding="utf-8", errors="backslashreplace"
        )
        file.chmod(0o600)
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(CleanFormatter(clean))
    logger.addHandler(handler)
