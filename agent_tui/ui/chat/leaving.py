"""The line for the terminal once the screen is gone: the way back."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent


def way_back(agent: Agent, again: Sequence[str]) -> list[str]:
    """A line with the command that goes on with the session, where there is one of ours to go on with. ``again`` is how
    the program was called, as far as that has to be said anew."""
    if not agent.conversation.path or agent.conversation.read_only:
        return []
    return [f"Resume this session with: {shlex.join([*again, '--resume', agent.conversation.info.id])}"]
