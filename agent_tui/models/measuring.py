"""Which steps measured what is sent: a copy of a conversation has those, too, that answered on another branch."""

from __future__ import annotations

from collections.abc import Sequence, Set

from agent_tui.models.costs import REASONING
from agent_tui.models.steps import Step


def steps_measuring(steps: Sequence[Step], chosen: Set[str]) -> set[str]:
    """The ids of the ``chosen`` steps and of all that settled a cost of what these sent, or what their lists of keys
    begin with."""
    lists: dict[str, list[str]] = {}
    for step in steps:
        if (sent := step.sent_keys) is not None:
            lists[step.id] = [*lists.get(sent.base, [])[: sent.kept], *sent.keys]
    found, new = set[str](), {step.id for step in steps if step.id in chosen}
    needed: set[str] = set()
    while new:
        found |= new
        for step in steps:
            if step.id in new:
                needed.update(lists.get(step.id, ()))
                needed.update(part.fingerprint for part in step.fixed)
        more = {step.sent_keys.base for step in steps if step.id in new and step.sent_keys is not None}
        more |= {step.id for step in steps if step.id not in found and not needed.isdisjoint(_measured(step))}
        new = (more & lists.keys()) - found
    return found


def _measured(step: Step) -> set[str]:
    """What a report settled: the keys of messages, the fingerprints of parts."""
    costs = step.settlement.costs if step.settlement is not None else {}
    return {key.partition(":")[2].partition("#")[0] if ":" in key else key.removesuffix(REASONING) for key in costs}
