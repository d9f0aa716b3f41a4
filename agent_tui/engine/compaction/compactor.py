"""The compactor: carries a plan out with a model call, checks the result and hands it back. It commits nothing."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Literal, TypeAlias

from agent_tui.context.accounting.next_input import fits_to_send
from agent_tui.context.compaction import notices
from agent_tui.context.compaction.plan import CompactionPlan, CompactionReason, records_of
from agent_tui.context.compaction.planning import plan_without_model
from agent_tui.context.compaction.summary import (
    MODEL_SECTIONS,
    check_size,
    check_text,
    merged,
    model_sections,
    parse_sections,
)
from agent_tui.context.tokens import message_text_for_count
from agent_tui.engine.compaction.summary_call import (
    Ledger,
    StreamFunction,
    SummaryAnswer,
    SummaryCall,
)
from agent_tui.engine.runtime import Emit
from agent_tui.errors import WorkerError
from agent_tui.models.calibration import raw_total
from agent_tui.models.events import CompactionEnded, CompactionStarted
from agent_tui.models.failure import Failure
from agent_tui.models.messages import Message, new_id
from agent_tui.models.requests import Counter, ModelInfo
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.models.usage import NO_COST
from agent_tui.records import dataclass

log = logging.getLogger(__name__)

Outcome: TypeAlias = Literal["done", "not_worth_it", "failed", "cancelled", "nothing"]


@dataclass(slots=True)
class CompactionResult:
    """The result of a compaction. ``records`` and ``summary`` are to be committed together, only when ``done``."""

    outcome: Outcome
    reason: CompactionReason
    text: str
    """The finished line for the user."""
    why: str
    """Half a sentence."""
    before: int
    """The calculator's total, as ``after`` is."""
    after: int | None = None
    records: list[CompactionRecord] = field(default_factory=list)
    summary: Message | None = None
    steps: list[Step] = field(default_factory=list)
    """All model calls that were made, oldest first: their cost counts whatever came of them."""
    failure: Failure | None = None
    problem: str | None = None
    """Why the summary failed where room was made without one."""
    stuck: bool = False
    """Nothing can make room."""

    @property
    def done(self) -> bool:
        return self.outcome == "done"

    @property
    def quiet(self) -> bool:
        """True when the line that follows says what came of it: one that nobody asked for and that changed nothing is
        told with what it means for the request."""
        return self.reason in ("auto", "overflow") and not self.done

    def event(self) -> CompactionEnded:
        return CompactionEnded(self.outcome, self.text, self.records, quiet=self.quiet)


class Compactor:
    """Runs one compaction at a time. ``stream`` makes the summary call; ``counter`` counts the summary exactly,
    without one the character rule judges its size."""

    def __init__(
        self,
        stream: StreamFunction,
        counter: Counter | None = None,
        clock: Callable[[], float] = time.time,
        ledger: Ledger | None = None,
    ) -> None:
        self._call = SummaryCall(stream, clock, ledger or Ledger())
        self._counter = counter
        self._clock = clock
        self._started = 0.0
        self._work: asyncio.Task[CompactionResult] | None = None
        self._cancelled = False

    @property
    def running(self) -> bool:
        return self._work is not None

    def cancel(self) -> bool:
        """Ends the running compaction, whose result is then ``cancelled``. False when none runs."""
        if self._work is None or self._work.done():
            return False
        self._cancelled = True
        return self._work.cancel()

    async def run(
        self,
        plan: CompactionPlan,
        summary_model: ModelInfo | None = None,
        session_id: str = "",
        emit: Emit = lambda event: None,
    ) -> CompactionResult:
        """Carries the plan out; ``summary_model`` writes the summary where it is not the plan's. Provider failures and
        ``cancel`` are results; only a cancellation of the calling task is raised, after the call has been closed."""
        if plan.action in ("prune", "summary"):
            emit(CompactionStarted(plan.before, plan.why, plan.before_estimated))
        if plan.action == "nothing":
            return self._result(plan, "nothing", notices.nothing_text(plan.why), plan.why)
        if plan.stuck:
            return replace(self._result(plan, "not_worth_it", notices.stuck_text(plan.why), plan.why), stuck=True)
        if plan.action == "not_worth_it":
            return self._result(plan, "not_worth_it", notices.not_worth_it_text(plan.why), plan.why)
        if self._work is not None:
            raise RuntimeError("a compaction is already running")
        self._cancelled, self._started = False, self._clock()
        self._call.begin()
        work = self._work = asyncio.create_task(
            self._carry_out(plan, summary_model or plan.inputs.model, session_id), name="compaction"
        )
        try:
            await asyncio.wait({work})
        finally:
            if not work.done():
                work.cancel()
                await asyncio.wait({work})
            self._work = None
        if work.cancelled():
            if not self._cancelled:
                raise asyncio.CancelledError
            text = notices.cancelled_text(plan.before, plan.before_estimated)
            return self._result(plan, "cancelled", text, "it was cancelled")
        return work.result()

    async def _carry_out(self, plan: CompactionPlan, model: ModelInfo, session_id: str) -> CompactionResult:
        asked = plan.summary is not None and plan.summary.needs_model
        sections: Mapping[str, str] = {}
        if asked:
            answer = await self._call.ask(plan, model, session_id)
            if answer.failure is not None:
                return await self._without_model(plan, answer.failure.message.rstrip("."), answer.failure)
            problem = check_text(answer.text, answer.finish or "unknown", needed=plan.needed)
            if problem is not None:
                return await self._without_model(plan, problem.text)
            sections = self._sections(plan, answer)
        records, summary = await self._made(plan, sections)
        usage = plan.usage_after(records, summary)
        if asked:
            fits, before_estimated = fits_to_send(usage), plan.before_estimated
            problem = check_size(plan.before, usage.total, plan.limit, fits=fits, before_estimated=before_estimated)
            if problem is not None and problem.code == "over_limit" and plan.needed:
                return await self._and_more(plan, records, summary, problem.text)
            if problem is not None:
                return await self._without_model(plan, problem.text)
        return self._done(plan, records, summary, usage.total)

    async def _made(
        self, plan: CompactionPlan, sections: Mapping[str, str]
    ) -> tuple[list[CompactionRecord], Message | None]:
        """The records of a plan and its summary, which is counted where that is possible."""
        record_id, summary = new_id("rec"), None
        if plan.summary is not None:
            summary = plan.summary.message(sections, record_id, self._clock())
            await self._count(summary)
        return records_of(plan, self._clock(), new_id("cmp"), record_id, summary), summary

    @staticmethod
    def _sections(plan: CompactionPlan, answer: SummaryAnswer) -> Mapping[str, str]:
        """Returns the sections that the model wrote, merged with those of the earlier summary where that had to be left
        out of the model's input."""
        sections = {name: body for name, body in parse_sections(answer.text).items() if name in MODEL_SECTIONS}
        if answer.finish == "length":
            last = next(reversed(sections))
            sections[last] += " [cut off at the output limit]"
        previous = plan.summary.previous if plan.summary is not None else None
        if previous is not None and not answer.saw_previous:
            return merged(model_sections(previous), sections)
        return sections

    async def _without_model(self, plan: CompactionPlan, why: str, failure: Failure | None = None) -> CompactionResult:
        """There is no summary. Where nothing could be sent any more, what needs none makes the room."""
        other = plan_without_model(plan) if plan.needed else None
        if other is None or other.action not in ("prune", "summary"):
            return replace(self._result(plan, "failed", notices.failed_text(why), why), failure=failure)
        return replace(await self._instead(other, why), failure=failure)

    async def _and_more(
        self, plan: CompactionPlan, records: list[CompactionRecord], summary: Message | None, why: str
    ) -> CompactionResult:
        """The summary alone does not make the next input fit: what needs no further call does the rest."""
        more = plan_without_model(plan, records, summary)
        if more.action == "summary":
            return await self._instead(more, None)
        if more.action == "prune":
            both = replace(plan, pruning=more.pruning)
            every = records_of(both, self._clock(), records[0].operation_id, records[-1].id, summary)
            return self._done(both, every, summary, both.usage_after(every, summary).total)
        return await self._without_model(plan, why)

    async def _instead(self, plan: CompactionPlan, problem: str | None) -> CompactionResult:
        records, summary = await self._made(plan, {})
        return self._done(plan, records, summary, plan.usage_after(records, summary).total, problem)

    async def _count(self, summary: Message) -> None:
        if self._counter is None:
            return
        try:
            (counts,) = await self._counter.count([message_text_for_count(summary)])
            summary.raw_tokens, summary.counts = raw_total(counts), counts
        except WorkerError as error:
            log.warning("The summary could not be counted, the character rule stands in: %s", error)

    def _done(
        self,
        plan: CompactionPlan,
        records: list[CompactionRecord],
        summary: Message | None,
        after: int,
        problem: str | None = None,
    ) -> CompactionResult:
        cost, seconds = sum((step.cost for step in self._call.steps), NO_COST), self._clock() - self._started
        for record in records:
            record.before_tokens, record.after_tokens = plan.before, after
            record.before_estimated = plan.before_estimated
            record.seconds = round(seconds, 3)
            if record.kind == "summary" and self._call.steps:
                record.cost_usd, record.cost_known_usd, record.unpriced_calls = cost.whole, cost.known, cost.unpriced
                record.model = self._call.steps[-1].model_key
                record.step_id = self._call.steps[-1].id
        text = notices.done_text(
            plan.before,
            after,
            before_estimated=plan.before_estimated,
            kept=len(plan.summary.kept_ids) if plan.summary is not None else None,
            cleared=len(plan.pruning.cleared),
            clipped=len(plan.pruning.clips),
            left_out=plan.summary.left_out if plan.summary is not None else 0,
            lost=plan.lost(records, summary),
            problem=problem,
            seconds=seconds if self._call.steps else None,
            cost=cost if self._call.steps else None,
        )
        result = self._result(plan, "done", text, plan.why)
        return replace(result, problem=problem, after=after, records=records, summary=summary)

    def _result(self, plan: CompactionPlan, outcome: Outcome, text: str, why: str) -> CompactionResult:
        steps = list(self._call.steps) if outcome not in ("nothing", "not_worth_it") else []
        return CompactionResult(outcome, plan.reason, text, why, plan.before, steps=steps)
