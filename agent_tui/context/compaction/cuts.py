"""Where a conversation may be cut, and what its messages cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent_tui.models.context import ContextRow, ContextUsage
from agent_tui.models.messages import Message


def message_tokens(usage: ContextUsage) -> dict[str, int]:
    """What each sent message costs, from the breakdown's leaves: they add up to the messages' row."""
    costs: dict[str, int] = {}
    for row in usage.rows:
        if row.id == "messages":
            for leaf in _leaves(row):
                if leaf.message_id is not None:
                    costs[leaf.message_id] = costs.get(leaf.message_id, 0) + leaf.tokens
    return costs


def valid_cuts(path: Sequence[Message]) -> list[bool]:
    """For each position, whether the conversation may be cut before it: never between a call and its result."""
    cuts = [True] * (len(path) + 1)
    result_ahead = False
    for index in range(len(path) - 1, -1, -1):
        role = path[index].role
        result_ahead = role == "tool" or (result_ahead and role == "user")
        cuts[index] = not result_ahead
    return cuts


def newest_user(path: Sequence[Message]) -> int | None:
    """Index of the newest message of the user; None without one."""
    return next((i for i in range(len(path) - 1, -1, -1) if path[i].role == "user"), None)


def cut_at_or_before(cuts: Sequence[bool], index: int) -> int:
    """The last valid cut up to an index; the beginning always is one."""
    while not cuts[index]:
        index -= 1
    return index


def _leaves(row: ContextRow) -> Iterator[ContextRow]:
    if not row.children:
        yield row
    for child in row.children:
        yield from _leaves(child)
