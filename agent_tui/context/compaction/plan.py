"""A planned compaction as a value, and the records that carry it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from agent_tui.context.accounting.given.inputs import ContextInputs
from agent_tui.context.accounting.lost import LostReasoning, WayBack, lost_reasoning
from agent_tui.context.accounting.usage import calculate_context_usage
from agent_tui.context.compaction.collected_files import file_lines
from agent_tui.context.compaction.prune import Pruning
from agent_tui.context.compaction.summary_text import INTRODUCTION, assemble, model_sections
from agent_tui.context.sent.view import build_view
from agent_tui.models.context import ContextUsage
from agent_tui.models.messages import Message, SummaryPart, new_id
from agent_tui.models.requests import SentMessage
from agent_tui.models.steps import CompactionRecord
from agent_tui.text.numbers import plural

CompactionReason: TypeAlias = Literal["auto", "manual", "overflow", "switch"]
Action: TypeAlias = Literal["prune", "summary", "not_worth_it", "nothing"]

UNDO = "/compact undo"


@dataclass(slots=True, frozen=True)
class SummaryPlan:
    """What a summary would replace. ``message_ids`` are all messages that it stands for, those of earlier summaries
    included: everything before the cut but the newest message of the user. ``fresh`` are the ones no model has
    summarised yet; ``previous`` is what the last summary says of the others. ``user_messages`` are kept word for word.

    ``approved`` are the lines of the plan the user agreed to. ``left_out`` above 0: no model is asked, so many
    messages are left out behind a placeholder.
    """

    message_ids: tuple[str, ...]
    kept_ids: tuple[str, ...]
    fresh: tuple[Message, ...]
    previous: str | None
    files: dict[str, list[str]]
    user_messages: tuple[str, ...]
    user_left_out: int
    tokens: int
    todo: tuple[str, ...] = ()
    left_out: int = 0
    approved: tuple[str, ...] = ()

    @property
    def needs_model(self) -> bool:
        return not self.left_out

    def message(self, sections: Mapping[str, str], record_id: str, created: float) -> Message:
        """The summary message, assembled from the model's sections and what is kept word for word."""
        introduction = INTRODUCTION
        if self.left_out:
            sections = model_sections(self.previous or "")
            introduction = left_out_text(self.left_out)
        text = assemble(
            sections,
            file_lines(self.files),
            self.user_messages,
            self.user_left_out,
            self.todo,
            introduction,
            self.approved,
        )
        return Message(new_id("sum"), "user", [SummaryPart(text, record_id)], created=created)


@dataclass(slots=True, frozen=True)
class CompactionPlan:
    """The decision and the numbers behind it; ``expected_after`` is None when there is nothing that could be done.

    ``why`` is half a sentence for the user. ``fits``: what it leaves can be sent; ``needed``: without it nothing can.
    ``stuck``: nothing that may be taken away would make the next input fit. Holds what it was made from, so that it
    can be carried out.
    """

    action: Action
    reason: CompactionReason
    why: str
    before: int
    expected_after: int | None
    limit: int | None
    pruning: Pruning
    summary: SummaryPlan | None
    inputs: ContextInputs
    path: Sequence[Message]
    summaries: Mapping[str, Message]
    focus: str = ""
    fits: bool = True
    needed: bool = False
    stuck: bool = False
    before_estimated: bool = True

    def view_after(self, records: Sequence[CompactionRecord], summary: Message | None) -> list[SentMessage]:
        """What would be sent with these further records."""
        summaries = {**self.summaries, **({summary.id: summary} if summary is not None else {})}
        return build_view(self.path, [*self.inputs.records, *records], summaries)

    def usage_after(self, records: Sequence[CompactionRecord], summary: Message | None) -> ContextUsage:
        """The calculator's answer for the conversation with these further records."""
        return calculate_context_usage(self._inputs_after(records, summary))

    def lost(self, records: Sequence[CompactionRecord], summary: Message | None) -> LostReasoning | None:
        """The reasoning that is no longer sent with these further records."""
        undone = [replace(record, active=False) for record in records]
        way = WayBack(UNDO, replace(self.inputs, records=[*self.inputs.records, *undone]))
        turn_open = self.reason in ("auto", "overflow")
        return lost_reasoning(self.inputs, self._inputs_after(records, summary), way, turn_open=turn_open)

    def _inputs_after(self, records: Sequence[CompactionRecord], summary: Message | None) -> ContextInputs:
        every, view = [*self.inputs.records, *records], self.view_after(records, summary)
        return replace(self.inputs, view=view, records=every)


def left_out_text(messages: int) -> str:
    """The placeholder of messages that were left out without a summary."""
    return f"[{plural(messages, 'older message')} left out here: the conversation did not fit the context window.]"


def records_of(
    plan: CompactionPlan, created: float, operation_id: str, record_id: str, summary: Message | None
) -> list[CompactionRecord]:
    """The records that carry out a plan; the numbers of the outcome are filled in by the caller. They sort after all
    earlier ones even when the clock was set back."""
    newest = max((r.created for r in plan.inputs.records), default=0.0)
    created = created if created > newest else newest + 0.001
    records: list[CompactionRecord] = []
    if plan.pruning:
        ids = [*plan.pruning.cleared, *plan.pruning.clips]
        clips = dict(plan.pruning.clips)
        records.append(
            CompactionRecord(
                new_id("rec"), operation_id, "prune", ids, created=created, reason=plan.reason, clips=clips
            )
        )
    if plan.summary is not None and summary is not None:
        records.append(
            CompactionRecord(
                record_id,
                operation_id,
                "summary",
                list(plan.summary.message_ids),
                created=created,
                reason=plan.reason,
                summary_id=summary.id,
                kept_messages=len(plan.summary.kept_ids),
                focus=plan.focus or None,
                files=list(plan.summary.files),
                left_out=plan.summary.left_out,
            )
        )
    return records


def undo_target(records: Sequence[CompactionRecord], path: Sequence[Message]) -> str | None:
    """The operation an undo takes back: the newest active one that is in force on this path; None without one."""
    on_path = {m.id for m in path}
    for record in sorted(records, key=lambda r: r.created, reverse=True):
        if not record.active or not record.message_ids:
            continue
        if record.kind == "summary":
            if on_path.issuperset(record.message_ids):
                return record.operation_id
        elif not on_path.isdisjoint(record.message_ids):
            return record.operation_id
    return None
