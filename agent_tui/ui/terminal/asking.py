"""Asks the terminal which pictures it draws; the replies never reach the prompt."""

from __future__ import annotations

import re
from collections.abc import Callable

from agent_tui.engine.terminal import BEGINNING, LONGEST, REPLY, Replies
from agent_tui.ui.terminal.answers import Answers


class Listener(Answers):
    """Takes replies out of what is typed; ``heard`` is called with all of them whenever the last of a round is in."""

    def __init__(self, heard: Callable[[Replies], object]) -> None:
        replies = Replies()

        def told(reply: re.Match[str]) -> None:
            if replies.take(reply):
                heard(replies)

        super().__init__(REPLY, BEGINNING, LONGEST, told)
