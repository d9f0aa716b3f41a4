"""The model call that writes a summary: its input made to fit, its answer and what it cost."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import field, replace
from functools import partial
from itertools import chain
from typing import TypeAlias

from agent_tui.context.accounting.next_input import output_room
from agent_tui.context.accounting.spending import priced_call
from agent_tui.context.compaction.answers import joined, read_answer
from agent_tui.context.compaction.judge import (
    ASKED_AGAIN,
    Replaced,
    SummaryProblem,
    judge_summary,
)
from agent_tui.context.compaction.plan import CompactionPlan
from agent_tui.context.compaction.summary import (
    INPUT_SAFETY,
    MAX_PARTS,
    SummaryInput,
    in_parts,
    prepare_inputs,
    question_text,
    range_question,
    render_messages,
    rough_tokens,
    system_text,
    user_text,
)
from agent_tui.context.compaction.summary_plan import SummaryPlan
from agent_tui.context.tokens import char_tokens
from agent_tui.engine.model_call import CallStatus, Interrupted, ModelCall, NoRoomError, PlannedCall
from agent_tui.models.failure import Failure, without_text_kept
from agent_tui.models.messages import new_id, user_message
from agent_tui.models.requests import Delta, FinishReason, ModelInfo, ModelRequest, SentMessage, SystemBlock
from agent_tui.models.steps import Step
from agent_tui.records import dataclass

log = logging.getLogger(__name__)

AskWarm: TypeAlias = Callable[[str, int], PlannedCall | None]
"""``engine.cache_forecast.warm_call`` of the conversation that is compacted."""
OpenCall: TypeAlias = Callable[[PlannedCall], Awaitable[ModelCall]]
"""``engine.model_call.open_call`` of its runtime."""


MAX_HALVINGS = 3
"""How often the input is split anew, into parts of half the size, when the summary call itself is too long."""

OUTPUT_FACTOR = 4
MIN_SUMMARY_OUTPUT = 2_048
MAX_SUMMARY_OUTPUT = 16_384
"""Output room kept free: this many times the sections' budget and at least this much, since some models think first.
What the input leaves over may be used as well."""

ROUGH_SHARE = 0.75
"""Share of what the input leaves over that is asked for: the input's size is roughly estimated."""

WORDS_PER_TOKEN = 0.6

TOO_MUCH = ("context_overflow", "too_large", "invalid_request")
"""Failures of a call within the conversation after which less is sent, apart from it."""

SHORTER = frozenset(ASKED_AGAIN[code] for code in ("truncated", "too_large", "over_limit"))
"""After these lines half as many words are asked for."""


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

    def judge(self, replaced: Replaced) -> SummaryAnswer:
        """The same answer, with what is wrong with its text, or its sections."""
        if self.failure is None:
            self.problem = judge_summary(self.text, self.finish or "unknown", replaced, self.thought)
            self.sections = read_answer(self.text) if self.problem is None else {}
        return self

    @property
    def why(self) -> str | None:
        """Why it cannot be used, as half a sentence; None where it can."""
        if self.failure is not None:
            return self.failure.message.rstrip(".")
        return self.problem.text if self.problem is not None else None


CheckSections: TypeAlias = Callable[[Mapping[str, str]], Awaitable[SummaryProblem | None]]
"""Says what is wrong with what a summary of these sections leads to."""
Send: TypeAlias = Callable[[str], Awaitable[SummaryAnswer | None]]
"""Makes a call with a line that says what was wrong with the answer before, or with none; None where none is made."""


class TextCalls:
    """Makes the calls of one piece of work whose answer is a text; ``steps`` are all of them, oldest first. Whatever is
    wrong with an answer, a model is asked once, and in all of the work once more with what is wrong."""

    def __init__(self, open_call: OpenCall) -> None:
        self._open = open_call
        self._again = False
        self._prepared = ""
        self.steps: list[Step] = []

    def begin(self, prepared: str = "") -> None:
        """Other work: what it costs is its own. ``prepared`` is the message up to which a summary is written before it
        is needed; its steps say so."""
        self.steps = []
        self._again, self._prepared = False, prepared

    def take_second(self) -> bool:
        """Returns whether a model may be asked once more, which it is then."""
        first, self._again = not self._again, True
        return first

    async def ask_twice(self, send: Send) -> SummaryAnswer | None:
        """The answer to what ``send`` asks; where something is wrong with it, and nothing was asked once more before,
        the answer to the same with what is wrong. None where no call was made."""
        answer = await send("")
        if answer is None or answer.problem is None or not self.take_second():
            return answer
        log.info("The summary is asked for once more: %s", answer.problem.text)
        second = await send(ASKED_AGAIN[answer.problem.code])
        return answer if second is None or second.failure is not None else second

    async def call(self, planned: PlannedCall) -> SummaryAnswer:
        """One call, and the text of its answer."""
        planned.step.prepared = self._prepared
        try:
            call = await self._open(planned)
        except NoRoomError as error:
            return SummaryAnswer(failure=Failure("budget", str(error)))
        self.steps.append(call.step)
        answer = SummaryAnswer()
        status: CallStatus = "stopped"
        pieces: dict[int, list[str]] = {}
        try:
            async with aclosing(call.items()) as items:
                async for item in items:
                    match item:
                        case Delta(kind="text", index=index, text=text):
                            pieces.setdefault(index, []).append(text)
                        case Delta(kind=kind, index=index):
                            # It may be text that turned out to be a thought.
                            answer.thought = answer.thought or kind == "reasoning"
                            pieces.pop(index, None)
                        case Interrupted():
                            pieces.clear()
            if call.failure is not None:
                call.failure = without_text_kept(call.failure)
            elif call.finish is None:
                call.failure = Failure("interrupted_stream", "The stream ended before the answer was complete.")
            status = "complete" if call.failure is None else "failed"
        finally:
            call.settle(status)
        answer.text = "".join(chain.from_iterable(pieces.values()))
        answer.finish, answer.failure = call.finish, call.failure
        return answer


class SummaryCall:
    """Asks a model for the summary of a plan: as the next message of the conversation, where that is ``warm``, else
    apart from it."""

    def __init__(
        self, calls: TextCalls, plan: CompactionPlan, model: ModelInfo, session_id: str, warm: AskWarm | None
    ) -> None:
        self._calls, self._plan, self._model = calls, plan, model
        self._session_id, self._warm = session_id, warm
        self._summary = _summary_of(plan)
        self._replaced = _replaced_by(self._summary)
        self._words = _words_in(self._summary.tokens)

    async def ask(self, check: CheckSections) -> SummaryAnswer:
        """The answer, on whose sections ``check`` has the last word: as the next message of the conversation where that
        can be, else apart from it."""
        self._check = check
        within = await self._calls.ask_twice(self._within) if self._warm is not None else None
        refused = within is not None and within.failure is not None and within.failure.kind in TOO_MUCH
        return await self._ask_apart() if within is None or refused else within

    async def _ask_apart(self) -> SummaryAnswer:
        """The answer to calls for one part after the other, each of which sees the summary of those before it. An input
        that is too long after all is split anew."""
        summary, halvings, done, room = self._summary, 0, 0, self._room()
        waiting = prepare_inputs(summary.fresh, summary.previous, self._plan.focus, room, _rough_size(summary.tokens))
        while True:
            source, last = waiting[0], len(waiting) == 1
            answer = await self._calls.ask_twice(partial(self._about, source, last))
            assert answer is not None, "a call was made"
            too_long = answer.failure is not None and answer.failure.kind in ("context_overflow", "too_large")
            if too_long and halvings < MAX_HALVINGS and len(source.entries) > 1:
                log.info("The summary call is too long; its input is split")
                halvings, room = halvings + 1, source.tokens // 2
                rest = replace(source, entries=tuple(entry for part in waiting for entry in part.entries))
                waiting = in_parts(rest, room, _rough_size(summary.tokens), MAX_PARTS - done)
                continue
            if answer.why is not None or last:
                return answer
            waiting.pop(0)
            done += 1
            waiting[0] = replace(waiting[0], previous=joined(answer.sections))

    async def _within(self, line: str) -> SummaryAnswer | None:
        """Asks as the next message of the conversation; None where that cannot be."""
        output = max(self._summary.tokens, MIN_SUMMARY_OUTPUT)
        asked = self._warm(f"{self._question()} {line}".rstrip(), output) if self._warm else None
        if asked is None:
            return None
        answer = await self._calls.call(asked)
        answer.warm = True
        return await self._judged(answer, True)

    async def _about(self, source: SummaryInput, last: bool, line: str) -> SummaryAnswer:
        """Asks about one input, apart from the conversation."""
        request = self._request(f"{user_text(source)} {line}".rstrip(), self._words // (2 if line in SHORTER else 1))
        length, prices = min(self._summary.tokens, request.max_output or self._summary.tokens), self._model.prices
        expected = priced_call(prices, request_tokens(request), 0, length, self._model.spec.cache_ttl == "1h")
        answer = await self._calls.call(PlannedCall.apart(request, self._model, expected))
        return await self._judged(answer, last)

    async def _judged(self, answer: SummaryAnswer, whole: bool) -> SummaryAnswer:
        """The answer with what is wrong with it: with its text, or, of a ``whole`` summary, with what it leads to."""
        if answer.judge(self._replaced).why is None and whole:
            answer.problem = await self._check(answer.sections)
        return answer

    def _room(self) -> int:
        """Tokens that the input of one call may have."""
        limits, room = self._model.limits, None
        if limits.window:
            answer = min(self._wanted_output(), limits.window // 4)
            room = output_room(limits.window, answer + rough_tokens(self._system(self._words)))
        if limits.max_input:
            room = min(room or limits.max_input, limits.max_input)
        if room is None:
            # Nothing is known about this model: trust what the conversation itself already fitted into.
            room = max(self._plan.before, MIN_SUMMARY_OUTPUT)
        return max(1_000, room)

    def _wanted_output(self) -> int:
        most = self._model.limits.max_output
        wanted = min(MAX_SUMMARY_OUTPUT, max(MIN_SUMMARY_OUTPUT, self._summary.tokens * OUTPUT_FACTOR))
        return min(wanted, most) if most else wanted

    def _request(self, text: str, words: int) -> ModelRequest:
        """That of a call apart from the conversation, for so many words, with a cache key of its own: it begins
        otherwise."""
        output, limits, system = self._wanted_output(), self._model.limits, self._system(words)
        if limits.window:
            room = output_room(limits.window, rough_tokens(text) + rough_tokens(system))
            output = max(min(output, limits.window // 4), min(MAX_SUMMARY_OUTPUT, int(room * ROUGH_SHARE)))
        if limits.max_output:
            output = min(output, limits.max_output)
        message = user_message(text)
        blocks, sent = [SystemBlock("system", system)], [SentMessage(message, message.id)]
        session = f"{self._session_id}-summary"
        return ModelRequest(
            new_id("req"), self._model.spec, session, blocks, sent, [], output, "off", kind="compaction"
        )

    def _system(self, words: int) -> str:
        return system_text(words, fold=self._summary.fold)

    def _question(self) -> str:
        summary, plan = self._summary, self._plan
        if not summary.fold:
            return question_text(len(summary.kept_ids), self._words, plan.focus)
        goes = frozenset(summary.goes(plan.inputs.view))
        gone = [sent.message for sent in plan.inputs.view if sent.message.id in goes]
        return range_question(gone, self._words, plan.focus)


def _summary_of(plan: CompactionPlan) -> SummaryPlan:
    if plan.summary is None:
        raise ValueError("the plan has no summary")
    return plan.summary


def _replaced_by(summary: SummaryPlan) -> Replaced:
    """What a summary would stand for."""
    entries = [entry.text for entry in render_messages(summary.fresh)]
    text = "\n".join([*entries, summary.previous or ""])
    return Replaced(round(char_tokens(text)), text)


def _words_in(tokens: int) -> int:
    return max(100, int(tokens * WORDS_PER_TOKEN))


def _rough_size(tokens: int) -> int:
    """About what a summary of so many tokens takes in the input of the next part, cautiously."""
    return int(tokens * INPUT_SAFETY)


def request_tokens(request: ModelRequest) -> int:
    """Tokens of a summary call's input, roughly."""
    texts = [block.text for block in request.system] + [sent.message.text for sent in request.messages]
    return sum(map(rough_tokens, texts))
