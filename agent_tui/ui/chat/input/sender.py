"""From Enter to the agent: commands, shell lines, messages; early ones wait their turn."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from agent_tui.errors import AgentError
from agent_tui.ui.chat.input.prompt_host import refused

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.models.messages import Written
    from agent_tui.ui.chat.input.attachments import Attachments
    from agent_tui.ui.chat.needs import AnswersCommands, EditsWaiting, GivesBack, HasAgent, Sends, StartsTasks, Task
    from agent_tui.ui.chat.stage import Stage


LONG_COMMANDS = ("compact",)
"""Commands that keep the agent busy: what is sent meanwhile waits in the agent's queue, where it can be seen."""


class Outgoing:
    """A message on its way to the agent; ``behind`` is the id of the one it waits behind, if it has to."""

    def __init__(self, typed: Written, steer: bool, behind: str | None = None) -> None:
        self.typed = typed
        self.steer = steer
        self.behind = behind
        self.task: Task | None = None


class Sender:
    """Keeps what is sent before the agent is there, and the order of what is sent."""

    def __init__(
        self, seat: HasAgent, stage: Stage, tasks: StartsTasks, attachments: Attachments, commands: AnswersCommands
    ) -> None:
        self._seat = seat
        self._stage = stage
        self._tasks = tasks
        self._attachments = attachments
        self._commands = commands
        self.waiting: list[tuple[Written, bool]] = []
        self.preparing: list[Outgoing] = []
        self._order = asyncio.Lock()
        self._behind: str | None = None

    @property
    def is_preparing(self) -> bool:
        """Whether a message is on its way to the agent."""
        return bool(self.preparing)

    def send(self, typed: Written, steer: bool = False) -> None:
        """Takes what was typed. Returns at once; the work is done in a task."""
        agent = self._seat.agent
        if agent is None:
            self.waiting.append((typed, steer))
            self.show_waiting()
            return
        outgoing = Outgoing(typed, steer)
        if not typed.text.startswith(("/", "!")):
            outgoing.behind, self._behind = self._behind, None
            self.preparing.append(outgoing)
        outgoing.task = self._tasks.begin(partial(self._send, agent, outgoing), group="send")

    def show_waiting(self) -> None:
        """Shows what waits for the agent."""
        if self._stage.furnished:
            from agent_tui.models.events import WaitingMessage

            waiting = [WaitingMessage(str(n), typed.text, "queued") for n, (typed, _) in enumerate(self.waiting)]
            self._stage.queue_view.show(waiting, False)

    def agent_ready(self, wanted: bool = True) -> None:
        """Sends what waited, or gives it back where the session is not the ``wanted`` one."""
        waiting, self.waiting = self.waiting, []
        if waiting:
            self.show_waiting()
        for typed, steer in waiting if wanted else ():
            self.send(typed, steer)
        for typed, _ in reversed(() if wanted else waiting):
            self._stage.prompt.give_back(typed)

    def take_back(self) -> Written | None:
        """The newest message that has not gone out yet."""
        if self._seat.agent is not None:
            return self._seat.agent.turns.take_back()
        if not self.waiting:
            return None
        typed, _ = self.waiting.pop()
        self.show_waiting()
        return typed

    def edit(self, message_id: str) -> None:
        """Takes a message that waits into the prompt; sent again, it waits in its old place."""
        agent = self._seat.agent
        if agent is None:
            return
        before = ""
        for waits in agent.waiting.listed:
            if waits.id == message_id:
                break
            before = waits.id
        kind = next((waits.kind for waits in agent.waiting.listed if waits.id == message_id), None)
        taken = agent.turns.take_back(message_id)
        if taken is None:
            self._stage.hint("It waits no more: it was just sent")
            return
        self._behind = before if kind == "queued" else None
        self._stage.prompt.give_back(taken)

    def cancel(self) -> bool:
        """Gives back what is still being prepared, such as files that are read; False when nothing is."""
        cancelled, self.preparing = self.preparing, []
        for outgoing in reversed(cancelled):
            if outgoing.task is not None:
                outgoing.task.cancel()
            self._stage.prompt.give_back(outgoing.typed)
        if cancelled:
            self._prepared()
        return bool(cancelled)

    def _prepared(self) -> None:
        agent = self._seat.agent
        if agent is not None and not agent.turns.busy and not self.preparing:
            self._stage.activity.end()

    async def _send(self, agent: Agent, outgoing: Outgoing) -> None:
        from agent_tui.commands.registry import is_command, split

        text = outgoing.typed.text
        try:
            if is_command(text, agent):
                if split(text)[0] in LONG_COMMANDS:
                    await self.command(text)
                else:
                    async with self._order:
                        await self.command(text)
            elif text.startswith("!") and text[1:].strip():
                self._stage.transcript.follow_end()
                await agent.shell(text[1:].strip())
                if not agent.turns.busy:
                    self._stage.activity.end()
            else:
                self._stage.transcript.follow_end()
                await self._message(agent, outgoing)
        except AgentError as error:
            self._stage.say("error", str(error))

    async def _message(self, agent: Agent, outgoing: Outgoing) -> None:
        stage = self._stage
        if outgoing not in self.preparing:
            self.preparing.append(outgoing)
        if self._order.locked() and not agent.turns.busy and not stage.activity.phase:
            stage.activity.begin("Waiting for the command before this", "Esc to cancel")
        try:
            async with self._order:
                text, given, pasted = outgoing.typed
                attachments = await self._attachments.collect(agent, text, given)
                # No more awaiting from here on: what has been handed over cannot be given back.
                stage.transcript.follow_end()
                if agent.conversation.read_only:
                    stage.prompt.give_back(outgoing.typed)
                    refused(text, agent, stage)
                elif outgoing.steer and agent.turns.busy:
                    agent.turns.steer(text, attachments, pasted)
                else:
                    agent.turns.submit(text, attachments, pasted, outgoing.behind)
        finally:
            if outgoing in self.preparing:
                self.preparing.remove(outgoing)
            self._prepared()

    async def command(self, line: str) -> None:
        """Runs a slash command; one that comes before the agent waits for it."""
        from agent_tui.models.messages import Written

        agent = self._seat.agent
        if agent is None:
            self.waiting.append((Written(line, []), False))
        else:
            await self._commands.run(agent, line)


_SENDS: type[Sends] = Sender
_GIVES_BACK: type[GivesBack] = Sender
_EDITS: type[EditsWaiting] = Sender
