"""The numbers of the Agent: the next request's fixed parts, its counts, its context usage."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agent_tui.context.accounting.accuracy import drift
from agent_tui.context.accounting.usage import calculate_context_usage
from agent_tui.context.compaction.notices import EXACT_OFF
from agent_tui.context.tokens.metrics import format_metrics
from agent_tui.engine.agent_state import AgentState
from agent_tui.engine.counts.calibration import learn
from agent_tui.engine.counts.exact import count_exactly, worth_counting
from agent_tui.engine.models.small_window import fewer_tools_text, fitting_tools
from agent_tui.engine.project.prefix import change_row, with_changes
from agent_tui.engine.project.prelude import Prelude, build_prelude, with_documents
from agent_tui.errors import AgentError
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import (
    CompactionEnded,
    Event,
    Notice,
)
from agent_tui.models.messages import AttachmentPart, Message
from agent_tui.models.steps import RowId, Step

log = logging.getLogger(__name__)

COUNT_PATIENCE = 0.3
"""Seconds a step waits for token counts where no decision hangs on them; a warm worker needs a few milliseconds. One
that has counted nothing yet is not waited for: the request goes out and is counted meanwhile."""

DECISION_SHARE = 1 / 3
"""From this share of the limit on a step waits for its counts: the compaction decision must not rest on a guess. The
character rule guesses a third of what random base64 and the like come to, which is the worst of what people paste."""


class Accounting(AgentState):
    """Keeps the ephemeral parts fresh and everything counted, so that the calculator can be asked at any time."""

    def context_usage(self) -> ContextUsage:
        """The calculator's answer for the next request, now."""
        return self._runtime.usage()

    def trigger_total(self) -> int:
        """The very integer the compactor compares with the limit."""
        return self._runtime.usage().total

    @property
    def in_flight(self) -> int:
        """Estimated tokens of the answer that is streaming."""
        return self.runtime.in_flight if self.runtime is not None else 0

    async def refresh_context(self) -> bool:
        """Looks whether memory files or pinned files have changed and takes them as they are now; while a turn runs
        pinned files only. True when that changed what the next request is made of; then the numbers are told."""
        runtime = self.runtime
        if runtime is None or not self._started:
            return False
        now = await asyncio.to_thread(self.workspace.stamps, self.pinned)
        if runtime is not self.runtime:
            return False
        changed = {path for path in now.keys() | self._stamps.keys() if now.get(path) != self._stamps.get(path)}
        if self.busy:
            changed &= {Path(path) for path in self.pinned}
        if not changed:
            return False
        before = [part.fingerprint for part in runtime.prelude.fixed]
        if self.busy:
            self._refresh_documents()
            self._stamps |= {path: now[path] for path in changed if path in now}
        else:
            self._refresh_prelude()
        if [part.fingerprint for part in runtime.prelude.fixed] == before:
            return False
        self.recount()
        return True

    def _look_at_trust(self) -> None:
        """A folder that is no longer as it was trusted is not trusted any more, and the user is told."""
        if self.parts.trusted and not self.parts.trust.holds():
            self.parts.trusted = False
            self.publish(Notice("warning", self.parts.trust.line(), "untrusted"))

    def _refresh_prelude(self, message: Message | None = None) -> None:
        """Builds the fixed parts of the next request anew, and counts what is new in them. What has become of files
        that stay as they were sent goes into ``message``, or waits for one."""
        self._look_at_trust()
        self._stamps = self.workspace.stamps(self.pinned)
        documents, problems = self.workspace.documents(self.pinned)
        blocks, limits = self.workspace.blocks(), self._runtime.info.limits
        every = self.toolbox.offered(limits)
        offered = fitting_tools(blocks, every, limits.window)
        fresh = build_prelude([*blocks, *documents], offered)
        fresh.set_counts(self._runtime.prelude.counts())
        changes = self._take(fresh, waiting=message is None)
        if message is not None:
            message.parts[0:0] = changes
        for problem in problems:
            self.publish(Notice("warning", problem, "document"))
        left_out = tuple(o.schema.name for o in every if o not in offered)
        if left_out and left_out != self._tools_left_out:
            self.publish(Notice("warning", fewer_tools_text(limits.window or 0, left_out), "fewer_tools"))
        self._tools_left_out = left_out

    def _refresh_documents(self, message: Message | None = None, *, waiting: bool = True) -> list[str]:
        """The same of pinned files alone: a running turn keeps its tools and memory. A line for each file that cannot
        be read."""
        documents, problems = self.workspace.documents(self.pinned)
        fresh = with_documents(self._runtime.prelude, documents)
        changes = self._take(fresh, waiting and message is None, ("documents",))
        if message is not None:
            message.parts[0:0] = changes
        return problems

    def _take(
        self, fresh: Prelude, waiting: bool, rows: Sequence[RowId] = ("memory", "documents")
    ) -> list[AttachmentPart]:
        """Makes it the beginning of the next request, or what was sent where that is still cached: what has become of
        files since is returned. ``waiting`` shows it, for it goes with the user's next message."""
        runtime, conversation = self._runtime, self.conversation
        counts, before = runtime.prelude.counts(), runtime.prelude.fixed
        prelude, changes = self._prefix.settle(
            fresh, self.pinned, conversation.view(), conversation.steps, conversation.records
        )
        changes = [change for change in changes if change_row(change) in rows]
        edited = {part.fingerprint for part in before if part.change == "edited" and part.row not in rows}
        for part in prelude.fixed:
            part.change = "edited" if part.fingerprint in edited else part.change
        runtime.prelude = with_changes(prelude, changes) if waiting else prelude
        runtime.prelude.set_counts(counts)
        return changes

    async def _prepare_step(self) -> None:
        """Before a step: the model's facts are known, documents are fresh, everything is counted."""
        await self._described.wait()
        for problem in self._refresh_documents(waiting=False):
            log.warning("%s", problem)
        counting = asyncio.create_task(self._count(), name="count")
        usage = self._runtime.usage()
        near = usage.limit is not None and usage.total > usage.limit * DECISION_SHARE
        try:
            patience = COUNT_PATIENCE if self._runtime.counts.warm else 0.0
            await asyncio.wait([counting], timeout=None if near else patience)
        except asyncio.CancelledError:
            counting.cancel()
            raise
        self._keep(counting)

    async def _count(self) -> None:
        runtime = self._runtime
        if await runtime.counts.ensure(runtime.conversation, runtime.prelude):
            self.publish(self._runtime.changed())

    def recount(self) -> None:
        """Shows the numbers as they are now and counts what has no count yet."""
        self.publish(self._runtime.changed())
        self._spawn(self._count(), "count")

    def _tools_changed(self) -> None:
        """Tools came or went. Between turns the numbers move at once; a running turn keeps its tools to its end."""
        self._tools_stale = self.busy
        if not self.busy and self.runtime is not None:
            self._refresh_prelude()
            self.recount()

    def _learn(self, step: Step) -> None:
        """After a step: the calibration, and in development mode a recount from nothing."""
        learn(self._runtime, step)
        if self.settings.agent.development:
            tracked = self._runtime.usage().total
            recount = calculate_context_usage(replace(self._runtime.inputs(), cache=None)).total
            if (line := drift(tracked, recount)) is not None:
                log.warning("%s", line)

    async def ready(self) -> None:
        """Waits until the model's window and limits are known and everything is counted: the numbers are final."""
        await self._described.wait()
        await self._count()

    async def count_exact(self) -> int | None:
        """Asks the provider for the exact size of the next request; None where it cannot say, or must not be asked."""
        await self._described.wait()
        if self.settings.context.exact_counting == "off":
            self.publish(Notice("info", EXACT_OFF, "exact_counting"))
            return None
        runtime = self._runtime
        tokens = await count_exactly(runtime, lambda: runtime is self.runtime)
        if tokens is not None:
            self.publish(self._runtime.changed())
        return tokens

    def publish(self, event: Event) -> None:
        """Tells everybody, after taking note of what makes the numbers others."""
        super().publish(event)
        if isinstance(event, CompactionEnded) and event.outcome == "done":
            self.metrics.recalculation()
            self._count_exact_soon()

    def _count_exact_soon(self) -> None:
        """Where there is nothing to build on and the context is long: an exact count, off the hot path."""
        if self._described.is_set() and not self.read_only and worth_counting(self._runtime):
            self._spawn(self.count_exact(), "exact count")

    def context_stats(self) -> str:
        """The token counter's metrics with what they mean, as text."""
        return format_metrics(self.metrics)

    def reset_context_stats(self) -> None:
        self.metrics.reset()

    def pin(self, path: str) -> None:
        """Sends a file with every request, as it is at that time. Raises AgentError when it cannot be read."""
        resolved = self.workspace.pinnable(path)
        pinned = (*(p for p in self.pinned if p != resolved), resolved)
        self.conversation.set_state(replace(self.info.state, pinned=pinned))
        self._refresh_documents()
        self.recount()

    def unpin(self, path: str) -> None:
        """Stops sending a pinned file. Raises AgentError when it is not pinned."""
        resolved = self.workspace.resolve(path)
        matching = [p for p in self.pinned if p in (resolved, path)]
        if not matching:
            raise AgentError(f"{path} is not pinned. Pinned: {', '.join(self.pinned) or 'nothing'}.")
        pinned = tuple(p for p in self.pinned if p not in matching)
        self.conversation.set_state(replace(self.info.state, pinned=pinned))
        self._refresh_documents()
        self.recount()
