"""Puts another session or branch in front: a new one, a stored one, a copy, an earlier message; compacts and undoes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from agent_tui.context.accounting.lost import LostReasoning, WayBack, lost_reasoning
from agent_tui.context.anchor import branches, on_branch
from agent_tui.context.tokens import family_of
from agent_tui.context.view import build_view
from agent_tui.engine.accounts import Accounts
from agent_tui.engine.background import Background
from agent_tui.engine.binder import Binder
from agent_tui.engine.conversation import Conversation, patiently
from agent_tui.engine.extensions import Workspace
from agent_tui.engine.runner import Runner
from agent_tui.engine.sessions import Sessions
from agent_tui.engine.state import Bindings, Hub, RunState
from agent_tui.engine.toolbox import Toolbox
from agent_tui.engine.waiting import Waiting
from agent_tui.errors import READ_ONLY, AgentError
from agent_tui.models.events import Event, Notice, SessionChanged
from agent_tui.models.messages import Message
from agent_tui.models.session import Branch, FilesMoved, Moved
from agent_tui.records import dataclass
from agent_tui.store.salvage import lacks
from agent_tui.tools.files.snapshots import RestorePlan
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
        """Tells the user what of a damaged session could not be read."""
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


BACK = "/rewind back"
"""What returns to the branch that was left last."""


@dataclass(slots=True, frozen=True)
class _Way:
    """From the conversation to another: the messages of each that the other does not have, oldest first."""

    leaving: Sequence[Message]
    entering: Sequence[Message]


class BranchControl:
    """Moves the end of the conversation to any message of the session; none of it while a turn runs. Nothing is ever
    deleted: what leaves the conversation is a branch that can be gone to."""

    def __init__(self, hub: Hub, bindings: Bindings, accounts: Accounts, runner: Runner, toolbox: Toolbox) -> None:
        self._hub = hub
        self._bindings = bindings
        self._accounts = accounts
        self._runner = runner
        self._toolbox = toolbox

    @property
    def _conversation(self) -> Conversation:
        return self._bindings.current.conversation

    def all(self) -> list[Branch]:
        """Returns the branches of the session beside the conversation."""
        conversation = self._conversation
        target = self._bindings.current.runtime.info.target
        return branches(conversation.messages, conversation.path, family_of(target))

    def lost(self, head: str | None) -> LostReasoning | None:
        """The reasoning that would no longer be sent if the conversation ended with ``head``."""
        conversation, before = self._conversation, self._bindings.current.runtime.inputs()
        path = conversation.way_to(head)
        records = on_branch(conversation.every_record, {message.id for message in path})
        after = replace(before, view=build_view(path, records, conversation.summaries), records=records)
        return lost_reasoning(before, after, WayBack(BACK, before, elsewhere=True))

    def files(self, head: str | None) -> FilesMoved:
        """Returns what would become of the files if they were put as the conversation that ends with ``head`` has
        them."""
        way = self._way(head)
        plan = self._toolbox.files().plan(_ids(way.leaving), _ids(way.entering))
        return FilesMoved([restore.path for restore in plan.restores], plan.skipped)

    async def rewind(self, message_id: str, restore_files: bool = False) -> Moved:
        """Goes back to before one of the user's messages, whose text is returned; files too where asked."""
        self._runner.need_idle("rewind")
        message = next((m for m in self._conversation.path if m.id == message_id), None)
        if message is None or message.role != "user":
            raise AgentError("Only a message of yours in this conversation can be rewound to.")
        moved = await self.go_to(message.parent_id, restore_files)
        return replace(moved, text=message.text)

    async def go_to(self, head: str | None, restore_files: bool = False) -> Moved:
        """Goes on from the message ``head``, on whichever branch it is; files too where asked. Raises AgentError for
        one that is not there, and where it was interrupted before anything had changed."""
        moved = await self._runner.exclusively(self._go_to(head, restore_files), "go to another branch")
        if moved is None:
            raise AgentError("Interrupted: nothing has changed.")
        return moved

    async def back(self, restore_files: bool = False) -> Moved:
        """Returns to the branch that was left last. Raises AgentError where there is none."""
        end = self._conversation.info.state.back
        if end is None or end not in self._conversation.messages:
            raise AgentError("No branch has been left in this session: there is nothing to return to.")
        return await self.go_to(end, restore_files)

    async def _go_to(self, head: str | None, restore_files: bool) -> Moved:
        conversation, way = self._conversation, self._way(head)
        conversation.require_writable()
        if head == conversation.info.head_id:
            raise AgentError("That is where the conversation is.")
        leaving, history = _ids(way.leaving), self._toolbox.files()
        plan = history.plan(leaving, _ids(way.entering)) if restore_files else None
        await patiently(lambda: self._toolbox.keep_files(history, plan, leaving))
        files = None
        if plan is not None:
            if plan.restores:
                # Should the program be killed now, the next one knows that files may be of either branch.
                state = replace(conversation.info.state, going=head or "")
                await patiently(lambda: conversation.set_state(state))
            files = await self._put(plan)
        state = replace(conversation.info.state, going=None, back=conversation.info.head_id)
        await patiently(lambda: conversation.go_to(head, state))
        self._hub.publish(SessionChanged(conversation.info, reload=True))
        # The transcript is built anew first: what the user is told comes below it.
        for line in files.left if files is not None else ():
            self._hub.publish(Notice("warning", line, "restored"))
        self._accounts.metrics.recalculation()
        self._accounts.recount()
        return Moved(len(way.leaving), len(way.entering), files=files)

    async def _put(self, plan: RestorePlan) -> FilesMoved:
        """Does what ``plan`` says, also where it is interrupted meanwhile: half of it would be of neither branch."""
        work = asyncio.ensure_future(self._toolbox.restore_files(plan))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            return await work

    def _way(self, head: str | None) -> _Way:
        here, there = self._conversation.path, self._conversation.way_to(head)
        shared = 0
        while shared < min(len(here), len(there)) and here[shared] is there[shared]:
            shared += 1
        return _Way(here[shared:], there[shared:])


def _ids(messages: Sequence[Message]) -> list[str]:
    return [message.id for message in messages]
