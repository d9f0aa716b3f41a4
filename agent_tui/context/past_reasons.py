"""The differences between two moments of a session: signed tokens by row, what came, what went, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Literal

from agent_tui.context.anchor import common_prefix
from agent_tui.context.cache_paths import differing_settings, fixed_difference, on_wire, setting_difference
from agent_tui.context.cuts import edited_words
from agent_tui.context.past import PastMoment
from agent_tui.models.context import ContextRow, ContextUsage
from agent_tui.models.messages import Message
from agent_tui.models.rows import FIXED_ROWS, MESSAGES
from agent_tui.models.steps import CompactionRecord
from agent_tui.records import dataclass
from agent_tui.text.numbers import plural

GONE_SHOWN = 4
"""So many rows in a row that went are shown each; more are one line."""


@dataclass(slots=True, frozen=True)
class Pair:
    """A row ``now`` with what it was ``before``; None: it was not, or is not, there. ``count`` rows that went are told
    as one line, ``tokens`` being what they were together."""

    now: ContextRow | None
    before: ContextRow | None
    count: int = 1
    tokens: int = 0

    @property
    def change(self) -> int:
        """Tokens more than before; negative for fewer."""
        return (self.now.tokens if self.now is not None else 0) - self.tokens


def pairs(now: Sequence[ContextRow], before: Sequence[ContextRow]) -> Iterator[Pair]:
    """The rows of one level in their order, those that went where they stood. The changes add up to that of their
    parents.

    A row is the same where its id, and for messages that of the message, is; of several alike the first is the first.
    """
    places: dict[str, list[int]] = {}
    for place in range(len(before) - 1, -1, -1):
        places.setdefault(identity(before[place]), []).append(place)
    found = [waiting.pop() if (waiting := places.get(identity(row))) else None for row in now]
    kept, done = set(found), 0
    for row, known in zip(now, found, strict=True):
        if known is None:
            yield Pair(row, None)
            continue
        if known >= done:
            yield from _gone([before[i] for i in range(done, known) if i not in kept])
            done = known + 1
        yield Pair(row, before[known], tokens=before[known].tokens)
    yield from _gone([before[i] for i in range(done, len(before)) if i not in kept])


def identity(row: ContextRow) -> str:
    """By what a row is known at another moment."""
    return row.part_id or row.id


def _gone(rows: list[ContextRow]) -> Iterator[Pair]:
    if len(rows) <= GONE_SHOWN:
        yield from (Pair(None, row, tokens=row.tokens) for row in rows)
    else:
        yield Pair(None, rows[0], len(rows), sum(row.tokens for row in rows))


Why = Literal["messages", "compaction", "undo", "rewind", "fixed", "setting", "reasoning", "measured"]
Leaves = dict[tuple[str, str, str], "Leaf"]
MEASURED = "earlier content re-measured"
COMPACTIONS: dict[str, str] = {
    "auto": "compacted automatically",
    "manual": "compacted with /compact",
    "overflow": "compacted because the provider said the prompt was too long",
    "switch": "compacted to fit the new model",
    "edit": "edited by hand",
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
        return self.row, self.kind, leaf.part_id or f"{leaf.id} {leaf.fingerprint or ''}"


@dataclass(slots=True, frozen=True)
class Difference:
    """The difference of two moments: what of the later one was not in the earlier one, what of the earlier one is gone,
    and why. Where one of both cannot be shown there are only reasons, without tokens."""

    entered: list[Leaf]
    left: list[Leaf]
    reasons: list[Reason]


def difference(before: PastMoment, now: PastMoment) -> Difference:
    """Returns what is different in ``now``, whichever of the two steps was sent first. The reasons' tokens add up to
    the difference of the totals."""
    return _Compared(before, now).difference()


class _Compared:
    """Two moments without what they have in common: ``old`` and ``new`` are the rows that are not the very same,
    ``came`` and ``gone`` the messages from where the conversations part."""

    def __init__(self, before: PastMoment, now: PastMoment) -> None:
        self.before, self.now = before, now
        self.old, self.new = _leaves(before.usage, now.usage)
        shared = common_prefix(list(before.path), list(now.path))
        self.gone, self.came = before.path[shared:], now.path[shared:]
        self._gone, self._new = {m.id for m in self.gone}, {m.id for m in self.came}

    @cached_property
    def old_sent(self) -> set[str]:
        return {item.message.id for item in self.before.view}

    @cached_property
    def new_sent(self) -> set[str]:
        return {item.message.id for item in self.now.view}

    def difference(self) -> Difference:
        if self.before.usage is None or self.now.usage is None:
            return Difference([], [], [replace(reason, tokens=None) for reason in self._reasons([], [])])
        entered = [self._came(leaf) for key, leaf in self.new.items() if key not in self.old]
        left = [self._went(leaf) for key, leaf in self.old.items() if key not in self.new]
        reasons = list(self._reasons(entered, left))
        change = _total(self.now) - _total(self.before) - sum(reason.tokens or 0 for reason in reasons)
        if change:
            reasons.append(Reason("measured", MEASURED, change))
        return Difference(entered, left, reasons)

    def _came(self, leaf: Leaf) -> Leaf:
        message = leaf.leaf.message_id
        if message is None:
            return replace(leaf, why="fixed")
        if leaf.kind in ("summary", "pinned"):
            return replace(leaf, why="compaction")
        if message in self._new:
            return leaf
        thought = leaf.kind == "reasoning" and message in self.old_sent
        return replace(leaf, why="reasoning" if thought else "undo")

    def _went(self, leaf: Leaf) -> Leaf:
        message = leaf.leaf.message_id
        if message is None:
            return replace(leaf, why="fixed")
        if leaf.kind in ("summary", "pinned"):
            return replace(leaf, why="compaction" if self._another(message) else "undo")
        if message in self._gone:
            return replace(leaf, why="rewind")
        # Of a message that was dropped its placeholder may be sent: only reasoning goes from one that stays.
        thought = leaf.kind == "reasoning" and message in self.new_sent
        return replace(leaf, why="reasoning" if thought else "compaction")

    def _another(self, summary: str) -> bool:
        return any(r.active and r.kind == "summary" and r.summary_id != summary for r in self.now.records)

    def _reasons(self, entered: list[Leaf], left: list[Leaf]) -> Iterator[Reason]:
        before, now = self.before, self.now
        for name in differing_settings(before.step, now.step):
            yield Reason("setting", setting_difference(name, before.step, now.step).what)
        if self.gone:
            how = "branch switched" if self._returned else "rewound"
            yield Reason("rewind", f"{how}: {_made_of(self.gone)} removed", -_of(left, "rewind"))
        # Of several operations only the sum is known: the last one has it.
        operations = list(_compactions(before.records, now.records, before.step.created))
        if operations:
            tokens = _of(entered, "compaction", "undo") - _of(left, "compaction", "undo") + self._resent()
            yield from (*operations[:-1], replace(operations[-1], tokens=tokens))
        if self.came:
            yield Reason("messages", f"{_made_of(self.came)} added", _of(entered, "messages"))
        yield from _fixed(before, now)
        dropped = sum(
            max(0, leaf.leaf.tokens - (self.new[key].leaf.tokens if key in self.new else 0))
            for key, leaf in self.old.items()
            if leaf.kind == "reasoning" and leaf.leaf.message_id in self.new_sent
        )
        if dropped:
            yield Reason("reasoning", "reasoning of earlier answers no longer sent", -dropped)

    @property
    def _returned(self) -> bool:
        """True when what came had been said before: the user went to another branch."""
        return bool(self.came) and 0 < self.came[0].created < self.before.step.created

    def _resent(self) -> int:
        """By how much the messages grew that were sent otherwise before: cleared or cut since, or whole again."""
        both = ((leaf.leaf, self.old[key].leaf) for key, leaf in self.new.items() if key in self.old)
        return sum(new.tokens - old.tokens for new, old in both if new.message_id is not None and new.id != old.id)


def _of(leaves: Iterable[Leaf], *why: Why) -> int:
    return sum(leaf.leaf.tokens for leaf in leaves if leaf.why in why)


def _total(moment: PastMoment) -> int:
    return 0 if moment.usage is None else moment.usage.total


def _compactions(before: Sequence[CompactionRecord], now: Sequence[CompactionRecord], since: float) -> Iterator[Reason]:
    # One that was made on another branch is neither undone by going elsewhere nor made again by coming back.
    old = {record.id for record in before if record.active}
    new = {record.id for record in now if record.active}
    known = {record.id for record in now}
    for operation in dict.fromkeys(r.operation_id for r in now if r.active and r.id not in old):
        records = [r for r in now if r.operation_id == operation]
        done = "edited" if records[0].reason == "edit" else "compacted"
        how = COMPACTIONS[records[0].reason] if records[0].created > since else f"{done} on this branch earlier"
        yield Reason("compaction", f"{how}: {_done(records)}")
    elsewhere, undone = old - known, (old & known) - new
    for there, ids in ((True, elsewhere), (False, undone)):
        for operation in dict.fromkeys(r.operation_id for r in before if r.id in ids):
            records = [r for r in before if r.operation_id == operation]
            what, done = ("edit", "edited") if records[0].reason == "edit" else ("compaction", "compacted")
            how = f"{done} only on the other branch" if there else f"{what} undone"
            yield Reason("undo", f"{how}: {_done(records, stood=True)}")


def _done(records: Iterable[CompactionRecord], *, stood: bool = False) -> str:
    """Returns in words what the records of one operation do; ``stood``: what they did while they were in force."""
    words: list[str] = []
    for record in records:
        if not record.compacts:
            verb = "dropped" if record.kind == "drop" else "restored"
            words.append(f"{edited_words(record)} {verb}")
        elif record.left_out:
            words.append(f"{plural(record.left_out, 'old message')} left out")
        elif record.kind == "summary":
            verb = "replaced" if stood else "replaces"
            words.append(f"a summary {verb} {plural(len(record.message_ids), 'message')}")
        else:
            words += [f"{plural(record.cleared, 'tool result')} cleared"] if record.cleared else []
            words += [f"{plural(record.clipped, 'tool result')} cut"] if record.clipped else []
    return ", ".join(words) or "nothing"


def _fixed(before: PastMoment, now: PastMoment) -> Iterator[Reason]:
    old, new = on_wire(before.step.fixed), on_wire(now.step.fixed)
    for row in FIXED_ROWS:
        found = fixed_difference([p for p in old if p.row == row], [p for p in new if p.row == row])
        if found is not None:
            yield Reason("fixed", found.what, _row_tokens(now.usage, row) - _row_tokens(before.usage, row))


def _row_tokens(usage: ContextUsage | None, row: str) -> int:
    return sum(top.tokens for top in usage.rows if top.id == row) if usage is not None else 0


def _made_of(messages: Sequence[Message]) -> str:
    kinds = Counter(message.role for message in messages)
    words = [
        plural(kinds["user"], "user message") if kinds["user"] else "",
        plural(kinds["assistant"], "answer") if kinds["assistant"] else "",
        plural(kinds["tool"], "tool result") if kinds["tool"] else "",
    ]
    return ", ".join(word for word in words if word)


def _leaves(before: ContextUsage | None, now: ContextUsage | None) -> tuple[Leaves, Leaves]:
    """The leaves of both that are not the very same object: moments next to each other share most of them."""
    old, new = _all(before), _all(now)
    same = {id(leaf) for _, _, leaf in old}.intersection(id(leaf) for _, _, leaf in new)
    made = ([Leaf(*found) for found in leaves if id(found[2]) not in same] for leaves in (old, new))
    first, second = ({leaf.identity: leaf for leaf in leaves} for leaves in made)
    return first, second


def _all(usage: ContextUsage | None) -> list[tuple[str, str, ContextRow]]:
    found: list[tuple[str, str, ContextRow]] = []
    for top in usage.rows if usage is not None else ():
        for row in top.children:
            kind = row.id if top.id == MESSAGES.id else ""
            if row.children:
                found.extend([(top.id, kind, leaf) for leaf in row.children])
            else:
                found.append((top.id, kind, row))
    return found
