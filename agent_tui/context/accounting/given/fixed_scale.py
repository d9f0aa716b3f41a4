"""How the provider's tokens of the ephemeral parts compare with their estimate: measured once, where little else was
sent, and taken from then on for every estimate of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agent_tui.context.accounting.given.fixed import estimate_fixed_parts
from agent_tui.context.tokens.families import Family
from agent_tui.models.requests import SentMessage, Target
from agent_tui.models.steps import CompactionRecord, Step

LOW, HIGH = 0.5, 2.0
"""Beyond these the measurement is of something else."""

MOST_MESSAGES = 1.0
"""Messages of a step that measures, as a share of the ephemeral parts: their error is taken for the parts'."""


class FixedScale(NamedTuple):
    """One measurement: ``share`` is what was sent beside the parts, relative to them, ``age`` how long ago it was made
    in steps (negative: the newer the less), ``scale`` measured / estimated tokens of the parts. They sort by how good
    they are, the best first."""

    share: float
    age: int
    scale: float
    step: Step


def fixed_scale_of(
    steps: Sequence[Step],
    target: Target,
    family: Family,
    view: Sequence[SentMessage],
    records: Sequence[CompactionRecord],
) -> float | None:
    """Measured / estimated tokens of the ephemeral parts; None where nothing was measured.

    A step that had nothing to build on measures them: what was sent, less the estimate of its messages. The one with
    the least beside the parts counts, of those whose answer is in the conversation: a copy of it has the same steps,
    and must show the same numbers.
    """
    made = [fixed_scale_at(number, step, target, family) for number, step in enumerate(ended(steps))]
    return best_scale(sorted((m for m in made if m is not None), key=order), view, records)


def ended(steps: Sequence[Step]) -> Iterable[Step]:
    """The steps before the first that still runs."""
    for step in steps:
        if step.status == "running":
            return
        yield step


def order(measured: FixedScale) -> tuple[float, int]:
    """The best measurement first; the newer one where two have as little beside the parts."""
    return measured.share, measured.age


def best_scale(
    measured: Iterable[FixedScale], view: Sequence[SentMessage], records: Sequence[CompactionRecord]
) -> float | None:
    """Of measurements in their order the first whose answer is in the conversation."""
    return next((m.scale for m in measured if _in_conversation(m.step, view, records)), None)


def fixed_scale_at(number: int, step: Step, target: Target, family: Family) -> FixedScale | None:
    """What the step at ``number`` measured of the ephemeral parts, if it measured them."""
    usage, messages = step.counted, step.estimated_messages
    if messages is None or usage is None or not usage.anchors or step.status != "complete":
        return None
    if (step.model, step.provider, step.api) != (target.model, target.provider, target.api):
        return None
    parts = estimate_fixed_parts(step.fixed, family)
    if not parts.total or any(parts.approximate):
        return None
    share, scale = messages / parts.total, (usage.input - messages) / parts.total
    return FixedScale(share, -number, scale, step) if share <= MOST_MESSAGES and LOW <= scale <= HIGH else None


def _in_conversation(step: Step, view: Sequence[SentMessage], records: Sequence[CompactionRecord]) -> bool:
    """Whether the step's answer is sent, or stands behind a summary that is."""
    at, answer = step.sent_count, step.message_id
    if at < len(view) and view[at].message.id == answer:
        return True
    if any(r.active and r.kind == "summary" and answer in r.message_ids for r in records):
        return True
    return any(item.message.id == answer for item in view)
