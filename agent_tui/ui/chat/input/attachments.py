"""What goes with a message: its images and the files it names with ``@``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_tui.models.messages import AttachmentPart
    from agent_tui.ui.agent_protocol import ReadsAttachments
    from agent_tui.ui.chat.needs import AsksToAttach
    from agent_tui.ui.chat.stage import Stage


class Attachments:
    """Reads them and says what could not be read; ``questions`` asks for what lies outside the project."""

    def __init__(self, stage: Stage, questions: AsksToAttach) -> None:
        self._stage = stage
        self._questions = questions

    async def collect(
        self, agent: ReadsAttachments, text: str, given: Sequence[AttachmentPart]
    ) -> list[AttachmentPart]:
        """``given``, and what ``text`` names, as the model takes them."""
        if "@" not in text:
            return await self._fitting(agent, given)
        from agent_tui.commands.mentions import expand_mentions, outside

        if not agent.busy:
            self._stage.activity.begin("Reading what is attached", "Esc to cancel")
        beyond = await asyncio.to_thread(outside, text, agent.cwd, agent.folders)
        allowed = [path for path in beyond if await self._questions.may_attach(path)]
        found, problems = await asyncio.to_thread(expand_mentions, text, agent.cwd, agent.folders, allowed)
        resources, unread = await agent.mcp_attachments(text)
        for problem in [*problems, *unread]:
            self._stage.say("warning", f"Not attached: {problem}")
        return await self._fitting(agent, [*given, *found, *resources])

    async def _fitting(self, agent: ReadsAttachments, attachments: Sequence[AttachmentPart]) -> list[AttachmentPart]:
        """What was changed or left out for the model is said."""
        attached, scaled, refused = await agent.fit_images(attachments)
        for line in scaled:
            self._stage.say("info", line)
        for line in refused:
            self._stage.say("warning", f"Not attached: {line}")
        return attached
