"""When a compaction is due, when it is held back, and when a turn has to stop: a state machine without I/O.

It never loops: between two replies of the model there is at most one automatic compaction, one more without a model
call where nothing could be sent otherwise, and one for a provider overflow of each step. And it never ends a session:
what keeps it from compacting counts only while the next input can be sent as it is, but for ``auto_compact = false``.
A summary whose call failed, or that the user ended, is no leave to go on without it: the turn ends, with all messages
as they were, until summaries have failed so often that the user was told that there will be none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

from agent_tui.context.accounting.next_input import fits_to_send, over_limit
from agent_tui.context.compaction.notices import (
    UNCHANGED,
    WARNING_SHARE,
    again_at_once_text,
    make_room_text,
    overflow_stop_text,
    send_anyway_text,
    stop_text,
    switch_held_back_text,
    switch_text,
    unsummarised_text,
    warning_text,
)
from agent_tui.context.compaction.situation import CompactionReason
from agent_tui.engine.compaction.compactor import CompactionResult
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import Notice
from agent_tui.models.session import SessionState
from agent_tui.records import dataclass
from agent_tui.text.numbers import tokens

CANCELLED = "you cancelled it in this turn"
BLOCKED = "a hook blocked it"

MAX_FAILURES = 3
"""Failures in a row after which no summary is asked for by itself any more in the session: room is made without one."""


@dataclass(slots=True, frozen=True)
class Proceed:
    """Send the step; tell ``notice`` first."""

    notice: Notice | None = None


@dataclass(slots=True, frozen=True)
class CompactNow:
    """Compact now, then ask again. ``without_model``: only by what needs no model call. Tell ``notice`` first."""

    reason: CompactionReason
    without_model: bool = False
    notice: Notice | None = None


@dataclass(slots=True, frozen=True)
class Stop:
    """End the turn and say ``text``."""

    text: str


Decision: TypeAlias = Proceed | CompactNow | Stop
HeldBack: TypeAlias = Literal["setting", "paused", "tried"]


@dataclass(slots=True)
class AutoCompaction:
    """The state of one session. ``failures``, ``paused`` and ``off`` survive a restart; the rest is per turn or step.

    ``auto_compact`` is the setting. ``paused``: after an undo, until ``/compact`` or until the total is below the limit
    again. ``off``: three summaries failed in a row, none is asked for by itself; a successful ``/compact`` switches
    that on again.
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
        self._last_resort = self._cancelled = False
        self._told = ""

    def step_started(self) -> None:
        """A new step, not the retry of one."""
        self._overflowed = False

    def model_replied(self) -> None:
        self._tried = None
        self._last_resort = self._overflowed = False

    def before_step(self, usage: ContextUsage) -> Decision:
        """Returns what to do before the next step. ``usage`` should not be pending: counts are to be awaited first."""
        if usage.limit is None or usage.window is None:
            return Proceed()
        if not over_limit(usage):
            self.paused = False
            self._told = ""
            return Proceed()
        held = self.held_back()
        if not fits_to_send(usage):
            return self._make_room(usage, held)
        if held is None and not self._cancelled:
            return CompactNow("auto", self.off)
        why = self.held_back_text() if held is not None else CANCELLED
        if self._told == why or (self.off and self._told):
            return Proceed()
        self._told = why
        return Proceed(Notice("warning", send_anyway_text(usage, why), "not_compacted"))

    def _make_room(self, usage: ContextUsage, held: HeldBack | None) -> CompactNow | Stop:
        """Nothing can be sent as it is. Only the setting keeps that from being mended."""
        if held == "setting" or self._last_resort:
            return Stop(stop_text(usage, self.held_back_text(), self._stuck()))
        if self._tried is not None and self._tried.was_cut_off:
            # Nothing may be left out without a summary that somebody wanted and did not get.
            return Stop(unsummarised_text(usage, self.held_back_text()))
        notice = self._room_notice(usage) if held == "paused" and self._tried is None else None
        if self._tried is None and not self.off:
            return CompactNow("auto", notice=notice)
        self._last_resort = True
        if self._tried is not None and self._tried.stuck:
            return Stop(stop_text(usage, self._tried.why, True))
        return CompactNow("auto", True, notice)

    def _stuck(self) -> bool:
        return self._tried is not None and self._tried.stuck

    def _room_notice(self, usage: ContextUsage) -> Notice:
        return Notice("warning", make_room_text(usage, self.held_back_text()), "making_room")

    def on_overflow(self, usage: ContextUsage, said: str) -> CompactNow | Stop:
        """The provider refused the step as too long, in the words of ``said``: compact once and retry once, or stop."""
        if self._overflowed:
            return Stop(overflow_stop_text(usage, "it was already compacted for this step and is still too long", said))
        if not self.auto_compact:
            return Stop(overflow_stop_text(usage, self.held_back_text(), said))
        self._overflowed = True
        return CompactNow("overflow", self.off, self._room_notice(usage) if self.paused else None)

    def switch_held_back(self, new_usage: ContextUsage) -> str | None:
        """The line for a switch to a model the conversation does not fit while nothing may compact by itself."""
        if self.held_back() in ("setting", "paused"):
            return switch_held_back_text(new_usage, new_usage.model, self.held_back_text())
        return None

    def compacted(self, result: CompactionResult) -> list[Notice]:
        """Takes note of how a compaction ended; returns what the user is to be told beside the result itself."""
        if result.reason == "edit":
            return []
        # What was tried for a turn that ended says nothing of one that was asked for since.
        before = self._tried if result.reason in ("auto", "overflow") else None
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
            return [Notice("info", "Automatic compaction writes summaries again.", "compaction_on")]
        if before is not None and self._last_resort and before.quiet:
            # Room was made after all: nothing that follows says what went wrong before.
            return [Notice("warning", before.text.removesuffix(f" {UNCHANGED}"), "compaction_failed")]
        return []

    def undone(self, usage: ContextUsage) -> Notice | None:
        """After an undo, which made the next input as long as ``usage`` says. Over the limit the next step would
        compact again at once, were that not paused; below it there is nothing to pause. Returns what is to be told."""
        self._tried = None
        self._last_resort = False
        self.paused = over_limit(usage)
        if not self.paused or self.held_back() != "paused":
            return None
        text = again_at_once_text(usage)
        if fits_to_send(usage):
            text = "Automatic compaction is paused until you run /compact or the conversation is below the limit."
        return Notice("info", text, "compaction_paused")

    def warning(self, usage: ContextUsage) -> Notice | None:
        """The line at 80 % of the limit: once, and again only after the total was below it."""
        if not usage.limit:
            return None
        warned, self._warned = self._warned, usage.total >= usage.limit * WARNING_SHARE
        if warned or not self._warned:
            return None
        held = self.held_back()
        text = warning_text(usage, self.held_back_text() if held in ("setting", "paused") else None)
        return Notice("warning", text, "context_80")

    @property
    def broke_budget(self) -> bool:
        """True when a compaction was tried since the model last answered and not made because of what it would have
        cost."""
        return self._tried is not None and self._tried.failure is not None and self._tried.failure.kind == "budget"

    def held_back(self) -> HeldBack | None:
        """Returns what keeps automatic compaction from happening now; None when nothing does."""
        reasons: tuple[tuple[HeldBack, bool], ...] = (
            ("setting", not self.auto_compact),
            ("paused", self.paused),
            ("tried", self._tried is not None),
        )
        return next((reason for reason, holds in reasons if holds), None)

    def held_back_text(self) -> str:
        """The same as half a sentence."""
        match self.held_back():
            case "setting":
                return "auto_compact is false"
            case "paused":
                return "automatic compaction is paused after the undo"
        tried = self._tried
        if tried is None:
            return ""
        if tried.stuck:
            return tried.why
        match tried.outcome:
            case "done":
                after = tokens(tried.after, True) if tried.after is not None else "its new size"
                return f"it was compacted just now, to {after}, and the model has not answered since"
            case "cancelled":
                return BLOCKED if tried.why == BLOCKED else CANCELLED
            case "not_worth_it":
                return f"not worth it: {tried.why}"
            case "failed":
                return f"it failed: {tried.why}"
            case "nothing":
                return tried.why

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
            f"Automatic compaction continues without summaries in this session: {self.failures} failures in a row"
            f"{because}. Run /compact to try again."
        )
        self._told = self.held_back_text()
        return [Notice("warning", text, "compaction_off")]


def _both(before: CompactionResult, now: CompactionResult) -> CompactionResult:
    """The result of two attempts at one step, of which neither was told: it says why the first failed as well."""
    if before.outcome != "failed" or now.done:
        return now
    return replace(now, why=f"the summary failed ({before.why}) and {now.why}")


def switch_check(new_usage: ContextUsage) -> str | None:
    """The line to tell before the old model compacts a conversation that does not fit the new one, for which
    ``new_usage`` is; None when it fits."""
    return switch_text(new_usage, new_usage.model) if over_limit(new_usage) else None
