"""The steps of a session as moments that one can go to: forwards and backwards, each in an instant."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Container, Sequence
from dataclasses import dataclass

from agent_tui.context.accounting.given.inputs import ContextInputs
from agent_tui.context.incremental.usage import Incremental
from agent_tui.context.past.rebuilt import Rebuilder, Session
from agent_tui.context.sent.branch import made_on
from agent_tui.models.context import ContextUsage
from agent_tui.models.messages import Message
from agent_tui.models.requests import SentMessage
from agent_tui.models.steps import CompactionRecord, Step

AHEAD = 16
"""Steps before the one asked for that are gone through on the way to it: going back meets them next. Forwards each
costs a millisecond or two, the first of them as much as a restart."""
KEPT = 64
"""Moments that are kept; those next to each other share their rows."""


@dataclass(slots=True, frozen=True)
class PastMoment:
    """The session just before a step was sent. ``number`` counts the turns' model calls in the order of time, from 1;
    ``usage`` is the calculator's answer, None where it cannot be had: ``problem`` then says why. ``path``
    is the conversation then, ``view`` what was sent of it, ``records`` the compactions made until then, in force or not
    as they were."""

    number: int
    step: Step
    usage: ContextUsage | None = None
    problem: str = ""
    view: Sequence[SentMessage] = ()
    path: Sequence[Message] = ()
    records: Sequence[CompactionRecord] = ()

    @property
    def differs(self) -> int | None:
        """Tokens by which the answer made again is more than the one that was shown; None where that was not stored."""
        if self.usage is None or self.step.estimated_input is None:
            return None
        return self.usage.total - self.step.estimated_input

    def left(self, path: Container[str]) -> bool:
        """Whether the conversation with these message ids does not go on from it: a rewind left it behind."""
        answer = self.step.message_id
        if answer is not None:
            return answer not in path
        return bool(self.path) and self.path[-1].id not in path


class History:
    """The moments of one session. May be asked from several threads."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._rebuilder = Rebuilder(session)
        self._accounts = Incremental()
        self._at = -1
        self._kept: OrderedDict[int, PastMoment] = OrderedDict()
        self._places: list[int] = []
        self._counted = 0

    @property
    def count(self) -> int:
        """How many steps there are: the model calls of the turns, those of branches that were left included."""
        steps = self._session.steps
        while self._counted < len(steps):
            if steps[self._counted].kind == "turn":
                self._places.append(self._counted)
            self._counted += 1
        return len(self._places)

    def between(self, before: int, number: int) -> list[Step]:
        """The other model calls (summaries, subagents) between two steps."""
        start, end = self._place(before) + 1, self._place(number)
        return [step for step in self._session.steps[start:end] if step.kind in ("compaction", "subagent")]

    def earlier(self, number: int) -> Sequence[Step]:
        """All model calls that were made when step ``number`` was sent."""
        return self._session.steps[: self._place(number)]

    def moment(self, number: int) -> PastMoment:
        """The session before step ``number`` (1 to ``count``) was sent. Raises IndexError for another."""
        if not 1 <= number <= self.count:
            raise IndexError(number)
        known = self._kept.get(number)
        if known is not None:
            return known
        # Backwards nothing can be taken over, forwards nearly all: so the way to it begins some steps earlier.
        start = number if self._at == number - 1 else max(1, number - AHEAD)
        for each in range(start, number):
            self._make(each)
        return self._make(number)

    def prepare(self, number: int) -> None:
        """Makes what going back from step ``number`` meets next; to be called in another thread."""
        near = number - AHEAD // 2
        if near >= 1 and near not in self._kept:
            self.moment(near)
        elif 1 <= number <= self.count:
            self.moment(number)

    def _make(self, number: int) -> PastMoment:
        with self._lock:
            known = self._kept.get(number)
            if known is not None:
                return known
            made = self._rebuilt(number)
            self._at = number
            if made.step.status != "running":
                self._kept[number] = made
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return made

    def _rebuilt(self, number: int) -> PastMoment:
        place = self._place(number)
        step, inputs = self._session.steps[place], self._rebuilder.inputs(place)
        path = self._rebuilder.path
        if isinstance(inputs, str):
            return PastMoment(number, step, problem=inputs, path=path)
        usage = self._accounts.usage(inputs)
        records = made_on(inputs.records, {message.id for message in path})
        return PastMoment(number, step, usage, "", inputs.view, path, records)

    def inputs(self, number: int) -> ContextInputs | str:
        """What the calculator was given before a step; a string says why that cannot be had."""
        with self._lock:
            return self._rebuilder.inputs(self._place(number))

    def _place(self, number: int) -> int:
        if not 1 <= number <= self.count:
            raise IndexError(number)
        return self._places[number - 1]
