"""The next request: its fixed parts, its counts and its numbers, ready to be asked for at any time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.context.accounting.inputs import ContextInputs
from agent_tui.context.accounting.reports import drift
from agent_tui.context.accounting.usage import calculate_context_usage
from agent_tui.context.compaction.notices import EXACT_OFF
from agent_tui.context.past import SessionPast, StoredSession, around
from agent_tui.context.timeline import Timeline
from agent_tui.context.tokens import TokenCounterMetrics
from agent_tui.engine.calls import WORTH_NEAR, WORTH_TOKENS, count_exactly, undecided, worth_counting
from agent_tui.engine.extensions import Trusting
from agent_tui.engine.request_prefix import (
    FILE_ROWS,
    RequestPrefix,
    StablePrefix,
    build_request_prefix,
    change_row,
    fewer_tools_text,
    fitting_tools,
    refused,
    with_documents,
)
from agent_tui.engine.runtime import CountService
from agent_tui.engine.state import AgentState, RunState
from agent_tui.engine.toolbox import Toolbox
from agent_tui.errors import AgentError
from agent_tui.models.context import ContextUsage, Draft
from agent_tui.models.events import CompactionEnded, ContextChanged, Event, Notice
from agent_tui.models.messages import Message
from agent_tui.models.rows import RowId
from agent_tui.models.steps import CacheForecast
from agent_tui.paths import in_project
from agent_tui.tools.files.access import Stamp

if TYPE_CHECKING:
    from agent_tui.engine.cache_forecast import CacheForecaster


log = logging.getLogger(__name__)


class PrefixBuilder:
    """Gives the runtime its request prefix, and the user's messages what has become of files since they were sent."""

    def __init__(self, state: AgentState, toolbox: Toolbox, trusting: Trusting) -> None:
        self._state = state
        self._workspace = state.parts.workspace
        self._toolbox = toolbox
        self._trusting = trusting
        self._stable = StablePrefix(denies=self._workspace.files.denies)
        self._stamps: dict[Path, Stamp | None] = {}
        self._left_out: tuple[str, ...] = ()
        self._grounds: list[object] = []
        self._problems: list[str] = []

    @property
    def pinned(self) -> list[str]:
        """The files that go with every request, as absolute paths."""
        return list(self._state.conversation.info.state.pinned)

    @property
    def stale(self) -> bool:
        """True when files were pinned or something was compacted since all was last taken as it is (the next message
        begins the prompt anew then), or pinned files alone were looked at."""
        return self._grounds != self._grounds_now()

    def _grounds_now(self) -> list[object]:
        return [self.pinned, [(r.id, r.active) for r in self._state.conversation.records if r.reason != "edit"]]

    def begin(self) -> None:
        """Another binding is in force: nothing of it is in a provider's cache yet."""
        self._stable.forget()
        self._workspace.adopt(self._state.conversation.info.state.environment)
        self.refresh()

    def look_at_trust(self) -> None:
        """What changed of the folder since it was accepted is not used any more, and the user is told."""
        changed, line = self._trusting.look()
        if changed:
            self._state.hooks.reload()
            if self._state.parts.extensions is not None:
                self._state.parts.extensions.reload_servers()
        if line:
            self._state.events.publish(Notice("warning", line, "untrusted"))

    async def look_at_files(self, *, documents_only: bool) -> bool:
        """Takes memory files and pinned files as they are now; ``documents_only``: pinned files. True when that changed
        what the next request is made of."""
        binding = self._state.binding
        now = await asyncio.to_thread(self._workspace.stamps, self.pinned)
        if self._state.binding is not binding:
            return False
        changed = {path for path in now.keys() | self._stamps.keys() if now.get(path) != self._stamps.get(path)}
        if documents_only:
            changed &= {Path(path) for path in self.pinned}
        if not changed:
            return False
        runtime = binding.runtime
        before = [part.fingerprint for part in runtime.request_prefix.fixed]
        if documents_only:
            self.refresh_documents()
            self._stamps |= {path: now[path] for path in changed if path in now}
        else:
            self.refresh()
        return [part.fingerprint for part in runtime.request_prefix.fixed] != before

    def refresh(self, message: Message | None = None) -> None:
        """Builds the fixed parts anew, and counts what is new in them. What has become of files that stay as they were
        sent goes into ``message``, or waits for one."""
        self.look_at_trust()
        runtime = self._state.runtime
        self._stamps, self._grounds = self._workspace.stamps(self.pinned), self._grounds_now()
        documents, problems = self._workspace.documents(self.pinned)
        blocks, limits = self._workspace.blocks(), runtime.info.limits
        every = [tool for tool in self._toolbox.offered(runtime.info) if not refused(tool, runtime.left_out)]
        if runtime.replay.needs("no tools"):
            every = []
        offered = fitting_tools(blocks, every, limits.window)
        fresh = build_request_prefix([*blocks, *documents], offered)
        fresh.set_counts(runtime.request_prefix.counts())
        self._take(fresh, message, waiting=message is None)
        for problem in problems:
            if problem not in self._problems:
                self._state.events.publish(Notice("warning", problem, "document"))
        self._problems = problems
        left_out = tuple(o.schema.name for o in every if o not in offered)
        if left_out and left_out != self._left_out:
            self._state.events.publish(Notice("warning", fewer_tools_text(limits.window or 0, left_out), "fewer_tools"))
        self._left_out = left_out

    def refresh_documents(self, message: Message | None = None, *, waiting: bool = True) -> list[str]:
        """The same of pinned files alone: a running turn keeps its tools and memory. A line for each file that cannot
        be read."""
        documents, problems = self._workspace.documents(self.pinned)
        fresh = with_documents(self._state.runtime.request_prefix, documents)
        self._take(fresh, message, waiting and message is None, ("documents",))
        self._grounds = []
        return problems

    def _take(
        self, fresh: RequestPrefix, message: Message | None, waiting: bool, rows: Sequence[RowId] = FILE_ROWS
    ) -> None:
        """Makes it the beginning of the next request, or what was sent where that is still cached: what has become of
        files since goes into ``message``. ``waiting`` shows it, for it goes with the user's next message."""
        runtime, before = self._state.runtime, self._state.runtime.request_prefix
        prefix, changes = self._stable.settle(fresh, self.pinned, runtime.info, runtime.conversation)
        changes = [change for change in changes if change_row(change) in rows]
        prefix.keep_edited(before.fixed, rows)
        if waiting:
            prefix.add_changes(changes)
        prefix.set_counts(before.counts())
        runtime.send_as(prefix=prefix)
        if message is not None:
            message.parts[0:0] = changes


COUNT_PATIENCE = 0.3
"""Seconds a step waits for token counts where no decision hangs on them; a warm counter needs a few milliseconds. One
that has counted nothing yet is not waited for: the request goes out and is counted meanwhile."""

EXACT_PATIENCE = 1.0
"""Seconds a step waits for a count by the server itself where it decides whether to compact."""


_UNDER_WAY = (RunState.TURN, RunState.INTERRUPTED, RunState.COMPACTING)
"""States in which another request is under way than the one the user would send."""


def _foretold_by(forecast: CacheForecast | None) -> str:
    return forecast.cold.what if forecast is not None and forecast.cold is not None else ""


async def _wait_until(exact: asyncio.Task[int | None], moment: float) -> None:
    """Waits for an exact count until a moment of the monotonic clock. It takes a server that counts by itself
    milliseconds; one that takes longer is not waited for."""
    await asyncio.wait([exact], timeout=max(0.0, moment - time.monotonic()))


class ContextControl:
    """Keeps the numbers true: what changes the next request comes here, and everybody is told the new total."""

    def __init__(self, state: AgentState, toolbox: Toolbox, trusting: Trusting) -> None:
        self._state = state
        self._workspace = state.parts.workspace
        self._toolbox = toolbox
        self.prefix = PrefixBuilder(state, toolbox, trusting)
        self._tools_stale = False
        self._forecaster: CacheForecaster | None = None
        self._foretold = ""
        self._unsettled = False
        self._draft: Callable[[], Draft | None] = lambda: None
        self.metrics = TokenCounterMetrics()
        self.counts = CountService(state.parts.counter, self.metrics)
        self._drops_wait: Callable[[Event], None] = lambda event: None
        state.events.subscribe(self._noticed)

    def usage(self) -> ContextUsage:
        """The calculator's answer for the next request, now, and while no turn runs what it will find in the cache."""
        runtime = self._state.runtime
        usage = replace(runtime.usage(), draft=self._draft())
        if self._state.run.now in _UNDER_WAY:
            return usage
        self._unsettled = self._state.run.now is not RunState.LOOKING and self._toolbox.starting
        if self._unsettled or not self._state.binding.described:
            # It would be a forecast of something else: tools and prices are on their way.
            return usage
        forecast = self._forecast(usage)
        cold = forecast is not None and forecast.cold is not None
        expected = forecast.read if forecast is not None and cold else usage.expected_read
        return replace(usage, forecast=forecast, expected_read=expected)

    def count_draft_by(self, draft: Callable[[], Draft | None]) -> None:
        """From now on the numbers say what is written and not sent yet, as ``draft`` has it."""
        self._draft = draft

    @property
    def starting(self) -> bool:
        """Whether tools are still to come, so that nothing is known yet of the next request's cache."""
        return self._toolbox.starting

    @property
    def in_flight(self) -> int:
        """Estimated tokens of the answer that is streaming."""
        return self._state.runtime.in_flight if self._state.opened else 0

    def part_text(self, fingerprint: str) -> str | None:
        """The text of a fixed part of the next request, deferred tools included; None where it is not at hand."""
        return self._state.runtime.request_prefix.texts.get(fingerprint)

    def history(self) -> SessionPast:
        """The session as it was before each of its steps. It stays with this session, and grows with it."""
        c = self._state.conversation
        return SessionPast(StoredSession(c.messages, c.steps, c.every_record, c.summaries, c.inherited))

    def timeline(self) -> Timeline:
        """The session's steps side by side."""
        return Timeline(self._state.conversation.steps, self._state.conversation.every_record)

    def around(self, operation_id: str) -> list[ContextInputs]:
        """What the calculator was given right before a compaction, and right after it; nothing where that is not known
        any more."""
        runtime, conversation = self._state.runtime, self._state.conversation
        return around(runtime.inputs().as_now(), list(conversation.path), dict(conversation.summaries), operation_id)

    def _to_be_told(self) -> bool:
        """Returns whether there is news without anything having changed: something has become known, or has expired."""
        if self._unsettled:
            return not self._toolbox.starting
        return self._forecaster is not None and self._forecaster.passed()

    def _forecast(self, usage: ContextUsage) -> CacheForecast | None:
        """Returns what the next request would find in the cache. Before the first one nothing is known, or loaded for
        it."""
        runtime = self._state.runtime
        if not runtime.conversation.steps:
            return None
        if self._forecaster is None:
            from agent_tui.engine.cache_forecast import CacheForecaster

            self._forecaster = CacheForecaster()
        try:
            return self._forecaster.forecast(runtime, usage)
        except Exception:
            # The numbers themselves, and a turn, are not lost over that.
            log.exception("What the next request finds in the cache is not known")
            return None

    async def refresh(self) -> bool:
        """Looks whether memory files or pinned files have changed; while a turn runs pinned files only. True when that
        changed what the next request is made of; then the numbers are told. They are told, too, when what the last one
        left in the provider's cache has expired: whoever looks now and then needs no timer for that."""
        if self._state.run.now in (RunState.OPENING, RunState.LOOKING):
            return False
        changed = await self.prefix.look_at_files(documents_only=self._state.run.busy)
        if changed:
            self.recount()
        elif self._state.run.now not in _UNDER_WAY and self._to_be_told():
            self.tell()
        return changed

    async def prepare_step(self) -> None:
        """Before a step: documents are fresh, everything is counted as far as that
        matters."""
        for problem in self.prefix.refresh_documents(waiting=False):
            log.warning("%s", problem)
        began, runtime = time.monotonic(), self._state.runtime
        # Whoever has counted before answers at once, and more is learned from an exact count then.
        exact = None if runtime.counts.warm else self._count_nearby()
        counting = asyncio.create_task(self.count(sends=True), name="count")
        try:
            await asyncio.wait([counting], timeout=COUNT_PATIENCE if runtime.counts.warm else 0.0)
            if not counting.done() and runtime.must_be_counted:
                await asyncio.wait([counting])
        except asyncio.CancelledError:
            counting.cancel()
            raise
        self._state.events.keep(counting)
        exact = exact or self._count_nearby()
        if exact is not None:
            usage = runtime.usage()
            decides = undecided(usage) and usage.anchor_step is not None
            await _wait_until(exact, began + (EXACT_PATIENCE if decides else COUNT_PATIENCE))

    def _count_nearby(self) -> asyncio.Task[int | None] | None:
        """Has a server that counts by itself do so where no message is measured yet, or where the decision to compact
        hangs on an estimate; None elsewhere."""
        runtime = self._state.runtime
        if runtime.info.counting is None or not worth_counting(runtime, WORTH_NEAR):
            return None
        usage = runtime.usage()
        if not undecided(usage) and usage.calculation.all_messages is None:
            return None
        exact = asyncio.create_task(self.count_exact(), name="exact count")
        self._state.events.keep(exact)
        return exact

    async def count_nearby(self) -> None:
        """Waits a second at most for the exact size of the next request, where the server counts by itself; nobody is
        about to send one."""
        began = time.monotonic()
        if (exact := self._count_nearby()) is not None:
            await _wait_until(exact, began + EXACT_PATIENCE)

    async def count(self, *, every: bool = False, sends: bool = False) -> None:
        """Counts what has no count yet, as far as that matters (or ``every`` of it), and tells the numbers when that
        changed them. ``sends``: a request is about to be sent."""
        if await self._state.runtime.count(every=every, followed=self._state.events.is_followed(), sends=sends):
            self.tell()

    def tell(self) -> None:
        """Shows the numbers as they are now, where somebody follows them."""
        if not self._state.events.is_followed():
            return
        usage = self.usage()
        if usage.forecast is not None:
            self._foretold = _foretold_by(usage.forecast)
        self._state.events.publish(ContextChanged(usage, self._state.runtime.in_flight))

    def before_news(self) -> None:
        """Before a turn takes in what changed: what the numbers said till now, also where nobody followed them."""
        runtime = self._state.runtime
        if runtime.conversation.steps and not self._state.events.is_followed():
            self._foretold = _foretold_by(self._forecast(runtime.usage()))

    def foretell(self) -> None:
        """Before a turn: its first request is reckoned with as cold where it is. What it pays anew for something that
        changed during the turn before it is told; whoever follows the numbers knows of all other changes."""
        runtime = self._state.runtime
        forecast = self._forecast(runtime.usage()) if runtime.conversation.steps else None
        cold = forecast.cold if forecast is not None else None
        runtime.expect_cold(forecast.read if forecast is not None and cold is not None else None)
        if cold is not None and cold.cause == "ours" and cold.what != self._foretold:
            from agent_tui.context.cache_forecast import cold_words

            self._state.events.publish(Notice("info", cold_words(cold), "cache"))
        self._foretold = ""

    def recount(self) -> None:
        """Shows the numbers as they are now and counts what has no count yet."""
        self.tell()
        self._state.events.spawn(self.count(), "count")
        if self._state.runtime.info.counting:
            self.count_exact_soon()

    async def ready(self) -> None:
        """Waits until the model's window and limits are known and everything is counted: the numbers are final."""
        await self._until_described()
        await self.count(every=True)

    async def _until_described(self) -> None:
        binding = None
        while self._state.binding is not binding:
            binding = self._state.binding
            await binding.until_described()

    def tools_changed(self) -> None:
        """Tools came or went. Between turns the numbers move at once; a running turn keeps its tools to its end."""
        self._tools_stale = self._state.run.busy
        if not self._state.run.busy and self._state.opened:
            self.prefix.refresh()
            self.recount()

    def catch_up(self) -> None:
        """A turn, or what stands in its place, has ended: what came meanwhile counts from now on. These are tools, and
        whatever has the next message begin the prompt anew."""
        if self._tools_stale or self.prefix.stale:
            self._tools_stale = False
            self.prefix.refresh()
            self.recount()

    def check_drift(self) -> None:
        """After a step, in development mode: a line in the log where a recount from nothing gives another total."""
        runtime = self._state.runtime
        if runtime.settings.agent.development:
            recount = calculate_context_usage(runtime.inputs()).total
            if (line := drift(runtime.usage().total, recount)) is not None:
                log.warning("%s", line)

    async def count_exact(self) -> int | None:
        """Asks the provider for the exact size of the next request; None where it cannot say, or must not be asked."""
        await self._until_described()
        if self._state.runtime.settings.context.exact_counting == "off":
            self._state.events.publish(Notice("info", EXACT_OFF, "exact_counting"))
            return None
        binding = self._state.binding
        tokens = await count_exactly(binding.runtime, lambda: self._state.binding is binding)
        if tokens is not None:
            self.tell()
        return tokens

    def count_exact_soon(self) -> None:
        """Starts an exact count, off the hot path, where much of the next request is estimated."""
        binding = self._state.binding
        conversation, near = binding.conversation, binding.runtime.info.counting is not None
        if not (binding.described and (near or conversation.path)) or conversation.read_only:
            return
        steps = conversation.steps
        sent = bool(steps) and steps[-1].status == "running"
        if self._state.run.busy and (near or sent or binding.runtime.usage().anchor_step is not None):
            # The step measures it soon; a server that counts by itself is asked before each step that needs it.
            return
        if worth_counting(binding.runtime, WORTH_NEAR if near else WORTH_TOKENS):
            self._state.events.spawn(self.count_exact(), "exact count")

    def while_drops_wait(self, hear: Callable[[Event], None]) -> None:
        """Has ``hear`` told what happens while something is to be dropped once the cache is cold."""
        self._drops_wait = hear

    def _noticed(self, event: Event) -> None:
        if self._state.opened and self._state.conversation.info.state.drops_waiting:
            self._drops_wait(event)
        if isinstance(event, CompactionEnded) and event.outcome == "done":
            self.metrics.recalculation()
            self.count_exact_soon()

    @property
    def pinned(self) -> list[str]:
        """The files that go with every request, as absolute paths."""
        return self.prefix.pinned

    def pin(self, path: str) -> None:
        """Sends a file with every request, as it is at that time. Raises AgentError when it cannot be read."""
        resolved = self._workspace.pinnable(path)
        self._send([*(p for p in self.prefix.pinned if p != resolved), resolved])

    def unpin(self, path: str) -> None:
        """Stops sending a pinned file. Raises AgentError when it is not pinned."""
        pinned, resolved = self.prefix.pinned, self._workspace.resolve(path)
        left = [p for p in pinned if p not in (resolved, path)]
        if left == pinned:
            shown = ", ".join(in_project(p, self._workspace.cwd) for p in pinned)
            raise AgentError(f"Not pinned: {path}. Pinned: {shown or 'nothing'}.")
        self._send(left)

    def _send(self, pinned: list[str]) -> None:
        conversation = self._state.conversation
        conversation.set_state(replace(conversation.info.state, pinned=tuple(pinned)))
        if self._state.run.busy:
            self.prefix.refresh_documents()
        else:
            self.prefix.refresh()
        self.recount()
