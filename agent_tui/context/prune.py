"""Pruning: which old tool results are sent as a placeholder. The first and cheapest way to make room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agent_tui.context.view import CLEARED_SUFFIX, INTERRUPTED_SUFFIX
from agent_tui.models.messages import Message
from agent_tui.models.requests import SentMessage

PROTECT_TOKENS = 40_000
PROTECT_SHARE = 0.20
"""Newest results that are never cleared: ``min(40k tokens, 20 % of the window)``."""

MIN_FREED_TOKENS = 20_000
MIN_FREED_SHARE = 0.10
"""Clearing less than ``min(20k tokens, 10 % of the window)`` is not worth breaking the prompt cache for."""

SMALL_RESULT = 32
"""Results up to this many tokens stay: the placeholder would hardly be shorter."""

CLIP_MIN_CHARS = 400
"""A clipped result keeps at least this much, so that the model sees what it was."""


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


def unseen_from(messages: Sequence[Message]) -> int:
    """Index of the first message the model has not answered yet (``len`` when there is none)."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "assistant":
            return index + 1
    return 0


def plan_clearing(view: Sequence[SentMessage], tokens: Mapping[str, int], window: int) -> Pruning:
    """The results to clear: all but the newest, those the model has not seen, and the protected newest ones.

    ``tokens`` are the costs of the messages in ``view``; ``window`` is the model's, or what stands in for it.
    Empty when too little would be freed. User and assistant messages and tool calls are never touched, and a result
    inside a long turn is as good as one of an earlier turn.
    """
    protect = min(PROTECT_TOKENS, int(window * PROTECT_SHARE))
    enough = min(MIN_FREED_TOKENS, int(window * MIN_FREED_SHARE))
    seen = unseen_from([sent.message for sent in view])
    cleared: list[str] = []
    kept = freed = 0
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
        if cost > SMALL_RESULT:
            cleared.append(message.id)
            freed += cost
    if not cleared or freed < enough:
        return Pruning()
    return Pruning(tuple(reversed(cleared)))


def plan_clips(messages: Sequence[Message], tokens: Mapping[str, int], room: int) -> Pruning:
    """Cuts the largest results of ``messages`` so that together they fit ``room`` tokens. Results are cut only as far
    as their share of the excess asks for; none below ``CLIP_MIN_CHARS``."""
    results = {m.id: m for m in messages if m.tool_result is not None}
    total = sum(tokens.get(i, 0) for i in results)
    if not results or total <= room:
        return Pruning()
    # Results that fit an even share stay whole; what they leave over is shared by the larger ones.
    left, clips = max(0, room), {}
    waiting = sorted(results, key=lambda i: tokens.get(i, 0))
    for position, message_id in enumerate(waiting):
        cost = tokens.get(message_id, 0)
        share = left // (len(waiting) - position)
        if cost <= share:
            left -= cost
            continue
        result = results[message_id].tool_result
        text = result.text if result is not None else ""
        chars = max(CLIP_MIN_CHARS, int(len(text) * share / max(1, cost)))
        if chars < len(text):
            clips[message_id] = chars
        left -= share
    return Pruning((), clips)
