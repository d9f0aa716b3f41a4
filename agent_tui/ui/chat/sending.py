"""From Enter to the agent: commands, shell lines, messages with their attachments; early ones wait their turn."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, assert_never

from agent_tui.errors import AgentError
from agent_tui.ui.chat.view import ChatPart

if TYPE_CHECKING:
    from textual.worker import Worker

    from agent_tui.engine.agent import Agent
    from agent_tui.models.messages import AttachmentPart, Written
    from agent_tui.ui.chat.composing import Copying
    from agent_tui.ui.chat.questions import Questions
    from agent_tui.ui.chat.session import SessionView
    from agent_tui.ui.chat.view import MainView


READ_ONLY_HINT = "Read-only: this session is open elsewhere. /fork continues a copy."


LONG_COMMANDS = ("compact", "context", "handoff")
"""Commands that keep the agent busy: what is sent meanwhile waits in the agent's queue, where it can be seen."""


class Outgoing:
    """A message on its way to the agent; ``behind`` is the id of the one it waits behind, if it has to."""

    def __init__(self, typed: Written, steer: bool, behind: str | None = None) -> None:
        self.typed = typed
        self.steer = steer
        self.behind = behind
        self.task: Worker[None] | None = None
        self.aside = ""
        """What goes on beside the session, holds nothing up and can be cancelled."""


class Sender(ChatPart):
    """Keeps what is sent before the agent is there, and the order of what is sent."""

    def __init__(self, view: MainView, questions: Questions, session: SessionView, copying: Copying) -> None:
        super().__init__(view)
        self._questions = questions
        self._session = session
        self._copying = copying
        self.waiting: list[tuple[Written, bool]] = []
        self.preparing: list[Outgoing] = []
        self._order = asyncio.Lock()
        self._behind: str | None = None

    def send(self, typed: Written, steer: bool = False) -> None:
        """Takes what was typed. Returns at once; the work is done in a task."""
        agent = self._agent
        if agent is None:
            self.waiting.append((typed, steer))
            self.show_waiting()
            return
        outgoing = Outgoing(typed, steer)
        if not typed.text.startswith(("/", "!")):
            outgoing.behind, self._behind = self._behind, None
            self.preparing.append(outgoing)
        elif typed.text.startswith("/"):
            from agent_tui.commands.registry import waits_for_server

            if aside := waits_for_server(typed.text):
                outgoing.aside = aside
                self.preparing.append(outgoing)
        outgoing.task = self._view.begin(partial(self._send, agent, outgoing), group="send")

    def show_waiting(self) -> None:
        if self._view.furnished:
            from agent_tui.models.events import WaitingMessage

            waiting = [WaitingMessage(str(n), typed.text, "queued") for n, (typed, _) in enumerate(self.waiting)]
            self._view.queue_view.show(waiting, False)

    def agent_ready(self, wanted: bool = True) -> None:
        """Sends what waited, or gives it back where the session is not the ``wanted`` one."""
        waiting, self.waiting = self.waiting, []
        if waiting:
            self.show_waiting()
        for typed, steer in waiting if wanted else ():
            self.send(typed, steer)
        for typed, _ in reversed(() if wanted else waiting):
            self._view.prompt.give_back(typed)

    def take_back(self) -> Written | None:
        """The newest message that has not gone out yet."""
        if self._agent is not None:
            return self._agent.turns.take_back()
        if not self.waiting:
            return None
        typed, _ = self.waiting.pop()
        self.show_waiting()
        return typed

    def edit(self, message_id: str) -> None:
        """Takes a message that waits into the prompt; sent again, it waits in its old place."""
        agent = self._agent
        if agent is None:
            return
        listed = list(agent.waiting.listed)
        place = next((n for n, waits in enumerate(listed) if waits.id == message_id), None)
        taken = agent.turns.take_back(message_id)
        if taken is None:
            self._view.hint("Already sent")
            return
        self._behind = None
        if place is not None and listed[place].kind == "queued":
            self._behind = listed[place - 1].id if place else ""
        self._view.prompt.give_back(taken)

    def cancel(self) -> bool:
        """Gives back what is still being prepared, such as files that are read; False when nothing is. What goes on
        beside a turn is cancelled after it."""
        busy = self._view.holder.busy
        cancelled = [outgoing for outgoing in self.preparing if not (busy and outgoing.aside)]
        self.preparing = [outgoing for outgoing in self.preparing if outgoing not in cancelled]
        for outgoing in reversed(cancelled):
            if outgoing.task is not None:
                outgoing.task.cancel()
            if outgoing.aside:
                self._view.hint(f"{outgoing.aside}: cancelled")
            else:
                self._view.prompt.give_back(outgoing.typed)
        if cancelled:
            self._prepared()
        return bool(cancelled)

    def _prepared(self) -> None:
        agent, aside = self._agent, [outgoing.aside for outgoing in self.preparing if outgoing.aside]
        if agent is None or agent.turns.busy:
            return
        if aside:
            self._view.activity.begin(aside[-1], "Esc to cancel")
        elif not self.preparing:
            self._view.activity.end()

    async def _send(self, agent: Agent, outgoing: Outgoing) -> None:
        from agent_tui.commands.registry import is_command, split

        text = outgoing.typed.text
        try:
            if outgoing.aside:
                await self._beside(agent, outgoing)
            elif is_command(text, agent):
                async with contextlib.nullcontext() if split(text)[0] in LONG_COMMANDS else self._order:
                    await self.command(text)
            elif text.startswith("!") and text[1:].strip():
                self._view.transcript.follow_end()
                await agent.shell(text[1:].strip())
                if not agent.turns.busy:
                    self._view.activity.end()
            else:
                self._view.transcript.follow_end()
                await self._message(agent, outgoing)
        except AgentError as error:
            self._view.say("error", str(error))

    async def _beside(self, agent: Agent, outgoing: Outgoing) -> None:
        """Runs a command that waits for a server, which holds nothing else up."""
        if agent.turns.busy:
            self._view.say("info", f"{outgoing.aside}…")
        self._prepared()
        try:
            await self._run(agent, outgoing.typed.text)
        finally:
            if outgoing in self.preparing:
                self.preparing.remove(outgoing)
            self._prepared()

    async def _message(self, agent: Agent, outgoing: Outgoing) -> None:
        view = self._view
        if outgoing not in self.preparing:
            self.preparing.append(outgoing)
        if self._order.locked() and not agent.turns.busy and not view.activity.phase:
            view.activity.begin("Waiting for the previous command", "Esc to cancel")
        try:
            async with self._order:
                text, given, pasted = outgoing.typed
                attachments = await self._attached(agent, text, given)
                # No more awaiting from here on: what has been handed over cannot be given back.
                view.transcript.follow_end()
                if agent.conversation.read_only:
                    view.prompt.give_back(outgoing.typed)
                    self.refused(text)
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

        agent = self._agent
        if agent is None:
            self.waiting.append((Written(line, []), False))
        else:
            await self._run(agent, line)

    def refused(self, text: str) -> bool:
        """A session that is open elsewhere takes commands only; the text stays where it is."""
        from agent_tui.commands.registry import is_command

        agent = self._agent
        if agent is None or not agent.conversation.read_only or is_command(text, agent):
            return False
        self._view.hint(READ_ONLY_HINT)
        return True

    async def _run(self, agent: Agent, line: str) -> None:
        """Runs ``/name args`` and gives its result to what shows it; an AgentError becomes a line."""
        from agent_tui.commands import registry
        from agent_tui.commands.info import Info
        from agent_tui.commands.registry import run

        view, handoff = self._view, registry.split(line)[0].lower() == "handoff"
        if handoff and not agent.turns.busy:
            view.activity.begin("Writing the brief", "Esc to cancel")
        try:
            result = await run(agent, line)
        except AgentError as problem:
            view.say("error", str(problem))
            return
        finally:
            if handoff and not agent.turns.busy:
                view.activity.end()
        match result:
            case registry.Submit(text, typed):
                # The user's own words alone name files and hosts: the command's text is from a file or a server.
                attachments = await self._attached(agent, line)
                view.transcript.follow_end()
                agent.turns.submit(text, attachments, typed=typed)
                return
            case Info():
                from agent_tui.ui.screens.info import InfoScreen

                view.app.push_screen(InfoScreen(agent, result, self._changed))
            case registry.Text(text) if "\n" in text and not result.error and not result.then:
                from agent_tui.ui.screens.text import TextScreen

                view.app.push_screen(TextScreen(line, text))
            case registry.Text(text):
                view.transcript.follow_end()
                view.say("warning" if result.error else "info", text)
                if result.then:
                    view.prompt.offer(result.then)
            case registry.OpenScreen(name, data):
                view.app.open_screen(name, data)
                return
            case registry.Copy(text, what):
                self._copying.copy(text, what)
            case registry.Quit():
                view.app.leave()
                return
            case registry.Nothing():
                pass
            case _:
                assert_never(result)
        self._session.facts_changed()

    def _changed(self, said: str) -> None:
        """A dialog has changed something, and ``said`` so as it closed."""
        self._session.facts_changed()
        if said:
            self._view.say("info", said)

    async def _attached(self, agent: Agent, text: str, given: Sequence[AttachmentPart] = ()) -> list[AttachmentPart]:
        """Reads what goes with a message: ``given``, and files that ``text`` names with ``@``; asks for those
        outside."""
        from agent_tui.commands.mentions import collect

        if "@" in text and not agent.turns.busy:
            self._view.activity.begin("Reading attachments", "Esc to cancel")
        return await collect(agent, text, given, self._view.say, self._questions.may_attach)
