"""Measuring by difference: what each message cost, from the inputs that the provider reported one after another.

``input(k) - input(k-1) - output(k-1) + dropped reasoning + removed - fixed delta`` is the size of what was added
between two steps; an answer costs its own output less the reasoning that is not counted any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent_tui.context.accounting.accuracy import coarse_ratio
from agent_tui.context.accounting.coverage import Coverage
from agent_tui.context.accounting.fixed import fixed_delta
from agent_tui.context.accounting.inputs import ContextInputs
from agent_tui.context.accounting.reasoning import ReasoningTokens, counted_at
from agent_tui.context.accounting.reuse import ContextCache, Seal
from agent_tui.context.accounting.tally import Tally, Weighed, add_group, add_message
from agent_tui.context.sent.placeholders import PruneStates
from agent_tui.context.sent.thoughts import differences, share_at
from agent_tui.context.tokens.estimate import Kind
from agent_tui.context.tokens.families import Family
from agent_tui.models.context import Basis
from agent_tui.models.messages import Message, ReasoningPart
from agent_tui.models.requests import SentMessage
from agent_tui.models.steps import SentRun, Step
from agent_tui.providers.wire.replay import carries_reasoning, turn_is_closed


@dataclass(slots=True)
class Change:
    """Tokens by which something is smaller now than at a step; ``estimated``: not only provider numbers are in it."""

    tokens: int = 0
    estimated: bool = False


class Measurement:
    """One pass over the chain of steps that can be built on. ``tally`` has every message from the first step's answer
    up to the anchor's; ``head`` is where it begins."""

    def __init__(
        self,
        inputs: ContextInputs,
        cache: ContextCache,
        family: Family,
        prunes: PruneStates,
        ratio: float,
        fixed_scale: float | None = None,
    ) -> None:
        self._inputs = inputs
        self.fixed_scale, self.fixed_measured = fixed_scale or 1.0, fixed_scale is not None
        self.ratio = ratio
        self._view: Sequence[SentMessage] = inputs.view
        self._cache = cache
        self._family = family
        self._target = inputs.model.target
        self._reasoning = ReasoningTokens(cache.by_message, self._spoken)
        self._prunes = prunes
        self.chain = cache.chain
        self.anchor = self.chain[-1] if self.chain else None
        self.coverage = Coverage(self.chain)
        self.head = self.chain[0].sent_count if self.chain else 0
        self.tally = Tally(self.head, self.head)
        self._turn: list[str] = []
        if self.chain:
            self._measure()

    def weigh(self, index: int, state: str | None = None) -> Weighed:
        """A message of the view with its estimated cost, reasoning included as far as it is counted now.

        ``state``: as it was sent under other prune records.
        """
        item = self._view[index]
        message, key = item.message, item.key
        if state is not None:
            message, key = self._prunes.sent(item.stored or message, state)
        first = message.role != "tool" or index == 0 or self._view[index - 1].message.role != "tool"
        made = self._cache.estimate(message, key, self._family, first)
        weights, exact, given = list(made.shares), made.exact, made.media
        note = None
        if message.role == "assistant":
            tokens, _ = self._reasoning.of(message)
            status = self._cache.ledger.status(message.id)
            if status is not None and (tokens or any(isinstance(p, ReasoningPart) for p in message.parts)):
                weights.append(("reasoning", round(tokens * status.counted)))
                exact += tokens * status.counted
                given += tokens * status.counted
                note = status.reason
        return Weighed(message, key, weights, made.approximate, made.rough, note, exact, given)

    def _spoken(self, message: Message) -> float:
        """Estimate of an answer's text and calls, which is its output without the reasoning."""
        return self._cache.estimate(message, message.id, self._family, True).exact * coarse_ratio(self.ratio)

    def dropped(self) -> Change:
        """Reasoning in the anchor's input and output that the next input will not have."""
        anchor = self.anchor
        if anchor is None:
            return Change()
        if anchor.sent_reasoning is not None:
            return self._dropped_since(anchor, anchor.sent_reasoning)
        return self._dropped_by_rule(anchor)

    def _dropped_since(self, anchor: Step, runs: Sequence[SentRun]) -> Change:
        """What was sent is known: each share of then, and the share of now. What did not change since the last
        calculation is taken over."""
        ledger, cache = self._cache.ledger, self._cache
        start, result = 0, Change()
        known = cache.dropped
        if known is not None and known[0] == anchor.id and known[1] <= min(ledger.changed_from, cache.kept):
            start, result = known[1], Change(known[2], known[3])
        until = min(ledger.turn_start, anchor.sent_count)
        for index in range(start, anchor.sent_count):
            if index == until:
                cache.dropped = (anchor.id, until, result.tokens, result.estimated)
            message = self._view[index].message
            if message.role == "assistant" and carries_reasoning(message, self._target.family):
                self._drop(result, message, share_at(runs, index) - ledger.counted(message.id))
        if anchor.kind == "turn":
            own = self._view[anchor.sent_count].message
            self._drop(result, own, 1.0 - ledger.counted(own.id))
        return result

    def _dropped_by_rule(self, anchor: Step) -> Change:
        """The same for a step of which it was not stored, as far as today's rule tells it."""
        ledger, then = self._cache.ledger, self._shares_at_anchor(anchor)
        result = Change()
        if then is None:
            if self._closed_at(anchor):
                return result
            closed = ledger.turn_closed or ledger.turn_start > anchor.sent_count
            answers = self._turn if closed else self._turn[-1:]
            for message_id in answers:
                own = message_id == anchor.message_id
                before = 1.0 if own else ledger.counted_then(message_id, self._target, turn_open=True)
                self._add_drop(result, message_id, before - ledger.counted(message_id))
            return result
        if anchor.message_id is not None and anchor.kind == "turn":
            then[anchor.message_id] = 1.0
        for message_id, share in then.items():
            self._add_drop(result, message_id, share - ledger.counted(message_id))
        return result

    def removed(self) -> Change:
        """Cost of what was cleared or clipped since the anchor, less what stands in its place."""
        return self._removed_since(self.anchor.prune_ids, None) if self.anchor else Change()

    def _measure(self) -> None:
        start = self._resume()
        if start == 0:
            self._turn = self._open_answers(self.head)
        for number in range(start, len(self.chain)):
            step = self.chain[number]
            if number > 0:
                self._add_between(self.chain[number - 1], step)
            if step.kind == "turn":
                self._add_answer(step)
            self._seal(number)
        seals, places = self._cache.seals, (self._cache.ledger.turn_start, self.coverage.until, self.tally.end)
        kept = {max((s.chain for s in seals if s.tally.end <= at), default=-1) for at in places}
        self._cache.seals = [s for s in seals if s.chain in kept]

    def _resume(self) -> int:
        """Take over the longest stretch of rows that still holds. Returns the chain step to go on with."""
        cache = self._cache
        sure = min(cache.kept, cache.ledger.changed_from)
        fitting = [
            s
            for s in cache.seals
            if s.chain < len(self.chain)
            and s.step == self.chain[s.chain].id
            and s.tally.start == self.head
            and s.tally.end <= sure
            and s.tally.end == _end_of(self.chain[s.chain])
            and s.reach == self.coverage.reach(s.tally.start, s.tally.end)
        ]
        if not fitting:
            cache.seals = []
            return 0
        best = max(fitting, key=lambda s: s.chain)
        cache.seals = [s for s in fitting if s.chain <= best.chain]
        self.tally = best.tally.copy()
        self._turn = list(best.last_answers)
        if isinstance(best.reach, tuple):
            self.coverage.left = best.left
        return best.chain + 1

    def _seal(self, number: int) -> None:
        """Keep rows at the end of the last closed turn, where the cache's reading ended, and at the newest step: what
        can be built on next time."""
        step = self.chain[number]
        newest = number == len(self.chain) - 1
        following = None if newest else self.chain[number + 1]
        places = (self._cache.ledger.turn_start, self.coverage.until)
        closing = any(_end_of(step) <= at and (following is None or _end_of(following) > at) for at in places)
        if not (newest or closing) or self.tally.approximate:
            return
        reach = self.coverage.reach(self.head, self.tally.end)
        seals = [s for s in self._cache.seals if s.chain < number]
        self._cache.seals = [
            *seals,
            Seal(self.tally.copy(), number, reach, self.coverage.left, list(self._turn), step.id),
        ]

    def _add_answer(self, step: Step) -> None:
        index = step.sent_count
        weighed = self.weigh(index)
        usage = step.usage
        output = usage.output if usage is not None else 0
        tokens, reported = self._reasoning.of(weighed.message)
        counted = round(tokens * self._cache.ledger.counted(weighed.message.id))
        value = output - tokens + counted
        rest: list[tuple[Kind, int]] = [(kind, weight) for kind, weight in weighed.weights if kind != "reasoning"]
        basis: Basis = "measured" if value == output else "derived" if reported else "estimated"
        if usage is not None and usage.output_source == "estimated":
            basis, reported = "estimated", False
        cover, labels = self.coverage, self._cache.labels
        if any(kind == "reasoning" for kind, _ in weighed.weights):
            own: Basis = "derived" if reported else "estimated"
            thought = Weighed(weighed.message, weighed.key, [("reasoning", counted)], note=weighed.note)
            add_message(self.tally, thought, index, counted, own, cover, labels, sure=False)
        spoken = Weighed(weighed.message, weighed.key, rest, weighed.approximate, weighed.rough)
        basis = "estimated" if len(rest) > 1 else basis
        add_message(self.tally, spoken, index, value - counted, basis, cover, labels, sure=False)
        self.tally.end = index + 1
        self._turn.append(weighed.message.id)

    def _add_between(self, before: Step, step: Step) -> None:
        start, end = _end_of(before), step.sent_count
        user = any(self._view[i].message.role == "user" for i in range(start, end))
        value, derived = self._difference(before, step, user)
        if user:
            self._turn.clear()
        group: list[Weighed] = []
        today: dict[str, tuple[Weighed, int]] = {}
        for i in range(start, end):
            message_id = self._view[i].message.id
            if message_id in self._prunes.mentioned:
                then = self._prunes.state(step.prune_ids, message_id)
                group.append(self.weigh(i, then))
                now = self.weigh(i)
                if now.key != group[-1].key:
                    today[message_id] = now, now.corrected(self.ratio)
            else:
                group.append(self.weigh(i))
        if group:
            fits = value >= len(group)
            sure, cost = derived and fits, value if fits else None
            if not fits:
                self.tally.misfit += value - sum(w.tokens for w in group)
            watched = self._prunes.mentioned
            add_group(self.tally, group, start, cost, sure, self.coverage, self._cache.labels, today, watched)
        else:
            self.tally.misfit += value
        self.tally.end = max(self.tally.end, end)

    def _difference(self, before: Step, step: Step, user: bool) -> tuple[int, bool]:
        """Measured size of what was added between two steps, and whether only provider numbers are in it."""
        first, second = before.usage, step.usage
        if first is None or second is None:
            return 0, False
        dropped = self._dropped_between(before, step, user)
        removed = self._removed_since(before.prune_ids, step.prune_ids)
        delta, _ = fixed_delta(step.fixed, before.fixed, self._family, self.fixed_scale)
        output = first.output if before.kind == "turn" else 0
        value = second.input - first.input - output + dropped.tokens + removed.tokens - delta
        return value, delta == 0 and not dropped.estimated and not removed.tokens

    def _dropped_between(self, before: Step, step: Step, user: bool) -> Change:
        """Reasoning that was in the first step's input or output and not in the second's input."""
        dropped = Change()
        if before.sent_reasoning is not None and step.sent_reasoning is not None:
            for start, stop, less in differences(before.sent_reasoning, step.sent_reasoning, before.sent_count):
                for index in range(start, stop):
                    message = self._view[index].message
                    if message.role == "assistant" and carries_reasoning(message, self._target.family):
                        self._drop(dropped, message, less)
            if before.kind == "turn":
                own = self._view[before.sent_count].message
                kept = share_at(step.sent_reasoning, before.sent_count)
                self._drop(dropped, own, 1.0 - (kept if carries_reasoning(own, self._target.family) else 0.0))
            return dropped
        ledger = self._cache.ledger
        open_before, open_after = not self._closed_at(before), not user and not self._closed_at(step)
        for message_id in self._turn[-1:] if open_after else self._turn:
            own_answer = message_id == before.message_id
            share = 1.0 if own_answer else ledger.counted_then(message_id, self._target, turn_open=open_before)
            later = ledger.counted_then(message_id, self._target, turn_open=open_after)
            self._add_drop(dropped, message_id, share - later)
        return dropped

    def _closed_at(self, step: Step) -> bool:
        """Whether it is a count of a conversation whose turn had ended: what the turn's end drops was not in it."""
        return step.kind == "count" and turn_is_closed(self._view[step.sent_count - 1 : step.sent_count])

    def _add_drop(self, change: Change, message_id: str, share: float) -> None:
        if share == 0.0:
            return
        step = self._cache.by_message.get(message_id)
        message = next((self._view[i].message for i in self._where(message_id, step)), None)
        if message is not None:
            self._drop(change, message, share)

    def _drop(self, change: Change, message: Message, share: float) -> None:
        if share == 0.0:
            return
        tokens, reported = self._reasoning.of(message)
        change.tokens += round(tokens * share)
        change.estimated = change.estimated or (tokens > 0 and not reported)

    def _open_answers(self, end: int) -> list[str]:
        """Answers since the last user message before an index."""
        answers: list[str] = []
        for index in range(end - 1, -1, -1):
            message = self._view[index].message
            if message.role == "user":
                break
            if message.role == "assistant":
                answers.insert(0, message.id)
        return answers

    def _where(self, message_id: str, step: Step | None) -> list[int]:
        """Index of an answer in the view; its step says where it is."""
        at = step.sent_count if step is not None else len(self._view)
        if at < len(self._view) and self._view[at].message.id == message_id:
            return [at]
        return [i for i, item in enumerate(self._view) if item.message.id == message_id]

    def _shares_at_anchor(self, anchor: Step) -> dict[str, float] | None:
        """Shares of reasoning counted in the anchor's input; None when prompt, tools and cleared results are as they
        were, so that only turns closed since make a difference."""
        inputs = self._inputs
        fixed_same = not anchor.fixed_fingerprint or anchor.fixed_fingerprint == inputs.fixed_fingerprint
        prunes_same = self._prunes.same(anchor.prune_ids)
        turned_off = inputs.effort == "off" and anchor.thinking not in (None, "off")
        if fixed_same and prunes_same and not turned_off:
            return None
        then: list[SentMessage] = []
        for item in self._view[: anchor.sent_count]:
            if item.message.id in self._prunes.mentioned:
                state = self._prunes.state(anchor.prune_ids, item.message.id)
                then.append(SentMessage(*self._prunes.sent(item.stored or item.message, state)))
            else:
                then.append(item)
        fixed = anchor.fixed_fingerprint or inputs.fixed_fingerprint
        return counted_at(then, self._target, fixed, "medium" if turned_off else inputs.effort)

    def _removed_since(self, then: list[str], now: list[str] | None) -> Change:
        """What the prune records ``now`` (None: those in force) take away that those of ``then`` did not."""
        if self._prunes.same(then, now):
            return Change()
        result = Change()
        end = self.tally.end
        for index, item in enumerate(self._view[:end] if now is not None else self._view[: self._anchored()]):
            message_id = item.message.id
            if message_id not in self._prunes.mentioned:
                continue
            old, new = self._prunes.state(then, message_id), self._prunes.state(now, message_id)
            if old != new:
                result.tokens += self._cost(index, old) - self._cost(index, new)
                result.estimated = True
        return result

    def _cost(self, index: int, state: str) -> int:
        """Cost of a message in a state: as measured where it was measured so, else estimated."""
        weighed = self.weigh(index, state)
        measured = self.tally.values.get(weighed.message.id)
        known = measured is not None and measured[1] == weighed.key
        return measured[0] if measured is not None and known else weighed.corrected(self.ratio)

    def _anchored(self) -> int:
        return self.anchor.sent_count if self.anchor else 0


def _end_of(step: Step) -> int:
    """Index after the step's own answer."""
    return step.sent_count + (1 if step.kind == "turn" else 0)
