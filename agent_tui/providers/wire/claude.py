"""Prompt cache markers for Claude, wherever it is served."""

from __future__ import annotations

from agent_tui.models.messages import Metadata

MARKER = {"type": "ephemeral"}


def add_breakpoints(
    messages: list[Metadata], tools: list[Metadata], stable_system: int, starts_with_summary: bool
) -> None:
    """Mark at most four places up to which the prompt may be cached (the limit of Anthropic's API): tools and system
    together, the summary, and the last two user or tool messages.

    ``stable_system``: how many of the system blocks are the same all session long; documents come after them.
    """
    head = messages[0] if messages and messages[0]["role"] == "system" else None
    if head is not None and stable_system:
        _mark(head["content"][stable_system - 1])
    elif tools:
        tools[-1]["cache_control"] = dict(MARKER)
    inputs = [m for m in messages if m["role"] in ("user", "tool")]
    if starts_with_summary and len(inputs) > 2:
        _mark_message(inputs[0])
    for message in inputs[-2:]:
        _mark_message(message)


def _mark_message(message: Metadata) -> None:
    if message["role"] == "tool":
        message["cache_control"] = dict(MARKER)
    elif isinstance(message["content"], list):
        _mark(message["content"][-1])


def _mark(block: Metadata) -> None:
    block["cache_control"] = dict(MARKER)
