"""A request that was refused for its size: what its numbers teach, a shorter answer, a compaction, fewer pictures."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import replace

from agent_tui.context.accounting.believed import far_off
from agent_tui.engine.calls import fitting_output
from agent_tui.engine.compaction.service import CompactionService
from agent_tui.engine.conversation import patiently
from agent_tui.engine.models import MOST_MEDIA, learn, remember
from agent_tui.engine.runtime import Emit, Runtime
from agent_tui.engine.turns.step import StepResult
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import Notice
from agent_tui.models.failure import TEXT_KEPT, Failure, Overflow
from agent_tui.models.messages import (
    AttachmentPart,
    Message,
    SummaryPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    new_id,
)
from agent_tui.models.requests import ALL_MEDIA, ModelInfo, ModelRequest
from agent_tui.models.steps import Step
from agent_tui.models.usage import Limits, TokenUsage
from agent_tui.providers.images import media_bytes, media_parts, within_bytes
from agent_tui.records import dataclass
from agent_tui.text.clean import printable_line
from agent_tui.text.numbers import plural, size, tokens

log = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class Again:
    """Send the step again; ``max_output`` is what to ask for, None for as much as there is room for."""

    max_output: int | None = None


FAR_BELOW = 0.5
"""Of the limit: a request that is shorter by our own numbers has room to spare, whatever a refusal says of tokens."""

MOST_FEWER = 4
"""Times that a request is made again with half of its pictures and files, by bytes."""


class SizeRecovery:
    """Tries what is left to try for one step whose request was refused for its size."""

    def __init__(self, runtime: Runtime, compaction: CompactionService, emit: Emit) -> None:
        self._runtime = runtime
        self._compaction = compaction
        self._emit = emit
        self._shortened: set[bool] = set()
        self._compacted = False
        self._rule = runtime.replay
        self._fewer = 0
        self._said = ""

    async def next(self, result: StepResult) -> Again | None:
        """Returns how to send the step again; None when it was not refused for its size, or nothing is left to try.
        Raises StoreError."""
        failure = result.failure
        if failure is not None and failure.overflow is not None and failure.overflow.answering:
            return await self._compact(result, failure.cause)
        if failure is None or result.received:
            return None
        if failure.kind == "too_large":
            return await self._with_fewer_bytes(result, failure)
        overflow = failure.overflow
        alone = overflow is not None and overflow.only_output
        if failure.kind != "context_overflow" and not alone:
            return None
        told = await self._take_in(result, overflow)
        asked = result.step.max_output
        if alone not in self._shortened and (told is not None or not self._compacted):
            self._shortened.add(alone)
            output = self._shorter(told, asked)
            if output is not None:
                less = f"at most {output:,} tokens" + (f" instead of {asked:,}" if asked is not None else "")
                text = f"Retrying with an answer of {less}, which is all that fits."
                self._emit(Notice("info", text, "less_output"))
                return Again(output)
        if alone:
            return None
        said = failure.cause
        if not self._compacted and self._fits_by_far():
            result.fail_with(far_below_text(said, self._runtime.usage()), ROOM_TO_SPARE)
            return None
        return await self._compact(result, said)

    async def _compact(self, result: StepResult, said: str) -> Again | None:
        stopped = await self._compaction.after_overflow(said)
        if stopped is not None:
            result.fail_with(stopped)
            return None
        self._shortened, self._compacted = set(), True
        return Again()

    def _fits_by_far(self) -> bool:
        """Returns whether the request is far below a limit that is known: a refusal that says otherwise, and no number
        that could be true, is no cause to throw anything away."""
        usage, source = self._runtime.usage(), self._runtime.info.limits.source
        if not usage.limit or source in ("assumed", "unknown"):
            return False
        return usage.total + usage.spread < usage.limit * FAR_BELOW

    async def _with_fewer_bytes(self, result: StepResult, failure: Failure) -> Again | None:
        """Leaves out pictures and files, the largest and the oldest first: bytes say nothing of tokens."""
        runtime, request = self._runtime, result.request
        said = failure.cause
        most = request.replay.most_media
        items = request.messages if most is None else within_bytes(request.messages, most)
        sent = media_bytes(items, request.media)
        if sent and self._fewer <= MOST_FEWER:
            self._fewer += 1
            self._said = self._said or said
            less = 0 if self._fewer > MOST_FEWER else sent // 2
            runtime.send_as(replay=replace(runtime.replay, most_media=less))
            return Again()
        usage = runtime.usage()
        if usage.limit and not self._compacted and usage.total > usage.limit * (1 - FAR_BELOW):
            return await self._compact(result, said)
        kept = TEXT_KEPT if TEXT_KEPT in failure.message else ""
        result.fail_with(" ".join(filter(None, [said, kept, largest_text(request)])), TOO_MANY_BYTES)
        return None

    def ended(self, result: StepResult | None) -> None:
        """The step has ended. Only where the request was taken with fewer pictures they were what was wrong with it."""
        runtime = self._runtime
        if not self._fewer:
            return
        if result is None or result.failure is not None:
            runtime.send_as(replay=replace(runtime.replay, most_media=self._rule.most_media))
            return
        most = runtime.replay.most_media or 0
        left, every = within_bytes(result.request.messages, most), result.request.messages
        gone = [part.name for part in media_parts(every, ALL_MEDIA)]
        for part in media_parts(left, ALL_MEDIA):
            gone.remove(part.name)
        names = ", ".join(gone[:SHOWN]) + (f" and {plural(len(gone) - SHOWN, 'other')}" if len(gone) > SHOWN else "")
        text = f"{self._said} Sent again without {names}: pictures and files have {size(most * 3 // 4)} at most now."
        if remember(runtime.conversation.store, runtime.info, f"{MOST_MEDIA}{most}"):
            text += " Remembered for this model and server; /doctor --forget forgets it."
        self._emit(Notice("warning", text, "media_left_out"))
        runtime.show_numbers(self._emit)

    def _shorter(self, overflow: Overflow | None, asked: int | None) -> int | None:
        usage, most = self._runtime.usage(), self._runtime.info.limits.max_input
        fits = usage.limit is not None and usage.total <= usage.limit
        return fitting_output(overflow, asked, usage.total, window=usage.window, max_input=most, fits_well=fits)

    async def _take_in(self, result: StepResult, overflow: Overflow | None) -> Overflow | None:
        """Believes what can be believed; what is left of the refusal's numbers."""
        if overflow is None:
            return None
        runtime, conversation = self._runtime, self._runtime.conversation
        if not believable(overflow, runtime.usage().total, result.step.max_output):
            log.warning("Not believed, the estimate is %s: %s", runtime.usage().total, overflow.text)
            return None
        before = runtime.info.limits
        learned = learn(conversation.store, runtime.info, overflow, conversation.steps)
        if learned is not None:
            runtime.learn_limits(learned)
            self._emit(Notice("warning", learned_text(learned, before), "limit_learned"))
        if overflow.input is not None and overflow.exact:
            step = counted_by_refusal(result.step, overflow.input)
            runtime.settle(step)
            await patiently(lambda: conversation.add_step(step))
        runtime.show_numbers(self._emit)
        return overflow


ROOM_TO_SPARE = "Send it again, run /compact to make room all the same, or choose another model with /model."
TOO_MANY_BYTES = "Drop it with /context, /rewind to before it, or choose another model with /model."
"""What can be done about a refusal of either kind."""

SHOWN = 3
"""Names of pictures that a line tells."""


def far_below_text(said: str, usage: ContextUsage) -> str:
    """Returns what is told of a refusal for its length that our own numbers know to be short."""
    total, limit = tokens(usage.total, True), tokens(usage.limit or 0, False)
    return (
        f"{said} By our own count it is only {total} of the {limit} tokens that fit, so nothing was summarised or left "
        "out."
    )


def largest_text(request: ModelRequest) -> str:
    """Returns what is told of a request that has too many bytes, and no pictures: what of it is large."""
    sizes = [(len(block.text.encode("utf-8", "replace")), "the system prompt") for block in request.system]
    sizes.append((sum(len(tool.text.encode("utf-8", "replace")) for tool in request.tools), "the tools"))
    for item in request.messages:
        sizes += [(len(text.encode("utf-8", "replace")), name) for name, text in _texts(item.message)]
    whole, (most, what) = sum(length for length, _ in sizes), max(sizes)
    return f"Nothing was left out: this is about bytes, not tokens. Of {size(whole)} of text {what} has {size(most)}."


def _texts(message: Message) -> Iterator[tuple[str, str]]:
    for part in message.parts:
        if isinstance(part, ToolResultPart):
            yield f"the result of {printable_line(part.name, 40)}", part.text
        elif isinstance(part, AttachmentPart):
            yield printable_line(part.name, 40), part.text or ""
        elif isinstance(part, ToolCallPart):
            yield f"a call of {printable_line(part.name, 40)}", part.arguments
        elif isinstance(part, (TextPart, SummaryPart)):
            yield "your message" if message.role == "user" else "an answer", part.text


def believable(overflow: Overflow, estimate: int, asked: int | None = None) -> bool:
    """Returns whether the stated input can be the request's: it is not absurdly far from our own estimate, or the rest
    of what is stated, the answer that was ``asked`` for, is known to be true."""
    known = overflow.output is not None and overflow.output == asked
    return overflow.input is None or known or not far_off(estimate, overflow.input)


def counted_by_refusal(refused: Step, tokens: int) -> Step:
    """A step of kind ``count`` that says how long the refused request was."""
    count = replace(refused, id=new_id("step"), kind="count", status="complete", message_id=None, actual_input=tokens)
    settlement = None if refused.settlement is None else replace(refused.settlement)
    count = replace(count, usage=TokenUsage(tokens, 0), finished=time.time(), finish_reason=None, failure=None)
    # What was refused is in no cache.
    return replace(count, settlement=settlement, sent=None)


def learned_text(info: ModelInfo, before: Limits) -> str:
    """Returns what a refusal has taught, for the user."""
    words, parts = {"window": "a window of", "max_input": "input of at most", "max_output": "answers of at most"}, []
    for name, what in words.items():
        now, then = getattr(info.limits, name), getattr(before, name)
        if name in info.limits.learned and now is not None and now != then:
            parts.append(f"{what} {now:,} tokens" + (f" (not {then:,})" if then else ""))
    return f"The server says {info.spec.key} has {' and '.join(parts)}. Remembered; /doctor --forget forgets it."
