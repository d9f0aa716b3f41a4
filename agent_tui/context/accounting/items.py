"""The items of the next request, each with what it costs: what reports have settled, an estimate for the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from agent_tui.context.accounting.inputs import ReasoningNow, reasoning_tokens
from agent_tui.context.accounting.tally import ANSWER_OFF, SHARE_OFF, TAKEN_OVER
from agent_tui.context.costs import PREAMBLE_KEY, SERVER, Costs, ItemShares, SentCosts, is_sent, part_keys, tokens_of
from agent_tui.context.tokens import ROUGH, Family, MessageEstimate, estimate_fixed, estimate_message, round_up
from agent_tui.models.calibration import ANSWERS, MESSAGES, Calibration, Content
from agent_tui.models.costs import REASONING, Split
from agent_tui.models.messages import Message, ReasoningPart
from agent_tui.models.requests import SentMessage
from agent_tui.models.rows import FIXED_ROWS
from agent_tui.models.search import searches_in
from agent_tui.models.steps import FixedPart, Step
from agent_tui.providers.reasoning import OTHER_MODEL
from agent_tui.records import dataclass

PREAMBLE = FixedPart("tools", "preamble", "tool use preamble", 0, "preamble", 0, 0)
"""Stands for the instructions about tools that a provider adds by itself."""

PREAMBLE_OFF = 0.35
"""Its standard deviation as a share: models of one family differ (Anthropic names 264 to 530 tokens for Claude's)."""

ADDED = FixedPart("system", "server", "added by the server", 0, "added by the server", 0)
"""Stands for what a server, or a gateway before it, adds to each request by itself, as its reports have shown."""


@dataclass(slots=True)
class Item:
    """One item of the next request: ``tokens`` of it with its ``share``. ``content``: what its estimate consists of;
    None where it has a cost. ``given``: the part of an estimate that is no text."""

    key: str
    share: float
    tokens: int
    content: Content | None = None
    approximate: bool = False
    given: float = 0.0
    instead: str = ""
    """The part in whose place it stands: it was estimated by what that cost."""


@dataclass(slots=True)
class MessageItems:
    """A message of the next request: the ``spoken`` item, and that of its reasoning, where it is counted."""

    index: int
    message: Message
    key: str
    estimate: MessageEstimate
    spoken: Item
    thought: Item | None = None
    note: str | None = None
    """Why its reasoning is, or is not, sent."""
    thinks: bool = False
    """It has a row for its reasoning, also where none of that is sent."""
    split: Split | None = None
    """The answer without its reasoning, where no report has told what of it that is and not all of it is sent."""

    @property
    def left_out(self) -> float:
        """The share of its reasoning that is not sent."""
        return 1.0 - (self.thought.share if self.thought is not None else 0.0)


@dataclass(slots=True)
class MessageList:
    """The items of messages, in the order in which they are sent. ``places``: how many items there are before each;
    ``keys``: the key of each message; ``sums``: the tokens of each and of all before it."""

    messages: list[MessageItems] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    shares: ItemShares = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    sums: list[int] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.sums[-1] if self.sums else 0

    def add(self, each: MessageItems) -> None:
        self.messages.append(each)
        self.places.append(len(self.items))
        self.keys.append(each.spoken.key)
        total = self.total
        for item in (each.spoken,) if each.thought is None else (each.thought, each.spoken):
            self.items.append(item)
            self.shares.append((item.key, item.share))
            total += item.tokens
        self.sums.append(total)

    def first(self, count: int) -> MessageList:
        """The same of the first messages alone."""
        end = self.places[count] if count < len(self.places) else len(self.items)
        return MessageList(
            self.messages[:count],
            self.items[:end],
            self.shares[:end],
            self.places[:count],
            self.keys[:count],
            self.sums[:count],
        )


@dataclass(slots=True, frozen=True)
class Items:
    """All items of a request. ``parts``: each part of the prefix with its item, None where it is not sent. ``new``:
    those without a cost, ``known`` leading messages having none of them."""

    parts: list[tuple[FixedPart, Item | None]]
    messages: MessageList
    known: int = 0

    @property
    def prefix(self) -> list[Item]:
        """The items of the parts, in the order in which they are sent."""
        sent = [(part, item) for part, item in self.parts if item is not None]
        return [item for _, item in sorted(sent, key=lambda pair: _place(pair[0]))]

    @property
    def sent(self) -> SentCosts:
        return SentCosts([(item.key, item.share) for item in self.prefix], self.messages.shares)

    @property
    def total(self) -> int:
        return sum(item.tokens for item in self.prefix) + self.messages.total

    @property
    def new(self) -> list[Item]:
        start = self.messages.places[self.known] if self.known < len(self.messages.places) else len(self.messages.items)
        return [item for item in (*self.prefix, *self.messages.items[start:]) if item.content is not None]

    @property
    def split(self) -> list[MessageItems]:
        """Answers that were split for this request."""
        return [each for each in self.messages.messages[self.known :] if each.split is not None]


class Estimator:
    """Makes the items of requests to one model; estimates are kept as long as the counts they come from."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self._made: dict[str, tuple[object, MessageEstimate]] = {}

    def parts(
        self, fixed: Sequence[FixedPart], costs: Costs, known: Calibration, before: Sequence[FixedPart] = ()
    ) -> list[tuple[FixedPart, Item | None]]:
        """The parts of the prefix, in their order. One that stands in the place of another of those ``before`` costs
        what that did, and what it was edited by."""
        family, keys = self.family, part_keys(fixed)
        server = Content(plain=known.added, rough=family.around**2)
        found: list[tuple[FixedPart, Item | None]] = [(ADDED, _item(SERVER, 1.0, server, costs, known))]
        if family.tools and any(part.row == "tools" and is_sent(part) for part in fixed):
            preamble = Content(plain=family.tools, rough=(PREAMBLE_OFF * family.tools) ** 2)
            found.append((PREAMBLE, _item(PREAMBLE_KEY, 1.0, preamble, costs, known)))
        for part, key in zip(fixed, keys, strict=True):
            if key is None:
                found.append((part, None))
                continue
            content, rough = estimate_fixed(part, family)
            item = _item(key, 1.0, content, costs, known, rough)
            if item.content is not None and not rough:
                self._edit(item, part, fixed, costs, known, before)
            found.append((part, item))
        return found

    def _edit(
        self, item: Item, part: FixedPart, fixed: Sequence[FixedPart], costs: Costs, known: Calibration,
        before: Sequence[FixedPart],
    ) -> None:  # fmt: skip
        """Estimates a part by what the one cost in whose place it stands, if there is one."""
        now, then = (
            {key: each for each, key in zip(parts, part_keys(parts), strict=True) if key and _alike(each, part)}
            for parts in (fixed, before)
        )
        gone = [key for key in then if key not in now and key in costs.tokens]
        if len(gone) != 1 or len(now.keys() - then.keys()) != 1 or part.change == "waiting":
            return
        content, rough = estimate_fixed(then[gone[0]], self.family)
        tokens = item.tokens + costs.tokens[gone[0]] - round_up(max(0.0, known.tokens(content)))
        if rough or tokens < 1 or item.content is None:
            return
        difference = item.content.copy()
        difference.add(content, -1.0)
        item.tokens, item.content, item.instead = tokens, difference, gone[0]

    def message(
        self, view: Sequence[SentMessage], index: int, costs: Costs, known: Calibration, reasoning: ReasoningNow,
        answered: Mapping[str, Step],
    ) -> MessageItems:  # fmt: skip
        item = view[index]
        message, key = item.message, self.key(item)
        first = message.role != "tool" or index == 0 or view[index - 1].message.role != "tool"
        made = self.estimate(message, key, first)
        content = made.content
        if key not in costs.tokens and item.key != message.id:
            content = content.copy()
            content.rough += (TAKEN_OVER * made.exact) ** 2
        spoken = _item(key, 1.0, content, costs, known, made.approximate, made.media)
        found = MessageItems(index, message, item.key, made, spoken)
        if message.role == "assistant":
            self._add_thought(found, costs, known, reasoning, answered)
        return found

    def key(self, item: SentMessage) -> str:
        """The key of a message's cost: in the form in which it is sent, also of what of it the model takes."""
        parts, key = item.message.parts, item.key
        if any(part.type == "attachment" and part.text is None and not self.family.media.takes(part) for part in parts):
            key += "#unseen"
        if self.family.target is None and searches_in(parts):
            key += "#unsearched"
        return key

    def estimate(self, message: Message, key: str, first: bool) -> MessageEstimate:
        of = (message.raw_tokens, message.counts, first)
        known = self._made.get(key)
        if known is not None and known[0] == of:
            return known[1]
        made = estimate_message(message, self.family, first)
        self._made[key] = of, made
        return made

    def _add_thought(
        self, found: MessageItems, costs: Costs, known: Calibration, reasoning: ReasoningNow,
        answered: Mapping[str, Step],
    ) -> None:  # fmt: skip
        message, key = found.message, found.message.id + REASONING
        status = reasoning.status(message.id)
        share = status.counted if status is not None else 0.0
        if share < 1.0 and found.spoken.key == message.id:
            self._split(found, share, costs, known, answered.get(message.id))
        if status is None:
            return
        settled = key in costs.tokens
        if status.reason == OTHER_MODEL and searches_in(message.parts):
            found.note = OTHER_MODEL
        if settled or any(isinstance(part, ReasoningPart) for part in message.parts):
            found.note, found.thinks = status.reason, True
        if not status.counted:
            return
        content = Content()
        if not settled:
            step = None if costs.is_answer(message.id) else answered.get(message.id)
            thought, _ = (
                (0, True) if costs.is_answer(message.id) else reasoning_tokens(message, step, self._spoken(known))
            )
            if not thought:
                return
            off = ROUGH * thought if status.counted in (0.0, 1.0) else (ROUGH + SHARE_OFF) * thought
            content = Content(plain=thought, rough=off**2)
        found.thought = _item(key, share, content, costs, known)
        if found.split is not None:
            whole = costs.tokens[message.id] + costs.tokens[key]
            found.thought.tokens = tokens_of(whole - found.split.spoken, share)

    def _split(
        self, found: MessageItems, share: float, costs: Costs, known: Calibration, step: Step | None
    ) -> None:  # fmt: skip
        """Splits an answer of which no report has told what of it was reasoning, by what its text counts now."""
        message = found.message
        answer, reasoning = message.id, message.id + REASONING
        if costs.is_thought_counted(answer) or costs.split_error(answer) is not None or reasoning not in costs.tokens:
            return
        whole = costs.tokens[answer] + costs.tokens[reasoning]
        thought = min(whole, reasoning_tokens(message, step, self._spoken(known))[0])
        text = self._spoken_content(message)
        if abs(whole - thought - known.tokens(text)) > 1:
            # The text is estimated at more than all of the answer.
            text = Content(plain=whole - thought, rough=known.variance(text))
        text.rough += ANSWER_OFF**2 * (1 + len(message.tool_calls))
        found.split = Split(answer, whole - thought, text)
        found.spoken.tokens, found.spoken.approximate = whole - thought, found.estimate.approximate

    def _spoken(self, known: Calibration):  # type: ignore[no-untyped-def]
        return lambda message: self.spoken_tokens(message, known)

    def spoken_tokens(self, message: Message, known: Calibration) -> float:
        """Estimate of an answer's text and calls, which is its output without the reasoning."""
        return max(0.0, known.tokens(self._spoken_content(message)))

    def _spoken_content(self, message: Message) -> Content:
        content = self.estimate(message, message.id, True).content.copy()
        content.terms[MESSAGES], content.terms[ANSWERS] = 0.0, 1.0
        return content


def _item(
    key: str, share: float, content: Content, costs: Costs, known: Calibration, rough: bool = False,
    given: float = 0.0,
) -> Item:  # fmt: skip
    cost = costs.tokens.get(key)
    if cost is not None:
        return Item(key, share, tokens_of(cost, share))
    tokens = round_up(max(0.0, known.tokens(content))) if key != SERVER else round(known.added)
    return Item(key, share, tokens_of(tokens, share), content, rough, given)


def _place(part: FixedPart) -> int:
    """Where a part is sent; what a server adds comes first."""
    return -1 if part is ADDED else FIXED_ROWS[part.row].sent


def _alike(part: FixedPart, other: FixedPart) -> bool:
    return (part.row, part.group) == (other.row, other.group)


def answer_costs(step: Step, message: Message, estimator: Estimator, known: Calibration) -> None:
    """Stores with a step what its answer takes: what was reported of it, as far as anything was."""
    usage, made = step.counted, step.settlement
    if made is None or usage is None or step.usage is None or step.usage.source != "provider" or not usage.output:
        return
    if step.status != "complete" or step.message_id != message.id:
        return
    if not usage.context or searches_in(message.parts):
        # What a provider found for it goes back with it, and is no output.
        return
    thought, reported = reasoning_tokens(message, step, lambda each: estimator.spoken_tokens(each, known))
    made.spoken, made.thought, made.thought_counted = usage.output - thought, thought, reported or not thought
