"""What of a session is searched: titles, what the user wrote, what the model answered.

Output of tools is not (it is ten times the size of what was said), nor is reasoning; the transcript's own search sees
both.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from agent_tui.text.clean import clean_line
from agent_tui.text.search import Span, contains, fold, spans

SEARCHED = "m.in_tree AND m.role IN ('user', 'assistant')"
"""Which rows of ``message AS m`` are."""

_LEAD = 40
"""Characters of a line that are kept ahead of what was found in it."""

_TEXT_PART = '"type":"text"'


def text_of(connection: sqlite3.Connection, n: int) -> str:
    """The text of the message in row ``n``; of a damaged one, what can be read."""
    texts: list[str] = []
    rows = connection.execute("SELECT data FROM part WHERE message = ? ORDER BY position", (n,))
    for (data,) in rows:
        if isinstance(data, str) and _TEXT_PART in data:
            part = _object(data)
            if part.get("type") == "text" and isinstance(part.get("text"), str):
                texts.append(part["text"])
    return "\n".join(texts)


def created_of(data: str) -> float:
    """When a message was said, from the fields that have no column."""
    created = _object(data).get("created")
    return float(created) if isinstance(created, (int, float)) else 0.0


def found_line(text: str, words: Sequence[str], width: int = 240) -> tuple[str, list[Span]]:
    """The line of a text that has most of ``search_words``, without control characters and cut around the first of
    them, with their places in it."""
    best, most = "", -1
    for line in text.splitlines():
        if line.strip():
            folded = fold(line)
            count = sum(contains(folded, word) for word in words)
            if count > most:
                best, most = line, count
            if count == len(words):
                break
    shown = clean_line(best).strip()
    first = next(iter(spans(shown, words)), (0, 0))[0]
    if first > _LEAD and len(shown) > width:
        shown = "…" + shown[first - _LEAD :]
    if len(shown) > width:
        shown = shown[: width - 1] + "…"
    return shown, spans(shown, words)


def _object(data: str) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
