"""A session as it is stored."""

from __future__ import annotations

from dataclasses import field

from agent_tui.models.messages import Message
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.records import dataclass


@dataclass(slots=True)
class SessionContent:
    """Everything of a session that its conversation is made of; ``head_id`` is where the conversation ends."""

    messages: dict[str, Message] = field(default_factory=dict)
    summaries: dict[str, Message] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    records: list[CompactionRecord] = field(default_factory=list)
    head_id: str | None = None

    def stop_unfinished(self) -> None:
        """Takes drafts and running steps as ended: nobody is at work on them any more."""
        for message in self.messages.values():
            if message.status == "streaming":
                message.status = "stopped"
        for step in self.steps:
            if step.status == "running":
                step.status = "stopped"
