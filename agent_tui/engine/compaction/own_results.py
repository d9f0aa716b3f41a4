"""The results that a model may let go of, by the names that it is told, and how full its context is, in a line."""

from __future__ import annotations

from collections.abc import Sequence

from agent_tui.context.compaction.plan import SMALL_RESULT, message_tokens
from agent_tui.context.compaction.situation import unseen_from
from agent_tui.context.compaction.summary_parts import in_our_words
from agent_tui.context.tidy import call_words
from agent_tui.engine.conversation import Conversation
from agent_tui.engine.edit_targets import marks_of
from agent_tui.engine.runtime import Runtime
from agent_tui.models.context import ContextUsage
from agent_tui.models.messages import APPROVED, Message, recall_id
from agent_tui.records import dataclass
from agent_tui.text.numbers import tokens


@dataclass(slots=True, frozen=True)
class OwnResult:
    """A result that is sent whole. ``name`` is the id by which ``recall`` and ``context`` know it."""

    name: str
    message_id: str
    what: str
    tokens: int

    @property
    def words(self) -> str:
        return f"{self.name} {self.what} {tokens(self.tokens, True)}"


def own_results(runtime: Runtime, smallest: int = SMALL_RESULT, *, unseen: bool = False) -> list[OwnResult]:
    """Returns the results that the model has answered, or, ``unseen``, those that it has not, the largest first:
    without what is pinned, let go of already, an approved plan, or not sent whole."""
    conversation, sizes = runtime.conversation, message_tokens(runtime.usage())
    path, marked = conversation.path, marks_of(conversation)
    sent = {item.message.id for item in conversation.view() if item.key == item.message.id}
    first = seen_until(path)
    calls = {call.call_id: call for message in path for call in message.tool_calls}
    found: list[OwnResult] = []
    for message in path[first:] if unseen else path[:first]:
        result = message.tool_result
        if result is None or message.id not in sent or message.id in marked or is_protected(message, conversation):
            continue
        if (size := sizes.get(message.id, 0)) > smallest:
            call = calls.get(result.call_id)
            what = call_words(*in_our_words(call.name, call.arguments)) if call is not None else result.name
            found.append(OwnResult(recall_id(message.id), message.id, what, size))
    return sorted(found, key=lambda each: -each.tokens)


def seen_until(path: Sequence[Message]) -> int:
    """Where the messages begin that belong to the newest answer: its own, and what came of its calls."""
    place = unseen_from(path)
    return max(0, place - 1) if place and path[place - 1].tool_calls else place


def is_protected(message: Message, conversation: Conversation) -> bool:
    """Returns whether a message is pinned, by the user or as the model's own note, or a plan that the user approved."""
    result = message.tool_result
    approved = result is not None and APPROVED in (result.display or {})
    return approved or message.id in conversation.info.state.pinned_messages


def kept_notes(conversation: Conversation) -> list[Message]:
    """The results that hold the model's own notes, which every compaction carries."""
    pinned = conversation.info.state.pinned_messages
    return [message for message in conversation.path if message.role == "tool" and message.id in pinned]


def fill_words(usage: ContextUsage) -> str:
    """``Context: 121k of 168k used before compaction``."""
    used = tokens(usage.total, usage.approximate)
    if not usage.limit:
        return f"Context: {used} used"
    return f"Context: {used} of {tokens(usage.limit, False)} used{'' if usage.held else ' before compaction'}"
