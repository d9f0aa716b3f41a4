"""Pinned files, which go with every request, and pinned words, which go through every compaction."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from agent_tui.context.accounting.spending import priced_call
from agent_tui.context.compaction.price import expected_read
from agent_tui.context.cuts import dropped_ids
from agent_tui.context.tidy import units_of
from agent_tui.engine.context_control import ContextControl
from agent_tui.engine.state import AgentState
from agent_tui.errors import AgentError, WorkerError
from agent_tui.models.calibration import raw_total
from agent_tui.models.messages import AttachmentPart, Message, TextPart, pinned_words, recall_id
from agent_tui.paths import in_project
from agent_tui.records import dataclass
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import money, tokens

log = logging.getLogger(__name__)

LARGE = 10_000
"""Tokens from which on something is only pinned once its price was said."""

MOST_SHARE = 0.5
"""Of the limit: what pinned words may take together, so that there is room for a conversation."""

SHOWN = 60
"""Characters of a message that tell which it is."""


@dataclass(slots=True, frozen=True)
class Pinned:
    """A pinned file (``path``) or message, and the tokens it adds. ``state`` of a message: ``sent`` as it was said,
    ``carried`` by a summary, or neither yet (``next``: the next compaction carries it)."""

    id: str
    label: str
    tokens: int
    state: Literal["file", "sent", "carried", "next"]


class Pins:
    """What the user pinned in the session that is in force; another branch's stays pinned there."""

    def __init__(self, state: AgentState, context: ContextControl) -> None:
        self._state = state
        self._context = context
        self._workspace = state.parts.workspace

    def all(self) -> list[Pinned]:
        """The files, then the messages in the order of the conversation."""
        conversation = self._state.conversation
        rows = [row for row in self._context.usage().rows if row.id == "documents"]
        sizes = {leaf.fingerprint: leaf.tokens for row in rows for leaf in row.leaves()}
        parts = self._state.runtime.request_prefix.fixed
        files = {part.path: sizes.get(part.fingerprint, 0) for part in parts if part.row == "documents"}
        found = [
            Pinned(path, in_project(path, self._workspace.cwd), files.get(path, 0), "file")
            for path in self._context.pinned
        ]
        whole = {sent.message.id for sent in conversation.view()}
        carried = self._carried()
        for message in conversation.path:
            if message.id in conversation.info.state.pinned_messages:
                where: Literal["sent", "carried", "next"] = (
                    "sent" if message.id in whole else "carried" if pinned_words(message) in carried else "next"
                )
                found.append(Pinned(message.id, _label(message), self._tokens(message), where))
        return found

    def _carried(self) -> str:
        view = self._state.conversation.view()
        parts = (part for sent in view for part in sent.message.parts)
        return "".join(part.text for part in parts if part.type == "summary" and part.pinned)

    def _tokens(self, message: Message) -> int:
        alone = replace(message, parts=[TextPart(pinned_words(message))])
        if len(alone.parts) != len(message.parts):
            alone = replace(alone, raw_tokens=None, counts=None)
        return self._state.runtime.size_of(alone)

    def message(self, id: str = "") -> Message | None:
        """The message of this conversation with an id, short or long; without one the newest of the user."""
        path = self._state.conversation.path
        if not id:
            return next((m for m in reversed(path) if m.role == "user" and pinned_words(m)), None)
        return next((m for m in reversed(path) if id in (m.id, recall_id(m.id))), None)

    def pin_message(self, message: Message) -> str:
        """Pins its words; returns a line that says what that adds. Raises AgentError where it cannot be."""
        conversation = self._state.conversation
        conversation.require_writable()
        if not pinned_words(message):
            raise AgentError("Only your messages and answers can be pinned, not tool results.")
        state = conversation.info.state
        if message.id in state.pinned_messages:
            raise AgentError(f"{_label(message)} is already pinned.")
        if message.id in dropped_ids(conversation.records):
            raise AgentError(
                f"{_label(message)} is dropped. Restore it first, with /context or `agent-tui context restore`."
            )
        size = self._tokens(message)
        limit = self._context.usage().limit
        taken = size + sum(pin.tokens for pin in self.all() if pin.state != "file")
        if limit and taken > limit * MOST_SHARE:
            most = f"more than half of the limit of {tokens(limit, False)}"
            raise AgentError(f"Not pinned: all pinned messages would take {tokens(taken, True)} tokens, {most}.")
        # With its calls and their results: one of a unit that stays keeps them all.
        unit = next((unit for unit in units_of(conversation.path) if any(m.id == message.id for m in unit)), ())
        stays = {m.id for m in unit}
        waiting = {each: asked for each, asked in state.drops_waiting.items() if each not in stays}
        agents = tuple(each for each in state.agent_drops if each in waiting)
        pinned = (*state.pinned_messages, message.id)
        conversation.set_state(replace(state, pinned_messages=pinned, drops_waiting=waiting, agent_drops=agents))
        left = ", ".join(one_line(p.name, 40) for p in message.parts if isinstance(p, AttachmentPart) and p.path)
        return " ".join(
            [
                f"Pinned {_label(message)} ({tokens(size, True)} tokens): every compaction keeps it word for",
                f"word{self.price(size)}.",
                *([f"Its attachments are not pinned ({left}): /pin their paths."] if left else []),
            ]
        )

    def unpin_message(self, message: Message) -> str:
        """Takes a pin back; returns the line for it. Raises AgentError where the message is not pinned."""
        conversation = self._state.conversation
        conversation.require_writable()
        state = conversation.info.state
        if message.id not in state.pinned_messages:
            raise AgentError(f"{_label(message)} is not pinned.")
        left = tuple(id for id in state.pinned_messages if id != message.id)
        conversation.set_state(replace(state, pinned_messages=left))
        return f"Unpinned {_label(message)}."

    def words_price(self, message: Message) -> str:
        """What has to be said before a message of many words is pinned; empty for any other."""
        size = self._tokens(message)
        if size < LARGE or message.id in self._pinned_ids():
            return ""
        return f"{_label(message)} adds {tokens(size, True)} tokens to every compaction{self.price(size)}."

    def price(self, size: int) -> str:
        """What so many tokens add to each request, from the cache and not; empty where nothing has a price."""
        prices = self._state.runtime.info.prices
        warm, cold = priced_call(prices, size, size, 0).usd, priced_call(prices, size, 0, 0).usd
        if warm is None or cold is None or not cold:
            return ""
        return f" ({money(warm)} a step cached, {money(cold)} uncached)"

    async def file_price(self, path: str) -> str:
        """What has to be said before a large file is pinned; empty for any other. Raises AgentError when it cannot be
        read."""
        resolved = self._workspace.pinnable(path)
        if resolved in self._context.pinned:
            return ""
        blocks, _ = self._workspace.documents([resolved])
        size = await self._counted("\n".join(block.text for block in blocks))
        usage = self._context.usage()
        if size < LARGE and (usage.limit is None or usage.total + size <= usage.limit):
            return ""
        fixed = sum(row.tokens for row in usage.rows if row.id != "messages")
        prices, read = self._state.runtime.info.prices, expected_read(usage)
        now = priced_call(prices, usage.total + size, min(fixed, read), 0).usd
        before = priced_call(prices, usage.total, read, 0).usd
        said = [f"{in_project(path, self._workspace.cwd)} adds {tokens(size, True)} tokens to every request."]
        if now and before is not None:
            said.append(
                f"The next one costs {money(now)} instead of {money(before)}: the messages are no longer cached."
            )
            said.append(f"Later ones cost that much more{self.price(size)}.")
        if usage.limit is not None and usage.total + size > usage.limit:
            said.append(f"That puts the next one over the limit of {tokens(usage.limit, False)}.")
        return " ".join(said)

    async def _counted(self, text: str) -> int:
        """Tokens of a text, by the character rule where it cannot be counted."""
        message = Message("", "user", [TextPart(text)])
        try:
            (message.counts,) = await self._state.parts.counter.count([text])
            message.raw_tokens = raw_total(message.counts)
        except WorkerError as error:
            log.warning("The file could not be counted, the character rule stands in: %s", error)
        return self._state.runtime.size_of(message)

    def _pinned_ids(self) -> Sequence[str]:
        return self._state.conversation.info.state.pinned_messages


def _label(message: Message) -> str:
    return f"“{one_line(pinned_words(message), SHOWN)}”"
