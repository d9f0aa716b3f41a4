"""From Enter to the agent: commands, shell lines, files named in the text, messages; early ones wait their turn."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agent_tui.commands.format import one_line
from agent_tui.errors import AgentError

if TYPE_CHECKING:
    from agent_tui.commands.result import CommandResult
    from agent_tui.engine.agent import Agent
    from agent_tui.models.messages import AttachmentPart
    from agent_tui.ui.app import AgentApp


class Sender:
    """Keeps what is sent before the agent is there, and the order of what is sent."""

    def __init__(self, app: AgentApp) -> None:
        self.app = app
        self.waiting: list[tuple[str, list[AttachmentPart], bool]] = []
        self._order = asyncio.Lock()

    def send(self, text: str, attachments: list[AttachmentPart], steer: bool = False) -> None:
        """Takes what was typed. Returns at once; the work is done in a task of the app."""
        if self.app.agent is None:
            self.waiting.append((text, attachments, steer))
            self.app.queue_view.show([text for text, _, _ in self.waiting], [])
            return
        self.app.run_worker(self._send(self.app.agent, text, attachments, steer), group="send", exit_on_error=False)

    def agent_ready(self) -> None:
        """Sends what waited."""
        waiting, self.waiting = self.waiting, []
        if waiting:
            self.app.queue_view.show([], [])
        for text, attachments, steer in waiting:
            self.send(text, attachments, steer)

    def take_back(self) -> str | None:
        """The newest message that has not gone out yet."""
        if self.app.agent is not None:
            return self.app.agent.unqueue()
        if not self.waiting:
            return None
        text = self.waiting.pop()[0]
        self.app.queue_view.show([text for text, _, _ in self.waiting], [])
        return text

    async def _send(self, agent: Agent, text: str, attachments: list[AttachmentPart], steer: bool) -> None:
        from agent_tui.commands.registry import is_command

        try:
            if is_command(text, agent):
                await self.command(text)
            elif text.startswith("!") and text[1:].strip():
                self.app.transcript.follow_end()
                await agent.shell(text[1:].strip())
                if not agent.busy:
                    self.app.activity.end()
            else:
                async with self._order:
                    await self._message(agent, text, attachments, steer)
        except AgentError as error:
            self.app.say("error", str(error))

    async def _message(self, agent: Agent, text: str, attachments: list[AttachmentPart], steer: bool) -> None:
        if "@" in text:
            from agent_tui.commands.mentions import expand_mentions

            found, problems = await asyncio.to_thread(expand_mentions, text, agent.cwd)
            resources, unread = await agent.mcp_attachments(text)
            attachments = [*attachments, *found, *resources]
            for problem in [*problems, *unread]:
                self.app.say("warning", f"Not attached: {problem}")
        self.app.transcript.follow_end()
        if steer and agent.busy and not attachments:
            agent.steer(text)
        else:
            agent.submit(text, attachments)

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
