"""The command about messages that wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_tui.commands.registry import command
from agent_tui.commands.result import CommandResult, OpenScreen, Text

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent


@command("queue")
async def queue(agent: Agent, args: str) -> CommandResult:
    """Messages that wait to be sent: edit, order, send or drop them.

    Tab on the prompt does the same while something waits.
    """
    if args:
        return Text("/queue takes nothing.", error=True)
    return OpenScreen("queue") if agent.waiting.listed else Text("Nothing waits to be sent.")
