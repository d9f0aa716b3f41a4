"""The sum: what the next request takes, item by item, and what it differs by from the last that was sent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from agent_tui.context.accounting.items import Item, Items, MessageItems
from agent_tui.context.costs import SERVER, Costs, SentCosts, tokens_of
from agent_tui.context.tokens import ROUGH, Family
from agent_tui.models.calibration import Calibration, Content
from agent_tui.models.context import Basis, Calculation, Spreads
from agent_tui.models.costs import REASONING, NewItem, Part, Settlement, Split
from agent_tui.models.steps import Step
from agent_tui.records import dataclass

OTHERS_SHARE = 0.1
"""Beside new text that is so much more, what else is estimated of an input does not keep it from being learned from:
providers that count no reasoning would teach next to nothing."""

PENDING_SPREAD = 0.3
"""The spread of what is estimated while a part of it is not counted, as a share of it."""


@dataclass(slots=True)
class _Term:
    """One term of the formula: its tokens, and the items that it is made of, with the share that comes or goes."""

    tokens: int = 0
    changes: list[tuple[str, float]] = field(default_factory=list)

    def add(self, key: str, share: float, tokens: int) -> None:
        self.changes.append((key, share))
        self.tokens += tokens


@dataclass(slots=True, frozen=True)
class NextInput:
    """The ``total``, the terms that it is the sum of, and how sure it is: ``estimated`` tokens of it are estimate;
    ``spread`` as in ``ContextUsage``; ``pending``: a count that matters is still missing."""

    total: int
    calculation: Calculation
    basis: Basis
    estimated: int
    pending: bool
    spread: int = 0


def next_input(
    items: Items, costs: Costs, known: Calibration, family: Family, last: Step | None, then: SentCosts | None
) -> NextInput:
    """The sum of the items, and the same as the difference to what the step ``last`` sent (``then``)."""
    total, new = items.total, items.new
    content, text = Content(), Content()
    for item in new:
        assert item.content is not None
        content.add(item.content, item.share)
        if not _is_part(item.key):
            text.add(item.content, item.share)
    guessed, given = sum(item.tokens for item in new), sum(item.given for item in new)
    splits = {each.message.id: each for each in items.split}
    pending = any(item.approximate for item in (*new, *(each.spoken for each in splits.values())))
    terms = _terms(items, costs, last, then)
    usage = last.counted if last is not None else None
    output = usage.output if usage is not None and last is not None and last.kind == "turn" else 0
    answered = Content()
    if usage is not None and usage.output_source == "estimated":
        answered.rough = (ROUGH * output) ** 2
    unsure = _Unsure(costs, known, new, splits)
    changes = [change for term in terms.values() for change in unsure.settled(term)]
    whole = content.copy()
    whole.add(costs.error(changes, known))
    for each in splits.values():
        _add_split(whole, each)
    whole.add(answered)
    calculation, others = Calculation(None, None, 0, 0, 0, total), 0
    if usage is not None:
        removed, changed, dropped = terms["removed"], terms["changed"], terms["dropped"]
        added = total - usage.input - output + dropped.tokens + removed.tokens - changed.tokens
        calculation = Calculation(usage.input, output, dropped.tokens, removed.tokens, changed.tokens, added)
        calculation.output_estimated = usage.output_source == "estimated" and output > 0
        calculation.spreads = Spreads(
            last_output=known.spread(answered),
            dropped_reasoning=known.spread(unsure.error(dropped)),
            removed=known.spread(unsure.error(removed)),
            fixed_delta=known.spread(unsure.error(changed)),
            new_messages=known.spread(unsure.error(terms["new"])),
        )
        guessed_at = known.variance(unsure.error(dropped)) > 0
        others = abs(removed.tokens) + abs(changed.tokens) + (abs(dropped.tokens) if guessed_at else 0)
        others += output if calculation.output_estimated else 0
    spread = known.spread(whole)
    estimated = max(guessed + others, spread) if new or changes or splits or answered.rough else 0
    if usage is None:
        estimated = total
    if pending:
        spread = max(spread, math.ceil(PENDING_SPREAD * estimated))
    if usage is None:
        calculation.spreads = Spreads(new_messages=spread)
    calculation.new_estimated = round(family.beginning.tokens(text))
    calculation.content, calculation.known = whole.rounded(), total - round(known.tokens(whole))
    if usage is not None and others <= OTHERS_SHARE * (guessed - given):
        calculation.content, calculation.known = content.rounded(), total - guessed
    if not items.known and all(each.spoken.content is not None for each in items.messages.messages):
        calculation.all_messages = sum(item.tokens for item in items.messages.items)
    calculation.settlement = _settlement(new, splits.values(), costs, known, whole, changes)
    basis: Basis = "estimated" if usage is None else "derived"
    if usage is not None and total == usage.input and not estimated and not output:
        basis = "measured"
    return NextInput(total, calculation, basis, min(estimated, total), pending, spread)


def _terms(items: Items, costs: Costs, last: Step | None, then: SentCosts | None) -> dict[str, _Term]:
    """What came and went since the last step, by the terms of the formula."""
    terms = {name: _Term() for name in ("dropped", "removed", "changed", "new")}
    if last is None or then is None:
        return terms
    sent = items.sent
    kept = sent.same(then)
    before = dict(then.parts + then.messages[kept:])
    if last.kind == "turn" and last.message_id is not None:
        before[last.message_id] = 1.0
        if last.message_id + REASONING in costs.tokens:
            before[last.message_id + REASONING] = 1.0
    now = {item.key: item for item in (*items.prefix, *items.messages.items[kept:])}
    sent_before = {_id(key) for key in before}
    for key, share in before.items():
        item = now.get(key)
        if key not in costs.tokens:
            continue
        less = share - (item.share if item is not None else 0.0)
        gone = tokens_of(costs.tokens[key], share) - (item.tokens if item is not None else 0)
        if not less and not gone:
            continue
        answer = key.removesuffix(REASONING)
        if _is_part(key):
            terms["changed"].add(key, -less, -gone)
        elif (answer != key and answer in now) or not less:
            terms["dropped"].add(key, -less, gone)
        else:
            terms["removed"].add(key, -less, gone)
    for key, item in now.items():
        if key in before:
            continue
        if _is_part(key):
            terms["changed"].add(key, item.share, item.tokens)
        elif key.endswith(REASONING) and key.removesuffix(REASONING) in before:
            terms["dropped"].add(key, item.share, -item.tokens)
        elif _id(key) in sent_before and not key.endswith(REASONING):
            # Another form of what was sent: what stands in its place.
            terms["removed"].add(key, item.share, -item.tokens)
        else:
            terms["new"].add(key, item.share, item.tokens)
    return terms


def _is_part(key: str) -> bool:
    return ":" in key or key == SERVER


def _id(key: str) -> str:
    return key.partition("#")[0]


@dataclass(slots=True, frozen=True)
class _Unsure:
    """What is not known of a request: its ``new`` items, and the ``splits`` of answers."""

    costs: Costs
    calibration: Calibration
    new: Sequence[Item]
    splits: Mapping[str, MessageItems]

    def settled(self, term: _Term) -> list[tuple[str, float]]:
        """The items of a term that have a cost, and are not estimated by another one."""
        replaced = {item.instead for item in self.new}
        return [
            (key, share)
            for key, share in term.changes
            if key in self.costs.tokens and key not in replaced and key.removesuffix(REASONING) not in self.splits
        ]

    def error(self, term: _Term) -> Content:
        """What the error of one term consists of."""
        keys = {key for key, _ in term.changes}
        error = self.costs.error(self.settled(term), self.calibration)
        for item in self.new:
            if item.key in keys and item.content is not None:
                error.add(item.content, item.share)
        for answer in {key.removesuffix(REASONING) for key in keys} & self.splits.keys():
            _add_split(error, self.splits[answer])
        return error


def _add_split(error: Content, each: MessageItems) -> None:
    """Adds what the error of an answer consists of that is sent without all of its reasoning."""
    if each.split is not None:
        error.add(each.split.content, each.left_out)


def _settlement(
    new: Sequence[Item], split: Iterable[MessageItems], costs: Costs, known: Calibration, whole: Content,
    changes: Sequence[tuple[str, float]],
) -> Settlement:  # fmt: skip
    """What is not known of the request: the new items, and answers of whose reasoning another share is sent."""
    moved: dict[str, float] = {}
    for key, share in changes:
        answer = key.removesuffix(REASONING)
        if costs.split_error(answer) is not None:
            moved[answer] = moved.get(answer, 0.0) + (share if key != answer else -share)
    splits, errors = list[Split](), list[Content]()
    for answer, share in moved.items():
        if share and (error := costs.split_error(answer)) is not None:
            splits.append(Split(answer, costs.tokens[answer], error))
            errors.append(costs.error([(answer + REASONING, share)], known))
    for each in split:
        if each.split is not None:
            splits.append(each.split)
            errors.append(Content())
            _add_split(errors[-1], each)
    parts = costs.part_errors(changes, known)
    contents = []
    for item in new:
        assert item.content is not None
        content = item.content.copy()
        if item.share != 1.0:
            content = Content()
            content.add(item.content, item.share)
        contents.append(content)
    weights = known.shares_of_error(whole, [*contents, *errors, *(error for _, error in parts)])
    made = [
        NewItem(item.key, _full(item), weight if item.key != SERVER or known.added else 0.0, item.content.rounded())
        for item, weight in zip(new, weights, strict=False)
        if item.content is not None
    ]
    unsure = [
        replace(each, weight=weight, content=each.content.rounded())
        for each, weight in zip(splits, weights[len(new) :], strict=False)
    ]
    rest = zip(parts, weights[len(new) + len(splits) :], strict=True)
    broken = [Part(keys, weight) for (keys, _), weight in rest if weight]
    return Settlement(made, unsure, broken, whole.rounded())


def _full(item: Item) -> int:
    """The tokens of the whole item."""
    return item.tokens if item.share == 1.0 else round(item.tokens / item.share)
