"""The runtime: all that a turn needs to run, gathered in one place, and the requests that are made with it."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, TypeAlias

from agent_tui.config import Settings, ToolsConfig
from agent_tui.context.accounting.believed import Verdict, believe
from agent_tui.context.accounting.inputs import CompactionSettings, ContextInputs
from agent_tui.context.accounting.reports import after_step
from agent_tui.context.accounting.spending import (
    BudgetLine,
    ExpectedCall,
    expected_call,
)
from agent_tui.context.accounting.usage import Calculator
from agent_tui.context.tokens import TokenCounterMetrics, estimate_message, family_of, message_text_for_count, round_up
from agent_tui.engine.accepted import outgrown
from agent_tui.engine.budget import SpendingBudget
from agent_tui.engine.conversation import Conversation
from agent_tui.engine.models import (
    learn,
    learned_calibration,
    learned_prompt,
    recalled_calibration,
    relearned_calibration,
)
from agent_tui.engine.request_prefix import RequestPrefix
from agent_tui.errors import StoreError, WorkerError
from agent_tui.models.calibration import Calibration, raw_total
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import ContextChanged, Event
from agent_tui.models.failure import Overflow
from agent_tui.models.messages import Message, Metadata
from agent_tui.models.requests import Counter, Effort, ModelInfo, Provider, ReplayRule, SentMessage
from agent_tui.models.steps import Step
from agent_tui.models.usage import SubagentRef
from agent_tui.providers.catalog import own_limit
from agent_tui.records import dataclass

if TYPE_CHECKING:
    from agent_tui.engine.sent_log import SentLog


log = logging.getLogger(__name__)


class CountService:
    """Asks the worker for counts that are missing. Until they arrive the calculator uses the character rule."""

    def __init__(self, counter: Counter, metrics: TokenCounterMetrics) -> None:
        self._counter = counter
        self._metrics = metrics
        self.unavailable = False
        """No tokenizer can be had: the character rule stays."""
        self._has_counted = False

    @property
    def running(self) -> bool:
        """Whether counting needs no process that has to be started."""
        return self._counter.running

    @property
    def warm(self) -> bool:
        """Whether the counter has counted before, and answers at once."""
        return self._has_counted and self.running

    async def ensure(self, conversation: Conversation, request_prefix: RequestPrefix, least: float = 0) -> bool:
        """Counts whatever of the conversation and the fixed parts has no count; True when something changed. Fewer
        characters than ``least`` wait for more."""
        every = (*conversation.path, *conversation.summaries.values())
        relevant = [m for m in every if m.status != "streaming"]
        messages = [m for m in relevant if m.raw_tokens is None or m.counts is None]
        fixed = request_prefix.uncounted()
        known: dict[str, tuple[int, ...]] = {}
        if fixed:
            known = conversation.store.measured.counts(list(fixed))
            request_prefix.set_counts(known)
            conversation.set_fixed_counts(known)
            fixed = {f: text for f, text in fixed.items() if f not in known}
        self._metrics.hit(len(relevant) - len(messages))
        if not messages and not fixed:
            return bool(known)
        texts = [message_text_for_count(m) for m in messages] + list(fixed.values())
        if sum(map(len, texts)) < least:
            return bool(known)
        try:
            counts = await self._counter.count(texts)
        except WorkerError as error:
            if not self.unavailable:
                log.warning("No token counts, the character rule stands in: %s", error)
            self.unavailable = True
            return bool(known)
        self.unavailable, self._has_counted = False, True
        by_message = {m.id: n for m, n in zip(messages, counts, strict=False)}
        for count in by_message.values():
            self._metrics.miss(raw_total(count))
        if by_message:
            conversation.set_counts(by_message)
        by_fixed = dict(zip(fixed, counts[len(messages) :], strict=True))
        if by_fixed:
            request_prefix.set_counts(by_fixed)
            conversation.set_fixed_counts(by_fixed)
            if not conversation.read_only:
                try:
                    conversation.store.measured.put_counts(by_fixed)
                except StoreError as error:
                    # They are counted again next time.
                    log.warning("Token counts were not stored: %s", error)
        return True


Emit: TypeAlias = Callable[[Event], None]

DECISION_SHARE = 1 / 3
"""From this share of the limit on a step waits for its counts: the compaction decision must not rest on a guess. The
character rule guesses a third of what random base64 and the like come to, which is the worst of what people paste."""

WORTH_COUNTING = 6_000
"""Characters without a count for which a process is started below that share. The character rule is off by less than
anybody acts on for fewer, and the report of the first answer measures them anyway."""

RESULT_CHARS = 3
"""Characters of a result that are reckoned as a token: those of code and logs are no longer."""
LEAST_RESULT = 10
"""One part in this many of the limit is left to a result, however full the context is."""
MIN_OUTPUT = 1_000
"""Characters of a result that are sent in any case."""


@dataclass(slots=True)
class Runtime:
    """A session together with the model it talks to: all that its next request is made with."""

    conversation: Conversation
    provider: Provider
    counts: CountService
    settings: Settings
    info: ModelInfo
    effort: Effort
    request_prefix: RequestPrefix
    calibration: Calibration | None = None
    """What was learned of how the model's server counts; None before its first report."""
    calculator: Calculator = field(default_factory=Calculator)
    parent: Conversation | None = None
    """A subagent's: its steps are counted in the parent's cost."""
    agent: SubagentRef | None = None
    """Which subagent it is; None for the session itself."""
    in_flight: int = 0
    """Estimated tokens of the answer that is streaming."""
    replay: ReplayRule = field(default_factory=ReplayRule)
    """What was learned of how its server takes the conversation back."""
    output_schema: Metadata | None = None
    """What the answer has to fit, as far as the provider is asked for it."""
    output_due: bool = False
    """Nothing but the answer is asked for."""
    schema_refused: bool = False
    """The server does not take the schema."""
    left_out: frozenset[str] = frozenset()
    """The fingerprints of tools that the server refuses: they are not offered."""
    budget: SpendingBudget | None = None
    next_effort: Effort | None = None
    """Waits for the end of a turn."""
    cold_read: int | None = None
    """Tokens that the request that goes out next will find in the provider's cache at most; None: not known."""
    told: set[str] = field(default_factory=set)
    """What was said of its steps, and need not be said again."""
    is_followed: Callable[[], bool] = lambda: True
    """Whether anybody reads the numbers that ``show_numbers`` publishes."""
    _sent_log: SentLog | None = None
    _inputs: tuple[object, ContextInputs] | None = None
    _answer: tuple[ContextInputs, ContextUsage] | None = None

    def size_of(self, message: Message) -> int:
        """Tokens of a message as it would be sent, and as the rows count it: by what reports have shown, too."""
        family = family_of(self.info.target)
        known = self.calibration or family.beginning
        return round_up(known.tokens(estimate_message(message, family).content))

    @property
    def sent_log(self) -> SentLog:
        """The log of what the conversation's steps sent. Needed once a request is on its way, and not before."""
        if self._sent_log is None:
            from agent_tui.engine.sent_log import SentLog

            self._sent_log = SentLog()
        return self._sent_log

    def describe_as(self, info: ModelInfo) -> None:
        """The model's facts have come; its calibration is looked up under them."""
        self.learn_limits(info)
        self.calibration = recalled_calibration(self.conversation.store, info)

    def learn_limits(self, info: ModelInfo) -> None:
        """The same model with what its server has just stated: its limits, or what it does not take. One whose chat
        template knows no calls is sent those of the conversation as text."""
        self.info = info
        if info.tools is False and not self.replay.needs("calls as text"):
            self.replay = replace(self.replay, adaptations=[*self.replay.adaptations, "calls as text"])

    def learn_growth(self, step: Step) -> None:
        """Lets the calculator use what a finished step's report teaches."""
        if not self.conversation.read_only:
            self.calibration = learned_calibration(self.conversation.store, self.info, step, self.calibration)

    def longest_answer(
        self, call: ExpectedCall, most: int | None, info: ModelInfo
    ) -> tuple[int | None, BudgetLine | None, bool]:
        """Tokens of the longest answer of a call where the model gives one of ``most`` (None: nobody knows), the budget
        that has no room for more, and whether it is less than what would be asked for. What the model's own settings
        ask for stands over ``most``."""
        own = own_limit(info.spec, info.target)
        stated = most if own is None else own or None
        room, line = (stated, None) if self.budget is None else self.budget.longest(call, stated)
        return room, line, room != stated

    def expected(self, usage: ContextUsage, most: int | None) -> ExpectedCall:
        """Returns what the next request is expected to cost; ``most`` is the longest answer that is asked for."""
        hour = self.info.spec.cache_ttl == "1h"
        return expected_call(usage, self.info.prices, self.conversation.steps, most, hour)

    def send_as(
        self,
        *,
        prefix: RequestPrefix | None = None,
        replay: ReplayRule | None = None,
        left_out: frozenset[str] | None = None,
        schema_refused: bool | None = None,
    ) -> None:
        """Changes these of what the requests from now on are made with; the others stay."""
        self.request_prefix = self.request_prefix if prefix is None else prefix
        self.replay = self.replay if replay is None else replay
        self.left_out = self.left_out if left_out is None else left_out
        self.schema_refused = self.schema_refused if schema_refused is None else schema_refused

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
        """What waited for the end of the turn holds from now on."""
        self.think(self.wanted_effort)

    @property
    def runs_text_calls(self) -> bool:
        """Whether calls that the model writes as text are run."""
        wanted = self.settings.tools.text_calls
        if wanted is not None:
            return wanted
        return self.replay.needs("calls as text") or self.replay.needs("no tools")

    def expect(self, schema: Metadata | None, due: bool) -> None:
        """Sets what the answers from now on have to fit."""
        self.output_schema, self.output_due = schema, due

    def streaming(self, tokens: int) -> None:
        self.in_flight = tokens

    def judge(self, step: Step, answer: int) -> tuple[Verdict, bool]:
        """Judges the report of a step that has ended, answered with about ``answer`` tokens; True where the user is to
        be told: what is wrong with it was not so before in this session."""
        conversation, info = self.conversation, self.info
        every = conversation.steps
        steps = every[: next(n for n in range(len(every), 0, -1) if every[n - 1] is step)]
        known = {other.doubt for other in steps[:-1] if other.model == step.model}
        verdict = believe(steps, info.target, info.limits.window, answer)
        for other in steps[:-1]:
            if other.id in verdict.truth:
                after_step(other)
                conversation.save_step(other)
        if verdict.taken_back is not None and not conversation.read_only:
            self.calibration = relearned_calibration(conversation.store, info, steps, verdict.taken_back)
        if verdict.always is not None and not conversation.read_only:
            self.calibration = learned_prompt(conversation.store, info, verdict.always, self.calibration)
        if verdict.keeps is not None and not conversation.read_only:
            told = Overflow(window=verdict.keeps, text=f"The server keeps about {verdict.keeps:,} tokens.")
            self.info = learn(conversation.store, info, told, steps) or info
        if not conversation.read_only:
            self.info = outgrown(conversation.store, info, step) or self.info
        return verdict, verdict.doubt is not None and verdict.doubt not in known

    def settle(self, step: Step, message: Message | None = None, verdict: Verdict | None = None) -> None:
        """Turns the report of a step that has ended into costs; ``verdict`` is what is believed of it, and now of those
        before it."""
        conversation = self.conversation
        added = verdict.always if verdict is not None else None
        known = verdict.truth if verdict is not None else {}
        changed = [other for other in conversation.steps if other.id in known and other is not step]
        for other in self.calculator.settle(step, message, self.inputs(), changed, added):
            if other is not step:
                conversation.save_step(other)
        conversation.changed()

    def calculate_anew(self) -> None:
        """What was calculated before does not hold any more: something of it was not as it seemed, or is another."""
        self.calculator = Calculator()

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

    def inputs(self, model: ModelInfo | None = None) -> ContextInputs:
        """Everything the calculator reads, as it stands now; for another ``model`` as well. The same object, so that
        what was calculated from it holds, until something of it changes."""
        if model is not None:
            return self._inputs_for(model)
        c, prefix = self.conversation, self.request_prefix
        learned = self.info, self.calibration, self.effort, self.replay
        # A call that is under way is billed as its reports come in.
        bills = [(step.usage, step.cost_usd) for step in c.steps if step.status == "running"]
        said = c.revision, len(c.steps), c.info.state, bills
        now = said, tuple(prefix.fixed), prefix.fingerprint, self.policy(), learned
        if self._inputs is None or self._inputs[0] != now:
            self._inputs = now, self._inputs_for(self.info)
        return self._inputs[1]

    def _inputs_for(self, model: ModelInfo) -> ContextInputs:
        c = self.conversation
        view = c.view()
        return ContextInputs(
            model=model,
            view=view,
            steps=c.steps,
            records=c.records,
            fixed=self.request_prefix.fixed,
            settings=self.policy(),
            calibration=self.calibration,
            fixed_fingerprint=self.request_prefix.fingerprint,
            effort=self.effort,
            replay=self.replay,
            inherited=c.inherited,
            pinned=c.info.state.pinned_messages,
        )

    def view(self) -> Sequence[SentMessage]:
        """The conversation as it would be sent to the model now."""
        return self.inputs().view

    def rule(self) -> ReplayRule:
        """Returns the rule on which reasoning the next request may not bring back, as the calculator sees it."""
        return self.calculator.rule(self.inputs())

    def usage(self) -> ContextUsage:
        """The calculator's answer for the next request, calculated once after each change."""
        inputs = self.inputs()
        if self._answer is None or self._answer[0] is not inputs:
            self._answer = inputs, self.calculator.usage(inputs)
        usage = self._answer[1]
        if self.cold_read is None:
            return usage
        read = self.cold_read if usage.expected_read is None else min(self.cold_read, usage.expected_read)
        return replace(usage, expected_read=read)

    @property
    def must_be_counted(self) -> bool:
        """Whether the decision to compact may hang on what has no count."""
        usage = self.usage()
        return usage.limit is not None and usage.total > usage.limit * DECISION_SHARE

    async def count(self, *, every: bool = False, followed: bool = False, sends: bool = False) -> bool:
        """Counts what has no count yet; True when something changed. Where a process has to be started for it, only
        (but for ``every``) what a decision may hang on, or enough of it, where the numbers are ``followed`` or a second
        request is sent: of a single answer the report says all."""
        least = 0.0
        if not (every or self.counts.running or self.must_be_counted):
            least = WORTH_COUNTING if followed or (sends and self.conversation.steps) else math.inf
        return await self.counts.ensure(self.conversation, self.request_prefix, least)

    def tools_config(self, calls: int = 1) -> ToolsConfig:
        """The tools' settings for one of so many calls that are made at once: together their results take no more than
        what is left of the context, or, so that something can still be looked at before a compaction, a tenth of the
        limit."""
        usage, config = self.usage(), self.settings.tools
        if not usage.limit:
            return config
        room = max(usage.limit - usage.total, usage.limit // LEAST_RESULT) * RESULT_CHARS
        return replace(config, output_limit=max(MIN_OUTPUT, min(config.output_limit, room // calls)))

    def show_numbers(self, emit: Emit) -> None:
        """Tells what the next request costs now, with what is streaming, where somebody follows that."""
        if self.is_followed():
            emit(ContextChanged(self.usage(), self.in_flight))
