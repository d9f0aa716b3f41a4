"""How a tool result is sent under one set of prune records or another: whole, cleared or clipped."""

from __future__ import annotations

from collections.abc import Sequence

from agent_tui.context.sent.view import (
    CLEARED_SUFFIX,
    CLIP_SUFFIX,
    active_prune_ids,
    cleared_message,
    clipped_message,
    prune_state,
)
from agent_tui.models.messages import Message
from agent_tui.models.steps import CompactionRecord

WHOLE, CLEARED = "", CLEARED_SUFFIX


class ResultStates:
    """``mentioned`` are the ids in any prune record, in force or not. A state is the suffix of the message's key."""

    def __init__(self, records: Sequence[CompactionRecord]) -> None:
        self._records = {r.id: r for r in records if r.kind == "prune"}
        self._active = active_prune_ids(records)
        self._states: dict[tuple[str, ...], tuple[set[str], dict[str, int]]] = {}
        self.mentioned: set[str] = set()
        for record in self._records.values():
            self.mentioned.update(record.message_ids, record.clips)

    def same(self, then: list[str], now: list[str] | None = None) -> bool:
        """Whether two sets of records are the same; None stands for those in force."""
        return set(then) == set(self._active if now is None else now)

    def within(self, then: list[str]) -> bool:
        """Whether all records of then are still in force."""
        return set(then) <= set(self._active)

    def state(self, record_ids: list[str] | None, message_id: str) -> str:
        """How the message is sent under these records; None stands for those in force."""
        key = tuple(self._active if record_ids is None else record_ids)
        known = self._states.get(key)
        if known is None:
            known = prune_state([self._records[i] for i in key if i in self._records])
            self._states[key] = known
        cleared, clips = known
        if message_id in cleared:
            return CLEARED
        return f"{CLIP_SUFFIX}{clips[message_id]}" if message_id in clips else WHOLE

    def sent(self, stored: Message, state: str) -> tuple[Message, str]:
        """The stored message as sent in a state, and its key."""
        if state == CLEARED:
            return cleared_message(stored), stored.id + CLEARED
        if state.startswith(CLIP_SUFFIX):
            clipped = clipped_message(stored, int(state.removeprefix(CLIP_SUFFIX)))
            return (clipped, stored.id + state) if clipped is not stored else (stored, stored.id)
        return stored, stored.id
