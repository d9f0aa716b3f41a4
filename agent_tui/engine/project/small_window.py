"""Which tools a small window has room for."""

from __future__ import annotations

from collections.abc import Sequence

from agent_tui.context.tokens import char_tokens
from agent_tui.engine.project.prelude import schema_text
from agent_tui.models.requests import OfferedTool, SystemBlock

SMALL_WINDOW = 16_384
"""Up to this many tokens a window counts as small."""

FIXED_SHARE = 0.5
"""Of a small window: what system prompt and tools may take together, so that a conversation has room."""

LEAST_SHARE = 0.125
"""Of a small window: what tools may take whatever the system prompt leaves."""

SHOWN = 8

PRIORITY = (
    "read",
    "bash",
    "edit",
    "apply_patch",
    "write",
    "grep",
    "glob",
    "list",
    "jobs",
    "todo",
    "fetch",
    "subagent",
    "skill",
)
"""The core first: without reading, running and editing there is no work. MCP tools come last."""


def fitting_tools(blocks: Sequence[SystemBlock], tools: Sequence[OfferedTool], window: int | None) -> list[OfferedTool]:
    """The tools to offer, in the order given: all of them, but where they and the system blocks would take more than
    half of a small window only the most needed ones.

    By the character rule, so that the answer does not change when counts come in: the tools are part of the prefix
    that the provider caches.
    """
    if not window or window > SMALL_WINDOW:
        return list(tools)
    room = window * FIXED_SHARE - sum(char_tokens(b.text) for b in blocks)
    room = max(room, window * LEAST_SHARE)
    chosen: set[int] = set()
    for index in sorted(range(len(tools)), key=lambda i: (_rank(tools[i]), i)):
        if tools[index].deferred:
            chosen.add(index)
            continue
        room -= char_tokens(schema_text(tools[index].schema))
        if room < 0:
            break
        chosen.add(index)
    return [tool for i, tool in enumerate(tools) if i in chosen]


def fewer_tools_text(window: int, left_out: Sequence[str]) -> str:
    """Told once when a window has no room for every tool."""
    names = ", ".join(left_out[:SHOWN]) + (f" and {len(left_out) - SHOWN} more" if len(left_out) > SHOWN else "")
    return (
        f"The window of {window:,} tokens is small: {names} left out, so that there is room to talk. /tools lists them."
    )


def _rank(tool: OfferedTool) -> int:
    name = tool.schema.name
    return PRIORITY.index(name) if name in PRIORITY and tool.group == "builtin" else len(PRIORITY)
