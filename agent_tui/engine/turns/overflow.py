"""After a refusal as too long: the same request with a shorter answer where the input fits, else a compaction.

At most one of each in a step. A refusal of the answer's length alone and one of the whole request are two: the first
says nothing of the window. After a compaction, which makes another request, both count anew where the refusal says what
fits. What the refusal states is believed before our own estimate:
the window is learned, and an exact input size becomes a step of kind ``count``, on which the numbers stand then.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace

from agent_tui.context.accounting.reports import far_off
from agent_tui.engine.compaction.service import CompactionService, Prepare
from agent_tui.engine.models.learned import learn
from agent_tui.engine.runtime.answer_room import fitting_output
from agent_tui.engine.runtime.runtime import Emit, Runtime
from agent_tui.engine.session.storing import patiently
from agent_tui.engine.turns.step import StepResult
from agent_tui.models.events import Notice
from agent_tui.models.failure import TEXT_KEPT, Overflow
from agent_tui.models.messages import new_id
from agent_tui.models.requests import ModelInfo
from agent_tui.models.steps import Step
from agent_tui.models.usage import Limits, TokenUsage

log = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class Again:
    """Send the step again; ``max_output`` is what to ask for, None for as much as there is room for."""

    max_output: int | None = None


class OverflowRecovery:
    """What is tried for one step whose request was refused for its size."""

    def __init__(self, runtime: Runtime, compaction: CompactionService, emit: Emit, prepare: Prepare) -> None:
        self._runtime = runtime
        self._compaction = compaction
        self._emit = emit
        self._prepare = prepare
        self._shortened: set[bool] = set()
        self._compacted = False

    async def next(self, result: StepResult) -> Again | None:
        """How to send the step again; None when it was not refused for its size, or nothing is left to try. Raises
        StoreError."""
        failure = result.failure
        if failure is None or result.received:
            return None
        overflow = failure.overflow
        if failure.kind != "context_overflow" and not (overflow is not None and overflow.only_output):
            return None
        told = await self._take_in(result, overflow)
        asked = result.step.max_output
        alone = overflow is not None and overflow.only_output
        if alone not in self._shortened and (told is not None or not self._compacted):
            self._shortened.add(alone)
            output = self._shorter(told, asked)
            if output is not None:
                self._emit(Notice("info", _shortened_text(output, asked), "less_output"))
                return Again(output)
        if alone:
            return None
        # What the provider said, without the ways on: which are left is known in a moment.
        said = failure.message.partition(TEXT_KEPT)[0].partition(" Use /compact")[0].strip()
        stopped = await self._compaction.after_overflow(self._emit, self._prepare, said)
        if stopped is not None:
            result.told(stopped)
            return None
        self._shortened, self._compacted = set(), True
        return Again()

    def _shorter(self, overflow: Overflow | None, asked: int | None) -> int | None:
        usage = self._runtime.usage()
        return fitting_output(
            overflow,
            asked,
            usage.total,
            window=usage.window,
            max_input=self._runtime.info.limits.max_input,
            fits_well=usage.limit is not None and usage.total <= usage.limit,
        )

    async def _take_in(self, result: StepResult, overflow: Overflow | None) -> Overflow | None:
        """Believes what can be believed; what is left of the refusal's numbers."""
        if overflow is None:
            return None
        runtime, conversation = self._runtime, self._runtime.conversation
        if not believable(overflow, runtime.usage().total):
            log.warning("Not believed, the estimate is %s: %s", runtime.usage().total, overflow.text)
            return None
        before = runtime.info.limits
        learned = learn(conversation.store, runtime.info, overflow, conversation.steps)
        if learned is not None:
            runtime.learn_limits(learned)
            self._emit(Notice("warning", learned_text(learned, before), "limit_learned"))
        if overflow.input is not None and overflow.exact:
            step = counted_by_refusal(result.step, overflow.input)
            await patiently(lambda: conversation.add_step(step))
        self._emit(runtime.changed())
        return overflow


def believable(overflow: Overflow, estimate: int) -> bool:
    """Whether the stated input can be the request's: not absurdly far from our own estimate."""
    return overflow.input is None or not far_off(estimate, overflow.input)


def counted_by_refusal(refused: Step, tokens: int) -> Step:
    """A step of kind ``count`` that says how long the refused request was."""
    return replace(
        refused,
        id=new_id("step"),
        kind="count",
        status="complete",
        message_id=None,
        usage=TokenUsage(tokens, 0),
        actual_input=tokens,
        finished=time.time(),
        finish_reason=None,
        failure=None,
    )


def _shortened_text(output: int, asked: int | None) -> str:
    before = f" instead of {asked:,}" if asked is not None else ""
    return f"Asked again for an answer of at most {output:,} tokens{before}: the conversation fits, more would not."


def learned_text(info: ModelInfo, before: Limits) -> str:
    """What a refusal has taught, for the user."""
    limits, parts = info.limits, []
    rows = (
        ("window", "a window of", limits.window, before.window),
        ("max_input", "input of at most", limits.max_input, before.max_input),
        ("max_output", "answers of at most", limits.max_output, before.max_output),
    )
    for name, words, now, then in rows:
        if name in limits.learned and now is not None and now != then:
            parts.append(f"{words} {now:,} tokens" + (f" (not {then:,})" if then else ""))
    return f"{info.spec.key} has {' and '.join(parts)}, says its server. Remembered; /doctor --forget forgets it."
