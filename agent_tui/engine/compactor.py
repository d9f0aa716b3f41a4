"""The compactor: carries a plan out with a model call, checks the result and hands it back. It commits nothing."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from agent_tui.context import notices
from agent_tui.context.compaction import CompactionPlan, CompactionReason, plan_compaction, records_of
from agent_tui.context.estimate import message_text_for_count
from agent_tui.context.policy import output_room
from agent_tui.context.summary_prompt import (
    SummaryInput,
    prepare_input,
    rough_tokens,
    system_text,
    user_text,
)
from agent_tui.context.summary_text import parse_sections
from agent_tui.context.usage import ContextInputs
from agent_tui.context.validate_summary import SummaryProblem, check_size, check_text
from agent_tui.errors import WorkerError
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import CompactionEnded, CompactionStarted, Event
from agent_tui.models.failure import Failure
from agent_tui.models.messages import Message, TextPart, new_id
from agent_tui.models.requests import (
    Counter,
    Delta,
    Failed,
    Finished,
    FinishReason,
    ModelInfo,
    ModelRequest,
    SentMessage,
    Started,
    StreamItem,
    SystemBlock,
    UsageReport,
)
from agent_tui.models.steps import CompactionRecord, Step

log = logging.getLogger(__name__)

Outcome: TypeAlias = Literal["done", "not_worth_it", "failed", "cancelled", "nothing"]
StreamFunction: TypeAlias = Callable[[ModelRequest], AsyncIterator[StreamItem]]

MAX_TRIMS = 3
"""How often the oldest input is dropped when the summary call itself is too long."""

OUTPUT_FACTOR = 4
MIN_SUMMARY_OUTPUT = 2_048
MAX_SUMMARY_OUTPUT = 16_384
"""Output room kept free: this many times the sections' budget and at least this much, since some models think first.
What the input leaves over may be used as well."""

WORDS_PER_TOKEN = 0.6


@dataclass(slots=True)
class CompactionResult:
    """How a compaction ended. ``records`` and ``summary`` are to be committed together, only when ``done``.

    ``steps`` are all model calls that were made, oldest first: their cost counts whatever came of them. ``before`` and
    ``after`` are the calculator's totals; ``text`` is the finished line for the user, ``why`` half a sentence.
    """

    outcome: Outcome
    reason: CompactionReason
    text: str
    why: str
    before: int
    after: int | None = None
    records: list[CompactionRecord] = field(default_factory=list)
    summary: Message | None = None
    steps: list[Step] = field(default_factory=list)
    failure: Failure | None = None

    @property
    def done(self) -> bool:
        return self.outcome == "done"

    def event(self) -> CompactionEnded:
        return CompactionEnded(self.outcome, self.text, self.records)


@dataclass(slots=True)
class _Answer:
    text: str = ""
    finish: FinishReason | None = None
    failure: Failure | None = None


class Compactor:
    """Runs one compaction at a time. ``stream`` makes the summary call; ``counter`` counts the summary exactly,
    without one the character rule judges its size."""

    def __init__(
        self, stream: StreamFunction, counter: Counter | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._stream = stream
        self._counter = counter
        self._clock = clock
        self._work: asyncio.Task[CompactionResult] | None = None
        self._cancelled = False
        self._steps: list[Step] = []

    @property
    def running(self) -> bool:
        return self._work is not None

    def cancel(self) -> bool:
        """Ends the running compaction, whose result is then ``cancelled``. False when none runs."""
        if self._work is None or self._work.done():
            return False
        self._cancelled = True
        return self._work.cancel()

    async def compact(
        self,
        inputs: ContextInputs,
        usage: ContextUsage,
        path: Sequence[Message],
        summaries: Mapping[str, Message],
        *,
        reason: CompactionReason,
        focus: str = "",
        summary_model: ModelInfo | None = None,
        session_id: str = "",
        timeout: float = 120.0,
        emit: Callable[[Event], None] | None = None,
    ) -> CompactionResult:
        """Plans and runs. ``summary_model`` writes the summary when it is not ``inputs.model``."""
        plan = plan_compaction(inputs, usage, path, summaries, reason=reason, focus=focus)
        if plan.action in ("prune", "summary") and emit is not None:
            emit(CompactionStarted(plan.before, plan.why))
        return await self.run(plan, summary_model=summary_model, session_id=session_id, timeout=timeout)

    async def run(
        self,
        plan: CompactionPlan,
        *,
        summary_model: ModelInfo | None = None,
        session_id: str = "",
        timeout: float = 120.0,
    ) -> CompactionResult:
        """Carries the plan out. Provider failures and ``cancel`` are results; only a cancellation of the calling task
        is raised, after the call has been closed (``taken_steps`` then has what it cost)."""
        if plan.action == "nothing":
            return self._result(plan, "nothing", notices.nothing_text(plan.why), plan.why)
        if plan.action == "not_worth_it":
            return self._result(plan, "not_worth_it", notices.not_worth_it_text(plan.why), plan.why)
        if self._work is not None:
            raise RuntimeError("a compaction is already running")
        self._cancelled, self._steps = False, []
        work = self._work = asyncio.create_task(
            self._carry_out(plan, summary_model or plan.inputs.model, session_id, timeout), name="compaction"
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
            return self._result(plan, "cancelled", notices.cancelled_text(plan.before), "it was cancelled")
        return work.result()

    def taken_steps(self) -> list[Step]:
        """The model calls of the newest compaction, for one that was cut short from outside."""
        return list(self._steps)

    async def _carry_out(
        self, plan: CompactionPlan, model: ModelInfo, session_id: str, timeout: float
    ) -> CompactionResult:
        started = self._clock()
        record_id = new_id("rec")
        summary: Message | None = None
        if plan.summary is not None:
            answer = await self._ask(plan, model, session_id, timeout)
            if answer.failure is not None:
                return self._failed(plan, answer.failure.message.rstrip("."), answer.failure)
            problem = check_text(answer.text, answer.finish or "unknown")
            if problem is not None:
                return self._rejected(plan, problem)
            summary = plan.summary.message(parse_sections(answer.text), record_id, self._clock())
            await self._count(summary)
        records = records_of(plan, self._clock(), new_id("cmp"), record_id, summary)
        after = plan.usage_after(records, summary).total
        if summary is not None:
            problem = check_size(plan.before, after, plan.limit)
            if problem is not None:
                return self._rejected(plan, problem)
        return self._done(plan, records, summary, after, self._clock() - started)

    async def _ask(self, plan: CompactionPlan, model: ModelInfo, session_id: str, timeout: float) -> _Answer:
        """The summary call; when it is too long itself, its oldest input is dropped and it is made again."""
        source, words = self._source(plan, model)
        for _ in range(MAX_TRIMS):
            answer = await self._call(self._request(plan, model, source, words, session_id, timeout), model)
            if answer.failure is None or answer.failure.kind != "context_overflow":
                return answer
            shorter = source.without_oldest()
            if shorter is None:
                return answer
            log.info("The summary call is too long; dropping its oldest input")
            source = shorter
        return await self._call(self._request(plan, model, source, words, session_id, timeout), model)

    def _source(self, plan: CompactionPlan, model: ModelInfo) -> tuple[SummaryInput, int]:
        if plan.summary is None:
            raise ValueError("the plan has no summary")
        words = max(100, int(plan.summary.tokens * WORDS_PER_TOKEN))
        window, room = model.limits.window, None
        if window:
            answer = min(self._wanted_output(plan, model), window // 4)
            room = output_room(window, answer + rough_tokens(system_text(words)))
        if model.limits.max_input:
            room = min(room or model.limits.max_input, model.limits.max_input)
        if room is None:
            # Nothing is known about this model: trust what the conversation itself already fitted into.
            room = max(plan.before, MIN_SUMMARY_OUTPUT)
        room = max(1_000, room)
        return prepare_input(plan.summary.fresh, plan.summary.previous, plan.focus, room), words

    @staticmethod
    def _wanted_output(plan: CompactionPlan, model: ModelInfo) -> int:
        budget = plan.summary.tokens if plan.summary is not None else 0
        wanted = min(MAX_SUMMARY_OUTPUT, max(MIN_SUMMARY_OUTPUT, budget * OUTPUT_FACTOR))
        return min(wanted, model.limits.max_output) if model.limits.max_output else wanted

    def _request(
        self,
        plan: CompactionPlan,
        model: ModelInfo,
        source: SummaryInput,
        words: int,
        session_id: str,
        timeout: float,
    ) -> ModelRequest:
        text = user_text(source)
        system = system_text(words)
        output = self._wanted_output(plan, model)
        if model.limits.window:
            room = output_room(model.limits.window, rough_tokens(text) + rough_tokens(system))
            output = max(min(output, model.limits.window // 4), min(MAX_SUMMARY_OUTPUT, room))
        if model.limits.max_output:
            output = min(output, model.limits.max_output)
        message = Message(new_id("msg"), "user", [TextPart(text)], created=self._clock())
        return ModelRequest(
            new_id("req"),
            model.spec,
            session_id,
            [SystemBlock("system", system)],
            [SentMessage(message, message.id)],
            [],
            output,
            "off",
            timeout=timeout,
            kind="compaction",
        )

    async def _call(self, request: ModelRequest, model: ModelInfo) -> _Answer:
        target = model.target
        step = Step(
            new_id("step"),
            "compaction",
            model.spec.key,
            target.provider,
            target.api,
            target.model,
            created=self._clock(),
            max_output=request.max_output,
            thinking="off",
            window=model.limits.window,
        )
        self._steps.append(step)
        answer = _Answer()
        pieces: list[str] = []
        stream = self._stream(request)
        try:
            async for item in stream:
                match item:
                    case Started(target=resolved):
                        step.provider, step.api, step.model = resolved.provider, resolved.api, resolved.model
                    case Delta(kind="text", text=text):
                        pieces.append(text)
                    case Delta():
                        continue
                    case UsageReport(usage=usage, cost_usd=cost):
                        step.usage = usage
                        step.cost_usd = cost if cost is not None else model.prices.cost(usage)
                    case Finished(reason=reason):
                        answer.finish = reason
                    case Failed(failure=failure):
                        answer.failure = failure
            if answer.finish is None and answer.failure is None:
                answer.failure = Failure("interrupted_stream", "The stream ended before the answer was complete.")
            step.status = "failed" if answer.failure is not None else "complete"
        finally:
            if step.status == "running":
                step.status = "stopped"
            step.failure, step.finish_reason, step.finished = answer.failure, answer.finish, self._clock()
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()
        answer.text = "".join(pieces)
        return answer

    async def _count(self, summary: Message) -> None:
        if self._counter is None:
            return
        try:
            (summary.raw_tokens,) = await self._counter.count([message_text_for_count(summary)])
        except WorkerError as error:
            log.warning("The summary could not be counted, the character rule stands in: %s", error)

    def _done(
        self,
        plan: CompactionPlan,
        records: list[CompactionRecord],
        summary: Message | None,
        after: int,
        seconds: float,
    ) -> CompactionResult:
        cost = self._cost()
        for record in records:
            record.before_tokens, record.after_tokens = plan.before, after
            record.seconds = round(seconds, 3)
            if record.kind == "summary":
                record.cost_usd = cost
                record.model = self._steps[-1].model_key
                record.step_id = self._steps[-1].id
        text = notices.done_text(
            plan.before,
            after,
            kept=len(plan.summary.kept_ids) if plan.summary is not None else None,
            cleared=len(plan.pruning.cleared),
            clipped=len(plan.pruning.clips),
            seconds=seconds if summary is not None else None,
            cost=cost,
        )
        result = self._result(plan, "done", text, plan.why)
        result.after, result.records, result.summary = after, records, summary
        return result

    def _cost(self) -> float | None:
        known = [s.cost_usd for s in self._steps if s.cost_usd is not None]
        return sum(known) if known else None

    def _rejected(self, plan: CompactionPlan, problem: SummaryProblem) -> CompactionResult:
        return self._failed(plan, problem.text, None)

    def _failed(self, plan: CompactionPlan, why: str, failure: Failure | None) -> CompactionResult:
        result = self._result(plan, "failed", notices.failed_text(why), why)
        result.failure = failure
        return result

    def _result(self, plan: CompactionPlan, outcome: Outcome, text: str, why: str) -> CompactionResult:
        steps = list(self._steps) if outcome not in ("nothing", "not_worth_it") else []
        return CompactionResult(outcome, plan.reason, text, why, plan.before, steps=steps)
