"""Finds which earlier steps the next request continues, and what each sent: reasoning, tool results, its branch.

A finished step may be built on where its list of messages, plus its answer, begins the list to be sent now. So
compaction, undo, rewind and fork need no rule of their own, and because steps are stored, neither does a restart.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import TypeVar

from agent_tui.context.tokens import Family, estimate_message
from agent_tui.models.messages import Message
from agent_tui.models.requests import SentMessage
from agent_tui.models.session import Branch
from agent_tui.models.steps import CompactionRecord, SentRun
from agent_tui.models.usage import ABSURD_WINDOWS, TokenUsage
from agent_tui.providers.dialects.shared import ReplayPlan
from agent_tui.providers.reasoning import carries_reasoning
from agent_tui.records import dataclass

T = TypeVar("T")


def usage_problem(usage: TokenUsage | None, window: int | None) -> str | None:
    """Why a step's usage is no measure of its context, in words for people; None when it is one."""
    if usage is None:
        return "the provider reported no usage"
    if not usage.anchors or usage.output < 0:
        return "the reported usage is not the size of a context"
    if window and usage.input + usage.output > ABSURD_WINDOWS * window:
        return "the reported usage is impossible"
    return None


def common_prefix(old: list[T], new: list[T]) -> int:
    """Returns how many leading items two lists share; fast when one begins with the other."""
    low, high = 0, min(len(old), len(new))
    if old[:high] == new[:high]:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if old[:middle] == new[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def runs_of(view: Sequence[SentMessage], plan: ReplayPlan, family: str) -> list[SentRun]:
    """The runs of a request that is sent with this plan."""
    runs: list[SentRun] = []
    for index, item in enumerate(view):
        message = item.message
        if message.role != "assistant" or not carries_reasoning(message, family):
            continue
        status = plan.message_status(message.id)
        share = round(status.counted, 4) if status is not None else 0.0
        sent = int(status is not None and status.resent)
        if not runs or (runs[-1][1], runs[-1][2]) != (share, sent):
            runs.append((index, share, sent))
    return runs


def without(runs: Sequence[SentRun], dropped: Sequence[int], end: int) -> list[SentRun]:
    """The runs after the provider said that it dropped the blocks of the answers at these indexes."""
    result = list(runs)
    for index in sorted(dropped):
        after = run_at(result, index + 1)
        result = [r for r in result if r[0] not in (index, index + 1)]
        result.append((index, 0.0, 0))
        if index + 1 < end and after is not None:
            result.append((index + 1, after[1], after[2]))
        result.sort(key=lambda run: run[0])
    joined: list[SentRun] = []
    for run in result:
        if not joined or joined[-1][1:] != run[1:]:
            joined.append(run)
    return joined


def dropped_indexes(view: Sequence[SentMessage], paths: Sequence[str]) -> list[int]:
    """Answers whose blocks a provider names by their places in the request, ``messages.1.content.0``. On the wire
    neighbours of one side are one message, and results are the user's."""
    named = {int(p[1]) for path in paths if len(p := path.split(".")) > 1 and p[0] == "messages" and p[1].isdigit()}
    if not named:
        return []
    found: list[int] = []
    place, side = -1, ""
    for index, item in enumerate(view):
        own = "assistant" if item.message.role == "assistant" else "user"
        if own != side:
            place, side = place + 1, own
        if own == "assistant" and place in named:
            found.append(index)
    return found


def run_at(runs: Sequence[SentRun], index: int) -> SentRun | None:
    """The run an answer at an index belongs to; None before the first."""
    number = bisect_right(runs, index, key=lambda run: run[0])
    return runs[number - 1] if number else None


def share_at(runs: Sequence[SentRun], index: int) -> float:
    run = run_at(runs, index)
    return run[1] if run is not None else 0.0


def differences(before: Sequence[SentRun], after: Sequence[SentRun], end: int) -> Iterator[tuple[int, int, float]]:
    """Stretches ``[start, stop)`` below ``end`` of which another share counted after than before, and how much less."""
    places = sorted({0, *(r[0] for r in before), *(r[0] for r in after)} - {end})
    for number, start in enumerate(places):
        if start >= end:
            return
        stop = min(end, places[number + 1]) if number + 1 < len(places) else end
        less = share_at(before, start) - share_at(after, start)
        if less:
            yield start, stop, less


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
