"""A tool call in words: what it does, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from agent_tui.models.events import OWN_COMMAND
from agent_tui.models.messages import FEEDBACK, REFUSED
from agent_tui.text.cells import shorten
from agent_tui.text.clean import drawable_output
from agent_tui.text.numbers import duration, lines_in, plural

if TYPE_CHECKING:
    from agent_tui.models.messages import ToolResultPart

_SUBJECTS = (
    *("command", "pattern", "path", "file_path", "url", "query", "description", "task", "prompt", "question", "name"),
)
"""Arguments that say what a call is about, the most telling first."""
_OF_A_PATH = frozenset({"read", "edit", "write", "list"})
"""Tools that are about one file or folder: of it, the end says most."""

ITEM_STATES = ("completed", "in_progress", "pending")
Item = tuple[str, str]
"""Text and status, one of ``ITEM_STATES``."""


def call_summary(name: str, arguments: str) -> str:
    """A call in one line, before the tool has said what it will do: its name and what it is about."""
    data = argument_data(arguments)
    for subject in _SUBJECTS if isinstance(data, dict) else ():
        value = data.get(subject)
        if isinstance(value, str) and value:
            path = data.get("path")
            where = f" in {path}" if subject == "pattern" and isinstance(path, str) and path not in ("", ".") else ""
            return f"{name} {value}{where}"
    text = arguments.strip()
    return name if text in ("", "{}") else f"{name} {text[:200]}"


def call_label(name: str, summary: str) -> str:
    """The tool's name and what it does, the same while it runs and afterwards."""
    first, _, rest = summary.partition(" ")
    if first == f"{name}:":
        return f"{name} {rest}"
    return summary if first == name or name == OWN_COMMAND or "__" in name else f"{name} {summary}"


def about_a_path(name: str) -> bool:
    """Returns whether a path follows the tool's name in its label; such a path is cut at its beginning."""
    return name in _OF_A_PATH


def argument_data(arguments: str) -> Any:
    """The arguments as a value; None while they are not complete."""
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return None


def items_of(result: ToolResultPart | None) -> list[Item]:
    """The items of a result that is a list; none for every other result."""
    display: dict[str, Any] = (result.display if result is not None and not result.is_error else None) or {}
    items = display.get("items")
    if display.get("kind") != "list" or not isinstance(items, list):
        return []
    found = [(item.get("text"), item.get("status")) for item in items if isinstance(item, dict)]
    return [(text, status) for text, status in found if isinstance(text, str) and status in ITEM_STATES]


def progress(items: list[Item]) -> str:
    """Returns how much is done, for the line of the call."""
    return f"{sum(status == 'completed' for _, status in items)} of {len(items)} done"


def shown(result: ToolResultPart) -> tuple[str, str]:
    """Returns the part of a result that people are shown: its kind (``diff``, ``command``, ``text``) and text."""
    display = result.display or {}
    text = display.get("text")
    kind = display.get("kind")
    return (str(kind), text) if isinstance(text, str) and text else ("text", result.text)


def diff_size(text: str) -> tuple[int, int]:
    """Returns how many lines a unified diff adds, and how many it removes."""
    lines = text.split("\n")
    added = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    removed = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    return added, removed


def result_facts(result: ToolResultPart) -> Iterator[str]:
    """Yields what came of a call: how much it said, what it changed, why it failed, and how long it took."""
    kind, text = shown(result)
    items = items_of(result)
    if items:
        yield progress(items)
    elif result.is_error:
        yield _refusal(result.text) or drawable_output(text.strip().split("\n", 1)[0])[:60] or "failed"
    elif answer := (result.display or {}).get("answer"):
        yield shorten(drawable_output(str(answer)), 60)
    elif kind == "diff":
        added, removed = diff_size(text)
        yield f"+{added} −{removed}"
    elif text:
        yield from _lines(result, text)
    if result.seconds is not None and result.seconds >= 0.05:
        yield duration(result.seconds)


def _lines(result: ToolResultPart, text: str) -> Iterator[str]:
    """Yields how many lines there are, and where not all of them were sent to the model, how many of them."""
    display = result.display or {}
    count, sent = display.get("lines"), display.get("sent")
    if isinstance(count, int) and isinstance(sent, int):
        yield plural(count, "line")
        yield f"{sent:,} sent"
    else:
        yield plural(lines_in(text.rstrip("\n")), "line")


def _refusal(text: str) -> str:
    if not text.startswith(REFUSED):
        return ""
    word = text.removeprefix(REFUSED).strip().partition("\n")[0]
    feedback = word.removeprefix(FEEDBACK).strip() if word.startswith(FEEDBACK) else ""
    return f"refused: {drawable_output(feedback)[:50]}" if feedback else "refused"
