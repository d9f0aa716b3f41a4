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

from agent_tui.context.accounting.budget import min_output
from agent_tui.context.accounting.plausible import far_off
from agent_tui.engine.compaction.service import CompactionService, Prepare
from agent_tui.engine.models.learned import learn
from agent_tui.engine.session.storing import patiently
from agent_tui.engine.turns.runtime import Emit, Runtime
from agent_tui.engine.turns.step import StepResult
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import Notice
from agent_tui.models.failure import Overflow
from agent_tui.models.messages import new_id
from agent_tui.models.requests import ModelInfo
from agent_tui.models.steps import Step
from agent_tui.models.usage import Limits, TokenUsage

log = logging.getLogger(__name__)

EXACT_MARGIN = 16
"""Tokens left free beside an input that the provider itself has counted."""

ROUGH_WINDOW_SHARE, ROUGH_INPUT_SHARE = 0.01, 0.02
"""What is left free beside an input that is about so long: the larger of these shares of the window and of itself."""


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
        runtime, asked = self._runtime, result.step.max_output
        alone = overflow is not None and overflow.only_output
        if alone not in self._shortened and (told is not None or not self._compacted):
            self._shortened.add(alone)
            output = shorter_output(told, runtime.usage(), runtime.info.limits, asked)
            if output is not None:
                self._emit(Notice("info", _shortened_text(output, asked), "less_output"))
                return Again(output)
        if alone:
            return None
        if not await self._compaction.after_overflow(self._emit, self._prepare):
            return None
        self._shortened, self._compacted = set(), True
        return Again()

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
            runtime.info = learned
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


def shorter_output(overflow: Overflow | None, usage: ContextUsage, limits: Limits, asked: int | None) -> int | None:
    """The output tokens with which the same request fits; None when its input does not, or nothing says that it does.

    ``usage`` and ``limits`` have taken in what the refusal said; ``asked`` was refused.
    """
    if overflow is not None and overflow.max_output is not None:
        known = [overflow.max_output]
        if usage.window:
            known.append(usage.window - usage.total - _rough_margin(usage.window, usage.total))
        return _less(min(known), asked, 1)
    stated = overflow.window if overflow is not None else None
    window = min((n for n in (usage.window, stated) if n), default=0)
    if not window:
        return None
    size = _stated_input(overflow, usage, asked)
    if size is None:
        complains = overflow is not None and overflow.max_input is not None
        return None if complains else _halved(usage, asked)
    if limits.max_input and size > limits.max_input:
        return None
    exact = overflow is not None and overflow.exact and overflow.input is not None
    room = window - size - (EXACT_MARGIN if exact else _rough_margin(window, size))
    return _less(room, asked, min_output(window))


def _stated_input(overflow: Overflow | None, usage: ContextUsage, asked: int | None) -> int | None:
    """The input's size as the refusal has it; what is "at least" so long is as long as we think it is."""
    if overflow is None:
        return None
    if overflow.input is not None:
        return overflow.input if overflow.exact else max(overflow.input, usage.total)
    if overflow.total is None:
        return None
    # It is not said whether the answer is in it: whichever is nearer to our own number.
    candidates = [overflow.total, overflow.total - (asked or 0)]
    return max(1, min(candidates, key=lambda size: abs(size - usage.total)))


def _halved(usage: ContextUsage, asked: int | None) -> int | None:
    """Nothing is stated: half of a large answer, if by our numbers the input fits well."""
    if asked is None or usage.limit is None or usage.total > usage.limit:
        return None
    return asked // 2 if asked >= 2 * min_output(usage.window or 0) else None


def _less(room: int, asked: int | None, least: int) -> int | None:
    return room if room >= least and (asked is None or room < asked) else None


def _rough_margin(window: int, size: int) -> int:
    return int(max(ROUGH_WINDOW_SHARE * window, ROUGH_INPUT_SHARE * size))


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
