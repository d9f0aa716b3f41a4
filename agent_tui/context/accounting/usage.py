"""THE calculator: what the next request costs, of what it is made, and whether it would compact.

The screen, the status line, the compactor, headless output and notices all read its answer. Its stations:

    costs       what reports have settled of items sent before (context/costs.py, the only writer)
    items       what would be sent, each with its cost, or an estimate where it has none (items.py)
    sums        the total, its interval, and the same as the difference to the last request (sums.py)
    rows        the items as they are shown (rows.py, tally.py)
    limits      limit and reserve, whether to compact and why (next_input.py)
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace

from agent_tui.context.accounting.inputs import ContextInputs, ReasoningNow
from agent_tui.context.accounting.items import Estimator, Items, MessageItems, MessageList, answer_costs
from agent_tui.context.accounting.next_input import (
    budget,
    compact_at_of,
    fits_to_send,
    held_text,
    over_limit,
    reserve_problem,
    send_margin,
    why_text,
)
from agent_tui.context.accounting.replay import FollowedReasoning, left_out
from agent_tui.context.accounting.reports import Errors, Followed, turn_growth, turns_left
from agent_tui.context.accounting.rows import Reading, add_message_rows, part_rows
from agent_tui.context.accounting.spending import Sums
from agent_tui.context.accounting.sums import NextInput, next_input
from agent_tui.context.accounting.tally import Tally, covered, total_read
from agent_tui.context.anchor import common_prefix
from agent_tui.context.costs import Costs, SentCosts, SentItems, set_added, settle, settle_again, shared_again
from agent_tui.context.sent_lists import SentMessages
from agent_tui.context.tokens import Family, family_seen
from agent_tui.context.view import active_prune_ids
from agent_tui.models.calibration import Calibration
from agent_tui.models.context import Basis, ContextRow, ContextUsage
from agent_tui.models.costs import REASONING
from agent_tui.models.messages import Message
from agent_tui.models.requests import ReplayRule, SentMessage, Target
from agent_tui.models.rows import MESSAGES
from agent_tui.models.steps import FixedPart, Step
from agent_tui.records import dataclass
from agent_tui.text.numbers import interval, largest_remainder, tenths_of, tokens


def calculate_context_usage(inputs: ContextInputs) -> ContextUsage:
    """Returns what the next request will cost in input tokens, of what it is made, and whether it would compact.

    Pure: the answer depends on the inputs alone. The rows sum to the total, and ``total + free + reserve - over =
    window``. Raises ValueError for a negative stored count, which is a bug.
    """
    return Calculator().usage(inputs)


AGAIN = (2, 3, 4, 6, 8, 12, 16, 24, 32)
"""After so many reports of a server what its first one settled is shared out again."""

KEPT_TALLIES = 4
"""Beginnings of a conversation whose rows are kept."""


class FollowedCosts:
    """The costs that are stored with the steps of a session, for one model; what was taken in stays."""

    def __init__(self) -> None:
        self._costs: Costs | None = None
        self._seen: list[Step] = []
        self._ids: set[str] = set()

    def follow(self, steps: Sequence[Step], target: Target) -> Costs:
        """Returns the costs as these steps, in the order in which they ended, have settled them."""
        costs, seen = self._costs, len(self._seen)
        known = (target.provider, target.api, target.model)
        if (
            costs is None
            or (costs.target.provider, costs.target.api, costs.target.model) != known
            or len(steps) < seen
            or (seen and steps[seen - 1] is not self._seen[-1])
        ):
            costs = self._costs = Costs(target)
            self._seen, self._ids = [], set()
            for step in sorted((s for s in steps if s.status != "running"), key=lambda s: s.finished or 0.0):
                self._take(costs, step)
        for step in steps[len(self._seen) :]:
            if step.status != "running" and step.id not in self._ids:
                self._take(costs, step)
        while len(self._seen) < len(steps) and steps[len(self._seen)].id in self._ids:
            self._seen.append(steps[len(self._seen)])
        return costs

    def _take(self, costs: Costs, step: Step) -> None:
        costs.add(step)
        self._ids.add(step.id)


class Calculator:
    """One a session: what it calculated once is not calculated again. Its answers depend on the inputs alone."""

    def __init__(self) -> None:
        self.lists = SentItems()
        self._costs = FollowedCosts()
        self._reasoning = FollowedReasoning()
        self._estimator: Estimator | None = None
        self._sums = Followed(Sums())
        self._errors: Followed[Errors] | None = None
        self._target: Target | None = None
        self._answered: dict[str, Step] = {}
        self._looked: list[Step] = []
        """The leading steps that have ended, whose answers are in ``_answered``."""
        self._made = MessageList()
        self._made_of: tuple[Estimator, Costs, int] | None = None
        self._view: list[SentMessage] = []
        self._priced = 0
        """So many leading messages have a cost."""
        self._turn = 0
        self._tallies: list[Tally] = []
        self._tally_said = False
        self._then: tuple[Step, SentCosts | None] | None = None

    def usage(self, inputs: ContextInputs) -> ContextUsage:
        """Returns the answer for these inputs."""
        family, known = self._family(inputs), self._known(inputs)
        costs = self._costs.follow(inputs.steps, inputs.model.target)
        last, then = self._last(inputs, costs)
        items = self._items(inputs, costs, last.fixed if last is not None else ())
        size = next_input(items, costs, known, family, last, then)
        said = last.counted if last is not None and last.kind == "turn" else None
        reading = Reading(said, then, items.sent, costs)
        rows, messages = part_rows(items.parts, reading), self._rows(inputs, items, costs, reading, family)
        rows.append(_messages_row(messages, "derived" if last is not None else "estimated"))
        growth = turn_growth(
            inputs.view,
            self._by_answer(inputs.steps),
            inputs.model.target,
            size.total,
            active_prune_ids(inputs.records),
        )
        read = _expected_read(last, then, items, costs, size.total)
        return self._answer(inputs, size, rows, last, growth, read)

    def size(self, inputs: ContextInputs) -> NextInput:
        """Returns the sum alone, without its rows: what the plans of a compaction are compared by."""
        costs = self._costs.follow(inputs.steps, inputs.model.target)
        family, (last, then) = self._family(inputs), self._last(inputs, costs)
        items = self._items(inputs, costs, last.fixed if last is not None else ())
        return next_input(items, costs, self._known(inputs), family, last, then)

    def message_tokens(self, inputs: ContextInputs) -> dict[str, int]:
        """Returns what each message takes of the next input."""
        self.size(inputs)
        found: dict[str, int] = {}
        for each in self._made.messages:
            thought = each.thought.tokens if each.thought is not None else 0
            found[each.message.id] = found.get(each.message.id, 0) + each.spoken.tokens + thought
        return found

    def rule(self, inputs: ContextInputs) -> ReplayRule:
        """The rule the next request is sent with, as the calculator sees it."""
        target = inputs.model.target
        out = left_out(inputs.view, inputs.steps, self.lists, self.keys(inputs), inputs.records, target)
        return replace(inputs.replay, left_out=out) if out else inputs.replay

    def keys(self, inputs: ContextInputs) -> list[str]:
        """The keys under which the costs of these messages are kept."""
        self._family(inputs)
        estimator, view = self._estimator, list(inputs.view)
        assert estimator is not None
        same = self._made_of is not None and self._made_of[0] is estimator
        kept = common_prefix(self._view, view) if same else 0
        return [*self._made.keys[:kept], *(estimator.key(item) for item in view[kept:])]

    def record(self, step: Step, inputs: ContextInputs) -> None:
        """Stores with a step which messages it sends."""
        self.lists.record(step, SentMessages(self.keys(inputs), []), inputs.steps)

    def settle(
        self, step: Step, message: Message | None, inputs: ContextInputs, doubted: Sequence[Step] = (),
        added: int | None = None,
    ) -> list[Step]:  # fmt: skip
        """Stores what the report of a step that has ended says of what it sent, and its answer. ``doubted``: steps of
        whose reports something else is believed now; ``added``: tokens that the server was found to add to each
        request. Returns the steps that changed."""
        family, known = self._family(inputs), self._known(inputs)
        assert self._estimator is not None
        if step.settlement is None:
            return []
        if message is not None:
            answer_costs(step, message, self._estimator, known)
        again = list(doubted)
        if added is not None:
            again += set_added(inputs.steps, step, max(0, added))
        if again:
            # What was added up of their reports is another now.
            self._costs, self._sums, self._errors = FollowedCosts(), Followed(Sums()), None
            return settle_again(inputs.steps, again, self.lists)
        before = [each for each in inputs.steps if each is not step]
        costs = self._costs.follow(before, Target(step.provider, step.api, step.model, family.name))
        sent = self.lists.sent(step, inputs.steps)
        step.settlement.again = shared_again(costs, sent, known) if sent is not None and known.reports in AGAIN else {}
        settle(step, costs, sent)
        return [step]

    def _family(self, inputs: ContextInputs) -> Family:
        family = family_seen(inputs.model, inputs.fixed)
        if self._estimator is None or self._estimator.family != family:
            self._estimator = Estimator(family)
        return family

    def _known(self, inputs: ContextInputs) -> Calibration:
        return inputs.calibration or self._family(inputs).beginning

    def _items(self, inputs: ContextInputs, costs: Costs, before: Sequence[FixedPart]) -> Items:
        """The items; those of messages that have a cost are as they were, as long as the messages are."""
        estimator, known, view = self._estimator, self._known(inputs), inputs.view
        assert estimator is not None
        reasoning, answered = self._reasoning_of(inputs), self._by_answer(inputs.steps)
        of = estimator, costs, costs.revision
        kept = 0
        if of == self._made_of:
            most = min(len(self._view), len(view), self._priced, self._reasoning.changed_from)
            kept = common_prefix(self._view[:most], list(view[:most]))
        made = self._made.first(kept)
        for place in range(kept, len(view)):
            made.add(estimator.message(view, place, costs, known, reasoning, answered))
        fresh = (n for n in range(kept, len(view)) if _is_new(made.messages[n]))
        self._made, self._view, self._priced, self._made_of = made, list(view), next(fresh, len(view)), of
        self._tallies = [tally for tally in self._tallies if tally.end <= kept]
        return Items(estimator.parts(inputs.fixed, costs, known, before), made, self._priced)

    def _rows(self, inputs: ContextInputs, items: Items, costs: Costs, reading: Reading, family: Family) -> Tally:
        """The rows of the messages. Those of leading ones that have a cost, and were read whole, are kept."""
        found, places = items.messages, items.messages.places
        whole = len(places) if reading.whole >= len(found.items) else max(0, bisect_right(places, reading.whole) - 1)
        end, said = min(self._priced, whole), reading.read is not None
        known = [tally for tally in self._tallies if tally.end <= end and self._tally_said == said]
        tally = known[-1].copy() if known else Tally()
        # The newest turn may be sent otherwise once it is over: what is before it stays.
        for place in sorted({min(end, self._turn), end}):
            for each in found.messages[tally.end : place]:
                add_message_rows(inputs.view, tally, each, costs, reading, family)
            if tally.end == place:
                known = [*(kept for kept in known if kept.end < place), tally.copy()]
        self._tallies, self._tally_said = known[-KEPT_TALLIES:], said
        for each in found.messages[end:]:
            add_message_rows(inputs.view, tally, each, costs, reading, family)
        return tally

    def _reasoning_of(self, inputs: ContextInputs) -> ReasoningNow:
        rule, target = self.rule(inputs), inputs.model.target
        keys = [item.key for item in inputs.view]
        now = self._reasoning.follow(inputs.view, keys, target, inputs.fixed_fingerprint, inputs.effort, rule)
        self._turn = now.turn_start
        return now

    def _last(self, inputs: ContextInputs, costs: Costs) -> tuple[Step | None, SentCosts | None]:
        """The request that the next one is compared with: the newest whose answer is sent, else the newest."""
        newest = costs.last
        if newest is None:
            return None, None
        found = newest
        if newest.kind == "count" or not any(item.message.id == newest.message_id for item in reversed(inputs.view)):
            sent = {item.message.id for item in inputs.view}
            settled = [step for step in reversed(costs.settled) if step.message_id in sent or step.kind == "count"]
            found = settled[0] if settled else newest
            turn = next((step for step in settled if step.kind == "turn"), None)
            if found.kind == "count" and turn is not None and turn.sent_count >= found.sent_count:
                # It came late: the turn measured more.
                found = turn
        then = self._sent(found, inputs.steps)
        input = found.counted.input if found.counted is not None else None
        # A formula that begins with its input has no term for what later reports corrected of it.
        if found is not newest and then is not None and costs.total(then) == input:
            return found, then
        then = self._sent(newest, inputs.steps)
        return (newest, then) if then is not None else (None, None)

    def _sent(self, step: Step, steps: Sequence[Step]) -> SentCosts | None:
        if self._then is None or self._then[0] is not step:
            self._then = step, self.lists.sent(step, steps)
        return self._then[1]

    def _by_answer(self, steps: Sequence[Step]) -> Mapping[str, Step]:
        count = len(self._looked)
        if len(steps) < count or (count and steps[count - 1] is not self._looked[-1]):
            self._answered, self._looked = {}, []
        for step in steps[len(self._looked) :]:
            if step.status == "running":
                break
            self._looked.append(step)
            if step.message_id is not None:
                self._answered[step.message_id] = step
        late = {step.message_id: step for step in steps[len(self._looked) :] if step.message_id is not None}
        return {**self._answered, **late} if late else self._answered

    def _answer(
        self, inputs: ContextInputs, size: NextInput, rows: list[ContextRow], last: Step | None, growth: float | None,
        read: int | None,
    ) -> ContextUsage:  # fmt: skip
        model, settings, records = inputs.model, inputs.settings, inputs.records
        limits, target = model.limits, inputs.model.target
        room = budget(limits, settings, compact_at_of(model, settings))
        if self._errors is None or self._target != target:
            self._errors, self._target = Followed(Errors(target)), target
        errors = self._errors.follow(inputs.steps)
        usage = ContextUsage(
            model=target.model,
            window=room.window,
            reserve=room.reserve,
            limit=room.limit,
            total=size.total,
            free=None if room.limit is None else max(0, room.limit - size.total),
            over=None if room.limit is None else max(0, size.total - room.limit),
            basis=size.basis,
            estimated_tokens=size.estimated,
            would_compact=False,
            turns_left=turns_left(size.total, room.limit, growth),
            calculation=size.calculation,
            rows=rows,
            accuracy=errors.accuracy(self._known(inputs), self._family(inputs).beginning),
            session=self._sums.follow(inputs.steps[inputs.inherited :] if inputs.inherited else inputs.steps).totals(
                records
            ),
            pending=size.pending,
            anchor_step=last.id if last else None,
            expected_read=read,
            spread=size.spread,
            margin=send_margin(room.window, size.total, size.spread) if room.window else 0,
            max_input=limits.max_input,
            window_origin=limits.origin,
            held=held_text(settings),
            growth=growth,
        )
        # What holds a compaction back counts only while the request can be sent as it is.
        held = settings.paused and fits_to_send(usage)
        usage.would_compact = settings.auto_compact and not held and over_limit(usage)
        usage.held = "" if usage.would_compact else usage.held
        usage.warnings = _warnings(inputs, usage)
        usage.why = why_text(usage, inputs)
        return usage


def _messages_row(messages: Tally, basis: Basis) -> ContextRow:
    children = messages.kind_rows()
    read = total_read([c.cached_tokens for c in children])
    return ContextRow(
        id=MESSAGES.id,
        label=MESSAGES.label,
        tokens=messages.total,
        basis=basis,
        estimated_tokens=min(messages.total, sum(c.estimated_tokens for c in children)),
        children=children,
        cached=covered(messages.total, read),
        cached_tokens=read,
        approximate=any(c.approximate for c in children),
    )


def _expected_read(last: Step | None, then: SentCosts | None, items: Items, costs: Costs, total: int) -> int | None:
    """Tokens of the next request that the provider will find in its cache; None where it does not say what it writes.

    A cache is good up to the first difference: a tool that went away leaves only what is sent before it.
    """
    usage = last.counted if last is not None and last.kind == "turn" else None
    if usage is None or usage.cache_read is None or usage.cache_write is None or then is None:
        return None
    left, sent = min(usage.input, usage.cache_read + usage.cache_write, total), items.sent
    parts = [each for each in then.parts if each[0] in costs.tokens]
    prefix = common_prefix(parts, sent.parts)
    if prefix < len(parts):
        return min(left, costs.sum(parts[:prefix]))
    if sent.same(then) == len(then.messages):
        return left
    # Reasoning that is no longer counted may be sent as before.
    before, now = ([key for key, _ in each.messages if not key.endswith(REASONING)] for each in (then, sent))
    kept = common_prefix(before, now)
    if kept == len(before):
        return left
    end = then.messages.index((before[kept], 1.0))
    return min(left, costs.sum(then.parts + then.messages[:end]))


def _is_new(each: MessageItems) -> bool:
    """Returns whether a message has no cost yet, was split for this request, or is not counted yet: its count says what
    of its cost its rows take."""
    return (
        each.split is not None
        or each.estimate.approximate
        or each.spoken.content is not None
        or (each.thought is not None and each.thought.content is not None)
    )


def _warnings(inputs: ContextInputs, usage: ContextUsage) -> list[str]:
    warnings: list[str] = []
    problem = reserve_problem(inputs.model.limits, inputs.settings)
    if problem:
        warnings.append(problem)
    if usage.window and usage.total > usage.window:
        total = interval(usage.total, usage.spread, usage.approximate, full=True)
        window = tokens(usage.window, False, full=True)
        warnings.append(f"The next input of {total} tokens is over the window of {window}.")
    return warnings


WHOLE = 1_000


@dataclass(slots=True, frozen=True)
class Shares:
    """Tenths of a percent of the window. ``total + free + reserve - over = 1000``; ``rows``, in the order of the
    usage's, add up to ``total``, which is rounded as everywhere else; what is left goes to free and reserve."""

    total: int
    free: int
    reserve: int
    over: int
    rows: tuple[int, ...]


def window_shares(usage: ContextUsage) -> Shares | None:
    """The shares of all rows; None for an unknown window."""
    window, free, reserve, over = usage.window, usage.free, usage.reserve, usage.over
    if not window or free is None or reserve is None:
        return None
    total = tenths_of(usage.total, window)
    if over:
        free_part, reserve_part = 0, tenths_of(reserve, window)
    else:
        free_part, reserve_part = largest_remainder(WHOLE - total, [free, reserve])
    over_part = total + free_part + reserve_part - WHOLE
    return Shares(total, free_part, reserve_part, over_part, tuple(row_shares(total, usage.rows)))


def row_shares(parent: int, rows: Sequence[ContextRow]) -> list[int]:
    """``parent`` tenths split over its rows by their tokens."""
    return largest_remainder(parent, [row.tokens for row in rows])
