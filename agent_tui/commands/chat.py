"""Commands about the chat itself: help, copying, leaving."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_tui.commands.registry import command
from agent_tui.commands.result import CommandResult, Copy, OpenScreen, Quit, Text
from agent_tui.text.numbers import plural

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent


@command("help")
async def help_(agent: Agent, args: str) -> CommandResult:
    """Shows commands and keys."""
    return OpenScreen("help", args)


@command("copy", args="[n]")
async def copy(agent: Agent, args: str) -> CommandResult:
    """Copies the last answer as Markdown; /copy 2 the one before it.

    The text goes through the terminal (OSC 52) and to the platform's own clipboard where there is one.
    """
    try:
        back = int(args) if args else 1
    except ValueError:
        return Text("/copy takes a number: 1 is the newest answer, 2 the one before it.", error=True)
    answers = [m for m in agent.conversation.path if m.role == "assistant" and m.text.strip()]
    if not 1 <= back <= len(answers):
        return Text(
            f"There {'is' if len(answers) == 1 else 'are'} {plural(len(answers), 'answer')} to copy.", error=True
        )
    text = answers[-back].text
    return Copy(text, "the last answer" if back == 1 else f"answer {back} from the end")


@command("exit", aliases=("quit",))
async def exit_(agent: Agent, args: str) -> CommandResult:
    """Leaves; agent-tui -c continues here."""
    return Quit()
