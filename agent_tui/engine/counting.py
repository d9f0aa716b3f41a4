"""Keeps raw token counts complete: of messages and of the fixed parts, each counted once and stored."""

from __future__ import annotations

import logging

from agent_tui.context.tokens import TokenCounterMetrics, message_text_for_count
from agent_tui.engine.conversation import Conversation
from agent_tui.engine.request_prefix import RequestPrefix
from agent_tui.errors import StoreError, WorkerError
from agent_tui.models.messages import Message
from agent_tui.models.requests import Counter

log = logging.getLogger(__name__)


class CountService:
    """Asks the worker for counts that are missing. Until they arrive the calculator uses the character rule.

    ``unavailable`` turns True when no tokenizer can be had; the character rule then stays. ``warm``: the worker has
    counted before, so that it answers at once.
    """

    def __init__(self, counter: Counter, metrics: TokenCounterMetrics) -> None:
        self._counter = counter
        self._metrics = metrics
        self.unavailable = False
        self.warm = False

    async def ensure(self, conversation: Conversation, request_prefix: RequestPrefix) -> bool:
        """Counts whatever of the conversation and the fixed parts has no count; True when something changed."""
        relevant = self._relevant(conversation)
        messages = [m for m in relevant if m.raw_tokens is None]
        fixed = request_prefix.uncounted()
        known: dict[str, int] = {}
        if fixed:
            known = conversation.store.measured.counts(list(fixed))
            request_prefix.set_counts(known)
            conversation.set_fixed_counts(known)
            fixed = {f: text for f, text in fixed.items() if f not in known}
        self._metrics.hit(len(relevant) - len(messages))
        if not messages and not fixed:
            return bool(known)
        texts = [message_text_for_count(m) for m in messages] + list(fixed.values())
        try:
            counts = await self._counter.count(texts)
        except WorkerError as error:
            if not self.unavailable:
                log.warning("No token counts, the character rule stands in: %s", error)
            self.unavailable = True
            return bool(known)
        self.unavailable, self.warm = False, True
        by_message = {m.id: n for m, n in zip(messages, counts, strict=False)}
        for count in by_message.values():
            self._metrics.miss(count)
        if by_message:
            conversation.set_raw_tokens(by_message)
        by_fixed = dict(zip(fixed, counts[len(messages) :], strict=True))
        if by_fixed:
            request_prefix.set_counts(by_fixed)
            conversation.set_fixed_counts(by_fixed)
            if not conversation.read_only:
                try:
                    conversation.store.measured.put_counts(by_fixed)
                except StoreError as error:
                    # They are counted again next time.
                    log.warning("Token counts were not stored: %s", error)
        return True

    @staticmethod
    def _relevant(conversation: Conversation) -> list[Message]:
        return [m for m in (*conversation.path, *conversation.summaries.values()) if m.status != "streaming"]
