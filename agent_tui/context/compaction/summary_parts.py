"""What a summary message keeps besides what a model writes: the user's own words, the plan they approved last, and the
todo list as it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent_tui.context.compaction.collected_files import in_our_words
from agent_tui.context.compaction.summary_prompt import clip
from agent_tui.context.tokens.estimate import char_tokens, estimate_message
from agent_tui.context.tokens.families import Family
from agent_tui.models.messages import APPROVED, PLAN_TOOL, Message, TextPart
from agent_tui.text.clean import pictured, printable_line
from agent_tui.tools.aliases import own_name

TODO_TOOL = "todo"
TODO_BOXES = {"completed": "x", "in_progress": ">"}
TODO_CHARS = 300

WORTH_CLIPPING = 60
"""Tokens of a large message that are worth keeping of it; with less left it is only counted."""


def user_words(messages: Sequence[Message], budget: int, family: Family) -> tuple[tuple[str, ...], int]:
    """The user's own words that fit ``budget`` tokens, oldest first, and how many messages are left out.

    The small ones come first, however old: a rule in one line must not give way to a paste. Among those of about the
    same size the newest win. What then is left goes to the newest of the others, cut visibly.
    """
    words = [m for m in messages if m.role == "user" and m.text.strip()]
    costs = [_cost(m, family) for m in words]
    kept: dict[int, str] = {}
    left = budget
    for index in sorted(range(len(words)), key=lambda i: (costs[i].bit_length(), -i)):
        if costs[index] <= left:
            kept[index] = words[index].text
            left -= costs[index]
    newest = next((i for i in range(len(words) - 1, -1, -1) if i not in kept), None)
    if newest is not None and left >= min(WORTH_CLIPPING, budget):
        text = words[newest].text
        kept[newest] = clip(text, len(text) * left // costs[newest])
    return tuple(kept[i] for i in sorted(kept)), len(words) - len(kept)


def _cost(message: Message, family: Family) -> int:
    """What the words alone cost, without attachments."""
    text_only = all(isinstance(p, TextPart) for p in message.parts)
    raw = message.raw_tokens if text_only else None
    return estimate_message(replace(message, parts=[TextPart(message.text)], raw_tokens=raw), family).tokens


def todo_lines(messages: Sequence[Message], budget: int) -> tuple[str, ...]:
    """The todo list as the newest successful call left it, one line an item, within ``budget`` tokens. What is done
    gives way first. The model's text is hostile: one line each, no control characters."""
    succeeded = {r.call_id for m in messages if (r := m.tool_result) is not None and not r.is_error}
    for message in reversed(messages):
        for call in reversed(message.tool_calls):
            if own_name(call.name) == TODO_TOOL and call.call_id in succeeded:
                return _within(_items(call.arguments), budget)
    return ()


def plan_lines(messages: Sequence[Message], cut: int, budget: int) -> tuple[str, ...]:
    """The plan that the user approved last, as lines of a quotation (its headings are none of the summary's), within
    ``budget`` tokens; empty where it stands among the messages from ``cut`` on, which are kept."""
    for index in range(len(messages) - 1, -1, -1):
        result = messages[index].tool_result
        display = result.display if result is not None and own_name(result.name) == PLAN_TOOL else None
        if display and display.get(APPROVED):
            if index >= cut:
                return ()
            text = pictured(str(display.get("text") or "").strip())
            cost = char_tokens(text) + text.count("\n") + 1
            kept = text if cost <= budget else clip(text, int(len(text) * budget / cost))
            return tuple(f"> {line}".rstrip() for line in kept.splitlines())
    return ()


def _items(arguments: str) -> list[tuple[str, bool]]:
    items = in_our_words(TODO_TOOL, arguments)[1].get("items")
    lines: list[tuple[str, bool]] = []
    for item in items if isinstance(items, list) else []:
        if isinstance(item, dict) and isinstance(item.get("text"), str):
            text = printable_line(item["text"], TODO_CHARS)
            status = str(item.get("status"))
            lines.append((f"- [{TODO_BOXES.get(status, ' ')}] {text}", status == "completed"))
    return lines


def _within(lines: list[tuple[str, bool]], budget: int) -> tuple[str, ...]:
    left = float(budget)
    kept: set[int] = set()
    for index in sorted(range(len(lines)), key=lambda i: (lines[i][1], i)):
        left -= char_tokens(lines[index][0]) + 1
        if left < 0:
            break
        kept.add(index)
    return tuple(line for i, (line, _) in enumerate(lines) if i in kept)
