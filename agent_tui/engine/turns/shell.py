"""``!command``: the user's own command, shown as it runs and then part of the conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from agent_tui.engine.runtime.runtime import Emit
from agent_tui.engine.session.conversation import Conversation
from agent_tui.errors import READ_ONLY, AgentError, ToolError
from agent_tui.models.events import OWN_COMMAND, MessageAdded, ToolOutput, ToolStarted
from agent_tui.models.messages import OWN_OUTPUT, AttachmentPart, new_id, user_message
from agent_tui.text.clean import pictured
from agent_tui.tools.base import ToolContext, ToolOutcome
from agent_tui.tools.builtin.bash import BashTool

TIMEOUT = 3_600.0
"""Seconds a user's command may run: they can interrupt it."""


async def run_shell(
    command: str,
    context: ToolContext,
    conversation: Conversation,
    publish: Emit,
    added: Callable[[], None] = lambda: None,
) -> None:
    """Runs ``command`` without asking and outside the sandbox: it is the user's. Its output arrives as events and is
    added to the conversation with it, so the model sees it with the next message. Cancelling ends it; what it said so
    far is kept. ``added`` is called once that is stored.

    Raises AgentError when the conversation is read-only or the command cannot be started.
    """
    if conversation.read_only:
        raise AgentError(READ_ONLY)
    command = command.strip()
    if not command:
        raise AgentError("! needs a command, e.g. !git status.")
    call = new_id("shell")
    kept: list[str] = []

    def emit(text: str) -> None:
        publish(ToolOutput(call, text))

    line = " ".join(pictured(command).split())
    publish(ToolStarted(call, OWN_COMMAND, f"! {line if len(line) <= 100 else line[:99] + '…'}"))
    try:
        outcome = await BashTool(own=True).run(
            {"command": command, "timeout": TIMEOUT}, replace(context, emit=emit, keep=kept.append)
        )
    except asyncio.CancelledError:
        text = context.secrets.mask("".join(kept))
        _add(conversation, publish, command, ToolOutcome(f"{text}\n[interrupted by the user]".lstrip("\n")))
        added()
        raise
    except ToolError as error:
        outcome = ToolOutcome(context.secrets.mask(str(error)), is_error=True)
    _add(conversation, publish, command, outcome)
    added()


def _add(conversation: Conversation, publish: Emit, command: str, outcome: ToolOutcome) -> None:
    output = AttachmentPart(OWN_OUTPUT, "text/plain", text=outcome.text)
    message = user_message(f"!{command}", attachments=[output])
    # The text comes first here: the output belongs to the command.
    message.parts.reverse()
    conversation.append(message)
    publish(MessageAdded(message))
