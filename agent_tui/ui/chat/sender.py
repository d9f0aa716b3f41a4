"""From Enter to the agent: commands, shell lines, files named in the text, messages; early ones wait their turn."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from agent_tui.errors import AgentError
from agent_tui.text.clean import one_line

if TYPE_CHECKING:
    from textual.worker import Worker

    from agent_tui.commands.result import CommandResult
    from agent_tui.engine.agent import Agent
    from agent_tui.models.messages import AttachmentPart
    from agent_tui.ui.app import AgentApp


LONG_COMMANDS = ("compact",)
"""Commands that keep the agent busy: what is sent meanwhile waits in the agent's queue, where it can be seen."""


@dataclass(slots=True, eq=False)
class Outgoing:
    """A message on its way to the agent."""

    text: str
    attachments: list[AttachmentPart]
    steer: bool = False
    worker: Worker[None] | None = None


class Sender:
    """Keeps what is sent before the agent is there, and the order of what is sent."""

    def __init__(self, app: AgentApp) -> None:
        self.app = app
        self.waiting: list[tuple[str, list[AttachmentPart], bool]] = []
        self.preparing: list[Outgoing] = []
        self._order = asyncio.Lock()

    def send(self, text: str, attachments: list[AttachmentPart], steer: bool = False) -> None:
        """Takes what was typed. Returns at once; the work is done in a task of the app."""
        if self.app.agent is None:
            self.waiting.append((text, attachments, steer))
            self.show_waiting()
            return
        outgoing = Outgoing(text, attachments, steer)
        if not text.startswith(("/", "!")):
            self.preparing.append(outgoing)
        # A function, not a coroutine: one that is cancelled before it began leaves nothing unawaited.
        work = partial(self._send, self.app.agent, outgoing)
        outgoing.worker = self.app.run_worker(work, group="send", exit_on_error=False)

    def show_waiting(self) -> None:
        """Shows what waits for the agent."""
        if self.app.furnished:
            self.app.queue_view.show([text for text, _, _ in self.waiting], [])

    def agent_ready(self) -> None:
        """Sends what waited."""
        waiting, self.waiting = self.waiting, []
        if waiting:
            self.show_waiting()
        for text, attachments, steer in waiting:
            self.send(text, attachments, steer)

    def take_back(self) -> tuple[str, list[AttachmentPart]] | None:
        """The newest message that has not gone out yet."""
        if self.app.agent is not None:
            return self.app.agent.take_back()
        if not self.waiting:
            return None
        text, attachments, _ = self.waiting.pop()
        self.show_waiting()
        return text, attachments

    def cancel(self) -> bool:
        """Gives back what is still being prepared, such as files that are read; False when nothing is."""
        cancelled, self.preparing = self.preparing, []
        for outgoing in reversed(cancelled):
            if outgoing.worker is not None:
                outgoing.worker.cancel()
            self.app.prompt.give_back(outgoing.text, outgoing.attachments)
        if cancelled:
            self._prepared()
        return bool(cancelled)

    def _prepared(self) -> None:
        agent = self.app.agent
        if agent is not None and not agent.busy and not self.preparing:
            self.app.activity.end()

    async def _send(self, agent: Agent, outgoing: Outgoing) -> None:
        from agent_tui.commands.registry import is_command, split

        text = outgoing.text
        try:
            if is_command(text, agent):
                if split(text)[0] in LONG_COMMANDS:
                    await self.command(text)
                else:
                    async with self._order:
                        await self.command(text)
            elif text.startswith("!") and text[1:].strip():
                self.app.transcript.follow_end()
                await agent.shell(text[1:].strip())
                if not agent.busy:
                    self.app.activity.end()
            else:
                self.app.transcript.follow_end()
                await self._message(agent, outgoing)
        except AgentError as error:
            self.app.say("error", str(error))

    async def _message(self, agent: Agent, outgoing: Outgoing) -> None:
        if outgoing not in self.preparing:
            self.preparing.append(outgoing)
        if self._order.locked() and not agent.busy and not self.app.activity.phase:
            self.app.activity.begin("Waiting for the command before this", "Esc to cancel")
        try:
            async with self._order:
                attachments = await self._attachments(agent, outgoing)
                # No more awaiting from here on: what has been handed over cannot be given back.
                self.app.transcript.follow_end()
                if agent.read_only:
                    self.app.prompt.give_back(outgoing.text, outgoing.attachments)
                    self.app.prompting.refused(outgoing.text)
                elif outgoing.steer and agent.busy:
                    agent.steer(outgoing.text, attachments)
                else:
                    agent.submit(outgoing.text, attachments)
        finally:
            if outgoing in self.preparing:
                self.preparing.remove(outgoing)
            self._prepared()

    async def _attachments(self, agent: Agent, outgoing: Outgoing) -> list[AttachmentPart]:
        """What goes with the message: its images and what it names with ``@``."""
        text = outgoing.text
        if "@" not in text:
            return await self._fitting(agent, outgoing.attachments)
        from agent_tui.commands.mentions import expand_mentions, outside

        if not agent.busy:
            self.app.activity.begin("Reading what is attached", "Esc to cancel")
        beyond = await asyncio.to_thread(outside, text, agent.cwd, agent.folders)
        allowed = [path for path in beyond if await self.app.permissions.may_attach(path)]
        found, problems = await asyncio.to_thread(expand_mentions, text, agent.cwd, agent.folders, allowed)
        resources, unread = await agent.mcp_attachments(text)
        for problem in [*problems, *unread]:
            self.app.say("warning", f"Not attached: {problem}")
        return await self._fitting(agent, [*outgoing.attachments, *found, *resources])

    async def _fitting(self, agent: Agent, attachments: list[AttachmentPart]) -> list[AttachmentPart]:
        """The attachments as the model takes them; what was changed or left out for that is said."""
        attached, scaled, refused = await agent.fit_images(attachments)
        for line in scaled:
            self.app.say("info", line)
        for line in refused:
            self.app.say("warning", f"Not attached: {line}")
        return attached

    async def command(self, line: str) -> None:
        """Runs a slash command and shows what it answers."""
        from agent_tui.commands.registry import run

        agent = self.app.agent
        if agent is None:
            self.waiting.append((line, [], False))
            return
        try:
            result = await run(agent, line)
        except AgentError as error:
            self.app.say("error", str(error))
            return
        from agent_tui.commands.result import Submit

        if isinstance(result, Submit) and "@" in line:
            # The user's own words alone name files: the command's text is from a file or a server.
            attachments = await self._attachments(agent, Outgoing(line, []))
            self.app.transcript.follow_end()
            agent.submit(result.text, attachments)
        else:
            self.show(line, result)

    def show(self, line: str, result: CommandResult) -> None:
        from agent_tui.commands import result as results

        app = self.app
        if isinstance(result, results.Text):
            app.transcript.follow_end()
        match result:
            case results.Text(text, markdown, error):
                if error:
                    app.say("warning", text)
                elif "\n" in text or markdown:
                    app.transcript.add_block(one_line(line, 80), text, markdown=markdown)
                else:
                    app.say("info", text)
            case results.OpenScreen(name, data):
                app.open_screen(name, data)
            case results.Submit(text):
                self.send_plain(text)
            case results.Copy(text, what):
                app.copy(text, what)
            case results.Quit():
                app.leave()
            case results.Nothing():
                app.facts_changed()
        if not isinstance(result, results.OpenScreen | results.Quit):
            app.facts_changed()

    def send_plain(self, text: str) -> None:
        """A message that is not looked at as a command."""
        agent = self.app.agent
        if agent is not None:
            self.app.transcript.follow_end()
            agent.submit(text)
