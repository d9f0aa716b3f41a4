"""The branches of the session in front: what there are, what going to one would change, and the way there."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent_tui.context.accounting.lost import LostReasoning, WayBack, lost_reasoning
from agent_tui.context.anchor import branches, on_branch
from agent_tui.context.tokens import family_of
from agent_tui.context.view import build_view
from agent_tui.engine.accounts.accounts import Accounts
from agent_tui.engine.project.toolbox import Toolbox
from agent_tui.engine.running.runner import Runner
from agent_tui.engine.session.conversation import Conversation
from agent_tui.engine.session.storing import patiently
from agent_tui.engine.state.binding import Bindings
from agent_tui.engine.state.hub import Hub
from agent_tui.errors import AgentError
from agent_tui.models.events import Notice, SessionChanged
from agent_tui.models.messages import Message
from agent_tui.models.session import Branch, FilesMoved, Moved
from agent_tui.tools.files.snapshots import RestorePlan

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
        """What is in the session beside the conversation."""
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
        """What would become of the files if they were put as the conversation that ends with ``head`` has them."""
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
