"""Why the context of one step is another than that of an earlier one: what came, what went, and by what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agent_tui.context.cache.prefix import differing_settings, fixed_difference, on_wire, setting_difference
from agent_tui.context.past.history import PastMoment
from agent_tui.models.context import ContextRow, ContextUsage
from agent_tui.models.messages import Message
from agent_tui.models.rows import FIXED_ROWS, MESSAGES
from agent_tui.models.steps import CompactionRecord
from agent_tui.text.numbers import plural

Why = Literal["messages", "compaction", "undo", "rewind", "fixed", "setting", "reasoning"]
COMPACTIONS: dict[str, str] = {
    "auto": "compacted by itself",
    "manual": "compacted with /compact",
    "overflow": "compacted after the provider refused the size",
    "switch": "compacted for the switch of the model",
}


@dataclass(slots=True, frozen=True)
class Reason:
    """One thing that happened between two steps, in words. ``tokens`` by which it changed the context; None where that
    is not told apart."""

    why: Why
    text: str
    tokens: int | None = None


@dataclass(slots=True, frozen=True)
class Leaf:
    """A row of the breakdown that has no rows below it, ``row`` being the one at the top; ``why`` it came or went."""

    row: str
    kind: str
    leaf: ContextRow
    why: Why = "messages"

    @property
    def identity(self) -> tuple[str, str, str]:
        leaf = self.leaf
        return self.row, self.kind, leaf.message_id or f"{leaf.id} {leaf.fingerprint or ''}"


@dataclass(slots=True, frozen=True)
class Difference:
    """What of the later of two moments was not in the earlier one, what of the earlier one is gone, and why."""

    entered: list[Leaf]
    left: list[Leaf]
    reasons: list[Reason]


def difference(before: PastMoment, now: PastMoment) -> Difference:
    """What is different in ``now``, whichever of the two steps was sent first."""
    old, new = _leaves(before.usage), _leaves(now.usage)
    entered = [_came(leaf, before) for key, leaf in new.items() if key not in old]
    left = [_went(leaf, now) for key, leaf in old.items() if key not in new]
    return Difference(entered, left, list(_reasons(before, now, entered, left)))


def _came(leaf: Leaf, before: PastMoment) -> Leaf:
    """With what brought it: a summary comes by a compaction, a message that was there all along when one is undone."""
    message = leaf.leaf.message_id
    if message is None:
        return replace(leaf, why="fixed")
    if leaf.kind == "summary":
        return replace(leaf, why="compaction")
    known = any(m.id == message for m in before.path)
    sent = any(item.message.id == message for item in before.view)
    return replace(leaf, why="messages" if not known else "reasoning" if sent else "undo")


def _went(leaf: Leaf, now: PastMoment) -> Leaf:
    """With what took it away."""
    message = leaf.leaf.message_id
    if message is None:
        return replace(leaf, why="fixed")
    if leaf.kind == "summary":
        replaced = any(r.active and r.kind == "summary" and r.summary_id != message for r in now.records)
        return replace(leaf, why="compaction" if replaced else "undo")
    if all(m.id != message for m in now.path):
        return replace(leaf, why="rewind")
    sent = any(item.message.id == message for item in now.view)
    return replace(leaf, why="reasoning" if sent else "compaction")


def _reasons(before: PastMoment, now: PastMoment, entered: list[Leaf], left: list[Leaf]) -> Iterator[Reason]:
    for name in differing_settings(before.step, now.step):
        yield Reason("setting", setting_difference(name, before.step, now.step).what)
    known = {message.id for message in before.path}
    present = {message.id for message in now.path}
    gone = [message for message in before.path if message.id not in present]
    if gone:
        yield Reason("rewind", f"rewound: {_made_of(gone)} left behind", -_tokens(left, {m.id for m in gone}))
    yield from _compactions(before.records, now.records)
    came = [message for message in now.path if message.id not in known]
    if came:
        yield Reason("messages", f"{_made_of(came)} came", _tokens(entered, {m.id for m in came}))
    yield from _fixed(before, now)
    dropped = _dropped(before, now)
    if dropped:
        yield Reason("reasoning", "reasoning of earlier answers no longer sent", -dropped)


def _compactions(before: Sequence[CompactionRecord], now: Sequence[CompactionRecord]) -> Iterator[Reason]:
    old = {record.id for record in before if record.active}
    new = {record.id for record in now if record.active}
    for operation in dict.fromkeys(r.operation_id for r in now if r.active and r.id not in old):
        records = [r for r in now if r.operation_id == operation]
        yield Reason("compaction", f"{COMPACTIONS[records[0].reason]}: {_done(records)}")
    undone = dict.fromkeys(r.operation_id for r in before if r.active and r.id not in new)
    for operation in undone:
        records = [r for r in before if r.operation_id == operation]
        yield Reason("undo", f"compaction undone: {_done(records)} before")


def _done(records: Iterable[CompactionRecord]) -> str:
    """What the records of one operation do."""
    words: list[str] = []
    for record in records:
        if record.left_out:
            words.append(f"{plural(record.left_out, 'old message')} left out")
        elif record.kind == "summary":
            words.append(f"a summary stands for {plural(len(record.message_ids), 'message')}")
        else:
            clipped = sum(i in record.clips for i in record.message_ids)
            cleared = len(record.message_ids) - clipped
            words += [f"{plural(cleared, 'tool result')} cleared"] if cleared else []
            words += [f"{plural(clipped, 'tool result')} cut"] if clipped else []
    return ", ".join(words) or "nothing"


def _fixed(before: PastMoment, now: PastMoment) -> Iterator[Reason]:
    old, new = on_wire(before.step.fixed), on_wire(now.step.fixed)
    for row in FIXED_ROWS:
        found = fixed_difference([p for p in old if p.row == row], [p for p in new if p.row == row])
        if found is not None:
            yield Reason("fixed", found.what, _row_tokens(now.usage, row) - _row_tokens(before.usage, row))


def _dropped(before: PastMoment, now: PastMoment) -> int:
    """Tokens of reasoning that were in the earlier context, of answers that are in both, and are not in the later."""
    present = {item.message.id for item in now.view}
    old, new = (
        {key: leaf.leaf.tokens for key, leaf in _leaves(m.usage).items() if leaf.kind == "reasoning"}
        for m in (before, now)
    )
    return sum(max(0, count - new.get(key, 0)) for key, count in old.items() if key[2] in present)


def _row_tokens(usage: ContextUsage | None, row: str) -> int:
    return sum(top.tokens for top in usage.rows if top.id == row) if usage is not None else 0


def _tokens(leaves: Iterable[Leaf], ids: set[str]) -> int:
    return sum(leaf.leaf.tokens for leaf in leaves if leaf.leaf.message_id in ids)


def _made_of(messages: Sequence[Message]) -> str:
    kinds = Counter(message.role for message in messages)
    words = [
        plural(kinds["user"], "message of yours", "messages of yours") if kinds["user"] else "",
        plural(kinds["assistant"], "answer") if kinds["assistant"] else "",
        plural(kinds["tool"], "tool result") if kinds["tool"] else "",
    ]
    return ", ".join(word for word in words if word)


def _leaves(usage: ContextUsage | None) -> dict[tuple[str, str, str], Leaf]:
    found: dict[tuple[str, str, str], Leaf] = {}
    for top in usage.rows if usage is not None else ():
        for kind, leaf in _below(top, top.id):
            made = Leaf(top.id, kind if top.id == MESSAGES.id else "", leaf)
            found[made.identity] = made
    return found


def _below(row: ContextRow, kind: str) -> Iterator[tuple[str, ContextRow]]:
    for child in row.children:
        if child.children:
            yield from _below(child, child.id)
        else:
            yield kind, child
