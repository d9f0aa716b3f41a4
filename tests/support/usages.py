"""A breakdown of the context as the screen is given it, with numbers that add up."""

from __future__ import annotations

from typing import Any

from agent_tui.models.context import Accuracy, Calculation, ContextRow, ContextUsage, SessionTotals
from agent_tui.models.usage import Cost, TokenUsage


def row(id: str, tokens: int, label: str = "", **more: Any) -> ContextRow:
    """A row of the breakdown; children given as ``children`` must add up to ``tokens``."""
    more.setdefault("basis", "estimated")
    more.setdefault("estimated_tokens", tokens if more["basis"] == "estimated" else 0)
    return ContextRow(id, label or id.replace("_", " ").capitalize(), tokens, **more)


def sample_usage(results: int = 6) -> ContextUsage:
    """A usage whose numbers add up: 84 200 of 200 000 tokens, with ``results`` tool results."""
    sizes = [41_000 // results] * results
    sizes[0] += 41_000 - sum(sizes)
    tool_results = [
        row(
            "message",
            size,
            f"read src/module_{i}.py",
            message_id=f"msg_{i}",
            basis="derived",
            cached=i < results - 1,
            detail="file",
        )
        for i, size in enumerate(sizes)
    ]
    messages = row(
        "messages",
        69_900,
        basis="derived",
        estimated_tokens=100,
        children=[
            row("user", 3_200, basis="derived", cached=True),
            row("assistant", 12_300, basis="derived", cached=True),
            row("tool_calls", 6_800, "Tool calls", basis="derived", cached=True),
            row("tool_results", 41_000, "Tool results", basis="derived", children=tool_results),
            row("reasoning", 6_600, basis="derived", replay="resent", cached=True),
        ],
    )
    rows = [
        row("system", 2_600, "System prompt", cached=True),
        row("environment", 500, cached=True),
        row("memory", 1_400, "Memory (2)", detail="AGENTS.md", cached=True),
        row("skills", 0),
        row(
            "tools",
            9_800,
            "Tools (14)",
            cached=True,
            deferred_tokens=12_000,
            children=[
                row("builtin", 3_600, "Built-in", cached=True),
                row("mcp:github", 6_200, "github (MCP)", cached=True),
            ],
        ),
        row("documents", 0),
        messages,
    ]
    return ContextUsage(
        model="claude-sonnet-4-6",
        window=200_000,
        reserve=32_000,
        limit=168_000,
        total=84_200,
        free=83_800,
        over=0,
        basis="derived",
        estimated_tokens=100,
        would_compact=False,
        turns_left=9,
        calculation=Calculation(82_000, 2_100, 0, 0, 0, 100),
        rows=rows,
        accuracy=Accuracy(84, 0.1, 0.2, 31, 1.02),
        session=SessionTotals(TokenUsage(1_200_000, 38_000, 9_000, 972_000, 40_000), Cost(0.42), 1, 31),
        why="No: 84,200 is 83,800 below the limit of 168,000.",
    )
