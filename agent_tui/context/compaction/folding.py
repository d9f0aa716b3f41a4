"""A fold: a summary of just a range of the conversation, in its place. Its plan, and what it costs before it happens.
Pure."""

from __future__ import annotations

from dataclasses import replace

from agent_tui.context.accounting.spending import priced_call
from agent_tui.context.compaction.plan import CompactionPlan, Pruning, cut_at_or_before, message_tokens, records_of
from agent_tui.context.compaction.situation import Situation
from agent_tui.context.tokens import char_tokens
from agent_tui.errors import AgentError
from agent_tui.models.context import ContextUsage
from agent_tui.models.messages import new_id, summary_text
from agent_tui.models.rows import MESSAGES
from agent_tui.models.usage import Prices
from agent_tui.records import dataclass
from agent_tui.text.numbers import plural, tokens

UNKNOWN = "No message {id} is in this conversation: it may be of another session, or of a branch that was left."
OPEN = "The model has not answered that yet: what it is working on cannot be folded."


def fold_range(situation: Situation, first_id: str, last_id: str) -> tuple[int, int]:
    """Returns where the range between two messages begins and ends (the place behind its last), in either order. The
    messages may be summaries that are sent. It is made as much larger as it takes to part no call from its result, and
    no summary from a part of what it stands for; what is still open stays outside. Raises AgentError."""
    s = situation
    stands = {record.summary_id: record for record in s.force}
    places = {message.id: place for place, message in enumerate(s.path)}
    found: list[int] = []
    for message_id in (first_id, last_id):
        ids = stands[message_id].message_ids if message_id in stands else [message_id]
        if unknown := [i for i in ids if i not in places]:
            raise AgentError(UNKNOWN.format(id=unknown[0]))
        found += [places[i] for i in ids]
    start, end = min(found), max(found) + 1
    if start >= s.tail:
        raise AgentError(OPEN)
    grown = None
    while grown != (start, end):
        grown = start, end
        start = cut_at_or_before(s.cuts, start)
        end = min(s.tail, next(place for place in range(end, len(s.cuts)) if s.cuts[place]))
        for record in s.force:
            inside = [places[i] for i in record.message_ids]
            if any(start <= place < end for place in inside):
                start, end = min(start, *inside), max(end, max(inside) + 1)
    return start, end


def plan_fold(situation: Situation, first_id: str, last_id: str, focus: str = "") -> CompactionPlan:
    """Returns the plan of a fold of the range between two messages; raises AgentError where there is nothing to gain,
    and as ``fold_range``."""
    s = situation
    start, end = fold_range(s, first_id, last_id)
    summary = s.fold(start, end)
    kept = frozenset(summary.kept_ids)
    sent = [item.message.id for item in s.inputs.view if item.message.id not in kept]
    part = sum(s.tokens.get(i, 0) for i in {*sent, *summary.message_ids})
    if not summary.fresh or (len(sent) == 1 and sent[0] in {record.summary_id for record in s.force}):
        raise AgentError("These messages are a summary already.")
    plan = CompactionPlan(
        "summary",
        "edit",
        "asked for",
        s.before,
        None,
        s.usage.limit,
        Pruning(),
        summary,
        s.inputs,
        s.path,
        s.summaries,
        s.whole,
        focus,
        before_estimated=s.usage.approximate,
        read=s.read,
        folded_tokens=part,
    )
    record_id = new_id("rec")
    message = summary.message({}, record_id, 0.0)
    message.raw_tokens = int(char_tokens(summary_text(message))) + summary.tokens
    after = plan.usage_after(records_of(plan, 0.0, "", record_id, message), message)
    if after.total >= s.before:
        count = plural(len(summary.message_ids), "message")
        raise AgentError(f"A summary of {count} would be no shorter than the {tokens(part, True)} they take.")
    return replace(plan, expected_after=after.total)


@dataclass(slots=True, frozen=True)
class FoldPrice:
    """Dollars a fold is expected to cost: ``call`` for the summary; ``anew`` for what the next request reads anew, less
    what it saves; ``cold`` the same where the cache has nothing anyway; ``saved`` by each later step. All are None
    where no price is known. ``behind`` are the tokens that are read anew."""

    call: float | None
    anew: float | None
    cold: float | None
    saved: float | None
    behind: int


def fold_price(plan: CompactionPlan, usage: ContextUsage, prices: Prices, read: int, call: float | None) -> FoldPrice:
    """Returns the price of a fold. ``usage`` is the calculator's answer as things are, ``read`` the tokens of the next
    request that the cache has, ``call`` the expected price of the summary."""
    assert plan.summary is not None and plan.expected_after is not None
    costs, kept = message_tokens(usage), frozenset(plan.summary.kept_ids)
    before = sum(row.tokens for row in usage.rows if row.id != MESSAGES.id)
    for item in plan.inputs.view:
        if item.message.id not in kept:
            break
        before += costs.get(item.message.id, 0)
    after = plan.expected_after
    known = min(read, before, after)

    def one(total: int, cached: int) -> float | None:
        return priced_call(prices, total, cached, 0).usd

    def less(first: float | None, second: float | None) -> float | None:
        return None if first is None or second is None else first - second

    return FoldPrice(
        call,
        less(one(after, known), one(usage.total, read)),
        less(one(after, 0), one(usage.total, 0)),
        less(one(usage.total, usage.total), one(after, after)),
        max(0, after - before) if read > before else 0,
    )
