"""What came of a tool call, in lines for the ear."""

from __future__ import annotations

from collections.abc import Iterator

from agent_tui.commands.tool_words import diff_size, items_of, result_facts, shown
from agent_tui.models.messages import INTERRUPTED_RESULT, ToolResultPart
from agent_tui.plain.spoken import spoken
from agent_tui.text.clean import drawable_output, spelled
from agent_tui.text.numbers import duration, plural

_STATES = {"completed": "done", "in_progress": "in progress", "pending": "to do"}
LABEL = 300
"""Characters of a call that are told."""


def result_lines(label: str, result: ToolResultPart) -> Iterator[str]:
    """``Tool read app.py: 40 lines``; of a list of things to do, each thing as a line below it."""
    yield f"Tool {spelled(label, line=True)[:LABEL]}: {spoken(', '.join(_facts(result))) or 'done'}"
    for text, status in items_of(result):
        yield f"{_STATES[status]}: {drawable_output(text)}".replace("\n", " ")


def _facts(result: ToolResultPart) -> Iterator[str]:
    kind, text = shown(result)
    if result.text.startswith(INTERRUPTED_RESULT):
        yield "interrupted"
    elif kind == "diff" and not result.is_error:
        added, removed = diff_size(text)
        yield f"{plural(added, 'line')} added, {removed} removed"
        if result.seconds is not None and result.seconds >= 0.05:
            yield duration(result.seconds)
    elif result.is_error:
        first, *rest = result_facts(result)
        yield first if first.startswith("refused") else f"failed: {first}"
        yield from rest
    else:
        yield from result_facts(result)


def result_text(label: str, result: ToolResultPart) -> str:
    """All of a result."""
    _, text = shown(result)
    return f"{spelled(label, line=True)}\n{drawable_output(text)}"
