"""The model call that writes a summary: its input made to fit, its answer and what it cost."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from agent_tui.context.accounting.next_input import output_room
from agent_tui.context.accounting.spending import ExpectedCall, priced_call
from agent_tui.context.compaction.answers import joined, read_answer
from agent_tui.context.compaction.judge import (
    ASKED_AGAIN,
    SUMMARY_FORM,
    AnswerForm,
    Replaced,
    SummaryProblem,
    judge_summary,
)
from agent_tui.context.compaction.plan import CompactionPlan, SummaryPlan
from agent_tui.context.compaction.summary import (
    INPUT_SAFETY,
    MAX_PARTS,
    SummaryInput,
    in_parts,
    prepare_inputs,
    question_text,
    range_question,
    render_messages,
    repair_text,
    rough_tokens,
    system_text,
    user_text,
)
from agent_tui.context.tokens import char_tokens
from agent_tui.engine.cache_forecast import WarmCall
from agent_tui.engine.calls import BegunCall, begin_call, fitting_output
from agent_tui.engine.retries import CallItem, Interrupted, stream_with_retries
from agent_tui.engine.runtime import Emit, Runtime
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
    SystemBlock,
    UsageReport,
)
from agent_tui.models.steps import Step
from agent_tui.records import dataclass

if TYPE_CHECKING:
    from agent_tui.context.compaction.facts import Fact

log = logging.getLogger(__name__)

StreamFunction: TypeAlias = Callable[[ModelRequest], AsyncIterator[CallItem]]
AskWarm: TypeAlias = Callable[[str, int], WarmCall | None]
"""``engine.cache_forecast.warm_call`` of the conversation that is compacted."""
MakeStep: TypeAlias = Callable[[int | None, bool], Step]


async def _unpaid(call: ExpectedCall, model: ModelInfo, most: int | None, make: MakeStep) -> str | None:
    make(most, False)
    return None


@dataclass(slots=True, frozen=True)
class Payer:
    """Where the calls of a compaction are written down, and held against what may be spent; by itself nobody pays them.

    ``begin`` begins a call for an answer of at most so many tokens, with the step that ``make`` makes for as many as it
    may be asked for, told whether a budget says so, and returns why it is not made, where it is not. ``ended`` is told
    of a step that has ended, and how many tokens of its answer were seen.
    """

    begin: Callable[[ExpectedCall, ModelInfo, int | None, MakeStep], Awaitable[str | None]] = _unpaid
    ended: Callable[[Step, int], None] = lambda step, came: None


MAX_HALVINGS = 3
"""How often the input is split anew, into parts of half the size, when the summary call itself is too long."""

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
    """The result of a call for a summary. ``sections`` are those of an answer with which nothing is wrong."""

    text: str = ""
    finish: FinishReason | None = None
    failure: Failure | None = None
    problem: SummaryProblem | None = None
    sections: Mapping[str, str] = field(default_factory=dict)
    warm: bool = False
    """It was asked for as the next message of the conversation."""
    thought: bool = False
    """There were thoughts beside its text."""

    def judge(self, replaced: Replaced, form: AnswerForm = SUMMARY_FORM) -> SummaryAnswer:
        """The same answer, with what is wrong with its text, or its sections."""
        if self.failure is None:
            self.problem = judge_summary(self.text, self.finish or "unknown", replaced, form, self.thought)
            self.sections = read_answer(self.text, form.headings) if self.problem is None else {}
        return self

    @property
    def why(self) -> str | None:
        """Why it cannot be used, as half a sentence; None where it can."""
        if self.failure is not None:
            return self.failure.message.rstrip(".")
        return self.problem.text if self.problem is not None else None


Send: TypeAlias = Callable[[str], Awaitable[SummaryAnswer | None]]
"""Makes a call with a line that says what was wrong with the answer before, or with none; None where none is made."""


class PaidCalls:
    """The calls of a compactor, or of ``what`` is said, within what may be spent. ``emit`` hears of waits."""

    def __init__(self, runtime: Runtime, emit: Emit, what: str = "the summary call") -> None:
        self._runtime = runtime
        self._emit, self._what = emit, what
        self._begun: BegunCall | None = None
        self._prepared = ""

    def prepares(self, cut: str) -> None:
        """The next calls write the summary up to this message before it is needed; their steps say so."""
        self._prepared = cut

    def stream(self, request: ModelRequest) -> AsyncIterator[CallItem]:
        """The summary call, waited for and tried again as a step is."""
        runtime, patience = self._runtime, self._runtime.settings.agent
        request = replace(
            request,
            timeout=patience.timeout,
            content_timeout=patience.content_timeout,
            answer_timeout=patience.answer_timeout,
        )
        assert self._begun is not None, "its step was begun"
        return stream_with_retries(runtime.provider, request, patience.retries, self._emit, self._begun.may_repeat)

    @property
    def payer(self) -> Payer:
        return Payer(self._begin, self._ended)

    async def _begin(self, call: ExpectedCall, model: ModelInfo, most: int | None, make: MakeStep) -> str | None:
        """Begins a summary call, as ``Payer`` says."""

        def marked(output: int | None, capped: bool) -> Step:
            step = make(output, capped)
            step.prepared = self._prepared
            return step

        told = (self._emit, model, self._what)
        begun = await begin_call(self._runtime, call, most, marked, told)
        self._begun = None if isinstance(begun, str) else begun
        return begun if isinstance(begun, str) else None

    def _ended(self, step: Step, came: int) -> None:
        """A summary call has ended."""
        if self._begun is not None and self._begun.step is step:
            self._begun.ended(came)


class SummaryCall:
    """Makes the calls of one compaction; ``steps`` are all of them, oldest first. Whatever is wrong with an answer, a
    model is asked once, and in all of the compaction once more with what is wrong."""

    def __init__(self, stream: StreamFunction, clock: Callable[[], float], payer: Payer) -> None:
        self._stream = stream
        self._payer = payer
        self._clock = clock
        self._again = False
        self.steps: list[Step] = []

    def begin(self) -> None:
        """Another compaction: what it costs is its own."""
        self.steps = []
        self._again = False

    async def ask_twice(self, send: Send) -> SummaryAnswer | None:
        """The answer to what ``send`` asks; where something is wrong with it, and nothing was asked once more before,
        the answer to the same with what is wrong. None where no call was made."""
        answer = await send("")
        if answer is None or answer.problem is None or self._again:
            return answer
        self._again = True
        log.info("The summary is asked for once more: %s", answer.problem.text)
        second = await send(ASKED_AGAIN[answer.problem.code])
        return answer if second is None or second.failure is not None else second

    async def ask(
        self, plan: CompactionPlan, model: ModelInfo, session_id: str, warm: AskWarm | None = None
    ) -> SummaryAnswer:
        """The summary call: as the next message of the conversation, where that is ``warm``, else apart from it. Then
        there may be calls for parts, each of which sees the summary of those before it: the last answer counts. An
        input that is too long after all is split anew."""
        summary, halvings, done = _summary_of(plan), 0, 0
        room, replaced = self._room(plan, model), _replaced_by(plan)
        waiting = prepare_inputs(summary.fresh, summary.previous, plan.focus, room, _rough_size(summary.tokens))
        if warm is not None and (found := await self._within(plan, model, warm, replaced)) is not None:
            return found
        while True:
            source = waiting[0]
            answer = await self._about(plan, model, session_id, source, replaced)
            too_long = answer.failure is not None and answer.failure.kind in ("context_overflow", "too_large")
            if too_long and halvings < MAX_HALVINGS and len(source.entries) > 1:
                log.info("The summary call is too long; its input is split")
                halvings, room = halvings + 1, source.tokens // 2
                rest = replace(source, entries=tuple(entry for part in waiting for entry in part.entries))
                waiting = in_parts(rest, room, _rough_size(summary.tokens), MAX_PARTS - done)
                continue
            if answer.why is not None or len(waiting) == 1:
                return answer
            waiting.pop(0)
            done += 1
            waiting[0] = replace(waiting[0], previous=joined(answer.sections))

    async def _within(
        self, plan: CompactionPlan, model: ModelInfo, warm: AskWarm, replaced: Replaced
    ) -> SummaryAnswer | None:
        """Asks as the next message of the conversation. None where that cannot be, or where it is refused: apart from
        it less is sent."""
        output = max(_summary_of(plan).tokens, MIN_SUMMARY_OUTPUT)

        async def send(line: str) -> SummaryAnswer | None:
            asked = warm(f"{_question(plan)} {line}".rstrip(), output)
            if asked is None:
                return None
            answer = await self.call(asked.request, model, asked.expected, asked.record)
            answer.warm = True
            return answer.judge(replaced)

        answer = await self.ask_twice(send)
        refused = ("context_overflow", "too_large", "invalid_request")
        return None if answer is None or (answer.failure and answer.failure.kind in refused) else answer

    async def rewrite(
        self,
        plan: CompactionPlan,
        model: ModelInfo,
        session_id: str,
        first: SummaryAnswer,
        lacks: str,
        facts: Sequence[Fact] = (),
        warm: AskWarm | None = None,
    ) -> SummaryAnswer | None:
        """Asks for the summary of the ``first`` answer, which is one, once more, with what it ``lacks`` and the
        ``facts`` that it leaves out: a small call, or one that goes on with the first where that was asked for within
        the conversation. None where this compaction has asked once more before, or where it brought nothing better."""
        if self._again:
            return None
        self._again = True
        written, told = joined(first.sections), [fact.text for fact in facts]
        length = _summary_of(plan).tokens + sum(map(rough_tokens, told))
        text = repair_text(written, lacks, told, _words_in(length))
        asked = None
        if warm is not None and first.warm:
            asked = warm(f"{_question(plan)}\n\n{text}", max(length, MIN_SUMMARY_OUTPUT))
        if asked is not None:
            answer = await self.call(asked.request, model, asked.expected, asked.record)
        else:
            request = self._request(plan, model, text, _system(plan, _words_in(length)), session_id)
            answer = await self._apart(request, model, length)
        return None if answer.judge(_replaced_by(plan)).why is not None else answer

    async def _about(
        self, plan: CompactionPlan, model: ModelInfo, session_id: str, source: SummaryInput, replaced: Replaced
    ) -> SummaryAnswer:
        """Asks about one input, apart from the conversation; with a shorter answer where a refusal says that the input
        fits then."""
        words, length, text = _words(plan), _summary_of(plan).tokens, user_text(source)

        async def send(line: str) -> SummaryAnswer:
            less = words // 2 if line == ASKED_AGAIN["truncated"] else words
            request = self._request(plan, model, f"{text} {line}".rstrip(), _system(plan, less), session_id)
            answer = await self._apart(request, model, length)
            if (output := shorter_summary(answer.failure, request, model)) is not None:
                answer = await self._apart(replace(request, id=new_id("req"), max_output=output), model, length)
            return answer.judge(replaced)

        answer = await self.ask_twice(send)
        assert answer is not None, "a call was made"
        return answer

    def _room(self, plan: CompactionPlan, model: ModelInfo) -> int:
        """Tokens that the input of one call may have."""
        window, room = model.limits.window, None
        if window:
            answer = min(self._wanted_output(plan, model), window // 4)
            room = output_room(window, answer + rough_tokens(_system(plan, _words(plan))))
        if model.limits.max_input:
            room = min(room or model.limits.max_input, model.limits.max_input)
        if room is None:
            # Nothing is known about this model: trust what the conversation itself already fitted into.
            room = max(plan.before, MIN_SUMMARY_OUTPUT)
        return max(1_000, room)

    @staticmethod
    def _wanted_output(plan: CompactionPlan, model: ModelInfo) -> int:
        budget = _summary_of(plan).tokens
        wanted = min(MAX_SUMMARY_OUTPUT, max(MIN_SUMMARY_OUTPUT, budget * OUTPUT_FACTOR))
        return min(wanted, model.limits.max_output) if model.limits.max_output else wanted

    def _request(self, plan: CompactionPlan, model: ModelInfo, text: str, system: str, session_id: str) -> ModelRequest:
        """A call apart from the conversation, with a cache key of its own: it begins otherwise."""
        output = self._wanted_output(plan, model)
        if model.limits.window:
            room = output_room(model.limits.window, rough_tokens(text) + rough_tokens(system))
            output = max(min(output, model.limits.window // 4), min(MAX_SUMMARY_OUTPUT, int(room * ROUGH_SHARE)))
        if model.limits.max_output:
            output = min(output, model.limits.max_output)
        message = Message(new_id("msg"), "user", [TextPart(text)], created=self._clock())
        blocks, messages = [SystemBlock("system", system)], [SentMessage(message, message.id)]
        return ModelRequest(
            new_id("req"), model.spec, f"{session_id}-summary", blocks, messages, [], output, "off", kind="compaction"
        )

    async def _apart(self, request: ModelRequest, model: ModelInfo, length: int) -> SummaryAnswer:
        """One call apart from the conversation; its answer is expected to have ``length`` tokens, which is what it is
        asked to have at most."""
        size, output = request_tokens(request), min(length, request.max_output or length)
        expected = priced_call(model.prices, size, 0, output, model.spec.cache_ttl == "1h")
        return await self.call(request, model, expected)

    async def call(
        self,
        request: ModelRequest,
        model: ModelInfo,
        expected: ExpectedCall,
        record: Callable[[Step], None] = lambda step: None,
    ) -> SummaryAnswer:
        """One call; ``record`` notes with its step what was sent."""
        target = model.target

        asked = request.max_output

        def make(output: int | None, capped: bool) -> Step:
            request.capped, request.max_output = capped, output if capped else asked
            step = Step(
                new_id("step"),
                request.kind,
                model.spec.key,
                target.provider,
                target.api,
                target.model,
                created=self._clock(),
                max_output=request.max_output,
                thinking=request.effort,
                cost_usd=model.prices.unreported,
                window=model.limits.window,
            )
            made.append(step)
            return step

        made: list[Step] = []
        if (refused := await self._payer.begin(expected, model, asked, make)) is not None:
            return SummaryAnswer(failure=Failure("budget", refused))
        step = made[-1]
        self.steps.append(step)
        answer = SummaryAnswer()
        pieces: dict[int, list[str]] = {}
        stream = self._stream(request)
        try:
            async for item in stream:
                match item:
                    case Started(target=resolved):
                        step.provider, step.api, step.model = resolved.provider, resolved.api, resolved.model
                    case Delta(kind="text", index=index, text=text):
                        pieces.setdefault(index, []).append(text)
                    case Delta(kind="reasoning", index=index):
                        # It may be text that turned out to be a thought.
                        answer.thought = True
                        pieces.pop(index, None)
                    case Delta(index=index):
                        pieces.pop(index, None)
                    case UsageReport(usage=usage, cost_usd=cost, believed=believed):
                        step.usage, step.believed = usage, believed
                        step.cost_usd = cost if cost is not None else model.prices.cost(usage)
                    case Interrupted():
                        pieces.clear()
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
            if step.usage is not None:
                try:
                    record(step)
                except Exception:
                    log.exception("What step %s sent cannot be noted", step.id)
            self._payer.ended(step, rough_tokens("".join(chain.from_iterable(pieces.values()))))
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()
        answer.text = "".join(chain.from_iterable(pieces.values()))
        return answer


def _summary_of(plan: CompactionPlan) -> SummaryPlan:
    if plan.summary is None:
        raise ValueError("the plan has no summary")
    return plan.summary


def _replaced_by(plan: CompactionPlan) -> Replaced:
    """What a plan's summary would stand for."""
    summary = _summary_of(plan)
    entries = [entry.text for entry in render_messages(summary.fresh)]
    text = "\n".join([*entries, summary.previous or ""])
    return Replaced(round(char_tokens(text)), text)


def _words(plan: CompactionPlan) -> int:
    return _words_in(_summary_of(plan).tokens)


def _words_in(tokens: int) -> int:
    return max(100, int(tokens * WORDS_PER_TOKEN))


def _system(plan: CompactionPlan, words: int) -> str:
    return system_text(words, fold=_summary_of(plan).fold)


def _question(plan: CompactionPlan) -> str:
    summary = _summary_of(plan)
    if not summary.fold:
        return question_text(len(summary.kept_ids), _words(plan), plan.focus)
    goes = frozenset(summary.goes(plan.inputs.view))
    return range_question([s.message for s in plan.inputs.view if s.message.id in goes], _words(plan), plan.focus)


def _rough_size(tokens: int) -> int:
    """About what a summary of so many tokens takes in the input of the next part, cautiously."""
    return int(tokens * INPUT_SAFETY)


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
