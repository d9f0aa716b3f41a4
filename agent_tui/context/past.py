"""A step of the past: what the calculator was given then, stored with it, and the same answer made of it again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

from agent_tui.context.accounting.inputs import CompactionSettings, ContextInputs
from agent_tui.context.accounting.next_input import compact_at_of
from agent_tui.context.accounting.usage import Calculator
from agent_tui.context.anchor import made_on, on_branch
from agent_tui.context.sent_lists import SentLists
from agent_tui.context.view import ViewBuilder, build_view
from agent_tui.models.context import ContextUsage
from agent_tui.models.messages import Message
from agent_tui.models.requests import Effort, ModelInfo, ModelSpec, ReplayRule, SentMessage, Target
from agent_tui.models.steps import CompactionRecord, Given, Step
from agent_tui.models.usage import Limits, Prices
from agent_tui.records import dataclass


def given_of(inputs: ContextInputs, head: str | None) -> Given:
    """Returns what is to be stored of these inputs; ``head`` is the id of the conversation's last message."""
    limits, settings = inputs.model.limits, inputs.settings
    return Given(
        head=head,
        calibrated=None if inputs.calibration is None else inputs.calibration.packed(),
        effort=inputs.effort,
        family=inputs.model.target.family,
        seeing=inputs.model.images is not False,
        files=inputs.model.files,
        bound=inputs.replay.bound,
        ask_drop=inputs.replay.ask_drop,
        adaptations=list(inputs.replay.adaptations),
        until=list(inputs.replay.until),
        text_until=list(inputs.replay.text_until),
        max_input=limits.max_input,
        max_output=limits.max_output,
        limit_source=limits.source,
        learned_at=limits.learned_at,
        compact_at=compact_at_of(inputs.model, settings),
        reserve=settings.max_output_reserve,
        auto_compact=settings.auto_compact,
        paused=settings.paused,
        off=settings.off,
    )


def given_again(given: Given, step: Step) -> dict[str, Any]:
    """The inputs that were stored with a step, by their names. Prices are not stored."""
    learned = ("window",) if given.limit_source == "learned" else ()
    limits = Limits(step.window, given.max_input, given.max_output, given.limit_source, learned, given.learned_at)
    target = Target(step.provider, step.api, step.model, given.family)
    spec, images = ModelSpec(step.model_key, step.model), None if given.seeing else False
    return {
        "model": ModelInfo(spec, target, limits, Prices(), images=images, files=given.files),
        "settings": CompactionSettings(given.auto_compact, given.compact_at, given.reserve, given.paused, given.off),
        "effort": next((effort for effort in get_args(Effort) if effort == given.effort), "off"),
        "calibration": given.calibration,
        "replay": ReplayRule([], given.bound, given.ask_drop, given.adaptations, given.until, given.text_until),
    }


NO_HEAD = "what it sent was not stored"
NO_PATH = "some of the messages it sent are missing"
OTHER_VIEW = "what it sent does not match the stored messages and compactions"


@dataclass(slots=True, frozen=True)
class StoredSession:
    """All that is stored of a session. The lists may grow while this is used; what is in them stays."""

    messages: Mapping[str, Message]
    steps: Sequence[Step]
    records: Sequence[CompactionRecord]
    summaries: Mapping[str, Message]
    inherited: int = 0


class Rebuilder:
    """Makes inputs of one step after the other: what a step has in common with the one asked for before is taken over.
    Equal to what a new one gives."""

    def __init__(self, session: StoredSession) -> None:
        self._session = session
        self.path: list[Message] = []
        """The conversation of the step that was asked for last; empty where that is not known."""
        self._places: dict[str, int] = {}
        self._builder = ViewBuilder()
        self._lists = SentLists()

    def inputs(self, index: int) -> ContextInputs | str:
        """The inputs before the step at ``index`` of the session's steps was sent; a string says why they cannot be
        had. They are only given where they are what was sent: its messages are compared with those that are known of
        the step."""
        session, step = self._session, self._session.steps[index]
        problem = NO_HEAD if step.given is None else self._walk(step.given.head)
        if step.given is None or problem:
            self.path, self._places = [], {}
            return problem
        made = [_then(record, step) for record in session.records if record.created <= step.created]
        records = on_branch(made, self._places.keys())
        view = self._builder.build(self.path, records, session.summaries)
        keys = [item.key for item in view]
        if len(view) != step.sent_count or not self._lists.begins(step, session.steps, keys):
            return OTHER_VIEW
        return ContextInputs(
            view=view,
            steps=session.steps[:index],
            records=records,
            fixed=step.fixed,
            fixed_fingerprint=step.fixed_fingerprint,
            inherited=min(index, session.inherited),
            **given_again(step.given, step),
        )

    def _walk(self, head: str | None) -> str:
        """Makes ``path`` that which ends at a message; says why it cannot be had, else nothing."""
        messages = self._session.messages
        new: list[Message] = []
        while head is not None and head not in self._places:
            message = messages.get(head)
            if message is None:
                return NO_PATH
            new.append(message)
            head = message.parent_id
        kept = 0 if head is None else self._places[head] + 1
        new.reverse()
        if kept < len(self.path):
            self._places = {message.id: place for place, message in enumerate(self.path[:kept])}
        self._places.update((message.id, kept + number) for number, message in enumerate(new))
        self.path = [*self.path[:kept], *new]
        return ""


def _then(record: CompactionRecord, step: Step) -> CompactionRecord:
    """A compaction made before a step, in force or not as it was then."""
    active = in_force(record, step.created) if record.kind == "summary" else record.id in step.prune_ids
    return record if active == record.active else replace(record, active=active)


def in_force(record: CompactionRecord, at: float) -> bool:
    """Returns whether a compaction, made before, was in force at a time (seconds since the epoch)."""
    if not record.switched:
        return record.active
    return sum(switched <= at for switched in record.switched) % 2 == 0


def around(
    inputs: ContextInputs, path: Sequence[Message], summaries: Mapping[str, Message], operation_id: str
) -> list[ContextInputs]:
    """What the calculator would have been given right before a compaction and right after it, with what is known now;
    nothing where it is not one of this conversation."""
    made = [record for record in inputs.records if record.operation_id == operation_id]
    if not made:
        return []
    at = min(record.created for record in made)
    then = [message for message in path if message.created <= at]
    others = [r for r in inputs.records if r.created <= at and r not in made]
    before = [replace(record, active=in_force(record, at)) for record in others]
    steps = [step for step in inputs.steps if step.created <= at]

    def given(records: list[CompactionRecord]) -> ContextInputs:
        view = build_view(then, records, summaries)
        return replace(inputs, view=view, records=records, steps=steps)

    return [given(before), given([*before, *(replace(record, active=True) for record in made)])]


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
        """Returns whether the conversation with these message ids does not go on from it: a rewind left it behind."""
        answer = self.step.message_id
        if answer is not None:
            return answer not in path
        return bool(self.path) and self.path[-1].id not in path


class SessionPast:
    """The moments of one session. May be asked from several threads."""

    def __init__(self, session: StoredSession) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._rebuilder = Rebuilder(session)
        self._accounts = Calculator()
        self._at = -1
        self._kept: OrderedDict[int, PastMoment] = OrderedDict()
        self._places: list[int] = []
        self._counted = 0

    @property
    def count(self) -> int:
        """The number of steps: the model calls of the turns, those of branches that were left included."""
        steps = self._session.steps
        while self._counted < len(steps):
            if steps[self._counted].kind == "turn":
                self._places.append(self._counted)
            self._counted += 1
        return len(self._places)

    def between(self, before: int, number: int) -> list[Step]:
        """The other model calls (summaries, subagents) between two steps."""
        start, end = self._place(before) + 1, self._place(number)
        return [step for step in self._session.steps[start:end] if step.kind not in ("turn", "count")]

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
        """Returns the inputs that the calculator was given before a step; a string says why they cannot be had."""
        with self._lock:
            return self._rebuilder.inputs(self._place(number))

    def _place(self, number: int) -> int:
        if not 1 <= number <= self.count:
            raise IndexError(number)
        return self._places[number - 1]
