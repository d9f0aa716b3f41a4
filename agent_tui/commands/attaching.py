"""Collects what goes with a message: what the user gave, and the files and resources that its text names with ``@``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.models.messages import AttachmentPart

Says: TypeAlias = "Callable[[str, str], None]"
"""Takes a level (``info`` or ``warning``) and a line for the user."""
MayAttach: TypeAlias = "Callable[[Path], Awaitable[bool]]"
"""Asks whether a file outside the project may go with a message."""


async def collect(
    agent: Agent, text: str, given: Sequence[AttachmentPart], say: Says, may_attach: MayAttach
) -> list[AttachmentPart]:
    """``given``, and what ``text`` names, as the model takes them. What could not be read, was changed or left out is
    said. ``text`` is the user's own: hosts named in it may be fetched from."""
    agent.project.heard(text)
    if "@" not in text:
        return await _fitting(agent, given, say)
    from agent_tui.commands.mentions import expand_mentions, outside

    beyond = await asyncio.to_thread(outside, text, agent.cwd, agent.project.folders)
    allowed = [path for path in beyond if await may_attach(path)]
    found, problems = await asyncio.to_thread(expand_mentions, text, agent.cwd, agent.project.folders, allowed)
    resources, unread = await agent.project.mcp_attachments(text)
    for problem in [*problems, *unread]:
        say("warning", f"Not attached: {problem}")
    return await _fitting(agent, [*given, *found, *resources], say)


async def _fitting(agent: Agent, parts: Sequence[AttachmentPart], say: Says) -> list[AttachmentPart]:
    attached, scaled, refused = await agent.project.fit_images(parts)
    for line in scaled:
        say("info", line)
    for line in refused:
        say("warning", f"Not attached: {line}")
    return attached
