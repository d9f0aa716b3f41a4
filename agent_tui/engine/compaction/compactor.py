"""The compactor: carries a plan out with a model call, checks the result and hands it back. It commits nothing."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Literal, TypeAlias

from agent_tui.context.accounting.inputs import ContextInputs
from agent_tui.context.accounting.next_input import fits_to_send
from agent_tui.context.accounting.sums import NextInput
from agent_tui.context.compaction import notices
from agent_tui.context.compaction.answers import DONE, read_answer, with_unknown_paths
from agent_tui.context.compaction.facts import FactReader
from agent_tui.context.compaction.judge import SummaryProblem, check_size
from agent_tui.context.compaction.plan import CompactionPlan, records_of
from agent_tui.context.compaction.planning import plan_compaction, plan_fold, plan_without_model
from agent_tui.context.compaction.situation import CompactionReason, Situation
from agent_tui.context.tokens import message_text_for_count
from agent_tui.engine.compaction.summary_call import AskWarm, OpenCall, SummaryCall, TextCalls
from agent_tui.engine.conversation import Conversation
from agent_tui.engine.runtime import Emit
from agent_tui.errors import WorkerError
from agent_tui.models.calibration import raw_total
from agent_tui.models.context import ContextUsage
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
    sections: Mapping[str, str] = field(default_factory=dict)
    """What the model wrote of the summary."""
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
    def was_cut_off(self) -> bool:
        """True when there is no summary because its call failed or was ended, or a hook or a budget was in its way."""
        return self.outcome == "cancelled" or (self.outcome == "failed" and self.failure is not None)

    @property
    def quiet(self) -> bool:
        """True when the line that follows says what came of it: one that nobody asked for and that changed nothing is
        told with what it means for the request."""
        return self.reason in ("auto", "overflow") and not self.done

    def event(self) -> CompactionEnded:
        return CompactionEnded(self.outcome, self.text, self.records, quiet=self.quiet)


@dataclass(slots=True, frozen=True)
class _Made:
    """A plan carried out with ``sections``, but not committed: how long what would be sent is, and what is wrong with
    it."""

    sections: Mapping[str, str]
    records: list[CompactionRecord]
    summary: Message | None
    after: NextInput
    problem: SummaryProblem | None


class Planning:
    """Makes the plans of a conversation beside the loop: there may be much to read, but each message once."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._work: asyncio.Task[CompactionPlan] | None = None

    @cached_property
    def facts(self) -> FactReader:
        return FactReader()

    async def plan(
        self,
        inputs: ContextInputs,
        usage: ContextUsage,
        reason: CompactionReason = "manual",
        focus: str = "",
        without_model: bool = False,
        fold: tuple[str, str] | None = None,
    ) -> CompactionPlan | None:
        """Returns ``plan_compaction``'s answer for what is now, or ``plan_fold``'s for the range between two messages;
        None where ``cancel`` ended it. Raises AgentError for a range that cannot be folded."""
        path, summaries = list(self._conversation.path), dict(self._conversation.summaries)
        now, read = inputs.as_now(), self.facts.read

        def make() -> CompactionPlan:
            if fold is not None:
                return plan_fold(Situation(now, usage, path, summaries, reason, read), *fold, focus)
            return plan_compaction(
                now, usage, path, summaries, reason=reason, focus=focus, without_model=without_model, read=read
            )

        reading = asyncio.to_thread(make)
        work = self._work = asyncio.create_task(reading, name="plan a compaction")
        try:
            await asyncio.wait({work})
        finally:
            work.cancel()
            self._work = None if self._work is work else self._work
        return None if work.cancelled() else work.result()

    def cancel(self) -> bool:
        """Ends what is planned; False when nothing is."""
        return self._work is not None and self._work.cancel()


class Compactor:
    """Runs one compaction at a time. ``open_call`` begins its calls; ``counter`` counts the summary exactly,
    without one the character rule judges its size."""

    def __init__(
        self, open_call: OpenCall, counter: Counter | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._calls = TextCalls(open_call)
        self._counter = counter
        self._clock = clock
        self._started = 0.0
        self._warm = False
        self._work: asyncio.Task[CompactionResult] | None = None
        self._cancelled = False

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
        warm: AskWarm | None = None,
        prepared: str = "",
    ) -> CompactionResult:
        """Carries the plan out; ``summary_model`` writes the summary where it is not the plan's, ``warm`` asks the
        model of the conversation as that goes on, ``prepared`` is the message up to which that is done before it is
        needed. Provider failures and ``cancel`` are results; only a cancellation of
        the calling task is raised, after the call has been closed."""
        if plan.action in ("prune", "summary"):
            size = plan.before if plan.folded_tokens is None else plan.folded_tokens
            emit(CompactionStarted(size, plan.why, plan.before_estimated))
        if plan.action == "nothing":
            return self._result(plan, "nothing", notices.nothing_text(plan.why), plan.why)
        if plan.stuck:
            return replace(self._result(plan, "not_worth_it", notices.stuck_text(plan.why), plan.why), stuck=True)
        if plan.action == "not_worth_it":
            return self._result(plan, "not_worth_it", notices.not_worth_it_text(plan.why), plan.why)
        if self._work is not None:
            raise RuntimeError("a compaction is already running")
        self._cancelled, self._started = False, self._clock()
        self._calls.begin(prepared)
        self._warm = False
        work = self._work = asyncio.create_task(
            self._carry_out(plan, summary_model or plan.inputs.model, session_id, warm), name="compaction"
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
            text = notices.cancelled_text(plan.before, plan.before_estimated, plan.reason)
            return self._result(plan, "cancelled", text, "it was cancelled")
        return work.result()

    async def written(self, plan: CompactionPlan, text: str) -> CompactionResult:
        """Carries out a plan whose summary the model has written already: no call is made."""
        self._calls.begin()
        self._warm, self._started = False, self._clock()
        made = await self._made(plan, read_answer(text) or {DONE: text})
        if made.problem is not None:
            why = made.problem.text
            return self._result(plan, "failed", notices.failed_text(why, plan.reason), why)
        return self._done(plan, made.records, made.summary, made.after)

    async def of_now(self, plan: CompactionPlan, prepared: CompactionResult) -> CompactionResult | None:
        """What was ``prepared``, made for the conversation of now, which ``plan`` has (``plan_of_now``): only what the
        model wrote is from then. None where it wrote nothing of use, or where that does not make room any more."""
        made = await self._made(plan, prepared.sections)
        if not prepared.sections or made.problem is not None:
            return None
        self._started = self._clock() - max((record.seconds or 0.0 for record in prepared.records), default=0.0)
        return self._done(plan, made.records, made.summary, made.after)

    async def _carry_out(
        self, plan: CompactionPlan, model: ModelInfo, session_id: str, warm: AskWarm | None
    ) -> CompactionResult:
        if plan.summary is None or not plan.summary.needs_model:
            return await self._instead(plan, None)
        return await self._summarised(plan, SummaryCall(self._calls, plan, model, session_id, warm))

    async def _summarised(self, plan: CompactionPlan, call: SummaryCall) -> CompactionResult:
        said = "\n".join(message_text_for_count(message) for message in plan.now.path)
        tried: list[_Made] = []

        async def check(sections: Mapping[str, str]) -> SummaryProblem | None:
            tried.append(await self._made(plan, with_unknown_paths(sections, said)))
            return tried[-1].problem

        answer = await call.ask(check)
        self._warm = answer.warm
        if answer.failure is not None:
            return await self._without_model(plan, answer.failure.message.rstrip("."), answer.failure)
        if answer.problem is None:
            made = tried[-1]
            return replace(self._done(plan, made.records, made.summary, made.after), sections=made.sections)
        if answer.problem.code == "over_limit" and plan.now.needed:
            return await self._and_more(plan, tried[-1])
        return await self._stand_in(plan, answer.problem.text)

    async def _made(self, plan: CompactionPlan, sections: Mapping[str, str]) -> _Made:
        """What a plan comes to with these sections; its summary is counted where that is possible."""
        record_id, summary = new_id("rec"), None
        if plan.summary is not None:
            summary = await asyncio.to_thread(plan.summary.message, sections, record_id, self._clock())
            await self._count(summary)
        records = records_of(plan, self._clock(), new_id("cmp"), record_id, summary)
        after = await asyncio.to_thread(plan.now.size_after, records, summary)
        fits, estimated = fits_to_send(plan.now.usage_of(after)), plan.before_estimated
        problem = check_size(
            plan.before, after.total, plan.limit, fits=fits, before_estimated=estimated, part=plan.folded_tokens
        )
        return _Made(sections, records, summary, after, problem)

    async def _stand_in(self, plan: CompactionPlan, why: str) -> CompactionResult:
        """The model wrote nothing that can stand for the messages: what is kept of them word for word does. Where that
        makes too little room, so does what else needs no model."""
        assert plan.summary is not None
        floor = replace(plan, summary=plan.summary.without_model())
        made = await self._made(floor, {})
        if made.problem is None:
            return self._done(floor, made.records, made.summary, made.after, why)
        return await self._without_model(plan, why)

    async def _without_model(self, plan: CompactionPlan, why: str, failure: Failure | None = None) -> CompactionResult:
        """There is no summary. Where nothing could be sent any more, or the user asked and the model gave none, what
        needs none makes the room. Any other is tried again later: the conversation is worth the wait."""
        given_none = plan.reason == "manual" and failure is None
        other = await asyncio.to_thread(plan_without_model, plan) if plan.now.needed or given_none else None
        # What the model wrote was of no use: then its summary is made without it. A call that failed may succeed next
        # time, and until then no message is left out.
        means = ("prune",) if failure is not None else ("prune", "summary")
        if other is None or other.action not in means:
            return replace(self._result(plan, "failed", notices.failed_text(why, plan.reason), why), failure=failure)
        return replace(await self._instead(other, why), failure=failure)

    async def _and_more(self, plan: CompactionPlan, made: _Made) -> CompactionResult:
        """The summary alone does not make the next input fit: what needs no further call does the rest."""
        records, summary = made.records, made.summary
        more = await asyncio.to_thread(plan_without_model, plan, records, summary)
        if more.action == "summary":
            return await self._instead(more, None)
        if more.action == "prune":
            both = replace(plan, pruning=more.pruning)
            operation, record_id = records[0].operation_id, records[-1].id
            every = records_of(both, self._clock(), operation, record_id, summary)
            return self._done(both, every, summary, await asyncio.to_thread(both.now.size_after, every, summary))
        return await self._without_model(plan, made.problem.text if made.problem is not None else "")

    async def _instead(self, plan: CompactionPlan, problem: str | None) -> CompactionResult:
        made = await self._made(plan, {})
        return self._done(plan, made.records, made.summary, made.after, problem)

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
        after: NextInput,
        problem: str | None = None,
    ) -> CompactionResult:
        """The result of what was carried out: the next input is as long as ``after`` says."""
        cost, seconds = sum((step.cost for step in self._calls.steps), NO_COST), self._clock() - self._started
        for record in records:
            record.before_tokens, record.after_tokens = plan.before, after.total
            record.before_spread, record.after_spread = plan.now.usage.spread, after.spread
            record.before_estimated = plan.before_estimated
            record.seconds = round(seconds, 3)
            if record.kind == "summary" and self._calls.steps:
                record.cost = cost
                record.model = self._calls.steps[-1].model_key
                record.step_id = self._calls.steps[-1].id
                record.warm, record.input_tokens, record.cache_read = self._warm, *_read(self._calls.steps)
        text = notices.done_text(
            records[-1],
            kept=len(plan.summary.kept_ids) if plan.summary is not None and not plan.summary.fold else None,
            cleared=len(plan.pruning.cleared),
            clipped=len(plan.pruning.clips),
            left_out=plan.summary.left_out if plan.summary is not None else 0,
            lost=plan.lost(records, summary),
            problem=problem,
            seconds=seconds if self._calls.steps else None,
            cost=cost if self._calls.steps else None,
            read=_read(self._calls.steps),
        )
        result = self._result(plan, "done", text, plan.why)
        return replace(result, problem=problem, after=after.total, records=records, summary=summary)

    def _result(self, plan: CompactionPlan, outcome: Outcome, text: str, why: str) -> CompactionResult:
        steps = list(self._calls.steps) if outcome not in ("nothing", "not_worth_it") else []
        return CompactionResult(outcome, plan.reason, text, why, plan.before, steps=steps)


def plan_of_now(plan: CompactionPlan, then: CompactionPlan) -> CompactionPlan | None:
    """The plan ``then`` as it is made for the conversation that ``plan`` is for; None where a model would have
    something else to summarise."""
    summary = plan.now.as_of_now(then.summary) if then.summary is not None else None
    if summary is None:
        return None
    return replace(plan, summary=summary, pruning=then.pruning.only(frozenset(summary.kept_ids)))


def _read(steps: Sequence[Step]) -> tuple[int | None, int | None]:
    """Tokens of the input of calls, and those read from a cache; None where nobody says."""
    usages = [step.counted for step in steps if step.counted is not None]
    told = [usage.cache_read for usage in usages if usage.cache_read is not None]
    return (sum(usage.input for usage in usages), sum(told)) if told else (None, None)
