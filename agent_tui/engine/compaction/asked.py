"""What the model asked to have compacted or folded before a request that follows. It is kept with the session, so that
neither the end of a turn nor that of the program loses it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from agent_tui.engine.conversation import Conversation
from agent_tui.models.session import AskedCompaction


class AskedCompactions:
    """Those of one session's conversation."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    def add(self, focus: str = "", fold: tuple[str, ...] = (), text: str = "") -> None:
        """Has one made before the next request. Raises StoreError, and nothing is asked for."""
        conversation, state = self._conversation, self._conversation.info.state
        asked = AskedCompaction(conversation.path[-1].id, conversation.time_of_edit(), focus, fold, text)
        conversation.set_state(replace(state, agent_asked=(*state.agent_asked, asked)))

    def waiting(self) -> list[AskedCompaction]:
        """Those that are still to be made in this conversation, the oldest first."""
        there = {message.id for message in self._conversation.path}
        every = self._conversation.info.state.agent_asked
        return [each for each in every if each.after in there and not each.failed and not self._is_made(each)]

    def _is_made(self, asked: AskedCompaction) -> bool:
        """Returns whether it was made though it is still kept: the program was killed in between, or the user, or the
        limit, has compacted meanwhile."""
        since = [record for record in self._conversation.every_record if record.created > asked.asked]
        if not asked.fold:
            return any(record.compacts and record.reason != "edit" for record in since)
        return any(record.by == "agent" and tuple(record.message_ids) == asked.fold for record in since)

    def forget(self, gone: Collection[AskedCompaction]) -> None:
        """These have been made, or are not to be made any more."""
        state = self._conversation.info.state
        self._put(each for each in state.agent_asked if each not in gone)

    def fail(self, asked: AskedCompaction, why: str) -> None:
        """It cannot be made: the model is to be told."""
        state = self._conversation.info.state
        self._put(replace(each, failed=why) if each == asked else each for each in state.agent_asked)

    def failures(self) -> list[AskedCompaction]:
        """Those that the model has to be told of in this conversation."""
        there = {message.id for message in self._conversation.path}
        return [each for each in self._conversation.info.state.agent_asked if each.failed and each.after in there]

    def _put(self, asked: Iterable[AskedCompaction]) -> None:
        conversation = self._conversation
        conversation.keep_state(replace(conversation.info.state, agent_asked=tuple(asked)))
