"""The branches of a session, and what of its compactions holds on each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from agent_tui.context.tokens.estimate import estimate_message
from agent_tui.context.tokens.families import Family
from agent_tui.models.branches import Branch
from agent_tui.models.messages import Message
from agent_tui.models.steps import CompactionRecord


def on_branch(records: Iterable[CompactionRecord], path: Set[str]) -> list[CompactionRecord]:
    """All records as they are for the conversation with these message ids: those that were made beside it are out of
    force. They stay in the list, as a step of another branch may say that it was sent under them."""
    return [r if path.isdisjoint(r.beside) else replace(r, active=False) for r in records]


def made_on(records: Iterable[CompactionRecord], path: Set[str]) -> list[CompactionRecord]:
    """Those that were not made beside it, in force or undone."""
    return [r for r in records if path.isdisjoint(r.beside)]


def beside(messages: Mapping[str, Message], path: Sequence[Message]) -> list[str]:
    """The first messages of all branches that leave ``path`` somewhere, or begin where it does."""
    on_path = {message.id for message in path}
    return [
        message.id
        for message in messages.values()
        if message.id not in on_path and (message.parent_id is None or message.parent_id in on_path)
    ]


def branches(messages: Mapping[str, Message], path: Sequence[Message], family: Family) -> list[Branch]:
    """All ways through the messages that are not ``path``, one for each end: the newest end of what forks off at one
    place is the branch, the others fork off it. Those that fork off first come first; of those at one place, the
    newest."""
    after: dict[str | None, list[str]] = {}
    for message in messages.values():
        after.setdefault(message.parent_id, []).append(message.id)
    newest: dict[str, int] = {}
    for place, message_id in reversed(list(enumerate(messages))):
        newest[message_id] = max((newest.get(child, place) for child in after.get(message_id, ())), default=place)
    on_path = {message.id for message in path}
    forks: list[str | None] = [None, *(message.id for message in path)]
    todo = [
        _Fork(fork, child, shared)
        for shared, fork in enumerate(forks)
        for child in sorted(after.get(fork, ()), key=newest.__getitem__, reverse=True)
        if child not in on_path
    ]
    found: list[Branch] = []
    todo.reverse()
    while todo:
        fork = todo.pop()
        own: list[Message] = []
        inner: list[_Fork] = []
        at: str | None = fork.child
        while at is not None:
            own.append(messages[at])
            following = sorted(after.get(at, ()), key=newest.__getitem__)
            inner += [_Fork(at, other, fork.shared + len(own), depth=fork.depth + 1) for other in following[:-1]]
            at = following[-1] if following else None
        end = own[-1].id
        todo += [replace(each, under=end) for each in reversed(inner)]
        tokens = sum(estimate_message(message, family).tokens for message in own)
        found.append(Branch(end, fork.fork, own, fork.shared, tokens, fork.under, fork.depth))
    return found


@dataclass(slots=True, frozen=True)
class _Fork:
    fork: str | None
    child: str
    shared: int
    under: str | None = None
    depth: int = 0
