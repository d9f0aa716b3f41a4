"""What the prompt asks for before its next key."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.models.messages import Written
    from agent_tui.ui.chat.input.drafts import Drafts
    from agent_tui.ui.chat.needs import Copies, Sends, TakesPaste, Tells
    from agent_tui.ui.chat.seat import Seat
    from agent_tui.ui.chat.stage import Stage
    from agent_tui.ui.keys import TypingGuard
    from agent_tui.ui.prompt.widget import Host

READ_ONLY_HINT = "Read-only: this session is open elsewhere. /fork continues a copy."


def refused(text: str, agent: Agent | None, tells: Tells) -> bool:
    """A session that is open elsewhere takes commands only; the text stays where it is."""
    if agent is None or not agent.conversation.read_only:
        return False
    from agent_tui.commands.registry import is_command

    if is_command(text, agent):
        return False
    tells.hint(READ_ONLY_HINT)
    return True


class PromptHost:
    """Hands on what is typed. ``guard`` is told of every key, so that none becomes an answer by accident."""

    def __init__(
        self,
        seat: Seat,
        stage: Stage,
        guard: TypingGuard,
        drafts: Drafts,
        sender: Sends,
        pasting: TakesPaste,
        copying: Copies,
    ) -> None:
        self._seat = seat
        self._stage = stage
        self._guard = guard
        self._drafts = drafts
        self._sender = sender
        self._pasting = pasting
        self._copying = copying

    def typed(self) -> None:
        self._guard.typed()
        self._drafts.key_comes()

    def sent(self, typed: Written, steer: bool) -> None:
        """A message, a command or a shell line goes out."""
        self._guard.sent()
        self._drafts.forget()
        self._sender.send(typed, steer)

    def take_back(self) -> None:
        """↑ on an empty prompt: the newest queued message, else the newest of the history."""
        taken = self._sender.take_back()
        if taken is None:
            self._stage.prompt.recall_older()
        else:
            self._stage.prompt.give_back(taken)

    def send_waiting(self) -> None:
        """Enter on an empty prompt, while nothing runs or what runs was interrupted: what waits goes out."""
        agent = self._seat.agent
        if agent is not None and agent.turns.send_waiting():
            self._stage.transcript.follow_end()

    def pasted(self, text: str) -> None:
        self._pasting.pasted(text)

    def copied(self, text: str) -> None:
        self._copying.copy(text, "what was yanked")

    def mode_shown(self, words: str) -> None:
        self._stage.status.show_mode(words)

    def refused(self, text: str) -> bool:
        return refused(text, self._seat.agent, self._stage)


_HOST: type[Host] = PromptHost
