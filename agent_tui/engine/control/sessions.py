"""What is done to the session in front as a whole: a new one, another one, a fork, a compaction and its undo."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from agent_tui.context.accounting.lost import LostReasoning, WayBack, lost_reasoning
from agent_tui.engine.accounts.accounts import Accounts
from agent_tui.engine.binding.binder import Binder
from agent_tui.engine.project.toolbox import Toolbox
from agent_tui.engine.project.workspace import Workspace
from agent_tui.engine.running.background import Background
from agent_tui.engine.running.runner import Runner
from agent_tui.engine.running.waiting import Waiting
from agent_tui.engine.session.conversation import Conversation
from agent_tui.engine.session.sessions import Sessions
from agent_tui.engine.state.binding import Bindings
from agent_tui.engine.state.hub import Hub
from agent_tui.engine.state.run import RunState
from agent_tui.errors import READ_ONLY
from agent_tui.models.events import Event, Notice, SessionChanged
from agent_tui.store.salvage import lacks
from agent_tui.tools.permissions.reach import SessionReach

CUT_OFF = (
    "agent-tui ended while it put files as they are on another branch: some may be as they are there. "
    "/rewind, and Ctrl+R on that branch, goes on with it."
)


class SessionControl:
    """Puts another session in front: a new one, a stored one, a copy; none of it while a turn runs."""

    def __init__(
        self,
        hub: Hub,
        bindings: Bindings,
        sessions: Sessions,
        binder: Binder,
        accounts: Accounts,
        waiting: Waiting,
        runner: Runner,
        toolbox: Toolbox,
        workspace: Workspace,
        background: Background,
        reach: SessionReach,
    ) -> None:
        self._hub = hub
        self._bindings = bindings
        self._sessions = sessions
        self._binder = binder
        self._accounts = accounts
        self._waiting = waiting
        self._runner = runner
        self._toolbox = toolbox
        self._workspace = workspace
        self._background = background
        self._reach = reach

    async def clear(self) -> LostReasoning | None:
        """Starts a new session; the old one stays and can be resumed. Returns the reasoning that stays with it."""
        await self._look("start a new session")
        before = self._bindings.current.runtime.inputs()
        lost = lost_reasoning(before, replace(before, view=[]), WayBack("/resume", before, elsewhere=True))
        conversation = self._sessions.open_new()
        conversation.bind_model(self._bindings.current.runtime.info.spec.key)
        self._bind(conversation)
        self._tell_switched()
        self._background.session_ended()
        return lost

    async def resume(self, session_id: str) -> None:
        """Continues another session; what waits here stays with this one. Raises StoreError when there is none of that
        id."""
        await self._look("resume a session")
        before = self._bindings.current.conversation
        conversation = self._sessions.open(session_id)
        changed = conversation is not before
        self._bind(conversation)
        if changed:
            self._waiting.become()
        self._tell_switched()
        self.tell_read_only()
        self.tell_missing()
        self.tell_cut_off()
        if changed:
            self._background.session_ended()
            self._waiting.tell_held()

    async def fork(self, message_id: str | None = None) -> None:
        """Continues in a copy of the session, up to and including ``message_id``."""
        self._runner.need_idle("fork")
        before = self._bindings.current.runtime
        self._bind(self._sessions.fork(message_id))
        # Whoever waits for an answer of a certain form waits for it in the copy.
        self._bindings.current.runtime.expect(before.output_schema, before.output_due)
        self._tell_switched()

    async def _look(self, what: str) -> None:
        self._runner.need_idle(what)
        await asyncio.to_thread(self._workspace.look)
        self._runner.need_idle(what)

    def _bind(self, conversation: Conversation) -> None:
        """Everything that hangs on the session starts anew."""
        current = self._bindings.current.runtime.info.spec
        spec = self._binder.model_of(conversation, lambda: current)
        self._binder.bind(conversation, spec, chosen=not conversation.info.model)
        self._toolbox.session_changed()
        self._reach.load(conversation.info.state)

    def _tell_switched(self) -> None:
        self._hub.publish(SessionChanged(self._bindings.current.conversation.info, reload=True))
        self._accounts.tell()
        self._binder.tell_model_gone()
        self._hub.spawn(self._binder.describe_and_count(), "describe")

    def tell_read_only(self) -> None:
        """Somebody else has this session open."""
        if self._bindings.current.conversation.read_only:
            self._hub.publish(Notice("warning", READ_ONLY, "read_only"))

    def tell_missing(self) -> None:
        """What of a damaged session could not be read."""
        conversation = self._bindings.current.conversation
        if conversation.missing:
            where = f"agent-tui sessions repair {conversation.info.id}"
            text = f"This session is damaged; it lacks {lacks(conversation.missing)}. `{where}` makes a sound copy."
            self._hub.publish(Notice("warning", text, "damaged"))

    def tell_cut_off(self) -> None:
        """The program was killed while it put files as they are on another branch."""
        conversation = self._bindings.current.conversation
        if conversation.info.state.going is not None and not conversation.read_only:
            self._hub.publish(Notice("warning", CUT_OFF, "branch_cut_off"))

    def rename(self, title: str) -> None:
        """Gives the session a title."""
        conversation = self._bindings.current.conversation
        conversation.rename(" ".join(title.split()))
        self._hub.publish(SessionChanged(conversation.info))


class CompactionControl:
    """Compacts the session in front at the user's word, and takes that back; neither while a turn runs."""

    def __init__(self, hub: Hub, bindings: Bindings, binder: Binder, accounts: Accounts, runner: Runner) -> None:
        self._hub = hub
        self._bindings = bindings
        self._binder = binder
        self._accounts = accounts
        self._runner = runner

    def preview(self, focus: str = "") -> str:
        """Returns what ``now`` would do, with numbers and without a model call."""
        return self._bindings.current.compaction.preview(focus)

    async def now(self, focus: str = "") -> None:
        """Compacts now; ``focus`` tells the summary what matters. The outcome arrives as an event."""
        await self._runner.exclusively(self._compact(focus), "compact", RunState.COMPACTING)

    async def _compact(self, focus: str) -> None:
        prepare = self._binder.prepare_step
        await prepare()
        await self._bindings.current.compaction.compact("manual", self._hub.publish, prepare, focus)

    async def undo(self) -> None:
        """Takes the newest compaction back. The outcome arrives as an event."""
        self._runner.need_idle("undo a compaction")
        binding = self._bindings.current
        told: list[Event] = []
        if binding.compaction.undo(told.append):
            # The transcript is built anew first: what the user is told comes below it.
            self._hub.publish(SessionChanged(binding.conversation.info, reload=True))
            self._accounts.metrics.recalculation()
        for event in told:
            self._hub.publish(event)
        self._accounts.recount()
