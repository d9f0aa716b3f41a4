"""The rows of the breakdown: each item is one, so that they add up to the total by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent_tui.context.accounting.items import PREAMBLE, Item, MessageItems
from agent_tui.context.accounting.tally import Tally, calls_before, covered, rows_of, total_read
from agent_tui.context.costs import Costs, SentCosts, tokens_of
from agent_tui.context.tokens import Family
from agent_tui.models.context import Basis, ContextRow
from agent_tui.models.requests import SentMessage
from agent_tui.models.rows import FIXED_ROWS, MessageRowId, RowKind
from agent_tui.models.steps import FixedPart
from agent_tui.models.usage import TokenUsage
from agent_tui.providers.reasoning import OTHER_MODEL
from agent_tui.text.numbers import largest_remainder

EDITED = "edited; the old text and the change are sent until the next compaction"
WAITING = "edited; the change is sent with your next message"


class Reading:
    """What of the newest turn's request was read from the provider's cache: its items, from the first on.

    ``read`` are those tokens, None where the provider does not say. The items that were not read are few as a rule.
    """

    def __init__(self, said: TokenUsage | None, then: SentCosts | None, now: SentCosts, costs: Costs) -> None:
        self.read = said.cache_read if said is not None and then is not None else None
        self._unread: dict[str, int] = {}
        self._unsent: set[str] = set()
        self.whole = len(now.messages)
        """So many leading items of the messages were read whole; all of them where nothing is known."""
        if said is None or then is None or self.read is None:
            return
        every = then.all()
        left = said.input - self.read
        for key, share in reversed(every):
            if left <= 0:
                break
            size = tokens_of(costs.tokens.get(key, 0), share)
            self._unread[key] = max(0, size - left)
            left -= size
        kept = now.same(then)
        self.whole = min(kept, len(then.messages) - len(self._unread))
        sent = {key for key, _ in then.messages[kept:]}.union(key for key, _ in then.parts)
        self._unsent = {key for key, _ in (*now.parts, *now.messages[kept:]) if key not in sent}

    def of(self, item: Item) -> int | None:
        """The tokens of an item that were read; None where the provider does not say."""
        if self.read is None:
            return None
        if item.key in self._unsent:
            return 0
        return min(item.tokens, self._unread.get(item.key, item.tokens))


def part_rows(parts: Sequence[tuple[FixedPart, Item | None]], reading: Reading) -> list[ContextRow]:
    """A row of each kind of part, in their fixed order; those without parts are empty, or left out where the kind is
    not always shown. Children are the parts; of the tools their groups, and below them the parts."""
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
    view: Sequence[SentMessage],
    tally: Tally,
    each: MessageItems,
    costs: Costs,
    reading: Reading,
    family: Family,
) -> None:
    """Adds the rows of a message: its reasoning, then the rest by kind."""
    if each.thought is not None or each.thinks:
        item = each.thought or Item(each.message.id, 1.0, 0)
        counted = costs.is_answer(each.message.id) and costs.is_thought_counted(each.message.id)
        basis: Basis = "derived" if each.thought is not None and counted else "estimated"
        _add(view, tally, each, "reasoning", item, item.tokens, basis, reading.of(item), family)
    weights, spoken = each.estimate.shares, each.spoken
    shares = [spoken.tokens] if len(weights) == 1 else largest_remainder(spoken.tokens, [float(t) for _, t in weights])
    basis, left = _basis(each, costs), reading.of(spoken)
    for (kind, _), share in zip(weights, shares, strict=True):
        left = _add(view, tally, each, kind, spoken, share, basis, left, family)
    tally.end = each.index + 1


def _basis(each: MessageItems, costs: Costs) -> Basis:
    if each.spoken.content is not None or len(each.estimate.shares) > 1:
        return "estimated"
    if costs.is_answer(each.key):
        if not costs.is_thought_counted(each.key):
            return "estimated"
        return "measured" if each.thought is None and not each.thinks else "derived"
    return "derived" if costs.is_alone(each.spoken.key) else "estimated"


def _add(
    view: Sequence[SentMessage], tally: Tally, each: MessageItems, kind: MessageRowId, item: Item, share: int,
    basis: Basis, left: int | None, family: Family,
) -> int | None:  # fmt: skip
    """Adds the rows of one kind of a message, of which ``left`` tokens at most were read; returns how many of those are
    left for others."""
    message = each.message
    if (result := message.tool_result) is not None and result.call_id not in tally.calls:
        tally.calls = calls_before(view, each.index)
    for label, number, size in rows_of(message, kind, share, tally.calls, family):
        of = basis if share == size else "estimated"
        own = None if left is None else min(size, left)
        left = None if left is None or own is None else left - own
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
            replay=each.note if kind == "reasoning" or (kind == "tool_results" and each.note == OTHER_MODEL) else None,
            approximate=item.approximate and of == "estimated",
            attachment=number,
        )
        tally.add(kind, row, size if item.content is not None else 0)
    return left


def fixed_row(kind: RowKind, parts: list[tuple[str, ContextRow]]) -> ContextRow:
    label = kind.label
    if kind.id == "tools":
        groups: dict[str, list[ContextRow]] = {}
        for group, leaf in parts:
            groups.setdefault(group, []).append(leaf)
        children = [
            replace(leaves[0], id=PREAMBLE.group) if name == PREAMBLE.group else parent_row(name, name, leaves)
            for name, leaves in groups.items()
        ]
    else:
        children = [leaf for _, leaf in parts]
    if kind.counted and parts:
        count = sum(group != PREAMBLE.group and leaf.detail != WAITING for group, leaf in parts)
        label = f"{label} ({count})"
    whole = parent_row(kind.id, label, children)
    if not kind.counted and len(children) == 1:
        # The part is the row: what is below would only say it again.
        whole.children, whole.detail, whole.fingerprint = [], children[0].detail, children[0].fingerprint
        if children[0].label.startswith(label):
            whole.label = children[0].label
    return whole


def parent_row(row_id: str, label: str, children: list[ContextRow]) -> ContextRow:
    """A row of prefix parts that is the sum of its children."""
    total = sum(c.tokens for c in children)
    deferred = [c.deferred_tokens for c in children if c.deferred_tokens is not None]
    read = total_read([c.cached_tokens for c in children])
    paths = {c.path for c in children}
    return ContextRow(
        id=row_id,
        label=label,
        tokens=total,
        basis="estimated",
        estimated_tokens=total,
        children=children,
        deferred_tokens=sum(deferred) if deferred else None,
        path=next(iter(paths)) if len(paths) == 1 else None,
        cached=covered(total, read),
        cached_tokens=read,
        approximate=any(c.approximate for c in children),
    )
