"""The ephemeral rows: system prompt, environment, memory, skills, tools, documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from agent_tui.context.accounting.given.coverage import (
    PREAMBLE,
    Reading,
    covered,
    total_read,
    wire_order,
    with_preamble,
)
from agent_tui.context.tokens.estimate import estimate_fixed, round_up
from agent_tui.context.tokens.families import Family
from agent_tui.models.context import ContextRow
from agent_tui.models.rows import FIXED_ROWS, RowId, RowKind
from agent_tui.models.steps import FixedPart
from agent_tui.text.numbers import largest_remainder

EDITED = "edited; sent as a change, and as it was until the next compaction"
WAITING = "edited; sent as a change with your next message"


@dataclass(slots=True)
class FixedEstimate:
    """Tokens of each ephemeral part, in the order of the parts; ``total`` is their sum."""

    parts: Sequence[FixedPart]
    tokens: list[int] = field(default_factory=list)
    approximate: list[bool] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.tokens)


def estimate_fixed_parts(parts: Sequence[FixedPart], family: Family, ratio: float = 1.0) -> FixedEstimate:
    """Estimate all parts, each rounded up once. What the family adds when any tool is sent is a part of its own."""
    result = FixedEstimate(with_preamble(parts) if family.tools else parts)
    for part in result.parts:
        tokens, approximate = (family.tools, False) if part is PREAMBLE else estimate_fixed(part, family)
        result.tokens.append(round_up(tokens * ratio))
        result.approximate.append(approximate)
    return result


def fixed_delta(
    now: Sequence[FixedPart], then: Sequence[FixedPart], family: Family, scale: float = 1.0
) -> tuple[int, bool]:
    """Estimated tokens by which the ephemeral parts grew since ``then``, and whether a count is still missing.
    ``scale`` is what was measured of such parts before, against their estimate.

    Parts with the same content cancel out exactly, also when one of them was not counted yet at the time.
    """
    waiting: dict[tuple[str, str, bool], list[FixedPart]] = {}
    for part in then:
        waiting.setdefault(_identity(part), []).append(part)
    added: list[FixedPart] = []
    for part in now:
        same = waiting.get(_identity(part))
        if same:
            same.pop()
        else:
            added.append(part)
    gone = [p for parts in waiting.values() for p in parts]
    if not added and not gone:
        return 0, False
    delta, approximate = 0, False
    for sign, parts in ((1, added), (-1, gone)):
        for part in parts:
            tokens, rough = estimate_fixed(part, family)
            delta += sign * round_up(tokens * scale)
            approximate = approximate or rough
    delta += round(family.tools * scale) * (_has_tools(now) - _has_tools(then))
    return delta, approximate


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
            fingerprint=None if part is PREAMBLE else part.fingerprint,
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
    """A row of ephemeral parts that is the sum of its children."""
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


def _identity(part: FixedPart) -> tuple[str, str, bool]:
    return part.row, part.fingerprint, part.deferred_tokens is None


def _has_tools(parts: Sequence[FixedPart]) -> int:
    return int(any(p.row == "tools" and p.deferred_tokens is None for p in parts))
