"""The rows of the breakdown: each item is one, so that they add up to the total by themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent_tui.context.accounting.fixed import EDITED, PREAMBLE, WAITING, covered, fixed_row
from agent_tui.context.accounting.items import Item, MessageItems
from agent_tui.context.accounting.tally import Tally, calls_before, rows_of
from agent_tui.context.costs import Costs, Sent, tokens_of
from agent_tui.models.context import Basis, ContextRow

from agent_tui.models.requests import SentMessage
from agent_tui.models.rows import FIXED_ROWS, MessageRowId
from agent_tui.models.steps import FixedPart
from agent_tui.providers.reasoning import OTHER_MODEL
from agent_tui.text.numbers import largest_remainder


class Reading:
    """What of the newest turn's request was read from the provider's cache: its items, from the first on."""

    def __init__(self, read: int | None, then: Sent, costs: Costs) -> None:
        self.read = read
        self._places: Mapping[str, int] = {}
        self.until = self._rest = 0
        """The items before this one were read, and so many tokens of it."""
        if read is None:
            return
        self._places = {key: place for place, (key, _) in enumerate(then)}
        left = read
        for self.until, (key, share) in enumerate(then):
            size = tokens_of(costs.tokens.get(key, 0), share)
            if size > left:
                self._rest = left
                return
            left -= size
        self.until = len(then)

    def of(self, item: Item) -> int | None:
        """The tokens of an item that were read; None where the provider does not say."""
        if self.read is None:
            return None
        place = self._places.get(item.key)
        if place is None or place > self.until:
            return 0
        return item.tokens if place < self.until else min(self._rest, item.tokens)


def part_rows(parts: Sequence[tuple[FixedPart, Item | None]], reading: Reading) -> list[ContextRow]:
    """A row of each kind of part, in their fixed order; those without parts are empty, or left out where the kind is not
    always shown. Children are the parts; of the tools their groups, and below them the parts."""
    leaves: dict[str, list[tuple[str, ContextRow]]] = {row_id: [] for row_id in FIXED_ROWS}
    for part, item in parts:
        tokens = item.tokens if item is not None else 0
        if part.row == "system" and part.group == "server" and not tokens:
            continue
        read = reading.of(item) if item is not None else (None if reading.read is None else 0)
        leaf = ContextRow(
            id=part.label or part.group,
            label=part.label or part.group,
            tokens=tokens,
            basis="estimated",
            estimated_tokens=tokens,
            deferred_tokens=part.deferred_tokens,
            path=part.path,
            detail=_detail(part),
            cached=covered(tokens, read),
            cached_tokens=read,
            approximate=item is not None and item.approximate,
            fingerprint=None if part is PREAMBLE or part.group == "server" else part.fingerprint,
        )
        leaves[part.row].append((part.group, leaf))
    return [fixed_row(kind, leaves[row_id]) for row_id, kind in FIXED_ROWS.items() if kind.always or leaves[row_id]]


def _detail(part: FixedPart) -> str:
    if part.change:
        return WAITING if part.change == "waiting" else EDITED
    return "deferred" if part.deferred_tokens is not None else ""


def add_message_rows(
    view: Sequence[SentMessage], tally: Tally, each: MessageItems, costs: Costs, reading: Reading
) -> None:
    """Adds the rows of a message: its reasoning, then the rest by kind."""
    if each.note is not None:
        item = each.thought or Item(each.message.id, 1.0, 0)
        counted = costs.is_answer(each.message.id) and costs.is_thought_counted(each.message.id)
        basis: Basis = "derived" if each.thought is not None and counted else "estimated"
        _add(view, tally, each, "reasoning", item, item.tokens, basis, reading)
    weights, spoken = each.estimate.shares, each.spoken
    shares = [spoken.tokens] if len(weights) == 1 else largest_remainder(spoken.tokens, [float(t) for _, t in weights])
    basis = _basis(each, costs)
    for (kind, _), share in zip(weights, shares, strict=True):
        _add(view, tally, each, kind, spoken, share, basis, reading)
    tally.end = each.index + 1


def _basis(each: MessageItems, costs: Costs) -> Basis:
    if each.spoken.content is not None or len(each.estimate.shares) > 1:
        return "estimated"
    if costs.is_answer(each.key):
        if not costs.is_thought_counted(each.key):
            return "estimated"
        return "measured" if each.thought is None and each.note is None else "derived"
    return "derived" if costs.is_alone(each.spoken.key) else "estimated"


def _add(
    view: Sequence[SentMessage], tally: Tally, each: MessageItems, kind: MessageRowId, item: Item, share: int, basis: Basis,
    reading: Reading,
) -> None:  # fmt: skip
    message = each.message
    if (result := message.tool_result) is not None and result.call_id not in tally.calls:
        tally.calls = calls_before(view, each.index)
    read = reading.of(item)
    whole = max(1, item.tokens)
    for label, number, size in rows_of(message, kind, share, tally.calls, each.attached):
        of = basis if share == size else "estimated"
        own = None if read is None else size if read >= item.tokens else min(size, read * size // whole)
        row = ContextRow(
            id=each.key,
            label=label,
            tokens=size,
            basis=of,
            estimated_tokens=0 if of != "estimated" else size,
            message_id=message.id,
            detail="rough" if each.estimate.rough else "",
            cached=covered(size, own),
            cached_tokens=own,
            replay=each.note
            if kind == "reasoning" or (kind == "tool_results" and each.note == OTHER_MODEL)
            else None,
            approximate=item.approximate and of == "estimated",
            attachment=number,
        )
        tally.add(kind, row, size if item.content is not None else 0)


