"""A tool call in words: what it does, and what came of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_tui.models.events import OWN_COMMAND
from agent_tui.models.messages import FEEDBACK, INTERRUPTED_RESULT, NO_OUTPUT, REFUSED
from agent_tui.text.cells import shorten
from agent_tui.text.clean import drawable_output
from agent_tui.text.diff import read_diff
from agent_tui.text.numbers import duration, lines_changed, lines_in, plural

if TYPE_CHECKING:
    from agent_tui.models.messages import ToolResultPart

_OF_A_PATH = frozenset({"read", "edit", "write", "list"})
"""Tools that are about one file or folder: of it, the end says most."""
_COMMANDS = frozenset({"bash", "jobs"})
"""Tools that show what a program said: its last lines say most."""
_COUNTED = frozenset({"list", "glob", "grep", "fetch", "web_search", "recall", "context", "tool_search"})
"""Tools whose line says how much they found."""
_TOLD = _COUNTED | {"read", "skill", "todo"}
"""Tools of whose output nothing is seen before it is opened: it is for the model."""
LONG_FACT = 60
"""Characters of a fact in the line of a call."""

ITEM_STATES = ("completed", "in_progress", "pending")
Item = tuple[str, str]
"""Text and status, one of ``ITEM_STATES``."""


def call_label(name: str, summary: str) -> str:
    """The tool's name and what it does, the same while it runs and afterwards."""
    first, _, rest = summary.partition(" ")
    if first == f"{name}:":
        return f"{name} {rest}"
    return summary if first == name or name == OWN_COMMAND or "__" in name else f"{name} {summary}"


def about_a_path(name: str) -> bool:
    """Returns whether a path follows the tool's name in its label; such a path is cut at its beginning."""
    return name in _OF_A_PATH


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


def changed_lines(result: ToolResultPart) -> tuple[int, int]:
    """Returns how many lines a change adds, and how many it removes."""
    display = result.display or {}
    added, removed = display.get("added"), display.get("removed")
    if isinstance(added, int) and isinstance(removed, int):
        return added, removed
    diff = read_diff(shown(result)[1])
    return diff.added, diff.removed


def change_lines(text: str) -> list[str]:
    """The lines of a diff as they are said, of a text that is harmless already. Nothing is left out but the numbers of
    its hunks: the first line of each has its own."""
    said: list[str] = []
    begins = True
    for line in read_diff(text).lines:
        if line.kind in ("file", "note", "gap"):
            said += [line.text] if line.text else []
        else:
            said += [f"line {line.number}:"] if begins and line.number is not None else []
            said.append(f"{line.sign} {line.text}")
        begins = line.kind in ("file", "gap") or (begins and line.kind == "note")
    return said


class Excerpt(NamedTuple):
    """What is seen of a result before it is opened: lines, and how many more there are; the last lines or the first."""

    lines: list[str]
    hidden: int
    last: bool


LAST_LINES, FIRST_LINES = 5, 3
"""Lines of a command's output that are seen, and of what else has something to say."""
LONG_LINE = 500
"""Characters of one of them."""


def excerpt(result: ToolResultPart) -> Excerpt | None:
    """The last lines of a command, the first ones of an error, a server's answer or a subagent's; None of what is told
    in the line of the call or is a diff or a list."""
    kind, text = shown(result)
    ran = result.name in _COMMANDS
    if text.startswith(INTERRUPTED_RESULT):
        # The first line is for the model; what follows is what the tool had said.
        text = text.partition("\n")[2]
    if kind == "diff" or items_of(result) or text.startswith(REFUSED):
        return None
    if not result.is_error and (result.name in _TOLD or "answer" in (result.display or {})):
        return None
    code = (result.display or {}).get("exit_code")
    text = text.strip("\n").removesuffix(f"[exit code {code}]").rstrip()
    if not text or text == NO_OUTPUT:
        return None
    count = text.count("\n") + 1
    if result.is_error and count == 1 and not ran and len(text) <= LONG_FACT:
        return None
    most = LAST_LINES if ran or result.is_error else FIRST_LINES
    # One line less would be no shorter with a line that says so.
    most += count == most + 1
    lines = text.rsplit("\n", most)[-most:] if ran else text.split("\n", most)[:most]
    total = (result.display or {}).get("lines")
    hidden = max(count, total if isinstance(total, int) else 0) - len(lines)
    return Excerpt([drawable_output(line[:LONG_LINE]) for line in lines], max(0, hidden), ran)


def result_facts(result: ToolResultPart, excerpted: bool = False) -> Iterator[str]:
    """Yields what came of a call: how much it said, what it changed, why it failed, and how long it took.
    ``excerpted``: the excerpt is shown as well, so a reason in it is not repeated here."""
    kind, text = shown(result)
    display = result.display or {}
    code = display.get("exit_code")
    items = items_of(result)
    if items:
        yield progress(items)
    elif result.text.startswith(INTERRUPTED_RESULT):
        yield "interrupted"
    elif result.is_error and (refused := _refusal(result.text)):
        yield refused
    elif result.is_error and isinstance(code, int):
        said = str(display.get("summary", ""))
        why = said if said.startswith(("timed out", "ended: ")) else "ended by a signal" if code else "ended"
        yield f"exit code {code}" if code > 0 else why
    elif result.is_error and excerpted and excerpt(result) is not None:
        yield "refused" if text.startswith("Refused: ") else "failed"
    elif result.is_error:
        yield shorten(drawable_output(text.strip().split("\n", 1)[0]), LONG_FACT) or "failed"
    elif answer := display.get("answer"):
        yield shorten(drawable_output(str(answer)), LONG_FACT)
    elif kind == "diff":
        yield lines_changed(*changed_lines(result))
        if checked := display.get("check"):
            yield shorten(drawable_output(str(checked)), LONG_FACT)
    elif result.name == "read" and (read := _lines_read(display)):
        yield read
    elif result.name in _COUNTED and isinstance(counted := display.get("summary"), str):
        yield drawable_output(counted)[:LONG_FACT]
    elif text == NO_OUTPUT:
        yield "no output"
    elif text:
        yield from _lines(result, text)
    if result.seconds is not None and result.seconds >= 0.05:
        yield duration(result.seconds)


def facts_in_words(result: ToolResultPart, excerpted: bool = False) -> Iterator[str]:
    """The same without signs and colours: what a change did, and that a call failed, stands in words."""
    kind, _ = shown(result)
    if kind == "diff" and not result.is_error:
        added, removed = changed_lines(result)
        yield f"{plural(added, 'line')} added, {removed} removed"
        if result.seconds is not None and result.seconds >= 0.05:
            yield duration(result.seconds)
    elif result.is_error:
        first, *rest = result_facts(result, excerpted)
        first = re.sub(r"^Refused: ", "refused: ", first)
        yield first if first.startswith(("refused", "failed", "interrupted")) else f"failed: {first}"
        yield from rest
    else:
        yield from result_facts(result)


def _lines_read(display: dict[str, Any]) -> str:
    """Returns which lines of a file were read, where not all of them were."""
    first, last, total = (display.get(key) for key in ("first", "last", "total"))
    if not isinstance(first, int) or not isinstance(last, int):
        return ""
    if first == 1 and last == total:
        return plural(last, "line")
    return f"lines {first:,}–{last:,}" + (f" of {total:,}" if isinstance(total, int) else "")


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
