"""A planned compaction as a value, and the records that carry it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from agent_tui.context.collected_files import file_lines
from agent_tui.context.prune import Pruning
from agent_tui.context.summary_text import assemble
from agent_tui.context.usage import ContextInputs, calculate_context_usage
from agent_tui.context.view import build_view
from agent_tui.models.context import ContextUsage
from agent_tui.models.messages import Message, SummaryPart, new_id
from agent_tui.models.steps import CompactionRecord

CompactionReason: TypeAlias = Literal["auto", "manual", "overflow", "switch"]
Action: TypeAlias = Literal["prune", "summary", "not_worth_it", "nothing"]


@dataclass(slots=True, frozen=True)
class SummaryPlan:
    """What a summary would replace. ``message_ids`` are all messages of the path before the cut, those of earlier
    summaries included; ``fresh`` are the ones no summary stands for yet. ``user_messages`` are kept word for word."""

    message_ids: tuple[str, ...]
    kept_ids: tuple[str, ...]
    fresh: tuple[Message, ...]
    previous: str | None
    files: dict[str, list[str]]
    user_messages: tuple[str, ...]
    user_left_out: int
    tokens: int

    def message(self, sections: dict[str, str], record_id: str, created: float) -> Message:
        """The summary message, assembled from the model's sections and what is kept word for word."""
        text = assemble(sections, file_lines(self.files), self.user_messages, self.user_left_out)
        return Message(new_id("sum"), "user", [SummaryPart(text, record_id)], created=created)


@dataclass(slots=True, frozen=True)
class CompactionPlan:
    """The decision and the numbers behind it; ``expected_after`` is None when there is nothing that could be done.

    ``why`` is half a sentence for the user. Holds what it was made from, so that it can be carried out.
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

    def usage_after(self, records: Sequence[CompactionRecord], summary: Message | None) -> ContextUsage:
        """The calculator's answer for the conversation with these further records."""
        every = [*self.inputs.records, *records]
        summaries = {**self.summaries, **({summary.id: summary} if summary is not None else {})}
        view = build_view(self.path, every, summaries)
        return calculate_context_usage(replace(self.inputs, view=view, records=every, cache=None))


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
