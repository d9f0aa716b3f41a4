"""The parts that go with every request (system prompt, environment, memory, skills, tools, documents): their rows, and
what of them the last step read from the cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from agent_tui.context.anchor import common_prefix
from agent_tui.context.tokens import ROUGH, Family, estimate_fixed, round_up
from agent_tui.models.calibration import BOUND, Calibration, Content
from agent_tui.models.context import ContextRow
from agent_tui.models.requests import Target
from agent_tui.models.rows import FIXED_ROWS, RowId, RowKind
from agent_tui.models.steps import FixedPart, Step
from agent_tui.records import dataclass
from agent_tui.text.numbers import largest_remainder

PREAMBLE = FixedPart("tools", "preamble", "tool use preamble", 0, "preamble", 0, 0)
"""Stands for the instructions about tools that a provider adds by itself."""

ADDED = FixedPart("system", "server", "added by the server", 0, "added by the server", 0)
"""Stands for what a server, or a gateway before it, adds to each request by itself, as its reports have shown."""

Reach = tuple[int, int, int] | str | None


class Coverage:
    """The part of the newest turn step that was read from the provider's cache.

    Whole requests that the reading covered give the place without any estimate: ``until`` is the index before which
    all messages were read, ``after`` the one from which on none was, and ``between`` the tokens read in between
    (before the first measured answer: of the prefix parts and the first messages). ``whole``: the prefix parts
    were read to their end.
    """

    def __init__(self, chain: Sequence[Step]) -> None:
        self.step = next((s for s in reversed(chain) if s.kind == "turn"), None)
        usage = self.step.counted if self.step is not None else None
        self.read = usage.cache_read if usage is not None else None
        self.until = self.after = self.between = 0
        self.whole = False
        self.sent: frozenset[tuple[str, str]] = frozenset()
        if self.step is None or self.read is None:
            return
        self.sent = frozenset(_same_part(p) for p in with_preamble(self.step.fixed))
        end = self.step.sent_count
        self.between, self.after = self.read, min(chain[0].sent_count, end)
        for number in range(len(chain) - 1, -1, -1):
            earlier = chain[number]
            if earlier.sent_count <= end and earlier.counted is not None and earlier.counted.input <= self.read:
                self.whole = True
                self.until, self.between = earlier.sent_count, self.read - earlier.counted.input
                following = chain[number + 1].sent_count if number + 1 < len(chain) else end
                self.after = min(following, end)
                break

    def reach(self, start: int, end: int) -> Reach:
        """Returns what rows of the messages ``[start, end)`` must have in common with others to be read alike."""
        if self.read is None:
            return None
        if end <= self.until:
            return "read"
        return "new" if start >= self.after else (self.until, self.after, self.between)

    def expected(self) -> int | None:
        """Tokens of the next request that will be read: what was read and written in this step. None where the
        provider does not report what it writes."""
        usage = self.step.counted if self.step is not None else None
        if usage is None or usage.cache_read is None or usage.cache_write is None:
            return None
        return min(usage.input, usage.cache_read + usage.cache_write)


class Reading:
    """Shares out what was read over rows that are asked about in the order in which they are sent. ``left`` is what
    the rows that follow may have of it."""

    __slots__ = ("_coverage", "left")

    def __init__(self, coverage: Coverage, left: int | None = None) -> None:
        self._coverage = coverage
        self.left = coverage.between if left is None else left

    @property
    def unsent(self) -> int | None:
        """Of what is in no request."""
        return None if self._coverage.read is None else 0

    def message(self, index: int, tokens: int) -> int | None:
        """Returns how many of a row's tokens were read; it belongs to the message at ``index``. None: the provider did
        not say."""
        coverage = self._coverage
        if coverage.read is None:
            return None
        if index < coverage.until:
            return tokens
        return 0 if index >= coverage.after else self._take(tokens)

    def part(self, part: FixedPart, tokens: int) -> int | None:
        """The same of a part of the request prefix; what was not sent in that step was not read."""
        coverage = self._coverage
        if coverage.read is None:
            return None
        if part is not ADDED and _same_part(part) not in coverage.sent:
            return 0
        return tokens if coverage.whole else self._take(tokens)

    def _take(self, tokens: int) -> int:
        taken = min(self.left, tokens)
        self.left -= taken
        return taken


NOTHING_KNOWN = Coverage(())


def with_preamble(parts: Sequence[FixedPart]) -> list[FixedPart]:
    """The parts with, before them, what some families add to a request that has any tool."""
    tools = any(p.row == "tools" and p.deferred_tokens is None for p in parts)
    return [PREAMBLE, *parts] if tools else list(parts)


def wire_order(parts: Sequence[FixedPart]) -> list[int]:
    """Numbers of the parts that are sent, in the order in which they are."""
    sent = [i for i, p in enumerate(parts) if p.deferred_tokens is None and p.change != "waiting"]
    return sorted(sent, key=lambda i: FIXED_ROWS[parts[i].row].sent)


def unchanged(now: Sequence[FixedPart], then: Sequence[FixedPart]) -> list[int] | None:
    """Numbers of the parts of ``now`` before the first that is another than ``then``; None when all are the same."""
    old = [then[i].fingerprint for i in wire_order(then)]
    order = wire_order(now)
    new = [now[i].fingerprint for i in order]
    return None if new == old else order[: common_prefix(new, old)]


def covered(tokens: int, read: int | None) -> bool | None:
    """The flag of a row: whether it was read whole. None where nothing is known, or there is nothing to read."""
    return None if read is None or not tokens else read == tokens


def total_read(reads: Sequence[int | None]) -> int | None:
    """The sum over rows; None as soon as one is not known."""
    known = [r for r in reads if r is not None]
    return sum(known) if known and len(known) == len(reads) else None


def _same_part(part: FixedPart) -> tuple[str, str]:
    return part.row, part.fingerprint


Identity = tuple[str, str, bool]


@dataclass(slots=True, frozen=True)
class Difference:
    """Prefix parts that were ``added`` and that were ``gone`` between two reports, as sorted identities, and what that
    measured: tokens, and half their interval."""

    added: tuple[Identity, ...]
    gone: tuple[Identity, ...]
    tokens: int
    spread: int


def measured_change(step: Step, before: Step) -> Difference | None:
    """What a report measured of the parts that changed since the step it was built on; None where it did not, and where
    their estimate is surer than the rest of it."""
    change, actual, expected = step.estimated_change, step.actual_input, step.estimated_input
    if change is None or actual is None or expected is None or step.anchor_step != before.id or change[2] > change[1]:
        return None
    added, gone = _changes(step.fixed, before.fixed)
    return Difference(_named(added), _named(gone), actual - expected + change[0], change[2])


def measured_changes(steps: Sequence[Step], target: Target) -> list[Difference]:
    """All that reports of a model measured so, the newest first."""
    changed = [s for s in steps if s.estimated_change is not None]
    by_id = {step.id: step for step in steps}
    found: list[Difference] = []
    for step in reversed(changed):
        before = by_id.get(step.anchor_step or "")
        same = (step.model, step.provider, step.api) == (target.model, target.provider, target.api)
        if before is not None and same and (change := measured_change(step, before)) is not None:
            found.append(change)
    return found


def _changes(now: Sequence[FixedPart], then: Sequence[FixedPart]) -> tuple[list[FixedPart], list[FixedPart]]:
    """The parts that are new, and those that are gone."""
    waiting: dict[Identity, list[FixedPart]] = {}
    for part in then:
        waiting.setdefault(_identity(part), []).append(part)
    added: list[FixedPart] = []
    for part in now:
        same = waiting.get(_identity(part))
        if same:
            same.pop()
        else:
            added.append(part)
    return added, [part for parts in waiting.values() for part in parts]


def differ(now: Sequence[FixedPart], then: Sequence[FixedPart]) -> bool:
    """Returns whether other parts are sent."""
    return list(map(_identity, now)) != list(map(_identity, then)) and any(_changes(now, then))


def gone_share(now: Sequence[FixedPart], then: Sequence[FixedPart]) -> float:
    """The part of what was scaled then that is not sent now, in o200k_base tokens."""
    gone = sum(part.raw_tokens or 0 for part in _changes(now, then)[1] if is_scaled(part))
    return gone / max(1, sum(part.raw_tokens or 0 for part in then if is_scaled(part)))


def is_scaled(part: FixedPart) -> bool:
    """Returns whether what is measured of the prefix holds for the part: documents are texts as messages are, of any
    length, and how others of the parts are counted says nothing of them."""
    return part.row != "documents"


def _size(part: FixedPart, content: Content, family: Family, known: Calibration, scale: float | None) -> float:
    """Tokens of a part, unrounded: at the ``scale`` that was measured of the parts, against what is known of the family
    alone; by the calibration where none was."""
    if scale is None or not is_scaled(part):
        return max(0.0, known.tokens(content))
    return max(0.0, family.beginning.tokens(content) * scale)


def _named(parts: Sequence[FixedPart]) -> tuple[Identity, ...]:
    return tuple(sorted(map(_identity, parts)))


def _without(parts: list[FixedPart], names: Sequence[Identity]) -> list[FixedPart] | None:
    """The other parts; None where one of those is not among them."""
    left = list(parts)
    for name in names:
        place = next((i for i, part in enumerate(left) if _identity(part) == name), None)
        if place is None:
            return None
        del left[place]
    return left


EDITED = "edited; the old text and the change are sent until the next compaction"
WAITING = "edited; the change is sent with your next message"


@dataclass(slots=True)
class FixedEstimate:
    """Tokens of each prefix part, in the order of the parts; ``total`` is their sum, and ``content`` what it consists
    of; ``apart`` what those of them do which neither a report nor a scale has measured."""

    parts: Sequence[FixedPart]
    tokens: list[int] = field(default_factory=list)
    approximate: list[bool] = field(default_factory=list)
    content: Content = field(default_factory=Content)
    apart: Content = field(default_factory=Content)

    @property
    def total(self) -> int:
        return sum(self.tokens)


def estimate_fixed_parts(
    parts: Sequence[FixedPart],
    family: Family,
    calibration: Calibration | None = None,
    scale: float | None = None,
    added: float = 0.0,
    measured: Sequence[Difference] = (),
) -> FixedEstimate:
    """Estimate all parts, each rounded up once, by the calibration (None: what is known of the family alone), or at the
    ``scale`` that was measured of them. What the family adds when any tool is sent is a part of its own, and so are the
    tokens ``added`` by the server. Parts that were ``measured`` alone have that size."""
    known, result = calibration or family.beginning, FixedEstimate(with_preamble(parts) if family.tools else parts)
    if added:
        result.parts = [ADDED, *result.parts]
    sizes = {c.added[0]: c.tokens for c in reversed(measured) if len(c.added) == 1 and not c.gone}
    sizes |= {c.gone[0]: -c.tokens for c in reversed(measured) if len(c.gone) == 1 and not c.added}
    for part in result.parts:
        content, approximate = _preamble(family) if part is PREAMBLE else estimate_fixed(part, family)
        size = sizes.get(_identity(part), 0) if sizes else 0
        estimate = size if size > 0 else _size(part, content, family, known, scale)
        result.tokens.append(round_up(added if part is ADDED else estimate))
        result.approximate.append(approximate)
        result.content.add(content)
        if size <= 0 and not is_scaled(part):
            result.apart.add(content)
    return result


def _preamble(family: Family) -> tuple[Content, bool]:
    return Content(plain=family.tools, rough=(ROUGH * family.tools) ** 2), False


def fixed_delta(
    now: Sequence[FixedPart],
    then: Sequence[FixedPart],
    family: Family,
    known: Calibration,
    scale: float | None = None,
    measured: Sequence[Difference] = (),
) -> tuple[int, bool, Content]:
    """Tokens by which the prefix parts grew since ``then``, estimated by the calibration, whether a count is still
    missing, and what the estimate consists of. ``scale`` as in ``estimate_fixed_parts``; what was ``measured`` by
    difference is not estimated.

    Parts with the same content cancel out exactly, also when one of them was not counted yet at the time.
    """
    added, gone = _changes(now, then)
    delta, approximate, whole = 0, False, Content()
    tools = _has_tools(now) - _has_tools(then)
    for change in measured:
        for sign, came, went in ((1, change.added, change.gone), (-1, change.gone, change.added)):
            new, old = _without(added, came), _without(gone, went)
            if new is not None and old is not None and (len(new), len(old)) != (len(added), len(gone)):
                parts_had_tools = any(name[0] == "tools" for name in (*came, *went))
                added, gone, tools = new, old, 0 if parts_had_tools else tools
                delta += sign * change.tokens
                whole.add(Content(plain=change.tokens, rough=(change.spread / BOUND) ** 2), sign)
    if not added and not gone:
        return delta, False, whole
    for sign, parts in ((1, added), (-1, gone)):
        for part in parts:
            content, rough = estimate_fixed(part, family)
            delta += sign * round_up(_size(part, content, family, known, scale))
            approximate = approximate or rough
            whole.add(content, sign)
    delta += round(family.tools * (scale or 1.0)) * tools
    return delta, approximate, whole


def fixed_rows(estimate: FixedEstimate, reading: Reading, scaled_to: int | None = None) -> list[ContextRow]:
    """A row of each kind, in their fixed order; those without parts are empty, or left out where the kind is not always
    shown. Children are the parts; of the tools
    their groups, and below them the parts.

    ``scaled_to`` spreads that many tokens over the parts instead of the estimates, in proportion.
    """
    tokens = estimate.tokens
    if scaled_to is not None:
        tokens = largest_remainder(scaled_to, [float(t) for t in tokens])
    unsent = reading.unsent
    read: list[int | None] = [unsent] * len(tokens)
    for i in wire_order(estimate.parts):
        read[i] = reading.part(estimate.parts[i], tokens[i])
    leaves: dict[RowId, list[tuple[str, ContextRow]]] = {row_id: [] for row_id in FIXED_ROWS}
    for i, part in enumerate(estimate.parts):
        leaf = ContextRow(
            id=part.label or part.group,
            label=part.label or part.group,
            tokens=tokens[i],
            basis="estimated",
            estimated_tokens=tokens[i],
            deferred_tokens=part.deferred_tokens,
            path=part.path,
            detail=_detail(part),
            cached=covered(tokens[i], read[i]),
            cached_tokens=read[i],
            approximate=estimate.approximate[i],
            fingerprint=None if part in (PREAMBLE, ADDED) else part.fingerprint,
        )
        leaves[part.row].append((part.group, leaf))
    return [_row(kind, leaves[row_id]) for row_id, kind in FIXED_ROWS.items() if kind.always or leaves[row_id]]


def _row(kind: RowKind, parts: list[tuple[str, ContextRow]]) -> ContextRow:
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


def _detail(part: FixedPart) -> str:
    if part.change:
        return WAITING if part.change == "waiting" else EDITED
    return "deferred" if part.deferred_tokens is not None else ""


def _identity(part: FixedPart) -> Identity:
    return part.row, part.fingerprint, part.deferred_tokens is None


def _has_tools(parts: Sequence[FixedPart]) -> int:
    return int(any(p.row == "tools" and p.deferred_tokens is None for p in parts))
