"""The runtime: all that a turn needs to run, gathered in one place, and the requests that are made with it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import field, replace
from typing import TYPE_CHECKING, TypeAlias

from agent_tui.config import Settings
from agent_tui.context.accounting.inputs import CompactionSettings, ContextInputs
from agent_tui.context.accounting.next_input import min_output
from agent_tui.context.accounting.reports import Judged, Surplus, judge_usage
from agent_tui.context.accounting.spending import ExpectedCall, expected_call
from agent_tui.context.anchor import runs_of
from agent_tui.context.incremental import Incremental
from agent_tui.context.past import given_of
from agent_tui.context.view import active_prune_ids
from agent_tui.engine.budget import SpendingBudget
from agent_tui.engine.conversation import Conversation
from agent_tui.engine.counting import CountService
from agent_tui.engine.models import learned_ratio, recalled_ratio
from agent_tui.engine.request_prefix import RequestPrefix
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import ContextChanged, Event
from agent_tui.models.failure import Overflow
from agent_tui.models.messages import Metadata, fingerprint, new_id
from agent_tui.models.requests import Effort, ModelInfo, ModelRequest, Provider, ReplayRule
from agent_tui.models.steps import Step
from agent_tui.models.usage import TokenUsage
from agent_tui.providers.reasoning import decide, prefix_fingerprint
from agent_tui.records import dataclass

if TYPE_CHECKING:
    from agent_tui.engine.sent_log import SentLog


Emit: TypeAlias = Callable[[Event], None]


@dataclass(slots=True)
class Runtime:
    """A session together with the model it talks to. ``ratio`` is the model's calibration; ``parent`` is set for a
    subagent, whose steps are counted in the parent's cost; ``in_flight`` are estimated tokens of the answer that is
    streaming; ``usage_doubted``: the user knows that this model's reports are not always believed;
    ``surplus`` is what they are larger by than our estimates;
    ``replay`` is what was learned of how its server takes reasoning back; ``output_schema`` is what the answer has to
    fit, as far as the provider is asked for it, ``output_due`` that nothing but the answer is asked for;
    ``schema_refused``: its server does not take the schema; ``next_effort`` waits for the end of a turn;
    ``cold_read`` tokens at most will the request that goes out next find in the provider's cache; None is not known;
    ``budget`` holds the budgets, a subagent's parent's."""

    conversation: Conversation
    provider: Provider
    counts: CountService
    settings: Settings
    info: ModelInfo
    effort: Effort
    request_prefix: RequestPrefix
    ratio: float = 1.0
    accounts: Incremental = field(default_factory=Incremental)
    parent: Conversation | None = None
    in_flight: int = 0
    usage_doubted: bool = False
    surplus: Surplus | None = None
    replay: ReplayRule = field(default_factory=ReplayRule)
    output_schema: Metadata | None = None
    output_due: bool = False
    schema_refused: bool = False
    budget: SpendingBudget | None = None
    next_effort: Effort | None = None
    cold_read: int | None = None
    _sent_log: SentLog | None = None

    @property
    def sent_log(self) -> SentLog:
        """The log of what the conversation's steps sent. Needed once a request is on its way, and not before."""
        if self._sent_log is None:
            from agent_tui.engine.sent_log import SentLog

            self._sent_log = SentLog()
        return self._sent_log

    def describe_as(self, info: ModelInfo) -> None:
        """The model's facts have come; its calibration is looked up under them."""
        self.info, self.ratio = info, recalled_ratio(self.conversation.store, info)

    def learn_limits(self, info: ModelInfo) -> None:
        """The same model with limits that its server has just stated."""
        self.info = info

    def learn_growth(self, step: Step) -> None:
        """Takes a finished step into the model's growth and lets the calculator use the new ratio."""
        if not self.conversation.read_only:
            self.ratio = learned_ratio(self.conversation.store, self.info, step, self.ratio)

    def expected(self, usage: ContextUsage, most: int | None) -> ExpectedCall:
        """Returns what the next request is expected to cost; ``most`` is the longest answer that is asked for."""
        hour = self.info.spec.cache_ttl == "1h"
        return expected_call(usage, self.info.prices, self.conversation.steps, most, hour)

    def refusal(self, call: ExpectedCall, model: str, emit: Emit, what: str = "the next call") -> str | None:
        """Why the call is not to be made, when it would break a budget; None when it may."""
        if self.budget is None:
            return None
        if (notice := self.budget.unpriced(model, call)) is not None:
            emit(notice)
        return self.budget.refusal(call, what)

    def begin_in_parent(self, step: Step) -> Step | None:
        """A subagent's call counts in the parent's session from its beginning: a copy of the step, of kind
        ``subagent``. It costs, but never anchors. None where this is no subagent."""
        if self.parent is None:
            return None
        copy = replace(
            step, id=new_id("step"), kind="subagent", fixed=(), prune_ids=[], sent_reasoning=None, sent=None, given=None
        )
        self.parent.keep_step(copy)
        self.parent.save_if_possible()
        return copy

    def end_in_parent(self, copy: Step | None, step: Step) -> None:
        """The call has ended; ``copy`` is what ``begin_in_parent`` gave."""
        if self.parent is not None and copy is not None:
            copy.end_as(step)
            self.parent.save_step(copy)
            self.parent.save_if_possible()

    def begin_with(self, request_prefix: RequestPrefix) -> None:
        """Sets what the next request begins with."""
        self.request_prefix = request_prefix

    @property
    def wanted_effort(self) -> Effort:
        """The level of thinking that is wanted of the model, from the next turn on at the latest."""
        return self.effort if self.next_effort is None else self.next_effort

    def think(self, effort: Effort, *, in_turn: bool = False) -> None:
        """Sets how much the model thinks from the next request on. In the middle of a turn (``in_turn``) that would
        have the provider read the conversation anew, so it waits for the end of the turn."""
        if in_turn:
            self.next_effort = effort
        else:
            self.effort, self.next_effort = effort, None

    def expect_cold(self, read: int | None) -> None:
        """The next request will read no more than so many tokens, whatever the last one left; None: it has gone out."""
        self.cold_read = read

    def turn_over(self) -> None:
        """Ends a turn: what waited for the end of it holds from now on."""
        self.think(self.wanted_effort)

    def replay_by(self, rule: ReplayRule) -> None:
        """Sets how the server takes reasoning back."""
        self.replay = rule

    def expect(self, schema: Metadata | None, due: bool) -> None:
        """Sets what the answers from now on have to fit."""
        self.output_schema, self.output_due = schema, due

    def without_schema(self) -> None:
        """The server refuses the schema: it is not asked for again, whatever is expected."""
        self.schema_refused = True

    def streaming(self, tokens: int) -> None:
        """Estimated tokens of the answer so far; 0 when none is under way."""
        self.in_flight = tokens

    def judge(self, reported: TokenUsage, before: ContextUsage, answer: int) -> Judged:
        """Returns what to believe of the provider's report of a call that was sent at ``before`` and answered with
        about ``answer`` tokens."""
        judged = judge_usage(reported, before, answer, self.surplus)
        self.surplus = judged.surplus
        return judged

    def doubt_usage(self) -> bool:
        """A report is not believed; True the first time, when the user is to be told."""
        first, self.usage_doubted = not self.usage_doubted, True
        return first

    def policy(self) -> CompactionSettings:
        """When to compact, from the configuration and the session's own state (paused, off)."""
        context, state = self.settings.context, self.conversation.info.state
        return CompactionSettings(
            auto_compact=context.auto_compact,
            compact_at=context.compact_at,
            max_output_reserve=context.max_output_reserve,
            paused=state.compaction_paused,
            off=state.compaction_off,
        )

    def inputs(self) -> ContextInputs:
        """Everything the calculator reads, as it stands now."""
        return ContextInputs(
            model=self.info,
            view=self.conversation.view(),
            steps=self.conversation.steps,
            records=self.conversation.records,
            fixed=self.request_prefix.fixed,
            settings=self.policy(),
            ratio=self.ratio,
            fixed_fingerprint=self.request_prefix.fingerprint,
            effort=self.effort,
            replay=self.replay,
            inherited=self.conversation.inherited,
        )

    def rule(self) -> ReplayRule:
        """Returns the rule on which reasoning the next request may not bring back, as the calculator sees it."""
        return self.accounts.rule(self.inputs())

    def usage(self) -> ContextUsage:
        """The calculator's answer for the next request."""
        usage = self.accounts.usage(self.inputs())
        if self.cold_read is None:
            return usage
        read = self.cold_read if usage.expected_read is None else min(self.cold_read, usage.expected_read)
        return replace(usage, expected_read=read)

    def changed(self) -> ContextChanged:
        """The event that tells what the next request costs now, with what is streaming."""
        return ContextChanged(self.usage(), self.in_flight)


EXACT_MARGIN = 16
"""Tokens left free beside an input that the provider itself has counted."""

ROUGH_WINDOW_SHARE, ROUGH_INPUT_SHARE = 0.01, 0.02
"""What is left free beside an input that is about so long: the larger of these shares of the window and of itself."""


def fitting_output(
    overflow: Overflow | None,
    asked: int | None,
    estimate: int,
    *,
    window: int | None,
    max_input: int | None = None,
    fits_well: bool = False,
    least: int = 1,
) -> int | None:
    """The output tokens with which the same request fits; None when its input does not, or nothing says that it does.

    ``asked`` was refused; ``estimate`` is the input by our own numbers. ``window`` and ``max_input`` are what is known
    of the model, with what the refusal taught. ``fits_well``: by our numbers the input fits, so that half of the answer
    is tried where the refusal states no size. Below ``least`` an answer is of no use to the caller.
    """
    if overflow is not None and overflow.max_output is not None:
        known = [overflow.max_output]
        if window:
            known.append(window - estimate - _rough_margin(window, estimate))
        return _less(min(known), asked, least)
    stated = overflow.window if overflow is not None else None
    smallest = min((n for n in (window, stated) if n), default=0)
    if not smallest:
        return None
    least = max(least, min_output(smallest))
    size = _stated_input(overflow, estimate, asked)
    if size is None:
        complains = overflow is not None and overflow.max_input is not None
        return None if complains or not fits_well or asked is None else _half(asked, least)
    if max_input and size > max_input:
        return None
    exact = overflow is not None and overflow.exact and overflow.input is not None
    room = smallest - size - (EXACT_MARGIN if exact else _rough_margin(smallest, size))
    return _less(room, asked, least)


def _stated_input(overflow: Overflow | None, estimate: int, asked: int | None) -> int | None:
    """The input's size as the refusal has it; what is "at least" so long is as long as we think it is."""
    if overflow is None:
        return None
    if overflow.input is not None:
        return overflow.input if overflow.exact else max(overflow.input, estimate)
    if overflow.total is None:
        return None
    # It is not said whether the answer is in it: whichever is nearer to our own number.
    candidates = [overflow.total, overflow.total - (asked or 0)]
    return max(1, min(candidates, key=lambda size: abs(size - estimate)))


def _half(asked: int, least: int) -> int | None:
    return asked // 2 if asked >= 2 * least else None


def _less(room: int, asked: int | None, least: int) -> int | None:
    return room if room >= least and (asked is None or room < asked) else None


def _rough_margin(window: int, size: int) -> int:
    return int(max(ROUGH_WINDOW_SHARE * window, ROUGH_INPUT_SHARE * size))


def build_request(runtime: Runtime, request_id: str, max_output: int | None) -> ModelRequest:
    """The next request of a session as it stands."""
    return ModelRequest(
        id=request_id,
        spec=runtime.info.spec,
        session_id=runtime.conversation.info.id,
        system=runtime.request_prefix.system,
        messages=list(runtime.conversation.view()),
        tools=runtime.request_prefix.tools,
        max_output=max_output,
        effort=runtime.effort,
        fixed_fingerprint=runtime.request_prefix.fingerprint,
        timeout=runtime.settings.agent.timeout,
        content_timeout=runtime.settings.agent.content_timeout,
        answer_timeout=runtime.settings.agent.answer_timeout,
        documents=runtime.request_prefix.documents,
        replay=runtime.rule(),
        output_schema=None if runtime.schema_refused else runtime.output_schema,
        output_due=runtime.output_due,
    )


def record_sent(step: Step, request: ModelRequest, runtime: Runtime) -> Callable[[], None]:
    """Store with the step what of the reasoning its request sends, as the sender decides it. What is returned stores
    what else the request is made of: it can wait until that is on its way."""
    info = runtime.info
    plan, thinking = decide(request, info)
    step.sent_reasoning = runs_of(request.messages, plan, info.target.family)
    step.thinking = "off" if thinking.off else request.effort

    def remember() -> None:
        runtime.sent_log.record(step, request, info, plan, thinking, runtime.conversation.steps)
        runtime.expect_cold(None)

    return remember


def new_step(runtime: Runtime, kind: str) -> Step:
    """A step that records what is sent now: ids, fixed parts, prune records in force."""
    conversation, info = runtime.conversation, runtime.info
    view = conversation.view()
    return Step(
        id=new_id("step"),
        kind="count" if kind == "count" else "turn",
        model_key=info.spec.key,
        provider=info.target.provider,
        api=info.target.api,
        model=info.target.model,
        created=time.time(),
        sent_count=len(view),
        sent_fingerprint=fingerprint(sent.message.id for sent in view),
        prefix_fingerprint=prefix_fingerprint(view, runtime.request_prefix.fingerprint),
        fixed=conversation.fixed_sets.one(runtime.request_prefix.fixed),
        prune_ids=active_prune_ids(conversation.records),
        fixed_fingerprint=runtime.request_prefix.fingerprint,
        thinking=runtime.effort,
        cost_usd=info.prices.unreported,
        window=info.limits.window,
        given=given_of(runtime.inputs(), conversation.info.head_id),
    )
