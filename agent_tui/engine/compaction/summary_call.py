"""The model call that writes a summary: its input made to fit, its answer and what it cost."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias

from agent_tui.context.accounting.next_input import output_room
from agent_tui.context.accounting.spending import ExpectedCall, priced_call
from agent_tui.context.compaction.plan import CompactionPlan
from agent_tui.context.compaction.summary import (
    SummaryInput,
    prepare_input,
    rough_tokens,
    system_text,
    user_text,
)
from agent_tui.engine.calls import fitting_output
from agent_tui.models.failure import Failure, without_text_kept
from agent_tui.models.messages import Message, TextPart, new_id
from agent_tui.models.requests import (
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
from agent_tui.models.steps import Step
from agent_tui.models.usage import own_limit
from agent_tui.records import dataclass

log = logging.getLogger(__name__)

StreamFunction: TypeAlias = Callable[[ModelRequest], AsyncIterator[StreamItem]]
MakeStep: TypeAlias = Callable[[int | None], Step]


async def _unpaid(call: ExpectedCall, model: ModelInfo, most: int | None, make: MakeStep) -> str | None:
    make(most)
    return None


@dataclass(slots=True, frozen=True)
class Ledger:
    """Where the calls of a compaction are written down, and held against what may be spent; by itself nobody pays them.

    ``begin`` begins a call for an answer of at most so many tokens, with the step that ``make`` makes for as many as it
    may be asked for, and returns why it is not made, where it is not. ``ended`` is told of a step that has ended, and
    how many tokens of its answer were seen.
    """

    begin: Callable[[ExpectedCall, ModelInfo, int | None, MakeStep], Awaitable[str | None]] = _unpaid
    ended: Callable[[Step, int], None] = lambda step, came: None


MAX_TRIMS = 3
"""How often the oldest input is dropped when the summary call itself is too long."""

OUTPUT_FACTOR = 4
MIN_SUMMARY_OUTPUT = 2_048
MAX_SUMMARY_OUTPUT = 16_384
"""Output room kept free: this many times the sections' budget and at least this much, since some models think first.
What the input leaves over may be used as well."""

ROUGH_SHARE = 0.75
"""Share of what the input leaves over that is asked for: the input's size is roughly estimated."""

LEAST_SUMMARY_OUTPUT = MIN_SUMMARY_OUTPUT // 4
"""A summary shorter than this is not worth a second call."""

WORDS_PER_TOKEN = 0.6


@dataclass(slots=True)
class SummaryAnswer:
    """The result of a call for a summary."""

    text: str = ""
    finish: FinishReason | None = None
    failure: Failure | None = None
    saw_previous: bool = True
    """The earlier summary was in its input."""


class SummaryCall:
    """Makes the calls of one compaction; ``steps`` are all of them, oldest first."""

    def __init__(self, stream: StreamFunction, clock: Callable[[], float], ledger: Ledger) -> None:
        self._stream = stream
        self._ledger = ledger
        self._clock = clock
        self.steps: list[Step] = []

    def begin(self) -> None:
        """Another compaction: what it costs is its own."""
        self.steps = []

    async def ask(self, plan: CompactionPlan, model: ModelInfo, session_id: str) -> SummaryAnswer:
        """The summary call; when it is too long itself, its oldest input is dropped and it is made again. Where the
        refusal says that the input fits, it is made again with a shorter answer, once."""
        source, words = self._source(plan, model)
        length = plan.summary.tokens if plan.summary is not None else 0
        for trims in range(MAX_TRIMS + 1):
            request = self._request(plan, model, source, words, session_id)
            answer = await self._call(request, model, length)
            if trims == 0 and (output := shorter_summary(answer.failure, request, model)) is not None:
                answer = await self._call(replace(request, id=new_id("req"), max_output=output), model, length)
            answer.saw_previous = source.previous == (plan.summary.previous if plan.summary is not None else None)
            shorter = source.without_oldest()
            too_long = answer.failure is not None and answer.failure.kind == "context_overflow"
            if not too_long or shorter is None or trims == MAX_TRIMS:
                break
            log.info("The summary call is too long; dropping its oldest input")
            source = shorter
        return answer

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
        self, plan: CompactionPlan, model: ModelInfo, source: SummaryInput, words: int, session_id: str
    ) -> ModelRequest:
        text, system = user_text(source), system_text(words)
        output = self._wanted_output(plan, model)
        if model.limits.window:
            room = output_room(model.limits.window, rough_tokens(text) + rough_tokens(system))
            output = max(min(output, model.limits.window // 4), min(MAX_SUMMARY_OUTPUT, int(room * ROUGH_SHARE)))
        if model.limits.max_output:
            output = min(output, model.limits.max_output)
        message = Message(new_id("msg"), "user", [TextPart(text)], created=self._clock())
        blocks, messages = [SystemBlock("system", system)], [SentMessage(message, message.id)]
        return ModelRequest(
            new_id("req"), model.spec, session_id, blocks, messages, [], output, "off", kind="compaction"
        )

    async def _call(self, request: ModelRequest, model: ModelInfo, length: int) -> SummaryAnswer:
        """One call; its answer is expected to have ``length`` tokens, which is what it is asked to have at most."""
        target = model.target
        expected = priced_call(
            model.prices,
            request_tokens(request),
            0,
            min(length, request.max_output or length),
            model.spec.cache_ttl == "1h",
        )

        def make(output: int | None) -> Step:
            asked = request.max_output
            request.capped = output is not None and (asked is None or output < (own_limit(model.spec.extra) or asked))
            request.max_output = output if request.capped else asked
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
                cost_usd=model.prices.unreported,
                window=model.limits.window,
            )
            made.append(step)
            return step

        made: list[Step] = []
        if (refused := await self._ledger.begin(expected, model, request.max_output, make)) is not None:
            return SummaryAnswer(failure=Failure("budget", refused))
        step = made[-1]
        self.steps.append(step)
        answer = SummaryAnswer()
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
                    case UsageReport(usage=usage, cost_usd=cost, believed=believed):
                        step.usage, step.believed = usage, believed
                        step.cost_usd = cost if cost is not None else model.prices.cost(usage)
                    case Finished(reason=reason):
                        answer.finish = reason
                    case Failed(failure=failure):
                        answer.failure = without_text_kept(failure)
            if answer.finish is None and answer.failure is None:
                answer.failure = Failure("interrupted_stream", "The stream ended before the answer was complete.")
            step.status = "failed" if answer.failure is not None else "complete"
        finally:
            if step.status == "running":
                step.status = "stopped"
            step.failure, step.finish_reason, step.finished = answer.failure, answer.finish, self._clock()
            self._ledger.ended(step, rough_tokens("".join(pieces)))
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()
        answer.text = "".join(pieces)
        return answer


def request_tokens(request: ModelRequest) -> int:
    """Tokens of a summary call's input, roughly."""
    texts = [block.text for block in request.system] + [sent.message.text for sent in request.messages]
    return sum(map(rough_tokens, texts))


def shorter_summary(failure: Failure | None, request: ModelRequest, model: ModelInfo) -> int | None:
    """The output tokens with which a refused call fits, as the refusal's numbers say; None where they do not say so,
    or where too little for a summary would be left."""
    overflow = failure.overflow if failure is not None else None
    if overflow is None or request.max_output is None:
        return None
    return fitting_output(
        overflow,
        request.max_output,
        request_tokens(request),
        window=overflow.window or model.limits.window,
        max_input=model.limits.max_input,
        least=LEAST_SUMMARY_OUTPUT,
    )
