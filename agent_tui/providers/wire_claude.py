"""Prompt cache markers for Claude, wherever it is served."""

from __future__ import annotations

from typing import Any

from agent_tui.models.messages import Metadata

MARKER = {"type": "ephemeral"}
MAX_BREAKPOINTS = 4


def add_breakpoints(messages: list[Metadata], tools: list[Metadata], stable_system: int) -> None:
    """Mark at most four places up to which the prompt may be cached (the limit of Anthropic's API): tools and system
    together, the last summary's place being one of the older messages, and the last two user or tool messages.

    ``stable_system``: how many of the system blocks are the same all session long; documents come after them.
    """
    left = MAX_BREAKPOINTS
    head = messages[0] if messages and messages[0]["role"] == "system" else None
    if head is not None and stable_system:
        _mark(head["content"][stable_system - 1])
        left -= 1
    elif tools:
        tools[-1]["cache_control"] = dict(MARKER)
        left -= 1
    inputs = [m for m in messages if m["role"] in ("user", "tool")]
    chosen: list[Metadata] = inputs[-2:]
    if len(inputs) > 2 and left > 2:
        # After a compaction the first message is the summary; else it is the oldest prefix that is shared by all steps.
        chosen = [inputs[0], *chosen]
    for message in chosen[-left:]:
        content: Any = message["content"]
        if isinstance(content, list) and content:
            _mark(content[-1])


def _mark(block: Metadata) -> None:
    block["cache_control"] = dict(MARKER)
