"""An exchange that ended in a refusal: sent again, it would have every later message refused, too."""

from __future__ import annotations

import time

from agent_tui.context.cuts import dropped_ids
from agent_tui.context.view import DROP_ID
from agent_tui.engine.conversation import patiently
from agent_tui.engine.runtime import Runtime
from agent_tui.models.events import Notice
from agent_tui.models.messages import Message, new_id
from agent_tui.models.steps import CompactionRecord
from agent_tui.text.numbers import plural


async def leave_out_exchange(runtime: Runtime) -> Notice | None:
    """Has what was refused sent no longer, as ``/context`` drops messages; the line for the user, None where nothing of
    it would be sent anyway. Raises StoreError."""
    conversation = runtime.conversation
    sent = {item.message.id for item in conversation.view()}
    gone = [message.id for message in refused_exchange(runtime) if message.id in sent]
    if conversation.read_only or not gone:
        return None
    newest = max((record.created for record in conversation.every_record), default=0.0)
    created = max(time.time(), newest + 0.001)
    record = CompactionRecord(new_id(DROP_ID), new_id("op"), "drop", gone, created=created, reason="edit")
    record.before_tokens = runtime.usage().total
    await patiently(lambda: conversation.commit_compaction([record], None, None))
    record.after_tokens = runtime.usage().total
    way = "Ask in another way, or choose another model with /model; /context undo sends them again."
    text = (
        f"{plural(len(gone), 'message')} of this exchange will not be sent again: with them the next message would be "
        f"refused as well. {way}"
    )
    return Notice("warning", text, "refused_left_out", way)


def refused_exchange(runtime: Runtime) -> list[Message]:
    """The messages that came since the model last answered. Where a tool loop was refused there before, and goes on to
    be, it was not for its newest results: all of that turn, then."""
    conversation = runtime.conversation
    path = conversation.path
    answered = {
        step.message_id
        for step in conversation.steps
        if step.kind == "turn" and step.status == "complete" and step.finish_reason != "refused"
    }
    accepted = max((n for n, message in enumerate(path) if message.id in answered), default=-1)
    before = dropped_ids(conversation.records)
    in_loop = accepted >= 0 and bool(path[accepted].tool_calls)
    if in_loop and any(message.id in before for message in path[accepted + 1 :]):
        accepted = max((n for n in range(accepted) if path[n].role == "user"), default=0) - 1
    return path[accepted + 1 :]
