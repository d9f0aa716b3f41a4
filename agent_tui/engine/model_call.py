"""One call of a model, whatever for: room in the budget, the stream with its retries, and what became of it."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, nullcontext
from dataclasses import field, replace
from functools import partial
from typing import Literal, TypeAlias

from agent_tui.context.accounting.spending import BudgetLine, ExpectedCall
from agent_tui.context.anchor import runs_of
from agent_tui.context.tokens import char_tokens, family_of, round_up
from agent_tui.engine.conversation import patiently
from agent_tui.engine.runtime import Emit, Runtime
from agent_tui.errors import AgentError
from agent_tui.models.events import RetryWaiting
from agent_tui.models.failure import NOT_BILLED, Failure, with_more, without_ways
from agent_tui.models.messages import new_id
from agent_tui.models.requests import (
    Delta,
    Failed,
    Finished,
    FinishReason,
    ModelInfo,
    ModelRequest,
    Started,
    StreamItem,
    UsageReport,
)
from agent_tui.models.steps import Step, StepKind
from agent_tui.models.usage import TokenUsage
from agent_tui.providers.dialects.shared import ReplayPlan, Thinking
from agent_tui.providers.reasoning import decide
from agent_tui.records import dataclass

log = logging.getLogger(__name__)

BACKOFF_SECONDS = 1.0
BACKOFF_LIMIT = 30.0
PATIENCE_SECONDS = 300.0
"""A provider that asks for more than this is not waited for: the user is told instead."""

NOT_RUN = "The tool call that it had begun was not run."


class NoRoomError(AgentError):
    """A budget has no room for the call; the words are for the user."""


def new_step(kind: StepKind, info: ModelInfo) -> Step:
    """A step of a call of this model."""
    target = info.target
    return Step(
        new_id("step"),
        kind,
        info.spec.key,
        target.provider,
        target.api,
        target.model,
        created=time.time(),
        cost_usd=info.prices.unreported,
        window=info.limits.window,
    )


@dataclass(slots=True)
class PlannedCall:
    """A call before it is made: the request, the step that will say what became of it, and what it is expected to cost
    with an answer of at most ``most`` tokens (None: nobody knows). ``runtime`` is that whose conversation the request
    goes on with, None where it stands apart; ``plan`` and ``thinking`` are what of reasoning goes with it."""

    request: ModelRequest
    step: Step
    info: ModelInfo
    expected: ExpectedCall
    most: int | None
    runtime: Runtime | None = None
    plan: ReplayPlan = field(init=False)
    thinking: Thinking = field(init=False)

    def __post_init__(self) -> None:
        self.decide()

    @staticmethod
    def apart(request: ModelRequest, info: ModelInfo, expected: ExpectedCall) -> PlannedCall:
        """The call of a request that stands apart from the conversation."""
        return PlannedCall(request, new_step(request.kind, info), info, expected, request.max_output)

    def decide(self) -> None:
        """Decides as the sender will, anew where the request was changed; the step knows it too."""
        step, request = self.step, self.request
        self.plan, self.thinking = decide(request, self.info)
        step.thinking = "off" if self.thinking.off else request.effort
        if self.runtime is not None:
            step.sent_reasoning = runs_of(request.messages, self.plan, self.info.target.family)

    def ask_for(self, output: int | None, capped: bool) -> None:
        """Asks for an answer of at most ``output`` tokens where a budget says so (``capped``), else for ``most``."""
        request, output = self.request, output if capped else self.most
        changed, request.capped = request.max_output != output, capped
        request.max_output = self.step.max_output = output
        if changed:
            self.decide()

    def record(self) -> None:
        """Stores with the step what the request is made of, once that is on its way."""
        runtime, step = self.runtime, self.step
        if runtime is None:
            return
        steps, lists = runtime.conversation.steps, runtime.calculator.lists
        runtime.sent_log.record(step, self.request, self.info, self.plan, self.thinking, steps, lists)
        if step.kind == "turn":
            runtime.expect_cold(None)


@dataclass(slots=True, frozen=True)
class Interrupted:
    """The answer broke off and the call is made again: what came of it counts no more once something comes anew."""

    failure: Failure


CallItem: TypeAlias = StreamItem | Interrupted
CallStatus: TypeAlias = Literal["complete", "stopped", "failed"]


async def open_call(runtime: Runtime, planned: PlannedCall, emit: Emit, what: str = "the next call") -> ModelCall:
    """Returns a call whose step is stored: budgets count what it is expected to cost until it is settled.
    ``emit`` hears of waits, ``what`` is what it is for. Raises NoRoomError before anything is sent, and StoreError."""
    budget, conversation, request = runtime.budget, runtime.conversation, planned.request
    patience = runtime.settings.agent
    request.timeout, request.content_timeout = patience.timeout, patience.content_timeout
    request.answer_timeout = patience.answer_timeout
    if budget is not None and (notice := budget.unpriced(planned.info.spec.key, planned.expected)) is not None:
        emit(notice)
    async with nullcontext() if budget is None else budget.one_by_one:
        if budget is not None and (refused := budget.refusal(planned.expected, what)) is not None:
            raise NoRoomError(refused)
        output, line, capped = runtime.longest_answer(planned.expected, planned.most, planned.info)
        planned.ask_for(output, capped)
        step = planned.step
        step.created = time.time()
        step.assumed_usd = None if planned.expected.usd is None else planned.expected.needed_usd
        await patiently(partial(conversation.add_step, step))
        return ModelCall(runtime, planned, emit, line)


class ModelCall:
    """A call that was begun (``open_call``). ``items`` makes it; ``settle`` ends it, whatever came of it.

    Its step says at any moment what is known: usage, cost, status and failure are written here, and nowhere else.
    ``limited_by`` is the budget that left room for a shorter answer than the model gives.
    """

    def __init__(self, runtime: Runtime, planned: PlannedCall, emit: Emit, limited_by: BudgetLine | None) -> None:
        self._runtime, self._planned, self._emit = runtime, planned, emit
        self.request, self.step, self.limited_by = planned.request, planned.step, limited_by
        self.failure: Failure | None = None
        self.finish: FinishReason | None = None
        self.finish_words = ""
        """How the provider calls that."""
        self.usage_problem: str | None = None
        self._attempt_tokens: float | None = None
        """Tokens of an answer that came in this attempt, by the character rule."""
        self._shown_tokens = 0.0
        """Those of the answer that stands."""
        self._recorded = False
        self._factor = family_of(planned.info.target).char_factor
        self._in_parent = self._begin_in_parent(self.step)

    @property
    def answer_tokens(self) -> int:
        """About how many tokens of the answer were seen."""
        return round_up(self._shown_tokens * self._factor)

    async def items(self) -> AsyncGenerator[CallItem, None]:
        """What comes of the call, but for its failure. One that may be tried again is waited for, told as
        ``RetryWaiting``, and the call is made again, as often as the settings say; where something of the answer had
        come, ``Interrupted`` tells it first. With a tool call in it nothing is tried again. Closing it ends call and
        wait."""
        attempts = self._runtime.settings.agent.retries
        for attempt in range(1, max(1, attempts) + 1):
            self.failure = self.finish = self.usage_problem = self._attempt_tokens = None
            calls = False
            async with aclosing(self._runtime.provider.stream(self.request)) as items:
                async for item in items:
                    self._note(item)
                    if isinstance(item, Failed):
                        break
                    calls = calls or (isinstance(item, Delta) and item.kind == "tool_call")
                    yield item
            failure = self.failure
            if failure is None:
                return
            if calls:
                self.failure = with_more(failure, NOT_RUN)
                return
            seconds = retry_delay(failure, attempt)
            last = not failure.retryable or attempt >= attempts or seconds > PATIENCE_SECONDS
            if last or not self.may_repeat():
                return
            log.info("Attempt %d of %d failed (%s), again in %.1f s", attempt, attempts, failure.kind, seconds)
            if self._attempt_tokens is not None:
                yield Interrupted(failure)
                failure = without_ways(failure)
            self._emit(RetryWaiting(seconds, attempt, attempts, failure))
            await asyncio.sleep(seconds)

    def _note(self, item: StreamItem) -> None:
        """Has the step say what an item brings."""
        step, info = self.step, self._planned.info
        match item:
            case Started(target):
                step.provider, step.api, step.model = target.provider, target.api, target.model
                self._record()
            case Delta(text=text):
                if self._attempt_tokens is None:
                    self._attempt_tokens = self._shown_tokens = 0.0
                self._attempt_tokens += char_tokens(text)
                self._shown_tokens = self._attempt_tokens
            case UsageReport(usage, cost, problem, believed, model):
                self.usage_problem, step.answered_by = problem, model or None
                step.usage = _with_input(usage, step)
                step.believed = None if believed is None else _with_input(believed, step)
                step.cost_usd = cost if cost is not None else info.prices.cost(usage)
            case Finished(reason, words=words):
                self.finish, self.finish_words = reason, words
            case Failed(failure):
                self.failure = failure

    def _record(self) -> None:
        """Notes once what was sent. An answer is not lost over that."""
        if self._recorded:
            return
        self._recorded = True
        try:
            self._planned.record()
        except Exception:
            log.exception("What step %s sent cannot be noted", self.step.id)

    def may_repeat(self) -> bool:
        """Returns whether it may be made again after a failure, or an empty answer. An attempt that may have been
        billed is stored as a step of its own, which costs, too."""
        step, failure, runtime = self.step, self.failure, self._runtime
        if step.usage is None and self._attempt_tokens is None and failure is not None and failure.kind in NOT_BILLED:
            return True
        broken = self._attempt()
        more = (step.assumed_usd or 0.0) + _spent_by(broken) - _spent_by(step)
        if runtime.budget is not None and not runtime.budget.has(more):
            return False
        step.usage = step.believed = None
        step.cost_usd = self._planned.info.prices.unreported
        runtime.conversation.keep_step(broken)
        self._end_in_parent(self._begin_in_parent(broken), broken)
        self._save()
        return True

    def _attempt(self) -> Step:
        """The step of an attempt that is made again: nothing is built on it, and it is no step of a turn."""
        failure = self.failure
        if failure is not None and failure.kind in NOT_BILLED:
            # Something came of it, so it was not refused.
            failure = replace(failure, kind="interrupted_stream")
        tried = replace(
            self.step,
            id=new_id("step"),
            kind="attempt",
            status="complete" if failure is None else "failed",
            message_id=None,
            failure=failure,
            finished=time.time(),
            sent=None,
            sent_keys=None,
            settlement=None,
            given=None,
        )
        self._assume(tried, self._attempt_tokens or 0.0)
        return tried

    def _assume(self, step: Step, came: float) -> None:
        """Where a call does not say what it cost, that was no less than what was seen of it."""
        if step.assumed_usd is not None:
            expected = self._planned.expected
            step.assumed_usd = max(step.assumed_usd, expected.cold_usd + round_up(came * self._factor) * expected.rate)

    def count_anew(self, guessed: int | None, counted: int) -> None:
        """The input was ``guessed`` when it was sent: where that stands for what nobody reported, ``counted`` does."""
        step = self.step
        if (made := step.counted) is not None and made.source == "estimated" and made.input == guessed:
            made = replace(made, input=counted)
            if step.believed is None:
                step.usage = made
            else:
                step.believed = made

    def settle(self, status: CallStatus, judge: Callable[[], None] = lambda: None) -> None:
        """Ends it: the step has what became of the call, and budgets count no more for it. ``judge`` looks at the ended
        step before it is stored."""
        step = self.step
        step.status, step.failure, step.finished = status, self.failure, time.time()
        step.finish_reason = self.finish or "unknown"
        if step.usage is not None:
            self._record()
        try:
            judge()
        finally:
            self._assume(step, self._shown_tokens)
            self._save()

    def _save(self) -> None:
        """Stored at once: other sessions and processes see it in the day's spending."""
        self._runtime.conversation.save_step(self.step)
        self._runtime.conversation.save_if_possible()
        self._end_in_parent(self._in_parent, self.step)

    def _begin_in_parent(self, step: Step) -> Step | None:
        """A subagent's call counts in the parent's session from its beginning: a copy of the step, of kind
        ``subagent``. It costs, but never anchors. None where this is no subagent."""
        parent = self._runtime.parent
        if parent is None:
            return None
        copy = replace(
            step,
            id=new_id("step"),
            kind="subagent",
            agent=self._runtime.agent,
            fixed=(),
            prune_ids=[],
            sent_reasoning=None,
            sent=None,
            sent_keys=None,
            settlement=None,
            given=None,
        )
        parent.keep_step(copy)
        parent.save_if_possible()
        return copy

    def _end_in_parent(self, copy: Step | None, step: Step) -> None:
        """The call has ended, or went on; ``copy`` stands for its step there."""
        parent = self._runtime.parent
        if parent is not None and copy is not None:
            copy.end_as(step)
            parent.save_step(copy)
            parent.save_if_possible()


def _spent_by(step: Step) -> float:
    """Dollars that budgets count for a call."""
    return step.cost.known + step.held_usd


def retry_delay(failure: Failure, attempt: int) -> float:
    """Seconds to wait before the next attempt: what the provider asked for, else doubling from 1 s with jitter."""
    if failure.retry_after is not None:
        return max(0.0, failure.retry_after)
    spread: float = random.uniform(0.8, 1.2)
    return float(min(BACKOFF_LIMIT, BACKOFF_SECONDS * 2 ** (attempt - 1)) * spread)


def _with_input(usage: TokenUsage, step: Step) -> TokenUsage:
    """The usage with our estimate of the input where nobody counted it: that is the best number there is."""
    return usage if usage.source == "provider" or usage.input else replace(usage, input=step.estimated_input or 0)
