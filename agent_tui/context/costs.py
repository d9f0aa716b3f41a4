"""Costs are facts: what each item of a request takes in tokens, for one model, as its reports have shown.

A report is settled once, when it arrives (``settle``, the only writer): what was new in the request shares what the
known costs leave of it, and the answer costs what was reported of it. What is settled is stored with the step, so
``Costs`` only reads; ``costs_of`` makes all of it again from the reports.

What a report and the known costs disagree by goes, in this order, to what was estimated of the request, each as unsure
as it was; to the parts of the prefix, where nothing was new or it would leave nothing; to everything alike, where it is
more than they have.
"""

from __future__ import annotations

import itertools
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from agent_tui.context.anchor import common_prefix, differences, usage_problem
from agent_tui.context.sent_lists import SentLists
from agent_tui.models.calibration import Calibration, Content
from agent_tui.models.costs import REASONING, NewItem, Part, Split, kept_keys
from agent_tui.models.requests import Target
from agent_tui.models.rows import FIXED_ROWS
from agent_tui.models.steps import FixedPart, SentRun, Step
from agent_tui.records import dataclass
from agent_tui.text.numbers import largest_remainder

SERVER = "server"
"""The key of what a server adds to each request by itself."""
PREAMBLE_KEY = "tools:preamble"
"""That of what a provider adds to a request with tools."""
WAITING = "waiting"
"""Begins the key of a part that is sent with the user's next message."""

HARDLY_ANY = 0.02
"""As a share of what the first report settled: what moves by less is left as it was shown."""

ItemShares = list[tuple[str, float]]
"""The keys of items, and the share of each that is counted."""


@dataclass(slots=True, frozen=True)
class SentCosts:
    """The items of a request, in the order in which they are sent: those of the prefix, those of the messages."""

    parts: ItemShares
    messages: ItemShares

    def all(self) -> ItemShares:
        return self.parts + self.messages

    def same(self, other: SentCosts) -> int:
        """How many leading items of the messages are those of another request, in the same share."""
        return common_prefix(self.messages, other.messages)


def tokens_of(cost: int, share: float) -> int:
    """What a share of an item takes."""
    return cost if share == 1.0 else round(cost * share)


@dataclass(slots=True, frozen=True)
class Group:
    """The items that one report settled together: only their sum, ``value``, is a fact."""

    value: int
    items: Mapping[str, NewItem]
    content: Content


class Costs:
    """The costs known of one model's items. ``revision`` is another number once one of them was corrected."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.tokens: dict[str, int] = {}
        self.revision = 0
        self.settled: list[Step] = []
        """The steps whose reports are the size of what they sent, in their order."""
        self._groups: dict[str, Group] = {}
        self._counted: dict[str, bool] = {}
        """The answers that were reported, and whether their reasoning was counted."""
        self._splits: dict[str, Content] = {}
        """Those whose reasoning was not, once a report told of the two: what the error of that consists of."""
        self._estimates: dict[str, NewItem] = {}
        self._leading: ItemShares = []
        self._sums: list[int] = [0]
        """What was summed last: the items, and what those before each of them take."""
        self._summed = 0
        """The revision that this holds for."""

    def add(self, step: Step) -> None:
        """Takes in what was settled of a step."""
        made = step.settlement
        if made is None or not is_of(step, self.target):
            return
        group = {item.key: item for item in made.items if item.key in made.costs and item.key not in self.tokens}
        if group:
            whole = Group(sum(made.costs[key] for key in group), group, made.content)
            self._groups.update(dict.fromkeys(group, whole))
        for item in made.items:
            self._estimates[item.key] = item
        self.revision += any(key in self.tokens for key in made.costs)
        self.tokens.update(made.costs)
        if made.settled:
            self._splits.update((split.answer, split.content) for split in made.splits)
        if made.spoken is not None and step.message_id is not None:
            self.revision += step.message_id in self.tokens
            self.tokens[step.message_id] = made.spoken
            if made.thought:
                self.tokens[step.message_id + REASONING] = made.thought
            self._counted[step.message_id] = made.thought_counted
        if made.settled:
            self.settled.append(step)

    @property
    def last(self) -> Step | None:
        """The newest step that was settled."""
        return self.settled[-1] if self.settled else None

    def sum(self, sent: Iterable[tuple[str, float]]) -> int:
        """What these items take, as far as that is known."""
        return sum(tokens_of(self.tokens[key], share) for key, share in sent if key in self.tokens)

    def leading(self, messages: ItemShares) -> tuple[int, int]:
        """How many leading items have a cost, and what they take together. A beginning that was summed before is not
        summed again."""
        kept = common_prefix(self._leading, messages) if self._summed == self.revision else 0
        self._summed = self.revision
        del self._leading[kept:], self._sums[kept + 1 :]
        for each in messages[kept:]:
            cost = self.tokens.get(each[0])
            if cost is None:
                break
            self._leading.append(each)
            self._sums.append(self._sums[-1] + tokens_of(cost, each[1]))
        return len(self._leading), self._sums[-1]

    def total(self, sent: SentCosts) -> int:
        """What all items of a request take, as far as that is known."""
        count, known = self.leading(sent.messages)
        return known + self.sum(sent.parts) + self.sum(sent.messages[count:])

    def is_alone(self, key: str) -> bool:
        """Returns whether a report measured the item alone, of provider numbers only."""
        group = self._groups.get(key)
        return group is not None and len(group.items) == 1 and not group.content.rough

    def is_answer(self, message_id: str) -> bool:
        """Returns whether the item is an answer that was reported."""
        return message_id in self._counted

    def is_thought_counted(self, message_id: str) -> bool:
        return self._counted.get(message_id, True)

    def split_error(self, message_id: str) -> Content | None:
        """What the error of the reasoning of an answer consists of; None where it was counted, and where no request was
        sent without all of it yet."""
        return self._splits.get(message_id)

    def estimate(self, key: str) -> NewItem | None:
        """What an item was estimated at when it was first sent."""
        return self._estimates.get(key)

    def error(self, changes: Iterable[tuple[str, float]], known: Calibration) -> Content:
        """What the error of known items consists of that come or go: the key of each, and the share of it that comes
        (goes where negative). Together all items of a report are exact, so only what is split of them is not."""
        error, answers, changes = Content(), dict[str, float](), list(changes)
        for key, share in changes:
            answer = key.removesuffix(REASONING)
            if answer in self._counted:
                # What the reasoning has too much, the rest of the answer has too little.
                answers[answer] = answers.get(answer, 0.0) + (share if key != answer else -share)
        for answer, share in answers.items():
            if (unsure := self._splits.get(answer)) is not None and abs(share) > 1e-9:
                error.add(unsure, -share)
        for _, of_part in self.part_errors(changes, known):
            error.add(of_part)
        return error

    def part_errors(self, changes: Iterable[tuple[str, float]], known: Calibration) -> list[tuple[list[str], Content]]:
        """The changed items of each group, and what the error of them consists of."""
        groups: dict[int, tuple[Group, list[tuple[str, float]]]] = {}
        for key, share in changes:
            if key.removesuffix(REASONING) not in self._counted and (group := self._groups.get(key)) is not None:
                groups.setdefault(id(group), (group, []))[1].append((key, share))
        found: list[tuple[list[str], Content]] = []
        for group, some in groups.values():
            # What the group tells of a part of it, and what is known of its texts by now: the surer one.
            of_group, of_texts = self._part_error(group, some), self._estimate_error(group, some, known)
            surer = of_texts if known.variance(of_texts) < known.variance(of_group) else of_group
            found.append(([key for key, _ in some], surer))
        return found

    def beside(self, key: str) -> Iterable[str]:
        """The items that were settled together with this one, itself among them."""
        group = self._groups.get(key)
        return group.items if group is not None else ()

    def _part_error(self, group: Group, some: ItemShares) -> Content:
        """What the error of some of a group's items consists of, where only its sum is known."""
        error = Content()
        part = sum(share * self.tokens[key] for key, share in some) / max(1, group.value)
        error.add(group.content, -part)
        for key, share in some:
            content = group.items[key].content
            error.add(content, share)
            # The own errors of the same text are in both.
            error.squares -= 2 * share * part * content.squares
            error.rough -= 2 * share * part * content.rough
        error.squares, error.rough = max(0.0, error.squares), max(0.0, error.rough)
        return error

    def _estimate_error(self, group: Group, some: ItemShares, known: Calibration) -> Content:
        """The same where their costs are held against what they are estimated at by now."""
        error, off = Content(), 0.0
        for key, share in some:
            content = group.items[key].content
            error.add(content, share)
            off += share * (self.tokens[key] - known.tokens(content))
        error.rough += off * off
        return error


def is_of(step: Step, target: Target) -> bool:
    """Returns whether a step asked this model."""
    return (step.model, step.provider, step.api) == (target.model, target.provider, target.api)


def can_settle(step: Step) -> bool:
    """Returns whether a step's report is the size of what it sent, as far as it is believed."""
    ended = step.kind in ("turn", "count") and step.status == "complete" and step.settlement is not None
    return ended and step.sent_keys is not None and usage_problem(step.counted, step.window) is None


def in_order(steps: Iterable[Step]) -> list[Step]:
    """The steps that have ended, in the order in which their reports came."""
    return sorted((step for step in steps if step.status != "running"), key=lambda step: step.finished or 0.0)


def read_costs(steps: Iterable[Step], target: Target) -> Costs:
    """The costs as they are stored with the steps."""
    costs = Costs(target)
    for step in in_order(steps):
        costs.add(step)
    return costs


def costs_of(steps: Sequence[Step], target: Target) -> Costs:
    """The costs made again from nothing but what was sent, estimated and reported."""
    costs, lists = Costs(target), SentItems()
    for step in in_order(steps):
        if step.settlement is not None and is_of(step, target):
            made = replace(step, settlement=replace(step.settlement, costs={}, settled=False))
            settle(made, costs, lists.sent(made, steps))
            costs.add(made)
    return costs


def set_added(steps: Iterable[Step], like: Step, tokens: int) -> list[Step]:
    """Has what a server adds to each request estimated at so many tokens where it was new. Returns those steps."""
    found = []
    for step in steps:
        same = (step.provider, step.api, step.model) == (like.provider, like.api, like.model)
        for item in step.settlement.items if step.settlement is not None and same else ():
            if item.key == SERVER:
                item.tokens = tokens
                found.append(step)
    return found


def settle_again(steps: Sequence[Step], again: Sequence[Step], lists: SentItems) -> list[Step]:
    """Settles the first of these steps and all behind it: something else is believed of them. Returns those that
    changed."""
    order, changed = in_order(steps), list[Step]()
    place = min(number for number, step in enumerate(order) if any(step is each for each in again))
    first = order[place]
    target = Target(first.provider, first.api, first.model, "")
    costs = Costs(target)
    for number, step in enumerate(order):
        if number >= place and step.settlement is not None and is_of(step, target):
            before = step.settlement.costs
            settle(step, costs, lists.sent(step, steps))
            changed += [step] if step.settlement.costs != before else []
        costs.add(step)
    return changed


def settle(step: Step, costs: Costs, sent: SentCosts | None) -> None:
    """Stores with a step what its report makes of what it ``sent``; ``costs`` are those known before it."""
    made, usage = step.settlement, step.counted
    assert made is not None, "what was estimated of the request is stored with the step when it goes out"
    made.costs, made.settled = {}, False
    if not can_settle(step) or sent is None or usage is None:
        return
    count, known = costs.leading(sent.messages)
    rest, anew = sent.parts + sent.messages[count:], _split_costs(made.splits, costs)
    tokens = ChainMap(anew, costs.tokens)
    own = {item.key: item for item in made.items}
    new = [own.get(key) or costs.estimate(key) for key, _ in rest if key not in tokens]
    items = [item for item in new if item is not None]
    known += costs.sum(rest)
    shares = dict(sent.all() if made.splits or made.parts else rest)
    for key, cost in anew.items():
        share = shares.get(key, 0.0)
        known += tokens_of(cost, share) - tokens_of(costs.tokens[key], share)
    guessed = sum(tokens_of(item.tokens, shares[item.key]) for item in items)
    off = usage.input - known - guessed
    made.settled = True
    moves = [(part.keys, _beside(part, costs, shares), part.weight) for part in made.parts]
    shared = _shared(off, items, made.splits, shares, tokens, [move for move in moves if move[1]])
    made.costs = {**anew, **(_by_size(off, items, tokens, sent.all()) if shared is None else shared)}
    if made.again:
        now = ChainMap(made.costs, costs.tokens)
        whole = sum(now[key] for key in made.again)
        shared_again = largest_remainder(whole, [float(tokens) for tokens in made.again.values()])
        made.costs.update(zip(made.again, shared_again, strict=True))


def shared_again(costs: Costs, sent: SentCosts, known: Calibration) -> dict[str, int]:
    """What the first report settled, as it is shared out with what is known of the vocabulary now. Only its sum was a
    fact, and next to nothing was known when it came. Nothing where hardly any of it would move."""
    first = costs.settled[0].settlement if costs.settled else None
    whole = {key for key, share in sent.all() if share == 1.0}
    items = [
        item
        for item in (first.items if first is not None else ())
        if item.key in costs.tokens and item.key in whole and item.key != SERVER and not item.key.endswith(REASONING)
    ]
    if len(items) < 2:
        return {}
    content = Content()
    for item in items:
        content.add(item.content)
    tokens = [known.tokens(item.content) for item in items]
    weights = known.shares_of_error(content, [item.content for item in items])
    off, most = sum(costs.tokens[item.key] for item in items) - sum(tokens), sum(weights)
    each = (
        [max(1.0, size + off * weight / most) for size, weight in zip(tokens, weights, strict=True)] if most else tokens
    )
    again = {item.key: max(1, round(size)) for item, size in zip(items, each, strict=True)}
    moved = sum(abs(size - costs.tokens[key]) for key, size in again.items()) / 2
    return again if moved > HARDLY_ANY * sum(again.values()) else {}


def _split_costs(splits: Sequence[Split], costs: Costs) -> dict[str, int]:
    """What answers and their reasoning cost as they were split when a request was sent; both together cost what was
    reported of the answer."""
    found: dict[str, int] = {}
    for split in splits:
        answer, reasoning = split.answer, split.answer + REASONING
        if answer in costs.tokens and reasoning in costs.tokens:
            whole = costs.tokens[answer] + costs.tokens[reasoning]
            found[answer] = min(split.spoken, whole)
            found[reasoning] = whole - found[answer]
    return found


def _beside(part: Part, costs: Costs, shares: Mapping[str, float]) -> list[str]:
    """The items that are sent and take what a part that went had too much; those of the part where it came."""
    sent = [key for key in part.keys if key in shares]
    if sent:
        return sent if len(sent) == len(part.keys) else []
    return [key for key in costs.beside(part.keys[0]) if shares.get(key) == 1.0]


_Move = tuple[list[str], list[str], float]
"""The items of a part, those that are sent and take what it is off by, and its weight."""


def _shared(
    off: int, items: Sequence[NewItem], splits: Sequence[Split], shares: Mapping[str, float],
    tokens: Mapping[str, int], moves: Sequence[_Move],
) -> dict[str, int] | None:  # fmt: skip
    """The costs where each takes of ``off`` as much as it was unsure; None where one would be left with nothing."""
    split = {each.answer: each.weight for each in splits if _can_move(each.answer, shares, tokens)}
    weights = [*(item.weight for item in items), *split.values(), *(weight for _, _, weight in moves)]
    whole = sum(weights)
    if not off and not split:
        return {item.key: item.tokens for item in items}
    if whole <= 0:
        return None if off else {item.key: item.tokens for item in items}
    sizes = [tokens_of(item.tokens, shares[item.key]) for item in items]
    wanted = [size + off * weight / whole for size, weight in zip(sizes, weights, strict=False)]
    if any(value < (item.key != SERVER) * 1 for value, item in zip(wanted, items, strict=True)):
        return None
    made: dict[str, int] = {}
    left = off + sum(sizes)
    for answer, weight in split.items():
        share = shares.get(answer + REASONING, 0.0)
        moved = round(off * weight / whole / (1 - share))
        moved = min(max(moved, 1 - tokens[answer]), tokens[answer + REASONING])
        spoken, thought = tokens[answer] + moved, tokens[answer + REASONING] - moved
        before = tokens[answer] + tokens_of(tokens[answer + REASONING], share)
        made[answer], made[answer + REASONING] = spoken, thought
        left -= spoken + tokens_of(thought, share) - before
    for keys, sent, weight in moves:
        moved = round(off * weight / whole)
        # Both keep what they cost together; of what came the report tells alone.
        for some, more in ((sent, moved), *([(keys, -moved)] if keys != sent else [])):
            size = sum(tokens[key] for key in some) + more
            if size < len(some):
                return None
            made.update(zip(some, largest_remainder(size, [float(tokens[key]) for key in some]), strict=True))
        left -= moved
    if not items:
        return made if left == 0 else None
    if left < len(items):
        return None
    least = [max(float(item.key != SERVER), value) for value, item in zip(wanted, items, strict=True)]
    costs = largest_remainder(left, least)
    made.update({item.key: _whole(cost, shares[item.key]) for item, cost in zip(items, costs, strict=True)})
    return made


def _can_move(answer: str, shares: Mapping[str, float], tokens: Mapping[str, int]) -> bool:
    """Returns whether an answer is sent without all of its reasoning, so that a report tells of the two."""
    reasoning = answer + REASONING
    return answer in shares and answer in tokens and reasoning in tokens and shares.get(reasoning, 0.0) < 1.0


def _by_size(off: int, items: Sequence[NewItem], tokens: Mapping[str, int], sent: ItemShares) -> dict[str, int]:
    """The costs where the new items share it by their size; else the prefix takes it, or everything alike."""
    shares = dict(sent)
    sizes = [tokens_of(item.tokens, shares[item.key]) for item in items]
    if items and off + sum(sizes) >= len(items):
        costs = largest_remainder(
            off + sum(sizes), [max(float(i.key != SERVER), float(n)) for i, n in zip(items, sizes, strict=True)]
        )
        return {item.key: _whole(cost, shares[item.key]) for item, cost in zip(items, costs, strict=True)}
    sent_tokens = {
        **{key: tokens[key] for key, _ in sent if key in tokens},
        **{item.key: item.tokens for item in items},
    }
    parts = [key for key in sent_tokens if ":" in key]
    some = parts if sum(sent_tokens[key] for key in parts) + off >= len(parts) > 0 else list(sent_tokens)
    old = [tokens_of(sent_tokens[key], shares[key]) for key in some]
    made = {item.key: item.tokens for item in items}
    for key, cost in zip(some, largest_remainder(max(0, sum(old) + off), list(map(float, old))), strict=True):
        made[key] = _whole(cost, shares[key]) if shares[key] else sent_tokens[key]
    return made


def _whole(cost: int, share: float) -> int:
    """The cost of an item of which a share takes so much."""
    return cost if share == 1.0 else round(cost / share)


class SentItems(SentLists):
    """The same, with the items that the messages of a step were counted as."""

    def __init__(self) -> None:
        super().__init__()
        self._last: tuple[list[str], list[SentRun], ItemShares] = ([], [], [])

    def sent(self, step: Step, steps: Sequence[Step]) -> SentCosts | None:
        """The items of a step, in the order in which they were sent."""
        keys = self.keys(step, steps)
        if keys is None:
            return None
        # What begins as the last one that was asked for is not made again.
        runs, (before, known, items) = step.sent_reasoning or [], self._last
        kept = kept_keys(before, keys)
        kept = next((start for start, _, _ in differences(known, runs, kept)), kept)
        messages = items[: _count_items(runs, kept)] + _message_items(keys, runs, kept)
        self._last = keys, runs, messages
        return SentCosts(_part_items(step.fixed), messages)


def _part_items(fixed: Sequence[FixedPart]) -> ItemShares:
    """The items of the parts of a request, in the order in which they are sent."""
    parts = part_keys(fixed)
    order = [parts[place] for place in wire_order(fixed)]
    tools = any(part.row == "tools" and is_sent(part) for part in fixed)
    whole = [SERVER, *([PREAMBLE_KEY] if tools else []), *(key for key in order if key is not None)]
    return [(key, 1.0) for key in whole]


def wire_order(fixed: Sequence[FixedPart]) -> list[int]:
    """Numbers of the parts that are sent, in the order in which they are."""
    sent = [number for number, part in enumerate(fixed) if is_sent(part)]
    return sorted(sent, key=lambda number: FIXED_ROWS[fixed[number].row].sent)


def part_keys(fixed: Sequence[FixedPart]) -> list[str | None]:
    """The key of each part; None of a tool that is not loaded. What waits for the user's next message has another key
    than what is sent."""
    keys: list[str | None] = []
    for part in fixed:
        key = f"{WAITING if part.change == 'waiting' else part.row}:{part.fingerprint}"
        keys.append(None if part.deferred_tokens is not None else key if key not in keys else f"{key}#{len(keys)}")
    return keys


def is_sent(part: FixedPart) -> bool:
    return part.deferred_tokens is None and part.change != "waiting"


def _stretches(runs: Sequence[SentRun], start: int, end: int) -> Iterator[tuple[int, int, float]]:
    """Stretches of messages whose reasoning was counted alike, with the share of it that was."""
    places = [(0, 0.0), *((place, share) for place, share, _ in runs), (end, 0.0)]
    for (first, share), (after, _) in itertools.pairwise(places):
        if max(first, start) < min(after, end):
            yield max(first, start), min(after, end), share


def _message_items(keys: Sequence[str], runs: Sequence[SentRun], start: int) -> ItemShares:
    """The items of the messages from one on, reasoning with the share that was counted."""
    found: ItemShares = []
    for first, end, share in _stretches(runs, start, len(keys)):
        some = keys[first:end]
        if share:
            found += [each for key in some for each in ((key + REASONING, share), (key, 1.0))]
        else:
            found += [(key, 1.0) for key in some]
    return found


def _count_items(runs: Sequence[SentRun], count: int) -> int:
    """How many items so many leading messages have."""
    return sum((end - first) * (2 if share else 1) for first, end, share in _stretches(runs, 0, count))


def why_no_report(steps: Sequence[Step], target: Target) -> str:
    """Why all of the next input is an estimate, in words for people."""
    turns = [step for step in steps if step.kind in ("turn", "count")]
    if not turns:
        return "no model call yet"
    return f"the last call does not measure it, because {_report_problem(turns[-1], target)}"


def _report_problem(step: Step, target: Target) -> str:
    if step.status != "complete":
        return {"running": "it is still running", "stopped": "it was interrupted", "failed": "it failed"}[step.status]
    if not is_of(step, target):
        return "it used another model"
    if step.usage is not None and step.usage.source != "provider":
        return "the provider reported no usage"
    problem = usage_problem(step.counted, step.window)
    if problem is not None and step.believed is not None:
        return "its usage report looks wrong"
    return problem or "what it sent is not known"
