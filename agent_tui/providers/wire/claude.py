"""Prompt cache markers for Claude, wherever it is served."""

from __future__ import annotations

from agent_tui.models.messages import Metadata

MARKER = {"type": "ephemeral"}


def add_breakpoints(
    messages: list[Metadata],
    tools: list[Metadata],
    stable_system: int,
    starts_with_summary: bool,
    ttl: str | None = None,
) -> None:
    """Mark at most four places up to which the prompt may be cached (the limit of Anthropic's API): tools and system
    together, the summary, and the last two user or tool messages.

    ``stable_system``: how many of the system blocks are the same all session long; documents come after them.
    ``ttl``: how long it is to be kept; five minutes are meant where nothing is said. All markers say the same: one for
    an hour may not follow one for less (platform.claude.com/docs/en/build-with-claude/prompt-caching).
    """
    marker = MARKER if ttl in (None, "5m") else {**MARKER, "ttl": ttl}
    head = messages[0] if messages and messages[0]["role"] == "system" else None
    if head is not None and stable_system:
        _mark(head["content"][stable_system - 1], marker)
    elif tools:
        tools[-1]["cache_control"] = dict(marker)
    inputs = [m for m in messages if m["role"] in ("user", "tool")]
    if starts_with_summary and len(inputs) > 2:
        _mark_message(inputs[0], marker)
    for message in inputs[-2:]:
        _mark_message(message, marker)


def _mark_message(message: Metadata, marker: Metadata) -> None:
    if message["role"] == "tool":
        message["cache_control"] = dict(marker)
    elif isinstance(message["content"], list):
        _mark(message["content"][-1], marker)


def _mark(block: Metadata, marker: Metadata) -> None:
    block["cache_control"] = dict(marker)
