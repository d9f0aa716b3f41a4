"""Web searches that run at a provider, as people see them: like calls of a tool with their results.

The metadata of a ``SearchPart`` hold ``id``, which a call and what it found share; ``query`` of a call, empty until it
is known; ``sources``, titles and addresses (None: not told), or ``error`` of what it found; ``tokens``, roughly, that
it has as input; ``item`` as the provider sent it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from agent_tui.models.messages import (
    SEARCH_TOOL,
    Message,
    Metadata,
    Origin,
    Part,
    SearchPart,
    ToolCallPart,
    ToolResultPart,
)
from agent_tui.models.requests import Target
from agent_tui.models.steps import FixedPart
from agent_tui.text.numbers import plural

MOST_SOURCES = 50
"""Sources of one search that people are shown."""


def searches_in(parts: Iterable[Part]) -> list[SearchPart]:
    return [part for part in parts if isinstance(part, SearchPart)]


def search_id(part: SearchPart) -> str:
    return str(_of(part).get("id") or "")


def search_item(part: SearchPart) -> Metadata | None:
    """What the provider sent, to be sent back; None where nothing of it goes back."""
    item = _of(part).get("item")
    return item if isinstance(item, dict) else None


def search_call(part: SearchPart) -> ToolCallPart | None:
    """The call; None for what an earlier one found."""
    query = _of(part).get("query")
    if query is None:
        return None
    arguments = json.dumps({"query": str(query)}, ensure_ascii=False) if query else "{}"
    return ToolCallPart(search_id(part), SEARCH_TOOL, arguments)


def search_result(part: SearchPart) -> ToolResultPart | None:
    """What was found, a source a line; None for a call alone."""
    metadata = _of(part)
    if error := metadata.get("error"):
        return ToolResultPart(search_id(part), SEARCH_TOOL, f"The search failed: {error}", is_error=True)
    if "sources" not in metadata:
        return None
    if (sources := metadata["sources"]) is None:
        return ToolResultPart(search_id(part), SEARCH_TOOL, "")
    lines = [" · ".join(map(str, filter(None, source))) for source in sources[:MOST_SOURCES]]
    summary = plural(len(sources), "source")
    return ToolResultPart(search_id(part), SEARCH_TOOL, "\n".join(lines), display={"kind": "text", "summary": summary})


def search_calls(parts: Iterable[Part]) -> list[tuple[ToolCallPart, ToolResultPart | None]]:
    """The searches among the parts of an answer, each with what it found; None where that is not among them."""
    searches = searches_in(parts)
    found = {result.call_id: result for part in searches if (result := search_result(part)) is not None}
    calls = {call.call_id: call for part in searches if (call := search_call(part)) is not None}
    alone = {name: ToolCallPart(name, SEARCH_TOOL, "{}") for name in found if name not in calls}
    return [(call, found.get(call.call_id)) for call in (alone | calls).values()]


def search_text(part: SearchPart) -> str:
    """All of it, for reading."""
    result = search_result(part)
    return "\n".join(filter(None, [str(_of(part).get("query") or ""), result.text if result is not None else ""]))


def searches_go_back(target: Target, fixed: Iterable[FixedPart]) -> bool:
    """Returns whether a request with this prefix sends a model its searches: most take them only beside their tool."""
    return target.api == "responses" or any(part.added is not None for part in fixed)


def is_by(origin: Origin, target: Target) -> bool:
    return (origin.provider, origin.api, origin.model) == (target.provider, target.api, target.model)


def search_tokens(part: SearchPart, origin: Origin | None, target: Target | None) -> int:
    """What it has as input of a model, roughly: nothing of it goes to another one than that which made it, nor where
    ``target`` is None."""
    if target is None or (origin is not None and not is_by(origin, target)):
        return 0
    tokens = _of(part).get("tokens")
    return tokens if isinstance(tokens, int) and search_item(part) is not None else 0


def is_paused(message: Message) -> bool:
    """Returns whether an answer ends in the middle of a search: it goes on where it is sent back."""
    last = message.parts[-1] if message.parts else None
    return isinstance(last, SearchPart) and search_item(last) is not None


def _of(part: SearchPart) -> dict[str, Any]:
    return part.provider_metadata or {}
