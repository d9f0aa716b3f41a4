"""Prompt cache markers for Claude, wherever it is served."""

from __future__ import annotations

from collections.abc import Sequence

from agent_tui.models.messages import Metadata

MARKER = {"type": "ephemeral"}
_MOST_IN_MESSAGES = 3
"""Anthropic's API takes four markers; one is for tools and system prompt."""


def add_breakpoints(
    messages: list[Metadata],
    tools: list[Metadata],
    stable_system: int,
    starts_with_summary: bool,
    forgets: bool,
    ttl: str | None = None,
) -> None:
    """Mark at most four places up to which the prompt may be cached (the limit of Anthropic's API): tools and system
    together, and those of ``marked_places``.

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
    said = messages if head is None else messages[1:]
    for place in marked_places([m["role"] for m in said], starts_with_summary, forgets):
        _mark_message(said[place], marker)


def marked_places(roles: Sequence[str], starts_with_summary: bool, forgets: bool) -> list[int]:
    """The messages of a conversation that are marked, by index, ascending; system prompts are not among ``roles``.

    What the request before wrote ends at the input that the newest answer answered. It is marked again at that very
    place: Anthropic looks back only ``LOOK_BACK`` blocks from a marker, and an answer with many calls and their results
    has more. ``forgets``: the provider leaves out earlier thinking when the user speaks, so what was written since then
    fits no longer; the user message that began the turn of the newest answer is where the rest ends. It stays marked
    through the whole turn, which keeps it alive. The summary of what was compacted takes a marker that is left.
    """
    newest = len(roles) - 1
    while newest >= 0 and roles[newest] != "assistant":
        newest -= 1
    wanted = [_input_before(roles, len(roles)), _input_before(roles, newest)]
    if forgets:
        wanted.append(_input_before(roles, newest, ("user",)))
    if starts_with_summary:
        wanted.append(0)
    places = [place for place in dict.fromkeys(wanted) if place is not None]
    return sorted(places[:_MOST_IN_MESSAGES])


def _input_before(roles: Sequence[str], end: int, of: tuple[str, ...] = ("user", "tool")) -> int | None:
    return next((n for n in range(end - 1, -1, -1) if roles[n] in of), None)


def _mark_message(message: Metadata, marker: Metadata) -> None:
    if message["role"] == "tool":
        message["cache_control"] = dict(marker)
    elif isinstance(message["content"], list):
        _mark(message["content"][-1], marker)


def _mark(block: Metadata, marker: Metadata) -> None:
    block["cache_control"] = dict(marker)
