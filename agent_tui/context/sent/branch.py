"""What of the compactions of a session holds on one of its branches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

from agent_tui.models.messages import Message
from agent_tui.models.steps import CompactionRecord


def on_branch(records: Iterable[CompactionRecord], path: Set[str]) -> list[CompactionRecord]:
    """All records as they are for the conversation with these message ids: those that were made beside it are out of
    force. They stay in the list, as a step of another branch may say that it was sent under them."""
    return [r if path.isdisjoint(r.beside) else replace(r, active=False) for r in records]


def made_on(records: Iterable[CompactionRecord], path: Set[str]) -> list[CompactionRecord]:
    """Those that were not made beside it, in force or undone."""
    return [r for r in records if path.isdisjoint(r.beside)]


def beside(messages: Mapping[str, Message], path: Sequence[Message]) -> list[str]:
    """The first messages of all branches that leave ``path`` somewhere, or begin where it does."""
    on_path = {message.id for message in path}
    return [
        message.id
        for message in messages.values()
        if message.id not in on_path and (message.parent_id is None or message.parent_id in on_path)
    ]
