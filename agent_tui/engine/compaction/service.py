"""Joins the compaction policy, the compactor and the stored conversation; the executor and the commands both use it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Literal, TypeAlias

from agent_tui.context.accounting.lost import lost_reasoning, lost_text
from agent_tui.context.accounting.next_input import fits_to_send
from agent_tui.context.accounting.spending import ExpectedCall
from agent_tui.context.accounting.usage import calculate_context_usage
from agent_tui.context.compaction.notices import (
    WARNING_SHARE,
    cancelled_text,
    make_room_text,
    overflow_stop_text,
    send_anyway_text,
    stop_text,
    switch_held_back_text,
    switch_text,
    undone_text,
    warning_text,
)
from agent_tui.context.compaction.planning import CompactionReason, plan_compaction, preview_text, undo_target
from agent_tui.engine.calls import stream_with_retries
from agent_tui.engine.compaction.compactor import CompactionResult, Compactor
from agent_tui.engine.conversation import patiently
from agent_tui.engine.models import with_learned
from agent_tui.engine.runtime import Emit, Runtime
from agent_tui.errors import AgentError, StoreError
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import CompactionEnded, Notice
from agent_tui.models.requests import Counter, ModelInfo, ModelRequest, ModelSpec, StreamItem
from agent_tui.models.session import SessionState
from agent_tui.records import dataclass
from agent_tui.text.numbers import tokens

CANCELLED = "you cancelled it in this turn"

AGAIN_AT_ONCE = "As it is the conversation does not fit the window: the next message makes room again."

MAX_FAILURES = 3
"""Failures in a row after which automatic compaction is off for the session."""


@dataclass(slots=True, frozen=True)
class Proceed:
    """Send the step; tell ``notice`` first."""

    notice: Notice | None = None


@dataclass(slots=True, frozen=True)
class Compact:
    """Compact now, then ask again. ``without_model``: only by what needs no model call. Tell ``notice`` first."""

    reason: CompactionReason
    without_model: bool = False
    notice: Notice | None = None


@dataclass(slots=True, frozen=True)
class Stop:
    """End the turn and say ``text``."""

    text: str


Decision: TypeAlias = Proceed | Compact | Stop
HeldBack: TypeAlias = Literal["setting", "off", "paused", "tried"]


@dataclass(slots=True)
class AutoCompaction:
    """The state of one session. ``failures``, ``paused`` and ``off`` survive a restart; the rest is per turn or step.

    ``auto_compact`` is the setting. ``paused``: after an undo, until ``/compact`` or until the total is below the limit
    again. ``off``: three compactions failed in a row; a successful ``/compact`` switches it on again.
    """

    auto_compact: bool = True
    failures: int = 0
    paused: bool = False
    off: bool = False
    _tried: CompactionResult | None = None
    _last_resort: bool = False
    _cancelled: bool = False
    _overflowed: bool = False
    _warned: bool = False
    _told: str = ""

    @classmethod
    def from_state(cls, state: SessionState, *, auto_compact: bool) -> AutoCompaction:
        """The policy of a stored session."""
        return cls(auto_compact, state.compaction_failures, state.compaction_paused, state.compaction_off)

    def kept_in(self, state: SessionState) -> SessionState:
        """A session's state with what has to survive of this."""
        return replace(state, compaction_failures=self.failures, compaction_paused=self.paused, compaction_off=self.off)

    def turn_started(self) -> None:
        self._tried = None
        self._last_resort = False
        self._cancelled = False
        self._told = ""

    def step_started(self) -> None:
        """A new step, not the retry of one."""
        self._overflowed = False

    def model_replied(self) -> None:
        self._tried = None
        self._last_resort = False
        self._overflowed = False

    def before_step(self, usage: ContextUsage) -> Decision:
        """Returns what to do before the next step. ``usage`` should not be pending: counts are to be awaited first."""
        if usage.limit is None or usage.window is None:
            return Proceed()
        fits = fits_to_send(usage)
        if not _would_compact(usage):
            self.paused = False
            self._told = ""
            return Proceed()
        held = self.held_back()
        if not fits:
            return self._make_room(usage, held)
        if held is None and not self._cancelled:
            return Compact("auto")
        why = self.held_back_text() if held is not None else CANCELLED
        if self._told == why:
            return Proceed()
        self._told = why
        return Proceed(Notice("warning", send_anyway_text(usage, why), "not_compacted"))

    def _make_room(self, usage: ContextUsage, held: HeldBack | None) -> Compact | Stop:
        """Nothing can be sent as it is. Only the setting keeps that from being mended."""
        if held == "setting" or self._last_resort:
            return Stop(stop_text(usage, self.held_back_text(), self._stuck()))
        if held == "off":
            self._last_resort = True
            return Compact("auto", True, self._room_notice(usage, self.held_back_text()))
        if self._tried is None:
            notice = self._room_notice(usage, self.held_back_text()) if held == "paused" else None
            return Compact("auto", notice=notice)
        self._last_resort = True
        if self._stuck():
            return Stop(stop_text(usage, self._tried.why, True))
        return Compact("auto", True)

    def _stuck(self) -> bool:
        return self._tried is not None and self._tried.stuck

    @staticmethod
    def _room_notice(usage: ContextUsage, why: str) -> Notice:
        return Notice("warning", make_room_text(usage, why), "making_room")

    def on_overflow(self, usage: ContextUsage, said: str) -> Compact | Stop:
        """The provider refused the step as too long, in the words of ``said``: compact once and retry once, or stop."""
        if self._overflowed:
            return Stop(overflow_stop_text(usage, "it was compacted for this step already and is still too long", said))
        if not self.auto_compact:
            return Stop(overflow_stop_text(usage, self.held_back_text(), said))
        self._overflowed = True
        if self.off:
            return Compact("overflow", True, self._room_notice(usage, self.held_back_text()))
        return Compact("overflow", notice=self._room_notice(usage, self.held_back_text()) if self.paused else None)

    def switch_held_back(self, new_usage: ContextUsage) -> str | None:
        """The line for a switch to a model the conversation does not fit while nothing may compact by itself."""
        if self.held_back() in ("setting", "off", "paused"):
            return switch_held_back_text(new_usage, new_usage.model, self.held_back_text())
        return None

    def compacted(self, result: CompactionResult) -> list[Notice]:
        """Takes note of how a compaction ended; returns what the user is to be told beside the result itself."""
        before = self._tried
        if result.reason == "manual":
            self.paused = False
            self._cancelled = False
        elif result.reason != "switch":
            self._tried = result if before is None or result.done else _both(before, result)
            self._cancelled = self._cancelled or result.outcome == "cancelled"
        if result.outcome == "failed" or result.problem is not None:
            self._told = "" if result.done else self._told
            return self._failed(result)
        if result.outcome != "done":
            return []
        self.failures = 0
        self._warned = False
        self._told = ""
        if result.reason == "manual" and self.off:
            self.off = False
            return [Notice("info", "Automatic compaction is on again.", "compaction_on")]
        if before is not None and self._last_resort and before.quiet:
            # Room was made after all: nothing that follows says what went wrong before.
            return [Notice("warning", before.text, "compaction_failed")]
        return []

    def undone(self, usage: ContextUsage) -> Notice | None:
        """After an undo, which made the next input as long as ``usage`` says. Over the limit the next step would
        compact again at once, were that not paused; below it there is nothing to pause. Returns what is to be told."""
        self._tried = None
        self._last_resort = False
        self.paused = _would_compact(usage)
        if not self.paused or self.held_back() != "paused":
            return None
        text = AGAIN_AT_ONCE
        if fits_to_send(usage):
            text = "Automatic compaction is paused until /compact, or until the conversation is below the limit again."
        return Notice("info", text, "compaction_paused")

    def warning(self, usage: ContextUsage) -> Notice | None:
        """The line at 80 % of the limit: once, and again only after the total was below it."""
        if not usage.limit:
            return None
        if usage.total < usage.limit * WARNING_SHARE:
            self._warned = False
            return None
        if self._warned:
            return None
        self._warned = True
        held = self.held_back()
        text = warning_text(usage, self.held_back_text() if held in ("setting", "off", "paused") else None)
        return Notice("warning", text, "context_80")

    @property
    def broke_budget(self) -> bool:
        """True when a compaction was tried since the model last answered and not made because of what it would have
        cost."""
        return self._tried is not None and self._tried.failure is not None and self._tried.failure.kind == "budget"

    def held_back(self) -> HeldBack | None:
        """Returns what keeps automatic compaction from happening now; None when nothing does."""
        if not self.auto_compact:
            return "setting"
        if self.off:
            return "off"
        if self.paused:
            return "paused"
        return "tried" if self._tried is not None else None

    def held_back_text(self) -> str:
        """The same as half a sentence."""
        match self.held_back():
            case "setting":
                return "auto_compact is false"
            case "off":
                return f"automatic compaction is off after {MAX_FAILURES} failures in a row"
            case "paused":
                return "automatic compaction is paused since the undo"
            case "tried":
                return self._tried_text()
            case None:
                return ""

    def why(self, usage: ContextUsage) -> str:
        """Why the next step compacts, or why not, with the numbers: the calculator's line, and what only the policy
        knows of this turn."""
        over = usage.limit is not None and usage.total > usage.limit
        if not over or self.held_back() != "tried":
            return usage.why
        return f"{usage.why} Held back until the model has answered: {self.held_back_text()}."

    def _tried_text(self) -> str:
        tried = self._tried
        if tried is None:
            return ""
        if tried.stuck:
            return tried.why
        if tried.outcome == "done":
            after = tokens(tried.after, True) if tried.after is not None else "its new size"
            return f"it was compacted just now, to {after}, and the model has not answered since"
        if tried.outcome == "cancelled":
            return CANCELLED
        word = {"not_worth_it": "not worth it", "failed": "it failed"}.get(tried.outcome)
        return f"{word}: {tried.why}" if word is not None else tried.why

    def _failed(self, result: CompactionResult) -> list[Notice]:
        if result.failure is not None and result.failure.kind == "budget":
            # It was never tried: with another budget it may well succeed.
            return []
        self.failures += 1
        if self.failures < MAX_FAILURES or self.off:
            return []
        self.off = True
        # The result says itself why it failed, where it is told.
        because = f", the last because {result.why}" if result.quiet else ""
        text = (
            f"Automatic compaction is off for this session: {self.failures} failures in a row{because}. "
            "/compact tries again; what does not fit is made to fit without a summary."
        )
        self._told = self.held_back_text()
        return [Notice("warning", text, "compaction_off")]


def _would_compact(usage: ContextUsage) -> bool:
    """Returns whether the next step would have to make room, were nothing holding it back."""
    if usage.limit is None or usage.window is None:
        return False
    return usage.total > usage.limit or not fits_to_send(usage)


def _both(before: CompactionResult, now: CompactionResult) -> CompactionResult:
    """Returns the result of two attempts at one step, of which neither was told; it says why the first failed as
    well."""
    if before.outcome != "failed" or now.done:
        return now
    return replace(now, why=f"the summary failed ({before.why}) and {now.why}")


def switch_check(new_usage: ContextUsage) -> str | None:
    """Checks whether a conversation fits the model it is to be switched to. ``new_usage`` is the calculator's answer
    for that model. Returns None when it fits, else the line to tell before the old model compacts it."""
    if new_usage.limit is None or new_usage.total <= new_usage.limit:
        return None
    return switch_text(new_usage, new_usage.model)


log = logging.getLogger(__name__)

Prepare = Callable[[], Awaitable[None]]


class CompactionService:
    """Compaction of one runtime's conversation: decides with the policy, runs the compactor, commits and tells.

    ``find`` looks up the model that ``context.summary_model`` names; without it the session's own writes summaries.
    ``prepare`` is awaited wherever the numbers must be final: it counts what is uncounted.
    """

    def __init__(self, runtime: Runtime, counter: Counter, find: Callable[[str], ModelSpec] | None = None) -> None:
        self._runtime = runtime
        self._find = find
        self._compactor = Compactor(self._stream, counter, refusal=self._refusal)
        self._emit: Emit = lambda event: None
        self._line: Notice | None = None
        self.auto = AutoCompaction.from_state(
            runtime.conversation.info.state, auto_compact=runtime.settings.context.auto_compact
        )

    def _stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        """The summary call, waited for and tried again as a step is."""
        runtime, patience = self._runtime, self._runtime.settings.agent
        request = replace(
            request,
            timeout=patience.timeout,
            content_timeout=patience.content_timeout,
            answer_timeout=patience.answer_timeout,
        )
        return stream_with_retries(runtime.provider, request, patience.retries, self._emit)

    def _refusal(self, call: ExpectedCall, model: ModelInfo) -> str | None:
        return self._runtime.refusal(call, model.spec.key, self._emit, "the summary call")

    def turn_started(self) -> None:
        self.auto.turn_started()

    def begin_step(self) -> None:
        self.auto.step_started()

    def model_replied(self, emit: Emit) -> None:
        """The step got its answer: what it added may have crossed the line at which the user is warned."""
        self.auto.model_replied()
        self._warn(self._runtime.usage(), emit)

    def _warn(self, usage: ContextUsage, emit: Emit) -> None:
        warning = self.auto.warning(usage)
        if warning is not None:
            emit(warning)

    async def before_step(self, emit: Emit, prepare: Prepare) -> str | None:
        """Compacts while the numbers say so; returns why the step cannot be sent, or None when it can. What there is
        to say of that waits for ``tell``."""
        self._line = None
        while True:
            usage = self._runtime.usage()
            decision = self.auto.before_step(usage)
            self._save_state()
            match decision:
                case Compact(reason, without_model, notice):
                    if notice is not None:
                        emit(notice)
                    await self.compact(reason, emit, prepare, without_model=without_model)
                case Stop(text):
                    emit(Notice("error", text, "context_full"))
                    return text
                case Proceed(notice):
                    warning = self.auto.warning(usage)
                    # A line about the limit says how full the context is, and more.
                    self._line = notice or warning
                    return None

    def tell(self, emit: Emit, *, refused: bool = False) -> None:
        """Says what ``before_step`` found to say. Where the call itself is ``refused`` for what it costs and the
        summary was, too, that is said once."""
        line, self._line = self._line, None
        if line is not None and not (refused and line.code == "not_compacted" and self.auto.broke_budget):
            emit(line)

    async def after_overflow(self, emit: Emit, prepare: Prepare, said: str) -> str | None:
        """The provider said the request was too long (``said``): one compaction a step, then None when a retry makes
        sense. Else what the user is told: that, why nothing helped, and what else there is."""
        decision = self.auto.on_overflow(self._runtime.usage(), said)
        if isinstance(decision, Stop):
            emit(Notice("error", decision.text, "context_full"))
            return decision.text
        if decision.notice is not None:
            emit(decision.notice)
        result = await self.compact(decision.reason, emit, prepare, without_model=decision.without_model)
        if result.done:
            return None
        text = overflow_stop_text(self._runtime.usage(), self.auto.held_back_text(), said)
        emit(Notice("error", text, "context_full"))
        return text

    async def compact(
        self,
        reason: CompactionReason,
        emit: Emit,
        prepare: Prepare,
        focus: str = "",
        summary_model: ModelInfo | None = None,
        target: ModelInfo | None = None,
        without_model: bool = False,
    ) -> CompactionResult:
        """One compaction, committed in one transaction when it succeeded. ``target`` plans for another model;
        ``without_model`` allows only what needs no call."""
        runtime, conversation = self._runtime, self._runtime.conversation
        self._emit = emit
        if summary_model is None:
            summary_model = await self._configured_model(emit)
        inputs = runtime.inputs() if target is None else replace(runtime.inputs(), model=target)
        usage = runtime.usage() if target is None else calculate_context_usage(inputs)
        try:
            result = await self._compactor.compact(
                inputs,
                usage,
                conversation.path,
                conversation.summaries,
                reason=reason,
                focus=focus,
                summary_model=summary_model,
                session_id=conversation.info.id,
                emit=emit,
                without_model=without_model,
            )
        except asyncio.CancelledError:
            # The whole turn was cancelled: what the call cost still counts, and no notice may be left open.
            for step in self._compactor.taken_steps():
                conversation.keep_step(step)
                runtime.end_in_parent(runtime.begin_in_parent(step), step)
            conversation.save_if_possible()
            usage = self._runtime.usage()
            emit(CompactionEnded("cancelled", cancelled_text(usage.total, usage.approximate)))
            raise
        try:
            await self._store(result)
        except BaseException as error:
            # Why is told by whoever hears of the error.
            why = "." if isinstance(error, StoreError) else ": it was interrupted."
            emit(CompactionEnded("failed", f"Compaction was not stored, nothing has changed{why}"))
            raise
        emit(result.event())
        for notice in self.auto.compacted(result):
            emit(notice)
        self._save_state()
        await prepare()
        emit(runtime.changed())
        return result

    async def _store(self, result: CompactionResult) -> None:
        """Stores what the calls cost, and the compaction where there is one. Raises StoreError."""
        runtime, conversation = self._runtime, self._runtime.conversation
        for step in result.steps:
            runtime.end_in_parent(runtime.begin_in_parent(step), step)
        for step in result.steps[:-1] if result.done else result.steps:
            conversation.keep_step(step)
        await patiently(conversation.save)
        if result.done:
            last = result.steps[-1] if result.steps else None
            await patiently(lambda: conversation.commit_compaction(result.records, result.summary, last))

    async def _configured_model(self, emit: Emit) -> ModelInfo | None:
        name = self._runtime.settings.context.summary_model
        if name is None or self._find is None:
            return None
        try:
            info = await self._runtime.provider.describe(self._find(name))
            return with_learned(self._runtime.conversation.store, info)
        except AgentError as error:
            text = f"context.summary_model: {error} The session's own model writes the summary."
            emit(Notice("warning", text, "summary_model"))
            return None

    async def before_switch(self, target: ModelInfo, emit: Emit, prepare: Prepare) -> None:
        """Before a switch to a model the conversation does not fit: says so and compacts with the old one first."""
        usage = calculate_context_usage(replace(self._runtime.inputs(), model=target))
        text = switch_check(usage)
        if text is None:
            return
        held = self.auto.switch_held_back(usage)
        if held is not None:
            emit(Notice("warning", held, "compact_before_switch"))
            return
        emit(Notice("warning", text, "compact_before_switch"))
        await self.compact("switch", emit, prepare, summary_model=self._runtime.info, target=target)

    def cancel(self) -> bool:
        """Ends a running compaction; nothing of it is kept."""
        return self._compactor.cancel()

    def preview(self, focus: str = "") -> str:
        """Returns what ``/compact`` would do now, without a model call."""
        runtime = self._runtime
        inputs = runtime.inputs()
        conversation = runtime.conversation
        plan = plan_compaction(inputs, runtime.usage(), conversation.path, conversation.summaries, focus=focus)
        return preview_text(plan)

    def undo(self, emit: Emit) -> bool:
        """Takes the newest compaction in force back; False when there is none."""
        conversation = self._runtime.conversation
        operation = undo_target(conversation.records, conversation.path)
        if operation is None:
            emit(CompactionEnded("nothing", "There is no compaction to undo."))
            return False
        before, inputs = self._runtime.usage(), self._runtime.inputs().as_now()
        undone = conversation.deactivate(operation)
        after = self._runtime.usage()
        lost = lost_text(lost_reasoning(inputs, self._runtime.inputs()))
        notice = self.auto.undone(after)
        self._save_state()
        emit(CompactionEnded("undone", f"{undone_text(before, after)} {lost}".rstrip(), undone))
        if notice is not None:
            emit(notice)
        return True

    def _save_state(self) -> None:
        conversation = self._runtime.conversation
        state = self.auto.kept_in(conversation.info.state)
        if state != conversation.info.state:
            try:
                conversation.set_state(state)
            except StoreError as error:
                log.warning("Stored later: %s", error)
