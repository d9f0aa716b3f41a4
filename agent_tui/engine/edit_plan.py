"""What an edit of the context would do before it is done: the record, what it frees, and its price."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Literal

from agent_tui.context.accounting.inputs import ContextInputs
from agent_tui.context.accounting.spending import priced_call
from agent_tui.context.accounting.usage import calculate_context_usage
from agent_tui.context.compaction.plan import message_tokens
from agent_tui.context.compaction.price import PlanPrice, expected_read
from agent_tui.context.cuts import dropped_attachments, parts_of, parts_words
from agent_tui.context.view import DROP_ID, RESTORE_ID, build_view
from agent_tui.engine.conversation import Conversation
from agent_tui.engine.notes import newest_note
from agent_tui.engine.runtime import Emit, Runtime
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import ContextEdited
from agent_tui.models.messages import (
    KEPT_TAG,
    TOLD_MODE,
    Message,
    SummaryPart,
    new_id,
    note_frames,
    pinned_words,
)
from agent_tui.models.requests import SentMessage
from agent_tui.models.rows import MESSAGES
from agent_tui.models.steps import CompactionRecord
from agent_tui.models.usage import Prices
from agent_tui.records import dataclass
from agent_tui.text.frames import framed
from agent_tui.text.numbers import interval, money, plural, tokens

Kind = Literal["drop", "restore"]

NOTHING_FREED = "frees nothing, as the placeholder is as long"


USUAL_PRICES = Prices(input=1e-6, cache_read=1e-7)
"""What is read from a cache is a tenth of what is read anew, at most providers and in seconds of local servers."""


@dataclass(slots=True, frozen=True)
class EditPlan:
    """A drop or a fold that has not happened yet: of messages, and of attachments as ``msg_1#2``. ``freed`` tokens go
    from every request, give or take ``spread``; ``reasoning``
    of them are reasoning. ``behind``: tokens that the next request reads anew if it happens now. ``line`` says it
    all."""

    part_ids: tuple[str, ...]
    freed: int
    spread: int
    reasoning: int
    behind: int
    line: str
    more: int = 0
    """Messages of these that were not chosen, and go with those that were."""
    again: int = 0
    """Tokens of what goes that the next message of the user's tells again: the permission mode."""
    pays_after: int | None = None
    """Requests after which what is read anew is saved again; None where that is not known, or never."""


def edit_record(conversation: Conversation, kind: Kind, ids: Sequence[str]) -> CompactionRecord:
    """The record of a drop or restore of messages, and of attachments as ``msg_1#2``."""
    whole, attachments = [each for each in ids if "#" not in each], dict[str, list[int]]()
    for id, _, number in (each.partition("#") for each in ids if "#" in each):
        attachments.setdefault(id, []).append(int(number))
    return CompactionRecord(
        new_id(DROP_ID if kind == "drop" else RESTORE_ID),
        new_id("op"),
        kind,
        [*whole, *(id for id in attachments if id not in whole)],
        created=conversation.time_of_edit(),
        reason="edit",
        attachments={id: numbers for id, numbers in attachments.items() if id not in whole},
    )


def forget_record(conversation: Conversation, note: Message) -> CompactionRecord | None:
    """The record that takes a note of the model's out of the summaries that carry it; None where none does."""
    gone = dropped_attachments(record for record in conversation.records if record.active)
    words, found = framed(KEPT_TAG, pinned_words(note)), dict[str, list[int]]()
    for id, summary in conversation.summaries.items():
        carried = "".join(part.text for part in summary.parts if isinstance(part, SummaryPart) and part.pinned)
        frames = enumerate(note_frames(carried), 1)
        if place := next((n for n, each in frames if each == words and n not in gone.get(id, ())), 0):
            found[id] = [place]
    if not found:
        return None
    created = conversation.time_of_edit()
    id, operation = new_id(DROP_ID), new_id("op")
    return CompactionRecord(id, operation, "drop", [*found], created=created, reason="edit", attachments=found)


def clear_record(runtime: Runtime, ids: Sequence[str]) -> CompactionRecord:
    """The record of the agent's that has results sent as a placeholder, which ``recall`` brings back."""
    return CompactionRecord(
        new_id("rec"),
        new_id("op"),
        "prune",
        list(ids),
        created=runtime.conversation.time_of_edit(),
        reason="edit",
        recall=runtime.inputs().recall,
        by="agent",
    )


def inputs_with(runtime: Runtime, *further: CompactionRecord) -> ContextInputs:
    """What the calculator would be given with further records."""
    conversation, inputs = runtime.conversation, runtime.inputs().as_now()
    records = [*inputs.records, *further]
    path, summaries = conversation.path, conversation.summaries
    view = build_view(path, records, summaries)
    return replace(inputs, records=records, view=view)


def plan_edit(
    runtime: Runtime, before: ContextUsage, records: Sequence[CompactionRecord], more: int = 0
) -> tuple[EditPlan, ContextUsage]:
    """What records would do, and the numbers with them; ``before`` are those of now."""
    inputs = inputs_with(runtime, *records)
    after = calculate_context_usage(inputs)
    freed, reasoning = before.total - after.total, _reasoning(before) - _reasoning(after)
    read = expected_read(before)
    gone = {message_id for record in records for message_id in record.message_ids}
    left = min(read, _before_first(runtime, before, gone))
    prices, hour = runtime.info.prices, runtime.info.spec.cache_ttl == "1h"

    def price(total: int, cached: int) -> float | None:
        return priced_call(prices, total, min(total, cached), 0, hour).usd

    then, now = price(before.total, read), price(after.total, left)
    if not then:
        # Where nothing is paid, or nobody knows, it is time that reading anew takes.
        prices = USUAL_PRICES
    anew = _difference(price(after.total, left), price(before.total, read))
    saved = _difference(price(before.total, before.total), price(after.total, after.total))
    cost = PlanPrice(None, anew, saved, max(0, read - left - freed))
    plan = EditPlan(
        tuple(part for record in records for part in parts_of(record)),
        freed,
        after.calculation.spreads.removed or after.spread,
        max(0, reasoning),
        cost.behind,
        "",
        more,
        _told_again(runtime, before, inputs.view),
        cost.pays_after,
    )
    return replace(plan, line=_plan_line(plan, then, now)), after


def commit_edit(runtime: Runtime, record: CompactionRecord, after: ContextUsage, emit: Emit) -> None:
    """Puts a record in force, with which the numbers are ``after``. Raises AgentError."""
    before = runtime.usage()
    record.before_tokens, record.before_spread = before.total, before.spread
    record.after_tokens, record.after_spread = after.total, after.spread
    record.before_estimated = before.approximate
    runtime.conversation.commit_compaction([record], None, None)
    emit(ContextEdited(record))


def count_words(ids: Collection[str]) -> str:
    """``2 messages, 1 attachment``."""
    parts = sum("#" in each for each in ids)
    return parts_words(len(ids) - parts, parts)


def _difference(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def _told_again(runtime: Runtime, usage: ContextUsage, view: Sequence[SentMessage]) -> int:
    """Tokens of the note on the permission mode, where a view without what is dropped has none any more."""
    if newest_note(view, TOLD_MODE) is not None or newest_note(runtime.conversation.view(), TOLD_MODE) is None:
        return 0
    rows = (leaf for row in usage.rows for leaf in row.leaves() if leaf.attachment is not None)
    return sum(leaf.tokens for leaf in rows if leaf.label == TOLD_MODE)


def _before_first(runtime: Runtime, usage: ContextUsage, gone: Collection[str]) -> int:
    """Tokens of the next request that stand before the first of these messages."""
    costs = message_tokens(usage)
    total = sum(row.tokens for row in usage.rows if row.id != MESSAGES.id)
    for item in runtime.conversation.view():
        if item.message.id in gone:
            break
        total += costs.get(item.message.id, 0)
    return total


def _reasoning(usage: ContextUsage) -> int:
    rows = (child for row in usage.rows if row.id == MESSAGES.id for child in row.children)
    return sum(row.tokens for row in rows if row.id == "reasoning")


def _plan_line(plan: EditPlan, then: float | None, now: float | None) -> str:
    less = f"{interval(plan.freed, plan.spread, True)} tokens less per request"
    with_it = "an answer and the results of its calls go together"
    because = f" ({plan.more:,} more than chosen: {with_it})" if plan.more else ""
    freed = f"Drops {count_words(plan.part_ids)}{because}: {less if plan.freed > 0 else NOTHING_FREED}"
    if plan.again and plan.freed > 0:
        freed += f", {tokens(plan.again, True)} of which your next message sends again (the permission mode)"
    if plan.reasoning:
        freed += f", {tokens(plan.reasoning, True)} of them reasoning"
    if not plan.behind:
        return f"{freed}. Keeps the cache."
    anew = f"{tokens(plan.behind, True)} tokens after it are no longer cached"
    if not now or then is None:
        return f"{freed}. Now {anew}; free once the cache is cold."
    pays = f", saved again after {plural(plan.pays_after, 'request')}" if plan.pays_after else ""
    price = f"the next request costs {money(now)} instead of {money(then)}{pays}"
    return f"{freed}. Now {anew}: {price}; free once the cache is cold."
