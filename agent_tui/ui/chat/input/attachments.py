"""What goes with a message: its images and the files it names with ``@``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.models.messages import AttachmentPart
    from agent_tui.ui.chat.needs import AsksToAttach
    from agent_tui.ui.chat.stage import Stage


class Attachments:
    """Reads them and says what could not be read; ``questions`` asks for what lies outside the project."""

    def __init__(self, stage: Stage, questions: AsksToAttach) -> None:
        self._stage = stage
        self._questions = questions

    async def collect(self, agent: Agent, text: str, given: Sequence[AttachmentPart]) -> list[AttachmentPart]:
        """``given``, and what ``text`` names, as the model takes them."""
        from agent_tui.commands.attaching import collect

        if "@" in text and not agent.turns.busy:
            self._stage.activity.begin("Reading what is attached", "Esc to cancel")
        return await collect(agent, text, given, self._stage.say, self._questions.may_attach)
