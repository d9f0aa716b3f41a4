"""Puts another session or branch in front: a new one, a stored one, a copy, an earlier message; compacts and undoes."""

from __future__ import annotations

import asyncio
import logging
import shutil
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

from agent_tui.context.accounting.lost import LostReasoning, lost_reasoning
from agent_tui.context.anchor import branches, on_branch
from agent_tui.context.compaction.plan import CompactionFigures
from agent_tui.context.tokens import family_of
from agent_tui.context.view import build_view
from agent_tui.engine.binder import Binder
from agent_tui.engine.context_control import ContextControl
from agent_tui.engine.conversation import Conversation, patiently
from agent_tui.engine.runner import Runner
from agent_tui.engine.state import STILL_OPENING, AgentState, RunState
from agent_tui.engine.toolbox import Background, Toolbox
from agent_tui.engine.waiting import Waiting
from agent_tui.errors import READ_ONLY, AgentError, SessionBusyError, StoreError
from agent_tui.models.events import (
    Event,
    Notice,
    SessionChanged,
)
from agent_tui.models.messages import Message
from agent_tui.models.session import Branch, ConversationChange, FilesMoved, SessionInfo, SessionKind
from agent_tui.store.locks import SessionLock
from agent_tui.store.store import Store
from agent_tui.text.clean import plain_line
from agent_tui.tools.files.snapshots import RestorePlan

log = logging.getLogger(__name__)


class OpenSession:
    """Holds the current conversation and its lock. One that is open elsewhere is opened read-only; a run opened in a
    chat is a chat from then on."""

    def __init__(self, store: Store, project: str, is_chat: bool, outputs: Path) -> None:
        self._store = store
        self._project = project
        self._outputs = outputs
        self._is_chat = is_chat
        self._current: Conversation | None = None
        self._lock: SessionLock | None = None
        self.lost: StoreError | None = None
        self._had_nothing_to_continue = False

    def take_nothing_to_continue(self) -> bool:
        """Returns, once, whether the newest session of the project was asked for and there was none."""
        had_nothing, self._had_nothing_to_continue = self._had_nothing_to_continue, False
        return had_nothing

    @property
    def current(self) -> Conversation:
        if self._current is None:
            raise AgentError(STILL_OPENING)
        return self._current

    def open_first(self, resume: str | None, session: str | None, newest: bool, talks: bool = True) -> Conversation:
        """Opens what was asked for on the command line, else a new session: ``resume`` has to be there, ``session`` is
        begun where it is not. Where nobody ``talks`` no run becomes a chat. Raises AgentError when it is missing."""
        self._is_chat &= talks
        if resume:
            return self.open(resume)
        if session is not None:
            return self._open_named(session)
        found = self._store.sessions.newest(self._project, runs=not self._is_chat) if newest else None
        self._had_nothing_to_continue = newest and found is None
        return self.open(found.id) if found is not None else self.open_new()

    def _open_named(self, session: str) -> Conversation:
        if self._store.sessions.exists(session):
            return self.open(session)
        try:
            return self.open_new(session)
        except StoreError:  # another process may have begun it in this moment
            if not self._store.sessions.exists(session):
                raise
            return self.open(session)

    def open_for_reading(self, session_id: str | None) -> Conversation:
        """Opens a session (None: the project's newest, else an empty one) without locking or changing it. What a crash
        cut in it counts as it will when it is continued."""
        store = self._store
        info = store.sessions.get(session_id) if session_id else store.sessions.newest(self._project)
        info = info or SessionInfo("", self._project)
        self._current = Conversation(store, info, read_only=True)
        if info.id and not store.locks.in_use(info.id):
            self._current.stop_unfinished()
            self._current.end_open_calls()
        return self._current

    def open_new(self, session_id: str | None = None) -> Conversation:
        """Begins a session, of the id given or of a new one; what waits to be sent comes along."""
        kind: SessionKind = "user" if self._is_chat else "run"
        return self._enter(self._store.sessions.create(self._project, "", None, kind, session_id), carry=True)

    def open(self, session_id: str) -> Conversation:
        """Makes a stored session current. Raises StoreError when there is none of that id."""
        info = self._store.sessions.get(session_id)
        if self._current is not None and self._current.info.id == info.id:
            return self._current
        conversation = self._enter(info)
        if not conversation.read_only:
            conversation.end_open_calls()
            if self._is_chat and info.kind == "run":
                conversation.info.kind = "user"
                self._store.sessions.save(conversation.info)
        return conversation

    def _enter(self, info: SessionInfo, carry: bool = False) -> Conversation:
        store = self._store
        try:
            lock: SessionLock | None = store.locks.take(info.id)
        except SessionBusyError:
            lock = None
        try:
            if lock is not None:
                store.recover(info.id)
                info = store.sessions.get(info.id)
            conversation = Conversation(store, info, read_only=lock is None)
            if self._current is not None:
                self._current.save()
                if carry and not self._current.read_only:
                    store.waiting.move(self._current.info.id, info.id)
        except BaseException:
            if lock is not None:
                lock.release()
            raise
        self.leave()
        self._current, self._lock = conversation, lock
        return conversation

    def leave(self) -> None:
        """Lets the current session go; a new one in which nothing was said is removed."""
        conversation, lock = self._current, self._lock
        self._current = self._lock = None
        if lock is None:
            return
        try:
            if conversation is not None:
                conversation.save()
                store, session = self._store, conversation.info
                if not conversation.messages and not session.title and not store.waiting.all(session.id):
                    store.delete(session.id)
                    shutil.rmtree(self._outputs / session.id, ignore_errors=True)
        except StoreError as error:
            log.warning("The session was not left as it should be: %s", error)
            if conversation is not None and conversation.unsaved:
                self.lost = StoreError(f"Unsaved data of session {conversation.info.id} is lost: {error}")
        finally:
            lock.release()

    def fork(self, message_id: str | None) -> Conversation:
        """Continues a copy of the current session, up to ``message_id`` (None: all of it); what waits comes along."""
        current = self.current
        current.save()
        info = self._store.fork(current.info.id, message_id or current.info.head_id)
        info.title = info.title or current.info.title
        return self._enter(info, carry=True)


ALL_SESSIONS = "/resume and `agent-tui sessions --all` list those of other folders."
CUT_OFF = (
    "agent-tui ended while it restored the files of another branch; some may be restored already. "
    "To finish, run /rewind and press Ctrl+R on that branch."
)


class SessionControl:
    """Puts another session in front: a new one, a stored one, a copy; none of it while a turn runs."""

    def __init__(
        self,
        state: AgentState,
        binder: Binder,
        context: ContextControl,
        waiting: Waiting,
        runner: Runner,
        toolbox: Toolbox,
        background: Background,
    ) -> None:
        self._state, parts = state, state.parts
        self.opened = OpenSession(parts.store, str(parts.root), parts.is_chat, parts.paths.cache / "output")
        self._binder = binder
        self._context = context
        self._waiting = waiting
        self._runner = runner
        self._toolbox = toolbox
        self._background = background

    async def clear(self) -> LostReasoning | None:
        """Starts a new session; the old one stays and can be resumed. Returns the reasoning that stays with it."""
        await self._look("start a new session", "clear")
        before = self._state.runtime.inputs()
        lost = lost_reasoning(before, replace(before, view=[]))
        conversation = self.opened.open_new()
        conversation.bind_model(self._state.runtime.info.spec.key)
        self._bind(conversation)
        self._tell_switched("clear")
        self._background.session_ended()
        return lost

    async def resume(self, session_id: str) -> None:
        """Continues another session; what waits here stays with this one. Raises StoreError when there is none."""
        before = self._state.conversation
        other = self._state.parts.store.sessions.get(session_id).id != before.info.id
        await self._look("resume a session", "resume", ends=other)
        conversation = self.opened.open(session_id)
        changed = conversation is not before
        self._bind(conversation)
        if changed:
            self._waiting.become()
        self._tell_switched("resume")
        self.tell_standing()
        if changed:
            self._background.session_ended()
            self._waiting.tell_held()

    async def fork(self, message_id: str | None = None) -> None:
        """Continues in a copy of the session, up to and including ``message_id``."""
        self._runner.need_idle("fork")
        await self._background.jobs.end_subagents()
        self._runner.need_idle("fork")
        before = self._state.runtime
        self._bind(self.opened.fork(message_id))
        self._state.runtime.expect(before.output_schema, before.output_due)
        self._tell_switched("fork")

    async def _look(self, what: str, leaves: str, ends: bool = True) -> None:
        self._runner.need_idle(what)
        await self._state.hooks.end(leaves)
        await asyncio.to_thread(self._state.parts.workspace.look)
        if ends:
            await self._background.jobs.end_subagents()
        self._runner.need_idle(what)  # a turn may have begun meanwhile

    def _bind(self, conversation: Conversation) -> None:
        """Everything that hangs on the session starts anew."""
        current = self._state.runtime.info.spec
        spec = self._binder.model_of(conversation, lambda: current)
        self._binder.bind(conversation, spec, chosen=not conversation.info.model)
        self._toolbox.session_changed()
        self._state.parts.permissions.reach.load(conversation.info.state)

    def _tell_switched(self, source: str) -> None:
        self._state.hooks.begin(source)
        self._state.events.publish(SessionChanged(self._state.conversation.info, reload=True))
        self._context.tell()
        self._binder.tell_model_gone()
        self._state.events.spawn(self._binder.describe_and_count(), "describe")

    def tell_standing(self) -> None:
        """Tells the user that this session is open elsewhere, of another folder, new where an earlier one was asked
        for, damaged, or was killed while it put files back."""
        conversation, publish = self._state.conversation, self._state.events.publish
        if conversation.read_only:
            publish(Notice("warning", READ_ONLY, "read_only"))
        if self.opened.take_nothing_to_continue():
            root = plain_line(str(self._state.parts.root), 400)
            publish(Notice("info", f"No earlier session in {root}: this one is new. {ALL_SESSIONS}", "session_new"))
        if conversation.path and (folder := self._folder_left()) is not None:
            publish(Notice("warning", folder, "other_folder"))
        for line in conversation.links():
            publish(Notice("info", line, "handoff"))
        if conversation.info.state.going is not None and not conversation.read_only:
            publish(Notice("warning", CUT_OFF, "branch_cut_off"))

    def _folder_left(self) -> str | None:
        """Returns the line that says that the session worked in another folder; None where it is the same."""
        parts, conversation = self._state.parts, self._state.conversation
        told = parts.workspace.folder_told(conversation.view())
        then, now = (conversation.info.project, str(parts.root)) if told is None else (told, str(parts.cwd))
        if then in ("", now):
            return None
        gone = "" if Path(then).is_dir() else " (which is gone)"
        there, here = plain_line(then, 400), plain_line(now, 400)
        return f"This session worked in {there}{gone}. From here on files and commands are those of {here}."

    def rename(self, title: str) -> None:
        """Gives the session a title."""
        conversation = self._state.conversation
        conversation.rename(" ".join(title.split()))
        self._state.events.publish(SessionChanged(conversation.info))


class CompactionControl:
    """Compacts the session in front at the user's word, and takes that back; neither while a turn runs."""

    def __init__(self, state: AgentState, context: ContextControl, runner: Runner) -> None:
        self._state = state
        self._context = context
        self._runner = runner

    async def preview(self, focus: str = "") -> CompactionFigures:
        """Returns what ``now`` would do, with numbers and without a model call."""
        return await self._state.binding.compaction.preview(focus, self._context.usage())

    async def now(self, focus: str = "") -> None:
        """Compacts now; ``focus`` tells the summary what matters. The outcome arrives as an event."""
        await self._runner.exclusively(self._compact(focus), "compact", RunState.COMPACTING)

    async def _compact(self, focus: str) -> None:
        compaction = self._state.binding.compaction
        await compaction.prepare()
        await compaction.compact("manual", self._state.events.publish, focus)

    async def undo(self) -> None:
        """Takes the newest compaction back. The outcome arrives as an event."""
        self._runner.need_idle("undo a compaction")
        self._state.conversation.require_writable()
        binding = self._state.binding
        told: list[Event] = []
        if binding.compaction.undo(told.append):
            # The transcript is built anew first: what the user is told comes below it.
            self._state.events.publish(SessionChanged(binding.conversation.info, reload=True))
            self._context.metrics.recalculation()
            # With the messages comes the beginning with which they were sent.
            self._context.prefix.refresh()
        for event in told:
            self._state.events.publish(event)
        self._context.recount()


class BranchControl:
    """Moves the end of the conversation to any message of the session; none of it while a turn runs. Nothing is ever
    deleted: what leaves the conversation is a branch that can be gone to."""

    def __init__(self, state: AgentState, context: ContextControl, runner: Runner, toolbox: Toolbox) -> None:
        self._state = state
        self._context = context
        self._runner = runner
        self._toolbox = toolbox

    @property
    def _conversation(self) -> Conversation:
        return self._state.conversation

    def all(self) -> list[Branch]:
        """Returns the branches of the session beside the conversation."""
        conversation, target = self._conversation, self._state.runtime.info.target
        return branches(conversation.messages, conversation.path, family_of(target))

    def lost(self, head: str | None) -> LostReasoning | None:
        """The reasoning that would no longer be sent if the conversation ended with ``head``."""
        conversation, before = self._conversation, self._state.runtime.inputs()
        path = conversation.way_to(head)
        records = on_branch(conversation.every_record, {message.id for message in path})
        view = build_view(path, records, conversation.summaries)
        return lost_reasoning(before, replace(before, view=view, records=records))

    def files(self, head: str | None) -> FilesMoved:
        """Returns what would become of the files if they were put as they are on the branch that ends with ``head``."""
        plan = self._toolbox.files().plan(*self._way(head))
        return FilesMoved([restore.path for restore in plan.restores], plan.skipped)

    async def rewind(self, message_id: str, restore_files: bool = False) -> ConversationChange:
        """Goes back to before one of the user's messages, whose text is returned; files too where asked."""
        self._runner.need_idle("rewind")
        message = self._own(message_id)
        moved = await self.go_to(message.parent_id, restore_files)
        return replace(moved, text=message.text)

    async def restore_files(self, message_id: str) -> FilesMoved:
        """Puts the files as they were before one of the user's messages; the conversation stays. Raises AgentError."""
        parent = self._own(message_id).parent_id
        moved = await self._runner.exclusively(self._restore(parent), "restore the files")
        if moved is None:
            raise AgentError("Interrupted; nothing changed.")
        return moved

    async def _restore(self, head: str | None) -> FilesMoved:
        history, (leaving, entering) = self._toolbox.files(), self._way(head)
        plan = history.plan(leaving, entering)
        await patiently(lambda: self._toolbox.keep_files(history, plan, leaving))
        return await self._put(plan)

    def _own(self, message_id: str) -> Message:
        """A message of the user's in the conversation. Raises AgentError where it is none."""
        message = next((m for m in self._conversation.path if m.id == message_id), None)
        if message is None or message.role != "user":
            raise AgentError("You can only rewind to a message of yours in this conversation.")
        return message

    async def go_to(self, head: str | None, restore_files: bool = False) -> ConversationChange:
        """Goes on from the message ``head``, on whichever branch it is; files too where asked. Raises AgentError for
        one that is not there, and where it was interrupted before anything had changed."""
        moved = await self._runner.exclusively(self._go_to(head, restore_files), "go to another branch")
        if moved is None:
            raise AgentError("Interrupted; nothing changed.")
        return moved

    async def back(self, restore_files: bool = False) -> ConversationChange:
        """Returns to the branch that was left last. Raises AgentError where there is none."""
        end = self._conversation.info.state.back
        if end is None or end not in self._conversation.messages:
            raise AgentError("Nothing to return to: you have not left a branch in this session.")
        return await self.go_to(end, restore_files)

    async def _go_to(self, head: str | None, restore_files: bool) -> ConversationChange:
        conversation, (leaving, entering) = self._conversation, self._way(head)
        conversation.require_writable()
        if head == conversation.info.head_id:
            raise AgentError("Already there.")
        history = self._toolbox.files()
        plan = history.plan(leaving, entering) if restore_files else None
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
        self._state.events.publish(SessionChanged(conversation.info, reload=True))
        # The transcript is built anew first: what the user is told comes below it.
        for line in files.left if files is not None else ():
            self._state.events.publish(Notice("warning", line, "restored"))
        self._context.metrics.recalculation()
        self._context.recount()
        return ConversationChange(len(leaving), len(entering), files=files)

    async def _put(self, plan: RestorePlan) -> FilesMoved:
        """Does what ``plan`` says, also where it is interrupted meanwhile: half of it would be of neither branch."""
        work = asyncio.ensure_future(self._toolbox.restore_files(plan))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            return await work

    def _way(self, head: str | None) -> tuple[list[str], list[str]]:
        """The ids of the messages that the conversation has and the one that ends with ``head`` has not, and of those
        that only that one has, oldest first."""
        here, there = self._conversation.path, self._conversation.way_to(head)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], zip(here, there, strict=False)))
        return [message.id for message in here[shared:]], [message.id for message in there[shared:]]
