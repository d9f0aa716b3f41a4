"""Which finished steps may be built on: their list of messages, plus their answer, begins the list to be sent now.

So compaction, undo, rewind and fork need no rule of their own, and because steps are stored, neither does a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from agent_tui.models.fingerprint import EMPTY, extend
from agent_tui.models.requests import SentMessage, Target
from agent_tui.models.steps import Step
from agent_tui.models.usage import ABSURD_WINDOWS, TokenUsage

T = TypeVar("T")


@dataclass(slots=True, frozen=True)
class SentPrefixes:
    """Rolling fingerprints of the message ids of a view."""

    ids: list[str] = field(default_factory=list)
    rolling: list[str] = field(default_factory=lambda: [EMPTY])

    def at(self, count: int) -> str:
        """The fingerprint of the first ``count`` ids."""
        return self.rolling[count]

    def moved_to(self, view: Sequence[SentMessage]) -> tuple[SentPrefixes, int]:
        """Those of another view, and how many leading ids are as they were: only what follows is hashed again."""
        ids = [item.message.id for item in view]
        kept = common_prefix(self.ids, ids)
        rolling = self.rolling[: kept + 1]
        last = rolling[-1]
        for item in ids[kept:]:
            last = extend(last, item)
            rolling.append(last)
        return SentPrefixes(ids, rolling), kept


def prefixes_of(view: Sequence[SentMessage]) -> SentPrefixes:
    """The fingerprints of a view's beginnings."""
    return SentPrefixes().moved_to(view)[0]


def anchor_problem(step: Step, prefixes: SentPrefixes, target: Target, window: int | None) -> str | None:
    """Why the step cannot be built on, in words for people; None when it can."""
    if step.kind not in ("turn", "count"):
        return f"it was a {step.kind} call"
    if step.status != "complete":
        return {"running": "it is still running", "stopped": "it was interrupted", "failed": "it failed"}[step.status]
    if (step.model, step.provider, step.api) != (target.model, target.provider, target.api):
        return "it was another model"
    problem = usage_problem(step.counted, window)
    if problem is not None:
        return problem
    ids, count = prefixes.ids, step.sent_count
    own = 1 if step.kind == "turn" else 0
    if count < 1 or count + own > len(ids) or prefixes.at(count) != step.sent_fingerprint:
        return "the conversation before it has changed"
    if own and ids[count] != step.message_id:
        return "its answer is not part of the conversation"
    return None


def usage_problem(usage: TokenUsage | None, window: int | None) -> str | None:
    """Why a step's usage is no measure of its context, in words for people; None when it is one."""
    if usage is None:
        return "the provider reported no usage"
    if not usage.anchors or usage.output < 0:
        return "the provider's usage is not the size of a context"
    if window and usage.input + usage.output > ABSURD_WINDOWS * window:
        return "the provider's usage is absurd"
    return None


def chain_of(steps: Iterable[Step], prefixes: SentPrefixes, target: Target, window: int | None) -> list[Step]:
    """The steps that can be built on, in ascending length of what they sent; the last is the anchor."""
    chain: list[Step] = []
    extend_chain(chain, steps, prefixes, target, window)
    return chain


def extend_chain(
    chain: list[Step], steps: Iterable[Step], prefixes: SentPrefixes, target: Target, window: int | None
) -> None:
    """Append the steps that can be built on. Of several that sent the same messages the newest stays, but a count
    never takes the place of a turn step that sent as much: it came late, and the turn measured more."""
    for step in steps:
        if anchor_problem(step, prefixes, target, window) is not None:
            continue
        if step.kind == "count" and _turn_reaches(chain, step.sent_count):
            continue
        while chain and chain[-1].sent_count >= step.sent_count:
            chain.pop()
        chain.append(step)


def _turn_reaches(chain: Sequence[Step], sent_count: int) -> bool:
    """Whether a turn step of the chain, which ascends, sent at least so many messages."""
    newest = next((s for s in reversed(chain) if s.kind == "turn"), None)
    return newest is not None and newest.sent_count >= sent_count


def why_no_anchor(steps: Sequence[Step], prefixes: SentPrefixes, target: Target, window: int | None) -> str:
    """One sentence on why the next input is a pure estimate."""
    turns = [s for s in steps if s.kind in ("turn", "count")]
    if not turns:
        return "no model call yet"
    reason = anchor_problem(turns[-1], prefixes, target, window)
    return f"the last call's numbers do not fit what is sent now: {reason or 'unknown'}"


def common_prefix(old: list[T], new: list[T]) -> int:
    """How many leading items two lists share; fast when one begins with the other."""
    low, high = 0, min(len(old), len(new))
    if old[:high] == new[:high]:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if old[:middle] == new[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
