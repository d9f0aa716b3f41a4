"""Pruning: which old tool results are sent as a placeholder. The first and cheapest way to make room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agent_tui.context.sent.view import CLEARED_SUFFIX, INTERRUPTED_SUFFIX
from agent_tui.models.messages import APPROVED, Message
from agent_tui.models.requests import SentMessage
from agent_tui.models.steps import CompactionRecord, Step

PROTECT_TOKENS = 40_000
PROTECT_SHARE = 0.20
"""Newest results that are never cleared: ``min(40k tokens, 20 % of the window)``."""

MIN_FREED_TOKENS = 20_000
MIN_FREED_SHARE = 0.10
"""Clearing less than ``min(20k tokens, 10 % of the window)`` is not worth breaking the prompt cache for."""

GOAL_SHARE = 0.60
"""Clearing aims at this share of the limit: room for several turns, and no more is cleared than that takes."""

SMALL_RESULT = 32
"""Results up to this many tokens stay: the placeholder would hardly be shorter."""

PLACEHOLDER_TOKENS = 20
"""About what a cleared result still costs."""

BREATH_STEPS = 4
"""Model calls that should lie between one pruning and the next: each rewrites the provider's prompt cache."""


@dataclass(slots=True, frozen=True)
class Pruning:
    """``cleared`` are message ids sent as a placeholder, oldest first; ``clips`` maps ids to the characters kept."""

    cleared: tuple[str, ...] = ()
    clips: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.cleared or self.clips)

    def only(self, ids: frozenset[str]) -> Pruning:
        """The part of it that concerns these messages."""
        return Pruning(tuple(i for i in self.cleared if i in ids), {i: n for i, n in self.clips.items() if i in ids})

    def clipping(self, clips: Mapping[str, int]) -> Pruning:
        """The same with further clips; what is cleared needs none."""
        return Pruning(self.cleared, {**self.clips, **{i: n for i, n in clips.items() if i not in self.cleared}})


def unseen_from(messages: Sequence[Message]) -> int:
    """Index of the first message the model has not answered yet (``len`` when there is none)."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "assistant":
            return index + 1
    return 0


def plan_clearing(
    view: Sequence[SentMessage], tokens: Mapping[str, int], window: int, needed: int | None = None
) -> Pruning:
    """The results to clear, oldest first until about ``needed`` tokens are freed (None: all that may be).

    The newest result, those the model has not seen, the protected newest ones and plans that were approved stay.
    ``tokens`` are the costs of the messages in ``view``; ``window`` is the model's, or what stands in for it. Empty
    when too little would be freed. User and assistant messages and tool calls are never touched, and a result inside a
    long turn is as good as one of an earlier turn.
    """
    protect = min(PROTECT_TOKENS, int(window * PROTECT_SHARE))
    enough = min(MIN_FREED_TOKENS, int(window * MIN_FREED_SHARE))
    seen = unseen_from([sent.message for sent in view])
    candidates: list[tuple[str, int]] = []
    kept = 0
    newest = True
    for index in range(len(view) - 1, -1, -1):
        message, key = view[index].message, view[index].key
        if message.role != "tool" or key.endswith(CLEARED_SUFFIX) or INTERRUPTED_SUFFIX in key:
            continue
        cost = tokens.get(message.id, 0)
        kept += cost
        if newest or index >= seen or kept <= protect:
            newest = False
            continue
        if cost > SMALL_RESULT and not _approved_plan(message):
            candidates.append((message.id, cost - PLACEHOLDER_TOKENS))
    cleared: list[str] = []
    freed = 0
    for message_id, gain in reversed(candidates):
        if needed is not None and freed >= needed:
            break
        cleared.append(message_id)
        freed += gain
    return Pruning(tuple(cleared)) if cleared and freed >= enough else Pruning()


def _approved_plan(message: Message) -> bool:
    """The user's version of a plan stands in the result alone."""
    result = message.tool_result
    return result is not None and bool(result.display) and APPROVED in (result.display or {})


def pruned_just_now(records: Sequence[CompactionRecord], steps: Sequence[Step]) -> bool:
    """Whether the newest compaction in force only cleared results and fewer than ``BREATH_STEPS`` calls were answered
    since."""
    active = [r for r in records if r.active]
    if not active:
        return False
    newest = max(active, key=lambda r: r.created)
    if any(r.kind != "prune" for r in active if r.operation_id == newest.operation_id):
        return False
    since = sum(s.kind == "turn" and s.status == "complete" and s.created > newest.created for s in steps)
    return since < BREATH_STEPS
