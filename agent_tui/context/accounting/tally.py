"""Messages as rows: the label, weight and group of each, added up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import field, replace

from agent_tui.context.accounting.fixed import Reading, covered
from agent_tui.context.accounting.inputs import Ground, reasoning_tokens
from agent_tui.context.cuts import DROPPED_ATTACHMENT
from agent_tui.context.tokens import ROUGH, Family, attachment_tokens, char_tokens, kind_of, round_up
from agent_tui.context.view import is_gone
from agent_tui.models.calibration import MESSAGES, Calibration, Content
from agent_tui.models.context import Basis, ContextRow
from agent_tui.models.messages import (
    NOTES_INTRODUCTION,
    PINNED_INTRODUCTION,
    TOLD,
    AttachmentPart,
    Message,
    ReasoningPart,
    SummaryPart,
    ToolCallPart,
    attachments_of,
)
from agent_tui.models.requests import SentMessage
from agent_tui.models.rows import MESSAGE_ROWS, NOTES, MessageRowId, RowKind
from agent_tui.models.search import search_calls, searches_in
from agent_tui.providers.reasoning import OTHER_MODEL
from agent_tui.records import dataclass
from agent_tui.text.clean import printable_line
from agent_tui.text.numbers import largest_remainder
from agent_tui.tools.arguments import LABEL_CHARS, short_summary


def message_label(message: Message, kind: MessageRowId, calls_before: Mapping[str, ToolCallPart]) -> str:
    """The name of the row of a kind of a message; a tool result is named after the call that it answers, one of those
    of the answer before it, by their ids."""
    if kind == "tool_calls":
        calls = message.tool_calls
        return short_summary(calls[0]) + (f" +{len(calls) - 1}" if len(calls) > 1 else "")
    result = message.tool_result
    if kind == "tool_results" and (searches := search_calls(message.parts)):
        return short_summary(searches[0][0]) + (f" +{len(searches) - 1}" if len(searches) > 1 else "")
    if result is not None:
        call = calls_before.get(result.call_id)
        return (short_summary(call) if call is not None else "") or result.name or "tool result"
    if kind == "reasoning":
        return printable_line(message.reasoning, LABEL_CHARS) or "reasoning"
    if kind in ("summary", "pinned"):
        parts = (p for p in message.parts if isinstance(p, SummaryPart) and p.pinned == (kind == "pinned"))
        said = "".join(p.text for p in parts).removeprefix(PINNED_INTRODUCTION).removeprefix(NOTES_INTRODUCTION)
        return printable_line(said, LABEL_CHARS)
    # Answers begin with a heading often; its signs say nothing in a row.
    text = message.text.lstrip("# \n") if message.role == "assistant" else message.text
    return printable_line(text, LABEL_CHARS) or "(no text)"


def _calls_before(view: Sequence[SentMessage], index: int) -> dict[str, ToolCallPart]:
    """The calls that the results around ``index`` answer: they stand directly after the message that made them."""
    while index and view[index].message.role == "tool":
        index -= 1
    return {call.call_id: call for call in view[index].message.tool_calls}


AROUND_CALL = 6.0
SHARE_OFF = 0.05
"""Standard deviations of reasoning that nobody counted: in tokens of what an answer, or each of its calls, takes of the
output beside its text; and of the share that a provider keeps of reasoning, where it is neither all nor nothing.
Without them 14 % of the intervals of such small numbers missed, and what misses widens all others: with them they are
a fifth narrower on average and hold 94 % of the time instead of 92.5 (``tests/benchmarks/full_context.py --mixed``,
five vocabularies, 128,000 and a million tokens, 2026-11-23)."""

TAKEN_OVER = 0.03
"""Standard deviation of a shortened text, as a share of it: its counts are those of the whole, in proportion."""


@dataclass(slots=True)
class Weighed:
    """One message with its estimated cost by kind. ``note`` says why its reasoning is or is not resent; ``content`` is
    what the whole estimate consists of, and ``given`` the part of it that is no estimate of text: images, and
    reasoning that the provider counted."""

    message: Message
    key: str
    weights: list[tuple[MessageRowId, int]]
    approximate: bool = False
    rough: bool = False
    note: str | None = None
    content: Content = field(default_factory=Content)
    given: float = 0.0
    attached: Sequence[float] = ()
    """How the attachments share what they cost together."""

    @property
    def tokens(self) -> int:
        return sum(t for _, t in self.weights)

    def corrected(self, calibration: Calibration) -> int:
        """The estimate by a calibration, rounded up once."""
        return round_up(max(0.0, calibration.tokens(self.content)))


def weigh(ground: Ground, index: int, state: str | None = None) -> Weighed:
    """A message of the view with its estimated cost, reasoning included as far as it is counted now.

    ``state``: as it was sent under other prune records.
    """
    view = ground.view
    item = view[index]
    message, key = item.message, item.key
    if state is not None:
        message, key = ground.results.sent(item.stored or message, state)
    if is_gone(key):
        return Weighed(message, key, [])
    first = message.role != "tool" or index == 0 or view[index - 1].message.role != "tool"
    made = ground.estimate(message, key, first)
    weights, content, given = list(made.shares), made.content, made.media
    note = None
    if key != message.id:
        content = content.copy()
        content.rough += (TAKEN_OVER * made.exact) ** 2
    if message.role == "assistant":
        tokens, _ = reasoning_of(ground, message)
        status = ground.reasoning.status(message.id)
        if status is not None and (tokens or any(isinstance(p, ReasoningPart) for p in message.parts)):
            share = status.counted
            thought = reasoning_content(ground, message, share)
            weights.append(("reasoning", round(tokens * share)))
            own = content.squares
            content = content.copy()
            content.add(thought)
            if any(thought.terms):
                # The same text is in both, and so is its own error.
                content.squares = own * (1 - share) ** 2
            given += tokens * share
            note = status.reason
        if status is not None and status.reason == OTHER_MODEL and searches_in(message.parts):
            note = OTHER_MODEL
    attached = [_attachment_weight(p, ground.family) for p in attachments_of(message)]
    return Weighed(message, key, weights, made.approximate, made.rough, note, content, given, attached)


def reasoning_of(ground: Ground, message: Message) -> tuple[int, bool]:
    """Reasoning tokens of an answer, and whether the provider said so."""

    def spoken(answer: Message) -> float:
        """Estimate of an answer's text and calls, which is its output without the reasoning."""
        known, content = ground.coarse, ground.estimate(answer, answer.id, True).content
        return max(0.0, known.tokens(content) - known.factors[MESSAGES] * content.terms[MESSAGES])

    return reasoning_tokens(message, ground.answered.get(message.id), spoken)


def reasoning_content(ground: Ground, message: Message, share: float) -> Content:
    """A share of the reasoning tokens of an answer. Where the provider did not say how many there are, they are what
    the text and the calls leave of its output: the same factors make both, so what these are off by is learned, too."""
    tokens, reported = reasoning_of(ground, message)
    made = Content(plain=tokens * share)
    if not tokens or reported:
        return made
    step = ground.answered.get(message.id)
    if step is None or step.counted is None:
        made.rough = (ROUGH * made.plain) ** 2
        return made
    text = ground.estimate(message, message.id, True).content.copy()
    text.terms[MESSAGES] = 0.0
    spoken = ground.coarse.tokens(text)
    if tokens == round(step.counted.output - spoken):
        made.plain += share * spoken
        made.add(text, -share)
    else:
        made.rough = ground.coarse.variance(text) * share * share
    kept = 0.0 if share in (0.0, 1.0) else SHARE_OFF * tokens
    made.rough += (AROUND_CALL * share * max(1, len(message.tool_calls))) ** 2 + kept**2
    return made


@dataclass(slots=True)
class _OfKind:
    """The rows of one kind, and their sums."""

    rows: list[ContextRow] = field(default_factory=list)
    tokens: int = 0
    estimated: int = 0
    """In a measured group of one kind only the split is an estimate, not the sum."""
    cached: int | None = 0
    """What the provider read from its cache; None where that is not known."""
    approximate: bool = False

    def add(self, other: _OfKind) -> None:
        self.rows += other.rows
        self.tokens += other.tokens
        self.estimated += other.estimated
        self.cached = None if self.cached is None or other.cached is None else self.cached + other.cached
        self.approximate |= other.approximate


@dataclass(slots=True)
class Tally:
    """The rows of the messages ``[start, end)`` of a view by kind, and their sums."""

    start: int = 0
    end: int = 0
    kinds: defaultdict[MessageRowId, _OfKind] = field(default_factory=lambda: defaultdict(_OfKind))
    values: dict[str, tuple[int, str, Content]] = field(default_factory=dict)
    """Measured tokens of watched messages, the key that they were sent with (``add_group``), and what its error
    consists of."""
    total: int = 0
    content: Content = field(default_factory=Content)
    """What the estimates consist of, kept only for what is not measured."""
    given: float = 0.0
    """The part of them that is no text."""
    calls: Mapping[str, ToolCallPart] = field(default_factory=dict)
    """The calls of the answer that the newest result belongs to: looked for once for all of its results."""
    misfit: int = 0
    """Measured less shown, where what was measured between two steps is less than the messages can have cost."""

    @property
    def approximate(self) -> bool:
        """True when a message is not counted yet."""
        return any(of.approximate for of in self.kinds.values())

    def copy(self) -> Tally:
        kinds = defaultdict(_OfKind, {kind: replace(of, rows=list(of.rows)) for kind, of in self.kinds.items()})
        return replace(self, kinds=kinds, values=dict(self.values), content=self.content.copy())

    def absorb(self, tokens: int) -> int:
        """Take ``tokens`` from the rows whose size is least sure: reasoning first, the newest first. Returns how many
        of them could not be taken. Rows are replaced, never changed: other tallies share them."""
        for _, of in sorted(self.kinds.items(), key=lambda item: (item[0] != "reasoning", -item[1].tokens)):
            for number in range(len(of.rows) - 1, -1, -1):
                if not tokens:
                    return 0
                row = of.rows[number]
                take = min(tokens, row.tokens)
                if not take:
                    continue
                left = row.tokens - take
                read = None if row.cached_tokens is None else min(row.cached_tokens, left)
                of.rows[number] = replace(
                    row,
                    tokens=left,
                    estimated_tokens=left,
                    basis="estimated",
                    cached_tokens=read,
                    cached=covered(left, read),
                )
                of.tokens -= take
                of.estimated = min(of.tokens, of.estimated + take)
                if of.cached is not None and row.cached_tokens is not None and read is not None:
                    of.cached += read - row.cached_tokens
                self.total -= take
                tokens -= take
        return tokens

    def add(self, kind: MessageRowId, row: ContextRow, estimated: int) -> None:
        self.kinds[kind].add(_OfKind([row], row.tokens, estimated, row.cached_tokens, row.approximate))
        self.total += row.tokens

    def join(self, other: Tally) -> None:
        """Take over the rows of messages further on."""
        for kind, of in other.kinds.items():
            self.kinds[kind].add(of)
        self.total += other.total
        self.misfit += other.misfit
        self.end = other.end

    def kind_rows(self) -> list[ContextRow]:
        """The children of ``messages``: one row a kind, its messages below it in their order."""
        return [_kind_row(named, self.kinds[kind]) for kind, named in MESSAGE_ROWS.items() if kind in self.kinds]


def _kind_row(named: RowKind, of: _OfKind) -> ContextRow:
    if named.id == NOTES.id and all(row.label in TOLD for row in of.rows):
        named = NOTES
    estimated = min(of.estimated, of.tokens)
    return ContextRow(
        id=named.id,
        label=named.label,
        tokens=of.tokens,
        basis="estimated" if estimated == of.tokens and of.tokens else "derived",
        estimated_tokens=estimated,
        children=of.rows,
        cached=covered(of.tokens, of.cached),
        cached_tokens=of.cached,
        approximate=of.approximate,
    )


def add_group(
    view: Sequence[SentMessage],
    tally: Tally,
    group: Sequence[Weighed],
    index: int,
    value: int | None,
    reading: Reading,
    *,
    derived: bool = False,
    now: Mapping[str, tuple[Weighed, int]] | None = None,
    watched: Container[str] = (),
) -> None:
    """Add the messages of the view from ``index`` on that together cost ``value`` (None: what they are estimated at),
    split by their estimates. ``derived``: only provider numbers are in the value.

    ``now`` holds the messages of the group that are sent otherwise today than when they were measured: their
    estimate of today and its tokens are shown. The measured value of ``watched`` messages is kept in ``values``.
    """
    estimates = [w.tokens for w in group]
    tokens = estimates if value is None else largest_remainder(value, [float(t) for t in estimates])
    kinds = {kind for w in group for kind, _ in w.weights}
    for number, (weighed, cost) in enumerate(zip(group, tokens, strict=True), index):
        alone = derived and len(group) == 1
        today = now.get(weighed.message.id) if now else None
        if weighed.message.id in watched:
            tally.values[weighed.message.id] = (cost, weighed.key, _split_error(weighed, group, cost, value))
        if today is not None:
            weighed, cost, alone = *today, False
        sure = derived and len(kinds) == 1 and today is None
        basis: Basis = "derived" if alone and len(weighed.weights) == 1 else "estimated"
        add_message(view, tally, weighed, number, cost, basis, reading, sure=sure)


def _split_error(weighed: Weighed, group: Sequence[Weighed], cost: int, value: int | None) -> Content:
    """What the error of a message's share of a measured value consists of: of itself, less its share of the whole."""
    if value is None:
        return weighed.content
    made = Content()
    if len(group) > 1:
        made.add(weighed.content)
        for each in group:
            made.add(each.content, -cost / value)
    return made


def add_message(
    view: Sequence[SentMessage],
    tally: Tally,
    weighed: Weighed,
    index: int,
    tokens: int,
    basis: Basis,
    reading: Reading,
    *,
    sure: bool = False,
) -> None:
    """Add the message at ``index`` at a cost; ``sure``: the kinds' sums stay measured although the split is an
    estimate."""
    weights = weighed.weights
    shares = [tokens] if len(weights) == 1 else largest_remainder(tokens, [float(t) for _, t in weights])
    message = weighed.message
    if (result := message.tool_result) is not None and result.call_id not in tally.calls:
        tally.calls = _calls_before(view, index)
    for (kind, _), share in zip(weights, shares, strict=True):
        for label, number, size in _rows_of(weighed, kind, share, tally.calls):
            of = basis if share == size else "estimated"
            known = of != "estimated"
            read = reading.message(index, size)
            row = ContextRow(
                id=weighed.key,
                label=label,
                tokens=size,
                basis=of,
                estimated_tokens=0 if known else size,
                message_id=message.id,
                detail="rough" if weighed.rough else "",
                cached=covered(size, read),
                cached_tokens=read,
                replay=weighed.note
                if kind == "reasoning" or (kind == "tool_results" and weighed.note == OTHER_MODEL)
                else None,
                approximate=weighed.approximate and not known,
                attachment=number,
            )
            tally.add(kind, row, 0 if basis != "estimated" or sure else size)


def _rows_of(
    weighed: Weighed, kind: MessageRowId, share: int, calls: Mapping[str, ToolCallPart]
) -> Iterator[tuple[str, int | None, int]]:
    """What a kind of a message is shown as, with its tokens: each attachment has a row, by its number, and so has each
    text of a hook."""
    message = weighed.message
    if kind not in ("attachments", "hooks"):
        yield message_label(message, kind, calls), None, share
        return
    attached = zip(attachments_of(message), weighed.attached, strict=True)
    parts = [(n, part, weight) for n, (part, weight) in enumerate(attached, 1) if kind_of(message, part) == kind]
    sizes = [share] if len(parts) == 1 else largest_remainder(share, [weight for _, _, weight in parts])
    for (number, part, _), size in zip(parts, sizes, strict=True):
        gone = ", dropped" if part.text == DROPPED_ATTACHMENT else ""
        yield printable_line(part.name, LABEL_CHARS) + gone, number, size


def _attachment_weight(part: AttachmentPart, family: Family) -> float:
    """Returns roughly what an attachment costs, above 0: by this several of one message share what they cost."""
    if part.text is not None:
        return char_tokens(part.text) + 1
    return attachment_tokens(part, family.name) if family.media.takes(part) else char_tokens(part.unread)
