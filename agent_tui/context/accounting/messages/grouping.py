"""Rows of messages at what they cost: alone, or a group whose cost is known and is split by their estimates."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from agent_tui.context.accounting.given.coverage import Reading, covered
from agent_tui.context.accounting.messages.labels import message_label
from agent_tui.context.accounting.messages.tally import Tally
from agent_tui.context.accounting.messages.weigh import Weighed
from agent_tui.models.context import Basis, ContextRow
from agent_tui.models.requests import SentMessage
from agent_tui.text.numbers import largest_remainder


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
            tally.values[weighed.message.id] = (cost, weighed.key)
        if today is not None:
            weighed, cost, alone = *today, False
        sure = derived and len(kinds) == 1 and today is None
        basis: Basis = "derived" if alone and len(weighed.weights) == 1 else "estimated"
        add_message(view, tally, weighed, number, cost, basis, reading, sure=sure)


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
    for (kind, _), share in zip(weights, shares, strict=True):
        known = basis != "estimated"
        read = reading.message(index, share)
        row = ContextRow(
            id=weighed.key,
            label=message_label(view, index, message, kind),
            tokens=share,
            basis=basis,
            estimated_tokens=0 if known else share,
            message_id=message.id,
            detail="rough" if weighed.rough else "",
            cached=covered(share, read),
            cached_tokens=read,
            replay=weighed.note if kind == "reasoning" else None,
            approximate=weighed.approximate and not known,
        )
        tally.add(kind, row, 0 if known or sure else share)
