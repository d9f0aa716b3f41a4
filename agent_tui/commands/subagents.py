"""The subagents of a session, as its steps know them: type and task, context now, and cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_tui.context.accounting.spending import session_totals
from agent_tui.models.steps import Step
from agent_tui.models.usage import NO_COST, Cost, SubagentRef, cost_fields
from agent_tui.records import dataclass
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import money, plural, tokens
from agent_tui.tools.base import GENERAL

SHOWN = 3
"""Subagents that are told where there is little room, the newest."""


@dataclass(slots=True, frozen=True)
class SubagentUse:
    """``context`` are tokens of its newest call, sent and answered, of a ``window``; None where nobody said."""

    ref: SubagentRef
    calls: int
    context: int | None
    window: int | None
    cost: Cost
    running: bool

    def line(self) -> str:
        """``explorer: find the greeting · 12.3k of 200k · 5 calls · $0.02``."""
        of = f" of {tokens(self.window, False)}" if self.window else ""
        context = "context unknown" if self.context is None else f"{tokens(self.context, False)}{of}"
        calls = plural(self.calls, "call") + (", working" if self.running else "")
        return (
            f"{one_line(self.ref.type, 64)}: {one_line(self.ref.title, 80)} · {context} · {calls} · {money(self.cost)}"
        )


def subagents_of(steps: Sequence[Step]) -> list[SubagentUse]:
    """Those that worked for a session, the newest first."""
    found: dict[str, list[Step]] = {}
    for step in steps:
        if step.kind == "subagent" and step.agent is not None:
            found.setdefault(step.agent.id, []).append(step)
    return [_use(own) for own in reversed(found.values())]


def _use(steps: Sequence[Step]) -> SubagentUse:
    ref = steps[-1].agent
    assert ref is not None, "only steps of subagents are grouped"
    counted = next((usage for step in reversed(steps) if (usage := step.counted) is not None), None)
    context = None if counted is None else counted.input + counted.output
    running = any(step.status == "running" for step in steps)
    return SubagentUse(ref, len(steps), context, steps[-1].window, session_totals(steps).cost, running)


def type_of(step: Step) -> str:
    """The type of the subagent that a step was made by."""
    return GENERAL if step.agent is None else step.agent.type


def subagents_text(used: Sequence[SubagentUse]) -> str:
    """The newest of them in one text, after how many there are and what they cost."""
    cost = sum((one.cost for one in used), NO_COST)
    said = [one.line() for one in used[:SHOWN]]
    more = [f"{len(used) - SHOWN} more"] if len(used) > SHOWN else []
    return f"{len(used):,}, {money(cost)}: {'; '.join([*said, *more])}"


def subagents_json(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """All of them, the oldest first; ``session`` is the id of the session that each worked in."""
    return [
        {
            "session": one.ref.id,
            "type": one.ref.type,
            "task": one.ref.title,
            "calls": one.calls,
            "context_tokens": one.context,
            "window": one.window,
            "running": one.running,
            **cost_fields(one.cost),
        }
        for one in reversed(subagents_of(steps))
    ]
