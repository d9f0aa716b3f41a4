"""Running slash commands and showing what they answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_tui.errors import AgentError
from agent_tui.text.clean import one_line

if TYPE_CHECKING:
    from agent_tui.commands.result import CommandResult
    from agent_tui.engine.agent import Agent
    from agent_tui.ui.chat.host import Leaves, OpensScreens
    from agent_tui.ui.chat.input.attachments import Attachments
    from agent_tui.ui.chat.needs import AnswersCommands, Copies, ShowsFacts
    from agent_tui.ui.chat.stage import Stage


class Commands:
    """Each kind of answer goes to what shows it."""

    def __init__(
        self,
        stage: Stage,
        attachments: Attachments,
        screens: OpensScreens,
        copying: Copies,
        facts: ShowsFacts,
        leaves: Leaves,
    ) -> None:
        self._stage = stage
        self._attachments = attachments
        self._screens = screens
        self._copying = copying
        self._facts = facts
        self._leaves = leaves

    async def run(self, agent: Agent, line: str) -> None:
        """Runs ``/name args``; an AgentError becomes a line."""
        from agent_tui.commands.registry import run
        from agent_tui.commands.result import Submit

        try:
            result = await run(agent, line)
        except AgentError as error:
            self._stage.say("error", str(error))
            return
        if isinstance(result, Submit):
            # The user's own words alone name files and hosts: the command's text is from a file or a server.
            attachments = await self._attachments.collect(agent, line, [])
            self._stage.transcript.follow_end()
            agent.turns.submit(result.text, attachments)
        else:
            self._show(agent, line, result)

    def _show(self, agent: Agent, line: str, result: CommandResult) -> None:
        from agent_tui.commands import result as results

        stage = self._stage
        if isinstance(result, results.Text):
            stage.transcript.follow_end()
        match result:
            case results.Text(text, markdown, error):
                if error:
                    stage.say("warning", text)
                elif "\n" in text or markdown:
                    stage.transcript.add_block(one_line(line, 80), text, markdown=markdown)
                else:
                    stage.say("info", text)
            case results.OpenScreen(name, data):
                self._screens.open_screen(name, data)
            case results.Submit(text):
                stage.transcript.follow_end()
                agent.turns.submit(text)
            case results.Copy(text, what):
                self._copying.copy(text, what)
            case results.Quit():
                self._leaves.leave()
            case results.Nothing():
                pass
        if not isinstance(result, results.OpenScreen | results.Quit):
            self._facts.facts_changed()


_ANSWERS: type[AnswersCommands] = Commands
