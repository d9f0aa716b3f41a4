"""The inputs of the calculator as they were before a step was sent, made again from what is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent_tui.context.accounting.given.inputs import CompactionSettings, ContextInputs
from agent_tui.context.past.given import effort_of, model_of, rule_of, settings_of
from agent_tui.context.sent.anchor import SentPrefixes
from agent_tui.context.sent.branch import on_branch
from agent_tui.context.sent.view import ViewBuilder
from agent_tui.models.messages import Message
from agent_tui.models.requests import SentMessage
from agent_tui.models.steps import CompactionRecord, Step

NO_HEAD = "what it sent was not stored with it"
NO_PATH = "messages that it sent are missing"
OTHER_VIEW = "what it sent is not what can be made of the stored messages and compactions"


@dataclass(slots=True, frozen=True)
class Session:
    """All that is stored of a session. The lists may grow while this is used; what is in them stays."""

    messages: Mapping[str, Message]
    steps: Sequence[Step]
    records: Sequence[CompactionRecord]
    summaries: Mapping[str, Message]
    settings: CompactionSettings = field(default_factory=CompactionSettings)
    inherited: int = 0


class Rebuilder:
    """Makes inputs of one step after the other: what a step has in common with the one asked for before is taken over.
    Equal to what a new one gives."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.path: list[Message] = []
        """The conversation of the step that was asked for last; empty where that is not known."""
        self._places: dict[str, int] = {}
        self._builder = ViewBuilder()
        self._prefixes = SentPrefixes()

    def inputs(self, index: int) -> ContextInputs | str:
        """The inputs before the step at ``index`` of the session's steps was sent; a string says why they cannot be
        had. They are only given where they are what was sent: its messages are compared with those that are known of
        the step."""
        session, step = self._session, self._session.steps[index]
        problem = self._walk(step)
        if problem is not None:
            return problem
        for made in records_before(session.records, step):
            records = on_branch(made, self._places.keys())
            view = self._builder.build(self.path, records, session.summaries)
            if self._is_sent(view, step):
                return ContextInputs(
                    model=model_of(step),
                    view=view,
                    steps=session.steps[:index],
                    records=records,
                    fixed=step.fixed,
                    settings=settings_of(step, session.settings),
                    ratio=1.0 if step.given is None else step.given.ratio,
                    fixed_fingerprint=step.fixed_fingerprint,
                    effort=effort_of(step),
                    replay=rule_of(step),
                    inherited=min(index, session.inherited),
                )
        return OTHER_VIEW

    def _walk(self, step: Step) -> str | None:
        """Makes ``path`` that of a step; a string says why it cannot be had."""
        messages, head = self._session.messages, head_of(step, self._session.messages)
        new: list[Message] = []
        problem = NO_HEAD if isinstance(head, Unknown) else None
        while isinstance(head, str) and head not in self._places and problem is None:
            message = messages.get(head)
            if message is None:
                problem = NO_PATH
                continue
            new.append(message)
            head = message.parent_id
        if problem is not None:
            self.path, self._places = [], {}
            return problem
        kept = self._places[head] + 1 if isinstance(head, str) else 0
        new.reverse()
        if kept < len(self.path):
            self._places = {message.id: place for place, message in enumerate(self.path[:kept])}
        self._places.update((message.id, kept + number) for number, message in enumerate(new))
        self.path = [*self.path[:kept], *new]
        return None

    def _is_sent(self, view: Sequence[SentMessage], step: Step) -> bool:
        if len(view) != step.sent_count:
            return False
        self._prefixes, _ = self._prefixes.moved_to(view)
        return self._prefixes.at(len(view)) == step.sent_fingerprint


class Unknown:
    """Stands for a head that is not known; None is one before the first message."""


UNKNOWN = Unknown()


def head_of(step: Step, messages: Mapping[str, Message]) -> str | Unknown | None:
    """The id of the last message of the conversation when the step was sent: stored with it, else what its answer
    stands after."""
    if step.given is not None:
        return step.given.head
    answer = messages.get(step.message_id) if step.message_id is not None else None
    return UNKNOWN if answer is None else answer.parent_id


def records_before(records: Sequence[CompactionRecord], step: Step) -> list[list[CompactionRecord]]:
    """The compactions made before a step, in force or not as they were then: of those that were undone by a version
    that stored no time, first as if they were still in force, then as if they were not."""
    made = [record for record in records if record.created <= step.created]
    unseen = [r for r in made if r.kind == "summary" and not r.active and not r.switched]
    answers = [[_then(record, step, True) for record in made]]
    if unseen:
        answers.append([_then(record, step, False) for record in made])
    return answers


def _then(record: CompactionRecord, step: Step, unseen: bool) -> CompactionRecord:
    if record.kind == "prune":
        active = record.id in step.prune_ids
    elif not record.switched:
        active = record.active or unseen
    else:
        active = sum(time <= step.created for time in record.switched) % 2 == 0
    return record if active == record.active else replace(record, active=active)
