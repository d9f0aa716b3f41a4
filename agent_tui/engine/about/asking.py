"""Asks the terminal how it shows pictures where no screen has it: for ``agent-tui doctor``."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Mapping

from agent_tui.config import Images
from agent_tui.engine.about.pictures import Graphics, graphics
from agent_tui.engine.about.replies import REPLY, Replies

PATIENCE = 1.0
"""Seconds in which a terminal answers, however far away it is; those that answer end the wait."""


def ask_terminal(setting: Images, environment: Mapping[str, str]) -> Graphics:
    """How pictures are shown here. Asks where input and output are a terminal; waits for its answer."""
    found = graphics(setting, environment)
    if not found.question or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return found
    try:
        replies = _asked(found.question)
    except (ImportError, OSError, ValueError):
        return found
    return graphics(setting, environment, replies=replies) if replies is not None else found


def _in_background(terminal: int) -> bool:
    try:
        return os.tcgetpgrp(terminal) != os.getpgrp()
    except OSError:  # not the one that stops and wakes its programs
        return False


def _asked(question: str) -> Replies | None:
    """The replies, or None where they did not come, or are another program's to take: the system would stop one in the
    background. The terminal is as it was afterwards."""
    import termios
    import tty

    terminal = sys.stdin.fileno()
    if _in_background(terminal):
        return None
    before = termios.tcgetattr(terminal)
    replies, text, end = Replies(), "", time.monotonic() + PATIENCE
    try:
        tty.setcbreak(terminal, termios.TCSADRAIN)
        os.write(sys.stdout.fileno(), question.encode())
        while (left := end - time.monotonic()) > 0 and select.select([terminal], [], [], left)[0]:
            text += os.read(terminal, 1_024).decode("utf-8", "replace")
            while (reply := REPLY.search(text)) is not None:
                text = text[reply.end() :]
                if replies.take(reply):
                    return replies
        return None
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
